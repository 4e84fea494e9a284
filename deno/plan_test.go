//go:build !windows

package deno_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/deno"
	"rillbox/supervisor/job"
)

// overwrite changes what is cached, as somebody could who has this user's rights.
func overwrite(t *testing.T, text string, files ...string) {
	t.Helper()
	for _, file := range files {
		before, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
}

// A plan that was never made takes nothing from the disk that is not what came
// from the registry, wherever it was changed.
func TestChangedModulesAreNotAdopted(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	t.Setenv("JSR_URL", r.URL+"/")
	r.npm(t, "left", "1.0.0", map[string]string{"package.json": `{"name":"left","version":"1.0.0","dependencies":{"deep":"1"}}`, "index.js": `module.exports = "good" + require("deep");`})
	r.npm(t, "deep", "1.0.0", map[string]string{"package.json": `{"name":"deep","version":"1.0.0"}`, "index.js": `module.exports = "good";`})
	r.jsr(t, "@some/thing", "1.2.3", `export default "good"`)
	r.files["/mod.ts"] = []byte(`export default "good";`)
	imports := func(o *deno.Options) { o.AllowImport = []string{r.host()} }
	for _, row := range []struct{ name, first, then, files, text, want string }{
		{"npm", `"left"`, `"npm:left@^1"`, "npm/*/npm/left/1.0.0/index.js", `module.exports = "evil";`, `"goodgood"`},
		{"npm of the same size", `"deep"`, `"npm:deep@^1"`, "npm/*/npm/deep/1.0.0/index.js", `module.exports = "evil";`, `"good"`},
		{"a dependency", `"left"`, `"npm:left@1"`, "npm/*/npm/deep/1.0.0/index.js", `module.exports = "evil";`, `"goodgood"`},
		{"package.json", `"left"`, `"npm:left@1"`, "npm/*/npm/left/1.0.0/package.json", `{"name":"left","version":"1.0.0","main":"/etc/passwd"}`, `"goodgood"`},
		{"broken package.json", `"left"`, `"npm:left@1"`, "npm/*/npm/left/1.0.0/package.json", `{`, `"goodgood"`},
		{"what the registry says", `"left"`, `"npm:left@1"`, "npm/*/npm/left/registry.json", `{"name":"left","dist-tags":{},"versions":{"1.0.0":{"version":"1.0.0"}}}`, `"goodgood"`},
		{"broken registry", `"left"`, `"npm:left@1"`, "npm/*/npm/left/registry.json", `{`, `"goodgood"`},
		{"jsr", `"jsr:@some/thing"`, `"jsr:@some/thing@^1"`, "remote/http/*/*", `export default "evil"`, `"good"`},
		{"URL", `"` + r.URL + `/mod.ts"`, `"` + r.URL + `/mod.ts#"`, "remote/http/*/*", `export default "evil"`, `"good"`},
	} {
		for _, in := range []string{"deno", "trees/modules/*/files"} {
			t.Run(row.name+" in "+in, func(t *testing.T) {
				dir := t.TempDir()
				program := func(specifier string) job.Program {
					return job.Program{Code: `import x from ` + specifier + `; export default x`}
				}
				if got := run(t, newEngine(t, "", ownCache(t, dir, false), imports), program(row.first)); got.Error != nil {
					t.Fatal(got.Error)
				}
				changed := glob(t, filepath.Join(dir, in, row.files))
				if len(changed) == 0 {
					t.Fatal("nothing is where it is looked for")
				}
				overwrite(t, row.text, changed...)
				for _, specifier := range []string{row.then, row.first} {
					if got := run(t, newEngine(t, "", ownCache(t, dir, false), imports), program(specifier)); string(got.Value) != row.want {
						t.Errorf("%s: have %s %+v", specifier, got.Value, got.Error)
					}
					s := openSession(t, newEngine(t, "", ownCache(t, dir, false), imports), job.TypeScript)
					if got := s.cell(`import x from ` + specifier + `; x`); string(got.Value) != row.want {
						t.Errorf("a cell, %s: have %s %+v", specifier, got.Value, got.Error)
					}
				}
			})
		}
	}
}

// Another set of packages that are all in the cache needs no network.
func TestNewPlansOffline(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.versions(t, "left", "1.0.0")
	r.versions(t, "right", "1.0.0")
	dir := t.TempDir()
	for _, name := range []string{"left", "right"} {
		if got := run(t, newEngine(t, "", ownCache(t, dir, false)), job.Program{Code: `import "` + name + `"`}); got.Error != nil {
			t.Fatal(got.Error)
		}
	}
	r.Close()
	got := run(t, newEngine(t, "", ownCache(t, dir, true)), job.Program{Code: `import l from "left@1"; import r from "right@^1"; export default l + r`})
	if string(got.Value) != `"left 1.0.0right 1.0.0"` {
		t.Errorf("have %s %+v", got.Value, got.Error)
	}
}

// What is in the cache of one machine's programs is there for those that ask for
// it, and has no name for others.
func TestOtherPlansAreNotThere(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.versions(t, "mine", "1.0.0")
	r.npm(t, "yours", "1.0.0", map[string]string{"package.json": `{"name":"yours","version":"1.0.0"}`, "index.js": `exports.here = __filename`})
	dir := t.TempDir()
	e := newEngine(t, "", ownCache(t, dir, false))
	if got := run(t, e, job.Program{Code: `import "mine"`}); got.Error != nil {
		t.Fatal(got.Error)
	}
	const tries = `import { createRequire } from "node:module";
		import yours from "yours";
		const found = [], require2 = createRequire(yours.here);
		for (const name of ["mine", "npm:mine", "npm:mine@1.0.0"]) {
			await import(name).then(() => found.push(name), () => {});
		}
		for (const name of ["mine", "../../mine/1.0.0/index.js"]) {
			try { require2(name); found.push(name) } catch {}
		}
		`
	if got := run(t, e, job.Program{Code: tries + "export default found"}); string(got.Value) != "[]" {
		t.Errorf("a run found %s %+v", got.Value, got.Error)
	}
	s := openSession(t, e, job.TypeScript)
	if got := s.cell(tries + "found"); string(got.Value) != "[]" {
		t.Errorf("a cell found %s %+v", got.Value, got.Error)
	}
	if got := run(t, e, job.Program{Code: strings.Replace(tries, "yours from", "mine from \"mine\"; import yours from", 1) + "export default found.length"}); string(got.Value) == "0" {
		t.Errorf("the tries are none: %+v", got.Error)
	}
}

func TestRedirectedImports(t *testing.T) {
	r := newRegistry(t)
	r.files["/mod.ts"] = []byte(`import { b } from "./b.ts"; export default b;`)
	r.files["/b.ts"] = []byte(`export const b: string = "b";`)
	redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, r.URL+q.URL.Path, http.StatusFound)
	}))
	t.Cleanup(redirect.Close)
	dir := t.TempDir()
	imports := func(o *deno.Options) {
		o.AllowImport = []string{r.host(), strings.TrimPrefix(redirect.URL, "http://")}
	}
	code := `import x from "` + redirect.URL + `/mod.ts";`
	for _, offline := range []bool{false, true} {
		e := newEngine(t, "", ownCache(t, dir, offline), imports)
		if got := run(t, e, job.Program{Code: code + "export default x"}); string(got.Value) != `"b"` {
			t.Errorf("have %s %+v", got.Value, got.Error)
		}
		s := openSession(t, e, job.TypeScript)
		if got := s.cell(code + "x"); string(got.Value) != `"b"` {
			t.Errorf("a cell: have %s %+v", got.Value, got.Error)
		}
	}
}
