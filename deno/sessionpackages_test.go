//go:build !windows

package deno_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rillbox/cache/egress"
	"rillbox/deno"
	"rillbox/supervisor/job"
)

// versions publishes a package in a version of its own; what was published
// before is not named any more, as after a registry's update.
func (r *registry) versions(t *testing.T, name string, published ...string) {
	t.Helper()
	for _, version := range published {
		r.npm(t, name, version, map[string]string{
			"package.json": `{"name":"` + name + `","version":"` + version + `"}`,
			"index.js":     `module.exports = "` + name + ` ` + version + `";`,
		})
	}
}

func TestPackagesOfCellsAgree(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.versions(t, "left", "1.0.0")
	r.npm(t, "uses", "1.0.0", map[string]string{
		"package.json": `{"name":"uses","version":"1.0.0","dependencies":{"left":"^1"}}`,
		"index.js":     `module.exports = "uses " + require("left");`,
	})
	dir := t.TempDir()
	s := openSession(t, newEngine(t, "", ownCache(t, dir, false)), job.TypeScript)
	first := s.cell(`import left from "left"; left`)
	if want := []job.Package{{Name: "left", Version: "1.0.0", Source: "npm"}}; string(first.Value) != `"left 1.0.0"` || !slices.Equal(first.Packages, want) || len(first.Notes) > 0 {
		t.Errorf("have %s %v %q %+v", first.Value, first.Packages, first.Notes, first.Error)
	}

	r.versions(t, "left", "1.5.0")
	asked := r.requests()
	again := s.cell(`import left from "left"; const l2 = await import("npm:left"); [left, l2.default, require("left")]`)
	if string(again.Value) != `["left 1.0.0","left 1.0.0","left 1.0.0"]` || len(again.Packages) != 0 || r.requests() != asked {
		t.Errorf("later: %s %v %+v, %d requests", again.Value, again.Packages, again.Error, r.requests()-asked)
	}
	// Another version is there for who asks for it by name.
	if both := s.cell(`import now from "npm:left@1.5"; import then from "left"; [now, then]`); string(both.Value) != `["left 1.5.0","left 1.5.0"]` && string(both.Value) != `["left 1.5.0","left 1.0.0"]` {
		t.Errorf("both: %s %+v", both.Value, both.Error)
	}
	if uses := s.cell(`import uses from "uses"; uses`); !strings.HasPrefix(string(uses.Value), `"uses left 1.`) {
		t.Errorf("a package that uses it: %s %+v", uses.Value, uses.Error)
	}

	r.Close() // what was fetched is in the cache, for sessions too
	offline := openSession(t, newEngine(t, "", ownCache(t, dir, true)), job.JavaScript)
	if r := offline.cell(`import uses from "uses"; uses`); !strings.HasPrefix(string(r.Value), `"uses left 1.`) || len(r.Packages) != 1 || !r.Packages[0].Cached {
		t.Errorf("offline: %s %v %+v", r.Value, r.Packages, r.Error)
	}
	missing := offline.cell(`globalThis.ran = 1; import "not-here"`)
	if missing.Error == nil || missing.Error.Name != "PackageError" || missing.Error.Message != "npm:not-here is not in the cache, and the network is not reachable" {
		t.Errorf("offline, missing: %+v", missing.Error)
	}
	if r := offline.cell("typeof ran"); string(r.Value) != `"undefined"` {
		t.Errorf("the cell ran without its package")
	}
}

func TestPackagesThatCellsAskFor(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.versions(t, "left", "2.0.0")
	r.versions(t, "right", "3.0.0")
	s := openSession(t, newEngine(t, "", ownCache(t, t.TempDir(), false)), job.JavaScript)
	const computed = `const name = ["le", "ft"].join(""); (await import(name)).default`
	if r := s.cell(computed); r.Error == nil || !strings.Contains(r.Error.Message, `Cannot find package "left"`) || !strings.Contains(r.Error.Message, "name it in packages") {
		t.Errorf("a computed import: %s %+v", r.Value, r.Error)
	}
	if r := s.run(job.Program{Packages: []string{"left@2"}}); r.Status != job.Completed || len(r.Packages) != 1 || r.Packages[0].Version != "2.0.0" {
		t.Errorf("asked for: %s %v %+v", r.Status, r.Packages, r.Error)
	}
	if r := s.cell(computed); string(r.Value) != `"left 2.0.0"` {
		t.Errorf("after that: %s %+v", r.Value, r.Error)
	}
	if r := s.run(job.Program{Code: `import r, * as all from "right"; [r, all.default === r]`, Packages: []string{"npm:right@^3"}}); string(r.Value) != `["right 3.0.0",true]` {
		t.Errorf("in one: %s %+v", r.Value, r.Error)
	}
	// A module of the workspace finds what the session has.
	s.cell(`Deno.writeTextFileSync("lib.js", 'export { default } from "npm:left"'); Deno.writeTextFileSync("bare.js", 'export { default } from "left"')`)
	if r := s.cell(`import lib from "./lib.js"; lib`); string(r.Value) != `"left 2.0.0"` {
		t.Errorf("from the workspace: %s %+v", r.Value, r.Error)
	}
	if r := s.cell(`import bare from "./bare.js"; bare`); string(r.Value) != `"left 2.0.0"` {
		t.Errorf("from the workspace, without npm: %s %+v", r.Value, r.Error)
	}
	if r := s.run(job.Program{Packages: []string{"file:///etc/passwd"}}); r.Error == nil || r.Error.Name != "PackageError" {
		t.Errorf("a file as a package: %+v", r.Error)
	}
	if r := s.cell(`import "no-such-package-here"`); r.Error == nil || r.Error.Message != `the npm package "no-such-package-here" does not exist: check its name` {
		t.Errorf("a package that is not: %+v", r.Error)
	}
}

