//go:build !windows

package deno_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// registry is a server of packages on loopback: npm's protocol below /npm/,
// JSR's below /jsr/, plain modules elsewhere.
type registry struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
	files map[string][]byte
}

func newRegistry(t *testing.T) *registry {
	r := &registry{asked: map[string]int{}, files: map[string][]byte{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.asked[q.URL.Path]++
		content, ok := r.files[q.URL.Path]
		r.mu.Unlock()
		if !ok {
			http.NotFound(w, q)
			return
		}
		switch {
		case strings.HasSuffix(q.URL.Path, ".ts"):
			w.Header().Set("Content-Type", "application/typescript")
		case strings.HasSuffix(q.URL.Path, ".json"), strings.Count(q.URL.Path, "/") == 2:
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *registry) host() string { return strings.TrimPrefix(r.URL, "http://") }

func (r *registry) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, times := range r.asked {
		n += times
	}
	return n
}

// npm publishes one version of an npm package with these files.
func (r *registry) npm(t *testing.T, name, version string, files map[string]string) {
	t.Helper()
	var archive bytes.Buffer
	zip := gzip.NewWriter(&archive)
	tarball := tar.NewWriter(zip)
	for path, content := range files {
		if err := tarball.WriteHeader(&tar.Header{Name: "package/" + path, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tarball.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tarball.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(archive.Bytes())
	path := fmt.Sprintf("/npm/%s/-/%s-%s.tgz", name, name, version)
	var manifest map[string]any
	if err := json.Unmarshal([]byte(files["package.json"]), &manifest); err != nil {
		t.Fatal(err)
	}
	manifest["dist"] = map[string]any{
		"tarball":   r.URL + path,
		"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
	}
	page, err := json.Marshal(map[string]any{
		"name":      name,
		"dist-tags": map[string]string{"latest": version},
		"versions":  map[string]any{version: manifest},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.files[path] = archive.Bytes()
	r.files["/npm/"+name] = page
}

// jsr publishes one version of a JSR package with one module.
func (r *registry) jsr(t *testing.T, name, version, module string) {
	t.Helper()
	sum := sha256.Sum256([]byte(module))
	version1 := map[string]any{
		"manifest": map[string]any{"/mod.ts": map[string]any{"size": len(module), "checksum": "sha256-" + hex.EncodeToString(sum[:])}},
		"exports":  map[string]string{".": "./mod.ts"},
	}
	for path, value := range map[string]any{
		"/" + name + "/meta.json":                 map[string]any{"versions": map[string]any{version: map[string]any{}}, "latest": version},
		"/" + name + "/" + version + "_meta.json": version1,
	} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		r.files[path] = text
	}
	r.files["/"+name+"/"+version+"/mod.ts"] = []byte(module)
}
