package gateway

import (
	"strings"
	"testing"

	"rillbox/cache/egress"
)

func FuzzLock(f *testing.F) {
	f.Add(lockOf("demo", "1.0", demoWheel, sumA))
	f.Add([]byte(`{"packages":{"x":{"name":"x","version":"1","file_name":"https://evil.example/x.whl","sha256":"` + sumA + `"}}}`))
	f.Add([]byte(`{"packages":{"x":{"name":"x","file_name":"%2e%2e","sha256":"` + sumA + `"}}}`))
	g := &Gateway{cdn: mustURL(f, "https://cdn.example/full/")}
	f.Fuzz(func(t *testing.T, lock []byte) {
		files, err := g.readLock(lock)
		if err != nil {
			return
		}
		for name, e := range files {
			if !isFilename(name) || !isSHA256(e.SHA256) || e.Name != egress.NormalizePython(e.Name) || !strings.HasPrefix(e.URL, "https://cdn.example/full/") {
				t.Errorf("%q: %+v", name, e.File)
			}
		}
	})
}
