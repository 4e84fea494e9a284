//go:build !windows

package pyodide

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rillbox/pyodide/gateway"
)

// FuzzInstalled reads what a worker says that it installed: no plan is made of
// anything but what the gateway served.
func FuzzInstalled(f *testing.F) {
	sum := strings.Repeat("a", 64)
	served := []gateway.File{
		{Name: "six", Version: "1.17.0", Filename: "six-1.17.0-py2.py3-none-any.whl", SHA256: sum, Source: "index", URL: "https://files.test/six"},
		{Name: "numpy", Version: "2.0", Filename: "numpy-2.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl", SHA256: strings.Repeat("b", 64), Source: "pyodide"},
	}
	for _, seed := range []string{
		`{"files":[{"filename":"six-1.17.0-py2.py3-none-any.whl","sha256":"` + sum + `","dir":"site"}],"missing":{"x":"why"}}`,
		`{"files":[{"filename":"six-1.17.0-py2.py3-none-any.whl","sha256":"` + sum + `","dir":"../x"}]}`,
		`{"files":[{"filename":"evil.whl","sha256":"` + sum + `","dir":"site"}]}`, `{"files":null,"missing":null}`, `{}`, `{"files":[null]}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p plan
		if json.Unmarshal(text, &p) != nil {
			return
		}
		reported := len(p.Files)
		if err := p.check(served); err != nil {
			if len(err.Error()) > 2000 {
				t.Errorf("%q gave an error of %d bytes", text, len(err.Error()))
			}
			return
		}
		if len(p.Files) != reported {
			t.Errorf("%q: %d files of %d", text, len(p.Files), reported)
		}
		for _, file := range p.Files {
			if !slices.Contains(served, file.File) || file.Dir != "site" && file.Dir != "dynlib" {
				t.Errorf("%q put %+v into the plan", text, file)
			}
		}
		stored, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var again plan
		if err := json.Unmarshal(stored, &again); err != nil || !slices.Equal(again.files(), p.files()) {
			t.Errorf("%q is not read as it was stored: %v", text, err)
		}
	})
}

// FuzzStoredPlan reads plans as they lie in the cache.
func FuzzStoredPlan(f *testing.F) {
	for _, seed := range []string{`{"files":[{"Name":"six","Version":"1","Filename":"six-1-py3-none-any.whl","URL":"https://x.test/six","SHA256":"aa","Source":"index","Dir":"site"}],"missing":{}}`, `{"files":[{"Filename":"../x"}]}`, `null`, `{"missing":{"a":"b"}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p *plan
		if json.Unmarshal(text, &p) != nil {
			return
		}
		answer, err := json.Marshal(p.answer())
		if err != nil {
			t.Fatalf("%q can't be told to a worker: %v", text, err)
		}
		var told struct {
			Plan *struct {
				Files []struct {
					URL string `json:"url"`
				} `json:"files"`
			} `json:"plan"`
		}
		if err := json.Unmarshal(answer, &told); err != nil || (told.Plan == nil) != (p == nil) {
			t.Fatalf("%q became %s: %v", text, answer, err)
		}
		if p == nil {
			return
		}
		for i, file := range told.Plan.Files {
			if name := file.URL[strings.LastIndexByte(file.URL, '/')+1:]; strings.ContainsAny(name, "?#/ ") || !strings.HasPrefix(file.URL, "file/") && p.Files[i].SHA256 != "" {
				t.Errorf("%q is fetched from %q", text, file.URL)
			}
		}
	})
}