func TestJSRAndURLsInSessions(t *testing.T) {
	r := newRegistry(t)
	t.Setenv("JSR_URL", r.URL+"/jsr/")
	r.jsr(t, "jsr/@acme/tool", "1.2.0", "export const tool: string = 'tool 1.2.0';")
	r.files["/mod.ts"] = []byte(`export { tool } from "./other.ts";`)
	r.files["/other.ts"] = []byte(`export const tool: string = "from a URL";`)
	dir := t.TempDir()
	allow := func(o *deno.Options) { o.AllowImport = []string{r.host()} }
	s := openSession(t, newEngine(t, "", ownCache(t, dir, false), allow), job.TypeScript)
	if got := s.cell(`import { tool } from "jsr:@acme/tool@^1"; tool`); string(got.Value) != `"tool 1.2.0"` {
		t.Errorf("jsr: %s %+v", got.Value, got.Error)
	}
	if got := s.cell(`import { tool as t2 } from "` + r.URL + `/mod.ts"; t2`); string(got.Value) != `"from a URL"` {
		t.Errorf("URL: %s %+v", got.Value, got.Error)
	}
	asked := r.requests()
	if got := s.cell(`const { tool: t3 } = await import("jsr:@acme/tool"); [t3, (await import("` + r.URL + `/other.ts")).tool]`); string(got.Value) != `["tool 1.2.0","from a URL"]` {
		t.Errorf("again: %s %+v (%d requests)", got.Value, got.Error, r.requests()-asked)
	}
}

func TestThePolicyHoldsInSessions(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.versions(t, "left", "1.0.0")
	r.versions(t, "evil", "1.0.0")
	r.npm(t, "bad", "1.0.0", map[string]string{"package.json": `{"name":"bad","version":"1.0.0","dependencies":{"evil":"1"}}`, "index.js": ``})
	dir := t.TempDir()
	open := openSession(t, newEngine(t, "", ownCache(t, dir, false)), job.JavaScript)
	if r := open.cell(`import "bad"; import "evil"; 1`); r.Error != nil { // it is in the cache
		t.Fatal(r.Error)
	}
	s := openSession(t, newEngine(t, "", ownCache(t, dir, false), func(o *deno.Options) { o.Policy = egress.Policy{Deny: []string{"evil"}} }), job.JavaScript)
	for _, code := range []string{`import "evil"`, `await import("npm:evil@1.0.0")`, `require("evil")`, `import "bad"`, `import "left"; import "bad"`} {
		if r := s.cell(code); r.Error == nil || r.Error.Name != "PackageError" || !strings.Contains(r.Error.Message, "evil") {
			t.Errorf("%s: %+v", code, r.Error)
		}
	}
	for _, code := range []string{`await import(["npm:", "evil@1.0.0"].join(""))`, `await import("npm" + ":evil")`, `require(["ev", "il"].join(""))`, `await import(["e", "vil"].join(""))`} {
		if r := s.cell(code); r.Error == nil {
			t.Errorf("%s: %s", code, r.Value)
		}
	}
	if r := s.cell(`import left from "left"; left`); string(r.Value) != `"left 1.0.0"` {
		t.Errorf("what is allowed: %s %+v", r.Value, r.Error)
	}
}

