package pyodide

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rillbox/cache"
	"rillbox/cache/cachetest"
)

// TestImportedPackages: plans and wheels are what they say, and runtimes the pinned ones,
// or they are refused; a plan is then found whatever the index is.
func TestImportedPackages(t *testing.T) {
	site := newEngine(t)
	lock, err := site.lockedFiles(&cache.Archive{})
	if err != nil {
		t.Fatal(err)
	}
	locked, sum := "", ""
	for name, digest := range lock {
		if locked == "" || name < locked {
			locked, sum = name, digest
		}
	}
	key := "python/pyodide-" + Version + "/origin/policy/" + requirements{Imports: []string{"six"}}.digest()
	plan := func(file, digest, source, dir string) string {
		return `{"files":[{"name":"six","version":"1","filename":"` + file + `","url":"https://files.example/x","sha256":"` + digest + `","source":"` + source + `","dir":"` + dir + `","image":"/etc/passwd"}],"missing":{}}`
	}
	wheel := "six-1-py3-none-any.whl"
	digest := func(text string) string {
		s := sha256.Sum256([]byte(text))
		return hex.EncodeToString(s[:])
	}
	for name, row := range map[string]struct {
		kind, key, text string
		change          func(*Options)
		want, note      string
	}{
		"a plan":                    {kind: planKind, key: key, text: plan(wheel, digest("x"), "index", "site")},
		"a plan of Pyodide's":       {kind: planKind, key: key, text: plan(locked, sum, "pyodide", "site")},
		"other bytes of Pyodide's":  {kind: planKind, key: key, text: plan(locked, digest("x"), "pyodide", "site"), want: "the lock file of Pyodide does not name " + locked},
		"a path as a file name":     {kind: planKind, key: key, text: plan("../six.whl", digest("x"), "index", "site"), want: "malformed"},
		"no digest":                 {kind: planKind, key: key, text: plan(wheel, "x", "index", "site"), want: "malformed"},
		"another directory":         {kind: planKind, key: key, text: plan(wheel, digest("x"), "index", "/etc"), want: `unpacked into "/etc"`},
		"no JSON":                   {kind: planKind, key: key, text: "[", want: "can't be read"},
		"no key":                    {kind: planKind, key: "python/pyodide-x", text: "{}", want: "malformed"},
		"another Pyodide":           {kind: planKind, key: strings.Replace(key, Version, "1.0", 1), text: "{}", note: `packages for Pyodide "1.0" are left out`},
		"a plan of JavaScript's":    {kind: planKind, key: "deno", text: "{}", want: cache.ErrNotPortable.Error()},
		"a minimum age":             {kind: planKind, key: key, text: plan(wheel, digest("x"), "index", "site"), change: func(o *Options) { o.Policy.MinReleaseAge = time.Hour }, note: "min_release_age asks for 1h0m0s"},
		"a wheel":                   {kind: "wheel", key: digest("wheel"), text: "wheel"},
		"a wheel of another digest": {kind: "wheel", key: digest("other"), text: "wheel", want: "it has the sha256 " + digest("wheel")},
		"a snapshot":                {kind: snapshotKind, key: "linux", text: "code", want: cache.ErrNotPortable.Error()},
		"an image":                  {kind: imageKind, key: "six", text: "code", want: cache.ErrNotPortable.Error()},
		"a runtime of other bytes":  {kind: runtimeKind, key: pyodideKey, text: "evil", want: `"file" is not the pinned file`},
		"another runtime":           {kind: runtimeKind, key: "pyodide/1.0", text: "evil", note: "left out"},
		"a runtime of nobody's":     {kind: runtimeKind, key: "node/1.0", text: "evil", want: cache.ErrNotPortable.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := cachetest.Empty(t, cache.Options{}), cachetest.Empty(t, cache.Options{Offline: true})
			var err error
			if row.kind == runtimeKind {
				_, _, err = from.Tree(t.Context(), row.kind, row.key, func(_ context.Context, dir string) error {
					return os.WriteFile(filepath.Join(dir, "file"), []byte(row.text), 0o600)
				})
			} else {
				_, err = from.Put(t.Context(), row.kind, row.key, strings.NewReader(row.text))
			}
			var out bytes.Buffer
			if err == nil {
				_, err = from.Export(t.Context(), &out, []string{row.kind}, site.PortableKey)
			}
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "archive")
			if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			o := Options{Path: site.runtime.pyodide.Dir}
			o.Cache = to
			if row.change != nil {
				row.change(&o)
			}
			e, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			notes := ""
			err = to.Import(t.Context(), f, digest(out.String()), func(a *cache.Archive, p cache.Portable) (func(context.Context) error, error) {
				store, note, err := e.Admit(a, p)
				notes += note
				return store, err
			})
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) || !strings.Contains(notes, row.note) || (notes == "") != (row.note == "") {
				t.Errorf("%q, %v", notes, err)
			}
			info, err := to.Info()
			if taken := row.want == "" && row.note == ""; err != nil || (info.Kinds[row.kind].Count == 1) != taken {
				t.Errorf("the cache holds %+v, %v", info, err)
			}
			if row.kind != planKind || row.want != "" || row.note != "" {
				return
			}
			found, err := e.findPlan(&worker{rt: &runtime{origin: "its own"}}, requirements{Imports: []string{"six"}})
			if err != nil || found == nil || len(found.Files) != 1 || found.Files[0].Image != "" {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}
