package pyodide

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/cache/egress"
)

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// wheelSources is a server that can be Pyodide's CDN and a package index.
func wheelSources(t *testing.T, cdn, index string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cdn/" + micropipWheel:
			if cdn != "" {
				_, _ = w.Write([]byte(cdn))
				return
			}
		case "/json/micropip/":
			if !strings.Contains(r.Header.Get("Accept"), "application/vnd.pypi.simple.v1+json") {
				http.Error(w, "bad Accept", http.StatusNotAcceptable)
				return
			}
			w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
			_ = json.NewEncoder(w).Encode(map[string]any{"files": []map[string]string{
				{"url": "/files/micropip-0.11.0-py3-none-any.whl"},
				{"url": "/files/" + micropipWheel},
			}})
			return
		case "/html/micropip/":
			_, _ = fmt.Fprintf(w, `<!DOCTYPE html><a href="../../files/x.whl">x</a> <A data-requires-python="&gt;=3.12" HREF="../../files/%s#sha256=00">m</A>`, micropipWheel)
			return
		case "/empty/micropip/":
			_, _ = w.Write([]byte(`{"files": []}`))
			return
		case "/files/" + micropipWheel:
			if index != "" {
				_, _ = w.Write([]byte(index))
				return
			}
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestMicropipComesFromTheCDNOrTheConfiguredIndex(t *testing.T) {
	defer func(hashes []string) { micropipHashes = hashes }(micropipHashes)
	micropipHashes = []string{sum("built for the CDN"), sum("published by its authors")}
	tests := map[string]struct {
		cdn, index, kind string
		want, err        string
	}{
		"the CDN":                          {cdn: "built for the CDN", kind: "json", want: "built for the CDN"},
		"the index as JSON":                {index: "published by its authors", kind: "json", want: "published by its authors"},
		"the index as HTML":                {index: "published by its authors", kind: "html", want: "published by its authors"},
		"the CDN has other bytes":          {cdn: "evil", index: "published by its authors", kind: "json", want: "published by its authors"},
		"both have other bytes":            {cdn: "evil", index: "evil", kind: "json", err: "not the pinned file"},
		"the index does not list it":       {kind: "empty", err: "does not list " + micropipWheel},
		"the index lists but has it not":   {kind: "html", err: "404"},
		"the index does not know the name": {kind: "none", err: "404"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			base := wheelSources(t, test.cdn, test.index)
			t.Setenv("PIP_INDEX_URL", base+"/"+test.kind+"/")
			t.Setenv("PIP_EXTRA_INDEX_URL", "")
			o := LocateOptions{Cache: cachetest.Empty(t, cache.Options{}), Mirror: base + "/cdn"}
			dir := t.TempDir()
			err := o.fetchMicropip(t.Context(), dir)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("err %v, want %q in it", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(filepath.Join(dir, micropipWheel)); err != nil || string(text) != test.want {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}

func TestOfflineTheMissingPyodideIsNamed(t *testing.T) {
	_, err := LocateDistribution(t.Context(), LocateOptions{Cache: cachetest.Empty(t, cache.Options{Offline: true})})
	if !errors.Is(err, egress.ErrOffline) || err.Error() != "Pyodide "+Version+" is not in the cache, and the network is not reachable" {
		t.Errorf("err %v", err)
	}
}

func TestTheOperatorsPyodideIsChecked(t *testing.T) {
	release := func(version, skip string) string {
		dir := t.TempDir()
		for name := range core {
			if name == skip {
				continue
			}
			text := fmt.Sprintf("const version = %q", version)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	c := cachetest.Empty(t, cache.Options{Offline: true})
	for dir, want := range map[string]string{
		release("0.27.0", ""):                 "is another version than Pyodide " + Version,
		release(Version, "python_stdlib.zip"): "python_stdlib.zip",
		"/no/such/directory":                  "not a Pyodide release",
		release(Version, ""):                  "micropip " + MicropipVersion + " is not in the cache",
	} {
		_, err := LocateDistribution(t.Context(), LocateOptions{Cache: c, Path: dir})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), PathEnv) {
			t.Errorf("%s: err %v, want %q in it", dir, err, want)
		}
	}
	full := release(Version, "")
	if err := os.WriteFile(filepath.Join(full, micropipWheel), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := LocateDistribution(t.Context(), LocateOptions{Cache: c, Path: full})
	if err != nil || !d.Operator || d.Dir != full || d.Micropip != filepath.Join(full, micropipWheel) {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestPyodideArrives fetches the real one into an empty cache, from wherever
// this machine gets it, and finds it again.
func TestPyodideArrives(t *testing.T) {
	if testing.Short() {
		t.Skip("7 MB to fetch")
	}
	c := cachetest.Empty(t, cache.Options{})
	d, err := LocateDistribution(t.Context(), LocateOptions{Cache: c})
	cachetest.NeedNetwork(t, err)
	for name := range core {
		if _, err := os.Stat(filepath.Join(d.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	if filepath.Dir(d.Micropip) != d.Dir {
		t.Errorf("micropip is at %s", d.Micropip)
	}
	text, err := os.ReadFile(d.Micropip)
	if err != nil || sum(string(text)) != micropipHashes[0] && sum(string(text)) != micropipHashes[1] {
		t.Errorf("micropip's wheel has sha256 %s, %v", sum(string(text)), err)
	}
	if _, there := availableDistribution(LocateOptions{Cache: c}); !there {
		t.Error("what was fetched is not available")
	}
}

// TestPyodideComesFromAMirror: from a directory without a network, from a URL before all
// other sources; other bytes are refused.
func TestPyodideComesFromAMirror(t *testing.T) {
	release, err := LocateDistribution(t.Context(), LocateOptions{Cache: cachetest.Open(t)})
	cachetest.NeedNetwork(t, err)
	locate := func(mirror string, offline bool) error {
		d, err := LocateDistribution(t.Context(), LocateOptions{Cache: cachetest.Empty(t, cache.Options{Offline: offline}), Mirror: mirror})
		if err == nil {
			_, err = os.Stat(d.Micropip)
		}
		return err
	}
	if err := locate(release.Dir, true); err != nil {
		t.Errorf("a directory, offline: %v", err)
	}
	if err := locate("file://"+release.Dir, true); err != nil {
		t.Errorf("a directory by its URL, offline: %v", err)
	}
	asked := make(chan string, 100)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.ServeFileFS(w, r, os.DirFS(release.Dir), strings.TrimPrefix(r.URL.Path, "/full/"))
	}))
	defer site.Close()
	if err := locate(site.URL+"/full", false); err != nil || len(asked) != len(core)+1 {
		t.Errorf("a URL: %v, asked %d times", err, len(asked))
	}
	if err := locate(site.URL, true); !errors.Is(err, egress.ErrOffline) {
		t.Errorf("a URL, offline: %v", err)
	}
	broken := t.TempDir()
	if err := errors.Join(os.CopyFS(broken, os.DirFS(release.Dir)), os.Chmod(filepath.Join(broken, "pyodide.mjs"), 0o600), os.WriteFile(filepath.Join(broken, "pyodide.mjs"), []byte("evil"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := locate(broken, true); err == nil || !strings.Contains(err.Error(), "pyodide.mjs is not the pinned file") {
		t.Errorf("other bytes: %v", err)
	}
	for mirror, want := range map[string]string{
		filepath.Join(broken, "none"):        "there is no directory",
		filepath.Join(broken, "pyodide.mjs"): "is not a directory",
		"ftp://example.com/":                 "neither a directory nor",
		"file://example.com/srv":             "of this machine",
	} {
		if err := locate(mirror, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", mirror, err, want)
		}
	}
}
