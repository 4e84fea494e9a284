package binary

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/cache/egress"
)

// fake is a build whose bytes are known here; what is tested is where it comes
// from, not what it does.
var fake = build{target: "x86_64-unknown-linux-gnu", npm: "@deno/linux-x64-glibc", sha256: hash([]byte("a fake Deno"))}

func hash(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

func zipOf(t *testing.T, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	f, err := w.Create(name)
	if err == nil {
		_, err = f.Write([]byte(text))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestTheReleaseIsFetchedOnce(t *testing.T) {
	t.Setenv("NPM_CONFIG_REGISTRY", "http://npm.invalid")
	var asked atomic.Int32
	releases := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/v"+Version+"/deno-x86_64-unknown-linux-gnu.zip" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(zipOf(t, "deno", "a fake Deno"))
	}))
	defer releases.Close()
	c := cachetest.Empty(t, cache.Options{})
	var stages []string
	o := LocateOptions{Cache: c, releases: releases.URL, build: &fake, Progress: func(stage string, done, total int64) {
		stages = append(stages, stage)
	}}
	for range 2 {
		b, err := Locate(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(b)
		if err != nil || string(text) != "a fake Deno" {
			t.Fatalf("%q, %v", text, err)
		}
		if st, err := os.Stat(b); err != nil || st.Mode().Perm() != 0o500 {
			t.Fatalf("%v, %v", st.Mode(), err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
	if len(stages) == 0 || stages[0] != "fetching Deno "+Version {
		t.Errorf("stages %q", stages)
	}
}

func TestOtherBytesAreRefusedFromBothSources(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".zip") {
			_, _ = w.Write(zipOf(t, "deno", "another Deno"))
			return
		}
		http.NotFound(w, r)
	}))
	defer other.Close()
	t.Setenv("NPM_CONFIG_REGISTRY", other.URL)
	c := cachetest.Empty(t, cache.Options{})
	_, err := Locate(t.Context(), LocateOptions{Cache: c, releases: other.URL, build: &fake})
	if err == nil || !strings.Contains(err.Error(), "not the pinned file") || !strings.Contains(err.Error(), "404") {
		t.Fatalf("err %v", err)
	}
	if Available(LocateOptions{Cache: c, build: &fake}) {
		t.Error("what was refused is available")
	}
}

func TestOfflineTheMissingDenoIsNamed(t *testing.T) {
	c := cachetest.Empty(t, cache.Options{Offline: true})
	_, err := Locate(t.Context(), LocateOptions{Cache: c, build: &fake})
	if !errors.Is(err, egress.ErrOffline) || err.Error() != "Deno "+Version+" is not in the cache, and the network is not reachable" {
		t.Errorf("err %v", err)
	}
}

func TestTheOperatorsDenoIsCheckedForItsVersion(t *testing.T) {
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "deno")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := cachetest.Empty(t, cache.Options{Offline: true})
	own := script("echo 'deno " + Version + " (stable, release)'")
	b, err := Locate(t.Context(), LocateOptions{Cache: c, Path: own})
	if err != nil || b != own {
		t.Errorf("%+v, %v", b, err)
	}
	for path, want := range map[string]string{
		script("echo deno 2.1.0"): "is Deno 2.1.0, but the sandbox is made for Deno " + Version,
		script("echo v22.0.0"):    "is not Deno",
		script("exit 3"):          "can't be run as Deno",
		"/no/such/deno":           "can't be run as Deno",
		t.TempDir():               "can't be run as Deno",
	} {
		_, err := Locate(t.Context(), LocateOptions{Cache: c, Path: path})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), PathEnv) {
			t.Errorf("%s: err %v, want %q in it", path, err, want)
		}
	}
}

// TestDenoArrives fetches the real one into an empty cache, from wherever this
// machine gets it.
func TestDenoArrives(t *testing.T) {
	if testing.Short() {
		t.Skip("40 MB to fetch")
	}
	c := cachetest.Empty(t, cache.Options{})
	b, err := Locate(t.Context(), LocateOptions{Cache: c})
	cachetest.NeedNetwork(t, err)
	out, err := exec.Command(b, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(out))
	for _, want := range []string{Version, V8Version, TypeScriptVersion} {
		if !strings.Contains(" "+strings.Join(words, " ")+" ", " "+want+" ") {
			t.Errorf("%q does not name %s", out, want)
		}
	}
	if !Available(LocateOptions{Cache: c}) {
		t.Error("what was fetched is not available")
	}
}

// TestAdmit: an archive's Deno is the pinned one of this machine's, or is not taken.
func TestAdmit(t *testing.T) {
	ours, err := LocateOptions{}.platform()
	if err != nil {
		t.Skip(err)
	}
	entry := func(key, path, sum string, executable bool) (p cache.Portable) {
		text := fmt.Sprintf(`{"kind":"runtime","key":%q,"tree":true,"files":[{"path":%q,"sha256":%q,"size":1,"executable":%t}]}`, key, path, sum, executable)
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	more := entry(ours.key(), "deno", ours.sha256, true)
	more.Files = append(more.Files, entry("", "libc.so", ours.sha256, true).Files...)
	blob := entry(ours.key(), "deno", ours.sha256, true)
	blob.Tree = false
	for name, row := range map[string]struct {
		entry     cache.Portable
		note, err string
	}{
		"ours":             {entry: entry(ours.key(), "deno", ours.sha256, true)},
		"other bytes":      {entry: entry(ours.key(), "deno", fake.sha256, true), err: "not the pinned Deno"},
		"another name":     {entry: entry(ours.key(), "node", ours.sha256, true), err: "not the pinned Deno"},
		"not a program":    {entry: entry(ours.key(), "deno", ours.sha256, false), err: "not the pinned Deno"},
		"a file more":      {entry: more, err: "not the pinned Deno"},
		"another version":  {entry: entry("deno/1.0.0/"+ours.target, "deno", ours.sha256, true), note: "this version of Rillbox needs " + Version},
		"another platform": {entry: entry("deno/"+Version+"/sparc-sun-solaris", "deno", ours.sha256, true), note: `Deno for "sparc-sun-solaris" is left out: this machine is ` + runtime.GOOS},
		"no tree":          {entry: blob, err: cache.ErrNotPortable.Error()},
		"no Deno":          {entry: entry("node/1", "node", ours.sha256, true), err: cache.ErrNotPortable.Error()},
	} {
		note, err := Admit(row.entry)
		if !strings.Contains(note, row.note) || (note == "") != (row.note == "") || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %q, %v", name, note, err)
		}
	}
}
