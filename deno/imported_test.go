//go:build !windows

package deno_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/cache/egress"
	"rillbox/deno"
	"rillbox/supervisor/job"
)

// importInto takes an archive into an engine's cache.
func importInto(t *testing.T, c *cache.Cache, e *deno.Engine, archive []byte) (notes string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := sha256.Sum256(archive)
	err = c.Import(t.Context(), f, hex.EncodeToString(sum[:]), func(a *cache.Archive, p cache.Portable) (func(context.Context) error, error) {
		store, note, err := e.Admit(a, p)
		notes += note
		return store, err
	})
	return notes, err
}

// TestImportedPackages: what was fetched on one machine runs on another that has other
// registries, and no network; a plan whose modules are not what its lock file says is
// refused.
func TestImportedPackages(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	t.Setenv("NPM_CONFIG_REGISTRY", strings.Replace(r.URL, "://", "://me:s3cret@", 1)+"/npm/")
	t.Setenv("JSR_URL", r.URL+"/")
	r.npm(t, "deep", "2.0.1", map[string]string{"package.json": `{"name":"deep","version":"2.0.1"}`, "index.js": `module.exports = "deep";`})
	r.npm(t, "@some/scoped", "1.0.0", map[string]string{"package.json": `{"name":"@some/scoped","version":"1.0.0","dependencies":{"deep":"*"}}`, "lib/index.js": "", "index.js": `module.exports = require("deep") + "er";`})
	r.jsr(t, "@its/own", "1.2.3", `export const own: string = "own";`)
	r.files["/lib/main.ts"] = []byte(`export { text } from "./text.ts";`)
	r.files["/lib/text.ts"] = []byte(`export const text: string = "text";`)
	program := job.Program{Language: job.TypeScript, Code: `
		import deeper from "npm:@some/scoped"; import { own } from "jsr:@its/own"; import { text } from "` + r.URL + `/lib/main.ts";
		console.log("it runs"); export default [deeper, own, text].join()`}
	allow := func(o *deno.Options) { o.AllowImport = []string{r.host()} }
	var c *cache.Cache
	e := newEngine(t, "", ownCache(t, t.TempDir(), false), allow, func(o *deno.Options) { c = o.Cache })
	p := program
	p.FetchOnly = true
	if got := run(t, e, p); got.Status != job.Completed || len(got.Stdout.String()) > 0 || len(got.Packages) == 0 || got.Value != nil {
		t.Fatalf("%+v", got)
	}
	var out bytes.Buffer
	if _, err := c.Export(t.Context(), &out, deno.Portable, e.PortableKey); err != nil {
		t.Fatal(err)
	}
	archive := out.Bytes()
	if z, err := gzip.NewReader(&out); err != nil {
		t.Fatal(err)
	} else if text, err := io.ReadAll(z); err != nil || bytes.Contains(text, []byte("s3cret")) {
		t.Errorf("the registry's password is in the archive (%v)", err)
	}

	other := func(change ...func(*deno.Options)) (c *cache.Cache, e *deno.Engine) {
		t.Helper()
		change = append([]func(*deno.Options){ownCache(t, t.TempDir(), true), allow, func(o *deno.Options) { c = o.Cache }}, change...)
		return c, newEngine(t, "", change...)
	}
	t.Setenv("NPM_CONFIG_REGISTRY", "http://registry.invalid/")
	c, e = other()
	if notes, err := importInto(t, c, e, archive); err != nil || notes != "" {
		t.Fatal(notes, err)
	}
	r.Close()
	if got := run(t, e, program); string(got.Value) != `"deeper,own,text"` {
		t.Errorf("%s %+v", got.Value, got.Error)
	}
	for _, row := range []struct {
		name, note string
		change     func(*deno.Options)
	}{
		{"a denied package", "", func(o *deno.Options) { o.Policy = egress.Policy{Deny: []string{"npm:deep"}} }},
		{"another age", "min_release_age asks for 24h0m0s here", func(o *deno.Options) { o.Policy = egress.Policy{MinReleaseAge: 24 * time.Hour} }},
	} {
		c, e := other(row.change)
		notes, err := importInto(t, c, e, archive)
		if err != nil || !strings.Contains(notes, row.note) || (notes == "") != (row.note == "") {
			t.Errorf("%s: %q, %v", row.name, notes, err)
		}
		if got := run(t, e, program); got.Error == nil || got.Error.Name != "PackageError" {
			t.Errorf("%s: %s %+v", row.name, got.Value, got.Error)
		}
	}

	c, e = other()
	for name, row := range map[string]struct{ change, to, want string }{
		"a module of a URL":      {`"text"`, `"evil"`, "has not the sha256 that its lock file says"},
		"a module of JSR":        {`"own"`, `"evi"`, "has not the sha256 that its lock file says"},
		"what JSR says":          {`"./mod.ts"`, `"./evil.ts"`, "has not the sha256 that its lock file says"},
		"a module that is more":  {"remote/http/", "remote/https/", "is not from"},
		"a package that is more": {"/deep/2.0.1/", "/evil/2.0.1/", "its lock file does not name"},
		"a registry":             {`"registries":{"":"http`, `"registries":{"":"file`, "is malformed"},
		"another Deno":           {"deno 2", "deno 9", ""},
		"no plan":                {"plan.json", "plan.jso_", "it has no plan"},
		"no key":                 {"registries ", "registries_", "is not that of an install plan"},
	} {
		t.Run(name, func(t *testing.T) {
			notes, err := importInto(t, c, e, cachetest.Forge(t, archive, row.change, row.to))
			if row.want == "" {
				if err != nil || !strings.Contains(notes, "are left out: this version of Rillbox has Deno") {
					t.Errorf("%q, %v", notes, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
			if info, err := c.Info(); err != nil || info.Kinds["modules"].Count != 0 || info.Kinds["imported"].Count != 0 {
				t.Errorf("%+v, %v", info, err)
			}
		})
	}
}
