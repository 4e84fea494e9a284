//go:build !windows

package wasm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/supervisor/job"
)

// tarballOf makes an npm package of one file.
func tarballOf(t *testing.T, name, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "package/" + name, Size: int64(len(content)), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	_ = packed.Close()
	return out.Bytes()
}

// withPart has a part of the test's own among the pinned ones, and a registry that serves
// what it gives for it.
func withPart(t *testing.T, pinned, served []byte, file, content string) {
	t.Helper()
	hash, sum := sha512.Sum512(pinned), sha256.Sum256([]byte(content))
	parts["a-test"] = part{Version: "1.0.0", SHA512: hex.EncodeToString(hash[:]), Files: map[string]string{file: hex.EncodeToString(sum[:])}}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a-test/-/a-test-1.0.0.tgz" {
			_, _ = w.Write(served)
			return
		}
		http.NotFound(w, r)
	}))
	t.Setenv("npm_config_registry", site.URL)
	t.Setenv("NPM_CONFIG_REGISTRY", site.URL)
	t.Cleanup(func() {
		site.Close()
		delete(parts, "a-test")
	})
}

func onCache(t *testing.T, c *cache.Cache) *Engine {
	t.Helper()
	e, err := New(Options{deno.Options{Cache: c, Log: cachetest.Logger(t), Limits: job.DefaultLimits()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// A part is what its digests say, or it is refused and nothing of it kept.
func TestPartsAreThePinnedOnes(t *testing.T) {
	good := tarballOf(t, "x.js", "good")
	for name, row := range map[string]struct {
		served  []byte
		content string // that parts.json expects of the file
		want    string
	}{
		"the pinned one":             {good, "good", ""},
		"another tarball":            {tarballOf(t, "x.js", "evil"), "good", "not those that are pinned"},
		"a file of another digest":   {good, "other", "x.js"},
		"one that lacks what it had": {good[:len(good)-8], "good", "not those that are pinned"},
	} {
		t.Run(name, func(t *testing.T) {
			withPart(t, good, row.served, "x.js", row.content)
			c := cachetest.Empty(t, cache.Options{})
			e := onCache(t, c)
			dir, err := e.part(t.Context(), "a-test", func(string, int64, int64) {})
			if row.want != "" {
				if err == nil || !strings.Contains(strings.ToLower(err.Error()), row.want) || c.HasTree(partKind, parts["a-test"].key("a-test")) {
					t.Errorf("%q, %v", dir, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "x.js")); err != nil || string(text) != "good" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// Without the network, what is not there is named with what to do, and what can't run says so.
func TestOfflineWithoutParts(t *testing.T) {
	e := onCache(t, cachetest.Empty(t, cache.Options{Offline: true}))
	_, err := e.part(t.Context(), lua.parts[0], func(string, int64, int64) {})
	if err == nil || !strings.Contains(err.Error(), "offline") && !strings.Contains(err.Error(), "cache") {
		t.Errorf("%v", err)
	}
	if d := e.Describe(); d.Ready || len(d.Missing) != len(rows) || d.Warm != 0 {
		t.Errorf("%+v", d)
	}
}

func TestDescribe(t *testing.T) {
	e := newEngine(t, []job.Language{"lua"})
	d := e.Describe()
	if len(d.Languages) != len(rows) || !d.Ready || slices.Contains(d.Missing, "lua") || d.Versions["lua"] != lua.version || d.Versions["deno"] == "" {
		t.Errorf("%+v", d)
	}
	for _, l := range Languages {
		row := rowOf(l.Name)
		if d.Versions[string(l.Name)] == "" {
			t.Errorf("%s has no version", l.Name)
		}
		var size int64
		for _, name := range row.parts {
			p, pinned := parts[name]
			if !pinned || p.License == "" || !strings.Contains(l.License, p.License) || len(p.SHA512) != 128 || len(p.Files) == 0 {
				t.Errorf("%s is made of %s, which is pinned as %+v; its licence is %q", l.Name, name, p.Version, l.License)
			}
			size += p.Size
		}
		if l.Size != size || size == 0 && !row.toolchain {
			t.Errorf("%s has %d bytes, want %d", l.Name, l.Size, size)
		}
	}
}

// An archive's part is the pinned one, or is refused; one of another version is left out.
func TestImportedParts(t *testing.T) {
	good := tarballOf(t, "x.js", "good")
	withPart(t, good, good, "x.js", "good")
	from := cachetest.Empty(t, cache.Options{})
	e := onCache(t, from)
	if _, err := e.part(t.Context(), "a-test", func(string, int64, int64) {}); err != nil {
		t.Fatal(err)
	}
	key := parts["a-test"].key("a-test")
	var out bytes.Buffer
	if _, err := from.Export(t.Context(), &out, Portable, e.PortableKey); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		archive    []byte
		want, note string
	}{
		"the pinned one":  {archive: out.Bytes()},
		"other bytes":     {archive: cachetest.Forge(t, out.Bytes(), "good", "evil"), want: "not the pinned package"},
		"another version": {archive: cachetest.Forge(t, out.Bytes(), "a-test@1.0.0", "a-test@1.0.1"), note: "needs another"},
		"another kind":    {archive: cachetest.Forge(t, out.Bytes(), `"part"`, `"compiled"`), want: cache.ErrNotPortable.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "archive")
			if err := os.WriteFile(path, row.archive, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			to := cachetest.Empty(t, cache.Options{})
			e, notes := onCache(t, to), ""
			sum := sha256.Sum256(row.archive)
			err = to.Import(t.Context(), f, hex.EncodeToString(sum[:]), func(a *cache.Archive, p cache.Portable) (func(context.Context) error, error) {
				store, note, err := e.Admit(a, p)
				notes += note
				return store, err
			})
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) || !strings.Contains(notes, row.note) || (notes == "") != (row.note == "") {
				t.Errorf("%q, %v", notes, err)
			}
			if has, want := to.HasTree(partKind, key), row.want == "" && row.note == ""; has != want {
				t.Errorf("the part is there: %v, want %v", has, want)
			}
		})
	}
}
