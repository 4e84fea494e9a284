//go:build !windows

package deno_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// Deno loads what an entry module imports statically without asking. Cells are
// no entry modules, in whatever form they import.
func TestImportsOfCellsObeyPermissions(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	for _, name := range []string{secret, secret + ".json", secret + ".ts"} {
		if err := os.WriteFile(name, []byte(`"the secret"`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, language := range []job.Language{job.JavaScript, job.TypeScript} {
		s := openSession(t, newEngine(t, ""), language)
		for _, cell := range []string{
			`import s from "file://%" with { type: "text" }; s`,
			`import s from "%" with { type: "text" }; s`,
			`import s from "file://%.json" with { type: "json" }; s`,
			`import s from "file://%" with { type: "bytes" }; s`,
			`import "file://%.ts"`,
			`import * as s from "%.ts"; s`,
			`export * from "file://%.ts"`,
			`export { default } from "file://%.json" with { type: "json" }`,
			`await import("file://%", { with: { type: "text" } })`,
			`const u = "file://%.json"; await import(u, { with: { type: "json" } })`,
			`await eval('import("file://%", { with: { type: "text" } })')`,
			`await (0, eval)('import("file://%.ts")')`,
			`await new Function('return import("file://%", { with: { type: "text" } })')()`,
			`require("%.json")`,
			`require("node:module").createRequire("file://%")("%.json")`,
			`await import("data:text/javascript," + encodeURIComponent('import s from "file://%" with { type: "text" }; export default s'))`,
			`await import(URL.createObjectURL(new Blob(['export { default } from "file://%.json" with { type: "json" }'], { type: "text/javascript" })))`,
			`Deno.writeTextFileSync("via.ts", 'import s from "file://%" with { type: "text" }; export default s'); (await import("./via.ts")).default`,
			`require("node:vm").runInThisContext('import("file://%", { with: { type: "text" } })', { importModuleDynamically: require("node:vm").constants.USE_MAIN_CONTEXT_DEFAULT_LOADER })`,
			`Deno.readTextFileSync("%")`,
			`require("node:fs").readFileSync("%", "utf8")`,
			`import.meta.resolve("%"); await (await fetch("file://%")).text()`,
		} {
			r := s.cell(strings.ReplaceAll(cell, "%", secret))
			if strings.Contains(string(r.Value)+r.Stdout.String(), "the secret") || r.Error == nil && !strings.HasPrefix(string(r.Value), `"Promise`) {
				t.Errorf("%s: %s: %s %q %+v", language, cell, r.Value, r.Stdout, r.Error)
			}
		}
	}
}

// What a cell writes into the workspace does not decide what a later one gets.
func TestPlantedConfigurationChangesNothing(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.versions(t, "left", "1.0.0")
	s := openSession(t, newEngine(t, "", ownCache(t, t.TempDir(), false)), job.TypeScript)
	if r := s.cell(`const put = Deno.writeTextFileSync;
put("deno.json", '{"imports":{"left":"./planted.js","node:path":"./planted.js"},"nodeModulesDir":"manual","tasks":{"x":"y"}}');
put("deno.lock", "{}"); put("import_map.json", '{"imports":{"left":"./planted.js"}}'); put(".npmrc", "registry=http://127.0.0.1:1/"); put(".env", "HOME=planted");
put("tsconfig.json", '{"compilerOptions":{"jsx":"preserve"}}');
put("package.json", '{"type":"commonjs","imports":{"#x":"./planted.js"},"dependencies":{"left":"file:./planted.js"}}');
Deno.mkdirSync("node_modules/left", { recursive: true }); put("node_modules/left/package.json", '{"name":"left","main":"i.js"}'); put("node_modules/left/i.js", 'module.exports = "planted"');
put("planted.js", 'export default "planted"; export const join = () => "planted"'); put("left", 'planted');`); r.Error != nil {
		t.Fatal(r.Error)
	}
	for cell, want := range map[string]string{
		`import left from "left"; left`:                      `"left 1.0.0"`,
		`(await import("npm:left")).default`:                 `"left 1.0.0"`,
		`import { join } from "node:path"; join("a", "b")`:   `"a/b"`,
		`const p = "path"; (await import(p)).join("a", "b")`: `"a/b"`,
		`process.env.HOME ?? "none"`:                         `"none"`,
	} {
		if r := s.cell(cell); string(r.Value) != want {
			t.Errorf("%s: %s %+v, want %s", cell, r.Value, r.Error, want)
		}
	}
}

// The inspector's port can be found, by who may use the network; the rest of its
// address is not told. A session's own port answers while its cell runs, which
// another's, whose process is stopped between its cells, does not.
func TestTheInspectorTakesNobodyElse(t *testing.T) {
	s := openSession(t, newEngine(t, "--allow-net=127.0.0.1 --allow-env"), job.JavaScript)
	if port := string(s.cell("process.debugPort").Value); port == "0" || port == "" {
		t.Fatal("there is no port: this test shows nothing")
	}
	for _, path := range []string{"json", "json/list", "json/version", "", "ws/00000000-0000-4000-8000-000000000000", "00000000-0000-4000-8000-000000000000"} {
		r := s.cell(`const r = await fetch("http://127.0.0.1:" + process.debugPort + "/` + path + `"); [r.status, await r.text()]`)
		if !strings.HasPrefix(string(r.Value), "[4") || strings.Contains(string(r.Value), "ws:") {
			t.Errorf("/%s: %s %+v", path, r.Value, r.Error)
		}
	}
	for _, code := range []string{`require("node:inspector").url()`, `new (require("node:inspector").Session)().connect()`, `require("node:inspector").open(0)`} {
		if r := s.cell(code); r.Error == nil {
			t.Errorf("%s: %s", code, r.Value)
		}
	}
	if r := s.cell(`Object.values(Deno.env.toObject()).concat(process.argv, process.execArgv).filter((v) => /ws:|[0-9a-f]{8}-[0-9a-f]{4}-/.test(v)).length`); string(r.Value) != "0" {
		t.Errorf("the environment or the arguments tell of it: %s %+v", r.Value, r.Error)
	}
	if r := s.cell(`require("node:inspector").close()`); r.State != job.StateLost {
		t.Errorf("a session whose inspector was closed: %s %s %+v", r.Status, r.State, r.Error)
	}
}

// What a guest makes of the globals is its own affair.
func TestAGuestThatChangesEverything(t *testing.T) {
	s := openSession(t, newEngine(t, ""), job.TypeScript)
	s.cell(`JSON.stringify = () => "forged"; JSON.parse = () => ({}); Array.prototype[Symbol.iterator] = function* () { yield 1 };
Object.entries = () => []; Object.getOwnPropertyNames = () => []; Promise.prototype.then = undefined as any; Map.prototype.get = () => "file:///etc/passwd";
Object.defineProperty(Object.prototype, "code", { value: "globalThis.injected = 1", configurable: true }); globalThis.rillbox = { prepare: () => ({ code: "globalThis.injected = 1" }) };
(globalThis as any).setTimeout = (globalThis as any).queueMicrotask = () => {};`)
	for cell, want := range map[string]string{
		"1 + 1":                       "2",
		"const a: number = 5; a":      "5",
		"typeof injected":             `"undefined"`,
		"[1, 2].length":               "2",
		"throw new Error('as it is')": "",
	} {
		r := s.cell(cell)
		if string(r.Value) != want || (want == "") != (r.Error != nil) {
			t.Errorf("%s: %s %+v", cell, r.Value, r.Error)
		}
	}
}
