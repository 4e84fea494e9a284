//go:build !windows

package hostile

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"rillbox/supervisor/job"
)

// data is a data: URL of a module.
func data(code string) string {
	return "data:text/javascript;base64," + base64.StdEncoding.EncodeToString([]byte(code))
}

// A module of a data: or blob: URL can't name %DIR% in base64, so it gets the
// file's URL by a global.
const globalFile = `globalThis.file = "file://%DIR%/secret.txt"; globalThis.code = "file://%DIR%/secret.mjs";`

func TestImportsOfLocalFiles(t *testing.T) {
	t.Parallel()
	const noExports = "a cell gives nothing of what it exports"
	try(t, []attack{
		{name: "static import as code", code: `import s from "file://%DIR%/secret.mjs"; console.log(s);`},
		{name: "static import as code from TypeScript", language: job.TypeScript,
			code: `import s from "file://%DIR%/secret.ts"; console.log(s as string);`},
		{name: "static import as JSON", code: `import s from "file://%DIR%/secret.json" with { type: "json" }; console.log(s);`},
		{name: "static import as text", code: `import s from "file://%DIR%/secret.txt" with { type: "text" }; console.log(s);`},
		{name: "static import as bytes", code: `import s from "file://%DIR%/secret.txt" with { type: "bytes" }; console.log(new TextDecoder().decode(s));`,
			bareFlags: []string{"--unstable-raw-imports"}},
		{name: "static import by a path", code: `import s from "%DIR%/secret.mjs"; console.log(s);`},
		{name: "static import by a relative path", code: `import s from "../../../../../../../../../..%DIR%/secret.mjs"; console.log(s);`},
		{name: "re-export of a local file", code: `export { default } from "file://%DIR%/secret.mjs";`, noCellControl: noExports},
		{name: "export * of a local file", code: `export * as default from "file://%DIR%/secret.json" with { type: "json" };`, noCellControl: noExports},
		{name: "TypeScript import of JSON", language: job.TypeScript,
			code: `import s from "file://%DIR%/secret.json" with { type: "json" }; console.log(s);`},
		{name: "dynamic import as code", code: `console.log(await import("file://%DIR%/secret.mjs"));`},
		{name: "dynamic import as JSON", code: `console.log(await import("file://%DIR%/secret.json", { with: { type: "json" } }));`},
		{name: "dynamic import as text", code: `console.log(await import("file://%DIR%/secret.txt", { with: { type: "text" } }));`},
		{name: "dynamic import as bytes",
			code:      `console.log(new TextDecoder().decode((await import("file://%DIR%/secret.txt", { with: { type: "bytes" } })).default));`,
			bareFlags: []string{"--unstable-raw-imports"}},
		{name: "dynamic import of a computed URL", code: `const u = ["fi", "le://%DIR%/sec", "ret.mjs"].join(""); console.log((await import(u)).default);`},
		{name: "dynamic import with an escaped path", code: `console.log((await import("file://%DIR%/s%65cret.mjs")).default);`},
		{name: "dynamic import in CommonJS", file: "main.cjs", noCellControl: "a cell does not wait for it", code: `import("file://%DIR%/secret.mjs").then((m) => console.log(m.default));`},
		{name: "syntax error of a file that is no code", code: `await import("file://%DIR%/secret.cjs").then((m) => console.log(m), (e) => console.log(e.message, e.stack));`},
		{name: "import of a data: module that imports a local file statically",
			code: `const inner = 'import s from "file://%DIR%/secret.mjs"; export default s;';
console.log((await import("data:text/javascript," + encodeURIComponent(inner))).default);`},
		{name: "import of a data: module that imports a local file as text",
			code: `const inner = 'export { default } from "file://%DIR%/secret.txt" with { type: "text" };';
console.log((await import("data:text/javascript," + encodeURIComponent(inner))).default);`},
		{name: "import of a data: module that imports a local file dynamically",
			code: globalFile + `console.log((await import("` + data(`export default (await import(globalThis.code)).default`) + `")).default);`},
		{name: "static import of a data: module that imports a local file",
			code: `import s from "data:text/javascript,import%20s%20from%20'file://%DIR%/secret.mjs';export%20default%20s"; console.log(s);`},
		{name: "import of a blob: module that imports a local file statically",
			code: `const blob = new Blob(['export { default } from "file://%DIR%/secret.json" with { type: "json" };'], { type: "text/javascript" });
console.log((await import(URL.createObjectURL(blob))).default);`},
		{name: "import of a blob: module that imports a local file dynamically",
			code: globalFile + `const blob = new Blob(['export default (await import(globalThis.file, { with: { type: "text" } })).default'], { type: "text/typescript" });
console.log((await import(URL.createObjectURL(blob))).default);`},
		{name: "import of a local WebAssembly module", code: `console.log(await import("file://%DIR%/module.wasm"));`, prepare: wasmNamed},
		{name: "source phase import of WebAssembly", code: `import source m from "file://%DIR%/module.wasm"; console.log(WebAssembly.Module.exports(m)[0].name);`, prepare: wasmNamed,
			noCellControl: "cells have no such imports"},
		{name: "import.meta.resolve and import", code: `console.log((await import(import.meta.resolve("../../../../../../../..%DIR%/secret.mjs"))).default);`},
		{name: "type reference to a local file", language: job.TypeScript,
			code: `/// <reference types="file://%DIR%/secret.ts" />
// @ts-types="file://%DIR%/secret.ts"
import s from "file://%DIR%/secret.ts"; console.log(s as string);`},
		{name: "JSX import source of local files", file: "main.jsx",
			code: `/** @jsxImportSource file://%DIR% */ console.log(<a/>);`,
			prepare: func(t *testing.T, s *scene) {
				write(t, s.dir()+"/jsx-runtime", `export const jsx = () => "`+s.secret+`"; export const jsxs = jsx;`)
				write(t, s.dir()+"/package.json", `{"type":"module"}`)
			}},
		{name: "import map of the program's own", code: `console.log((await import("%DIR%/secret.mjs")).default);`},
		{name: "require of a JavaScript file", file: "main.cjs", code: `console.log(require("%DIR%/secret.cjs"));`},
		{name: "require of JSON", file: "main.cjs", code: `console.log(require("%DIR%/secret.json"));`},
		{name: "require of a module", file: "main.cjs", code: `console.log(require("%DIR%/secret.mjs").default);`},
		{name: "require by a relative path", file: "main.cjs", code: `console.log(require("../../../../../../../../../..%DIR%/secret.cjs"));`},
		{name: "require.resolve with paths, and require", file: "main.cjs", code: `console.log(require(require.resolve("./secret.cjs", { paths: ["%DIR%"] })));`},
		{name: "require with a loader of its own for an extension", file: "main.cjs",
			code: `require.extensions[".txt"] = (m, f) => { m.exports = require("fs").readFileSync(f, "utf8"); }; console.log(require("%DIR%/secret.txt"));`},
		{name: "createRequire of a module", code: `import { createRequire } from "node:module"; console.log(createRequire("file://%DIR%/")("./secret.cjs"));`},
		{name: "createRequire of JSON", code: `import { createRequire } from "node:module"; console.log(createRequire(import.meta.url)("%DIR%/secret.json"));`},
		{name: "createRequire through process.getBuiltinModule",
			code: `console.log(process.getBuiltinModule("module").createRequire("%DIR%/x.js")("./secret.cjs"));`},
		{name: "Module._load", code: `import Module from "node:module"; console.log(Module._load("%DIR%/secret.cjs", null, false));`},
		{name: "Module._extensions on a local file",
			code: `import Module from "node:module"; const m = new Module("%DIR%/secret.cjs"); m.filename = "%DIR%/secret.cjs"; m.paths = [];
Module._extensions[".js"](m, "%DIR%/secret.cjs"); console.log(m.exports);`},
		{name: "Module.prototype.load", code: `import Module from "node:module"; const m = new Module("x"); m.load("%DIR%/secret.cjs"); console.log(m.exports);`},
		{name: "module.registerHooks that resolves to a local file", spoils: true,
			code: `import { registerHooks } from "node:module";
const name = ["inno", "cent"].join("");
registerHooks({ resolve: (s, c, next) => s === name ? { url: "file://%DIR%/secret.cjs", format: "commonjs", shortCircuit: true } : next(s, c) });
const { createRequire } = await import("node:module"); console.log(createRequire(import.meta.url)(name));`},
		{name: "module.registerHooks that loads a local file", spoils: true,
			code: `import { registerHooks, createRequire } from "node:module"; import fs from "node:fs";
const name = ["node:", "f", "s"].join("");
registerHooks({ load: (u, c, next) => ({ format: "commonjs", source: "module.exports = " + JSON.stringify(fs.readFileSync("%DIR%/secret.txt", "utf8")), shortCircuit: true }) });
console.log(createRequire(import.meta.url)("%DIR%/secret.cjs"));`},
		{name: "module.findPackageJSON outside",
			code:    `import { findPackageJSON, createRequire } from "node:module"; const p = findPackageJSON("file://%DIR%/names/x.mjs"); console.log(p, createRequire(p)(p));`,
			prepare: func(t *testing.T, s *scene) { write(t, s.dir()+"/package.json", `{"name":"`+s.secret+`"}`) }},
		{name: "require of a package beside the program's node_modules", code: `import { createRequire } from "node:module"; console.log(createRequire("%DIR%/main.js")("evil"));`,
			prepare: localPackage},
		{name: "import of a package from a directory with node_modules",
			code:    `console.log((await import("file://%DIR%/node_modules/evil/index.mjs")).default);`,
			prepare: localPackage},
		{name: "npm package by a local path", code: `console.log(await import("npm:%DIR%/node_modules/evil"));`, prepare: localPackage,
			noControl: "Deno has no npm: specifier for a path; the row shows that ours has none"},
		{name: "package wanted by a file URL", code: `console.log(await import("file://%DIR%/secret.mjs"));`, packages: []string{"file:///etc/hostname"},
			noControl: "such a request is refused before there is a child"},
	})
}

// wasmNamed writes a WebAssembly module with an export named by the secret.
func wasmNamed(t *testing.T, s *scene) {
	name := append([]byte{byte(len(s.secret))}, s.secret...)
	export := append(append([]byte{1}, name...), 0, 0)
	wasm := []byte("\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f\x03\x02\x01\x00\x07")
	wasm = append(append(wasm, byte(len(export))), export...)
	wasm = append(wasm, "\x0a\x06\x01\x04\x00\x41\x2a\x0b"...)
	write(t, s.dir()+"/module.wasm", string(wasm))
}

// localPackage writes a package's directory.
func localPackage(t *testing.T, s *scene) {
	dir := filepath.Join(s.dir(), "node_modules", "evil")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "package.json"), `{"name":"evil","version":"1.0.0","main":"index.js"}`)
	write(t, filepath.Join(dir, "index.js"), `module.exports = "`+s.secret+`";`)
	write(t, filepath.Join(dir, "index.mjs"), `export default "`+s.secret+`";`)
}