func TestSessionsLeaveTheCacheAlone(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.versions(t, "left", "1.0.0")
	dir := t.TempDir()
	s := openSession(t, newEngine(t, "--allow-write --allow-read", ownCache(t, dir, false)), job.JavaScript)
	got := s.cell(`import left from "left"; import { createRequire } from "node:module"; require.resolve("left")`)
	path := strings.Trim(string(got.Value), `"`)
	if !filepath.IsAbs(path) {
		t.Fatalf("have %s %+v", got.Value, got.Error)
	}
	for _, code := range []string{`Deno.writeTextFileSync(%q, "module.exports = 'evil'")`, `Deno.removeSync(%q)`, `Deno.truncateSync(%q)`, `require("fs").chmodSync(%q, 0)`, `require("fs").appendFileSync(%q, "x")`} {
		if r := s.cell(strings.Replace(code, "%q", string(got.Value), 1)); r.Error == nil {
			t.Errorf("%s changed what the cache holds", code)
		}
	}
	if r := s.cell(`Deno.readTextFileSync(` + string(got.Value) + `)`); string(r.Value) != strconv.Quote(`module.exports = "left 1.0.0";`) {
		t.Errorf("it holds %s, %+v", r.Value, r.Error)
	}
}

// TestFilesOfTheWorkspaceImportPackages: what a cell imports from the workspace imports
// packages as the cell does, in the versions of the project's manifest.
func TestFilesOfTheWorkspaceImportPackages(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.versions(t, "left", "1.0.0")
	r.versions(t, "right", "2.0.0")
	s := openSession(t, newEngine(t, "", ownCache(t, t.TempDir(), false)), job.TypeScript)
	for name, text := range map[string]string{
		"npm.ts":     `import left from "npm:left@1.0.0"; export default left as string;`,
		"bare.ts":    `import right from "right"; import data from "./data.json" with { type: "json" }; import c from "./c.cjs"; export default [right, data.n, c];`,
		"data.json":  `{"n":1}`,
		"c.cjs":      `module.exports = require("left") + require("./data.json").n`,
		"named.ts":   `import left from "left"; import deep from "@/deep.ts"; export default [left, deep];`,
		"in/deep.ts": `import left from "left"; import os from "node:os"; export default [left, os.hostname()];`,
		"in/late.ts": `export default (await import("left")).default;`,
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(s.workspace, name)), 0o700), os.WriteFile(filepath.Join(s.workspace, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(p job.Program, value string) {
		t.Helper()
		if r := s.run(p); string(r.Value) != value {
			t.Errorf("%s: have %s %+v, want %s", p.Code, r.Value, r.Error, value)
		}
	}
	m := job.Manifest{
		Imports: map[string]string{"left": "npm:left@1", "@/": "./in/", "#late": "./in/late.ts"},
		Scopes:  map[string]map[string]string{"./in/": {"left": "npm:right@2"}},
		Refused: map[string]string{"mine": "package.json makes it a folder"},
	}
	want(job.Program{Code: `import left from "./npm.ts"; left`}, `"left 1.0.0"`)
	want(job.Program{Code: `import bare from "./bare.ts"; bare`}, `["right 2.0.0",1,"left 1.0.01"]`)
	want(job.Program{Code: `import named from "./named.ts"; import left from "left"; [named, left]`, Manifest: m}, `[["left 1.0.0",["right 2.0.0","localhost"]],"left 1.0.0"]`)
	want(job.Program{Code: `import late from "#late"; late`, Manifest: m}, `"right 2.0.0"`)
	want(job.Program{Code: `const n = "deep"; (await import("@/" + n + ".ts")).default[0]`, Manifest: m}, `"right 2.0.0"`)
	if r := s.run(job.Program{Code: `import "mine"`, Manifest: m}); r.Error == nil || r.Error.Name != "PackageError" || !strings.Contains(r.Error.Message, "package.json makes it a folder") {
		t.Errorf("refused: %+v", r.Error)
	}
	m.Overrides = []byte(`{"left":"1"}`)
	if r := s.run(job.Program{Code: `import "right"`, Manifest: m}); len(r.Notes) != 1 || r.Notes[0] != `"overrides" are not honoured in cells` {
		t.Errorf("overrides: %q", r.Notes)
	}
	m.Frozen, m.Overrides = true, nil
	fresh := openSession(t, newEngine(t, "", ownCache(t, t.TempDir(), false)), job.TypeScript)
	if r := fresh.run(job.Program{Code: `import "left"`, Manifest: m}); r.Error == nil || !strings.Contains(r.Error.Message, "--frozen wants all packages") {
		t.Errorf("frozen: %+v", r.Error)
	}
	other := map[string]string{"left": "npm:right@2"}
	if r := fresh.run(job.Program{Code: `import left from "left"; left`, Manifest: job.Manifest{Imports: other}, Packages: []string{"left@1"}}); string(r.Value) != `"left 1.0.0"` {
		t.Errorf("what is asked for comes first: %s %+v", r.Value, r.Error)
	}
}
