//go:build !windows

package hostile

import (
	"path/filepath"
	"testing"
)

// What stands behind Deno's interfaces: its operations in Rust, the bootstrap's
// objects, other realms. Each row reaches for something there and then reads the
// file with it; without the boundary the same reading succeeds.
func TestInternals(t *testing.T) {
	t.Parallel()
	const read = `const read = () => { console.log(Deno.readTextFileSync("%DIR%/secret.txt")); };
`
	bootstrap := func(t *testing.T, s *scene) {
		found, err := filepath.Glob(s.words["%CACHE%"] + "/trees/guest/*/files/bootstrap.js")
		if err != nil || len(found) == 0 {
			t.Fatalf("the bootstrap module is not in the cache: %v", err)
		}
		s.words["%BOOTSTRAP%"] = found[0]
	}
	rows := []attack{
		{name: "Deno.core", code: `console.log(typeof Deno.core, typeof globalThis.Deno?.core?.ops); read();`},
		{name: "Deno[Deno.internal] and the operations there", noCellControl: "one of the operations ends the session before another reads", code: `const { ops } = Deno[Deno.internal].core;
for (const n of Object.getOwnPropertyNames(ops).filter((n) => n.startsWith("op_") && n !== "op_set_exit_code")) for (const a of [["%DIR%/secret.txt"], ["%DIR%/new", "x"], [], [new Uint8Array(9)]]) { try { const r = ops[n](...a); if (r) console.log(n, r); } catch {} } read(); Deno.exit(0);`},
		{name: "resources by their numbers", code: `const { core } = Deno[Deno.internal]; console.log(core.resources?.()); for (let r = 3; r < 30; r++) { try { core.close?.(r); } catch {} } read();`},
		{name: "Deno[Deno.internal]'s own arguments of the start", code: `console.log(Deno[Deno.internal].__nodeBootstrapArgs); for (const k of Object.keys(Deno[Deno.internal])) { try { Deno[Deno.internal][k] = () => true; } catch {} } read();`},
		{name: "symbols of Deno and the global object", code: `for (const o of [Deno, globalThis, process]) for (const s of Object.getOwnPropertySymbols(o)) { try { const v = o[s]; if (v?.ops || v?.core) console.log("reached", String(s)); } catch {} } read();`},
		{name: "__bootstrap", code: `console.log(typeof __bootstrap === "undefined" ? "none" : Object.keys(__bootstrap)); read();`},
		{name: "ext: modules", code: `for (const m of ["ext:core/ops", "ext:core/mod.js", "ext:deno_fs/30_fs.js", "ext:runtime/98_global_scope.js"]) try { const x = await import(m); console.log("reached", m, Object.keys(x).length); } catch (e) { console.log(e.message.slice(0, 60)); } read();`},
		{name: "ext: modules by require", file: "main.cjs", code: `try { console.log(Object.keys(require("ext:core/ops"))); } catch (e) { console.log(e.message); } read();`},
		{name: "node:internal modules", file: "main.cjs", code: `for (const m of ["internal/bootstrap/loaders", "internal/process/permission", "node:internal/util", "_http_common"]) try { console.log("reached", m, Object.keys(require(m)).length); } catch (e) { console.log(e.message.slice(0, 60)); } read();`},
		{name: "process.binding and _linkedBinding", code: `for (const b of ["fs", "natives", "config", "util", "constants", "uv"]) try { console.log(b, Object.keys(process.binding(b)).length); } catch (e) { console.log(e.message.slice(0, 60)); } try { process._linkedBinding("fs"); } catch {} read();`},
		{name: "stack frames' functions", spoils: true, code: `Error.prepareStackTrace = (_, sites) => sites; function f() { return new Error().stack; } for (const s of f()) { try { const g = s.getFunction(); if (g && g !== f) console.log("reached", g.name, g.arguments); } catch {} } Error.prepareStackTrace = undefined; read();`},
		{name: "callers", spoils: true, file: "main.cjs", code: `function f() { let c = f.caller, n = 0; while (c && n++ < 20) { console.log("caller", c.name); c = c.caller; } } try { f(); } catch (e) { console.log(e.message); } read();`},
		{name: "the bootstrap module again", prepare: bootstrap, code: `try { console.log("reached", Object.keys(await import("file://%BOOTSTRAP%"))); } catch (e) { console.log(e.message.slice(0, 80)); } read();`},
		{name: "the bootstrap's text and the import map", prepare: bootstrap, code: `for (const n of ["%BOOTSTRAP%", new URL("../.rillbox/import_map.json", import.meta.url), new URL("../.rillbox/lock.json", import.meta.url)]) try { console.log(Deno.readTextFileSync(n).length); } catch (e) { console.log(e.message.slice(0, 40)); } read();`},
		{name: "writes over the bootstrap module", prepare: bootstrap, code: `try { Deno.writeTextFileSync("%BOOTSTRAP%", "", { append: true }); } catch (e) { console.log(e.message.slice(0, 40)); } read();`},
		{name: "writes over the bootstrap module, with all writes granted", prepare: bootstrap, grants: []string{"--allow-write"}, code: `try { Deno.writeTextFileSync("%BOOTSTRAP%", "", { append: true }); console.log("reached ext:"); } catch (e) { console.log(e.message.slice(0, 40)); } read();`},
		{name: "the promise of another realm", code: `const f = process.getBuiltinModule("vm").runInNewContext("(async function () {}).constructor"); console.log(await f("return typeof Deno")()); read();`},
		{name: "functions of Deno rebound", code: `const s = Function.prototype.toString.call(Deno.readTextFileSync); console.log(s.length); Deno.readTextFileSync.call({ permissions: { read: true } }, "%DIR%/secret.txt"); read();`},
		{name: "an iterator, a proxy and a species as a path", code: `for (const p of [["%DIR%/secret.txt"], new String("%DIR%/secret.txt"), new Proxy(new URL("file://%DIR%/secret.txt"), {})]) try { console.log(Deno.readTextFileSync(p)); } catch (e) { console.log(e.message.slice(0, 60)); } read();`},
		{name: "structuredClone and postMessage of a resource", code: `const c = new MessageChannel(); try { c.port1.postMessage(Deno.stdin, [Deno.stdin]); } catch (e) { console.log(e.message.slice(0, 60)); } c.port1.close(); read();`},
		{name: "a FsFile of any resource", code: `for (let rid = 0; rid < 20; rid++) { try { const f = new Deno.FsFile(rid, Symbol.for("Deno.internal.FsFile")); console.log("reached", rid, f.statSync().isFile); } catch {} } read();`},
		{name: "WebAssembly memory beyond its end", code: `const m = new WebAssembly.Memory({ initial: 1 }); try { new Uint8Array(m.buffer, 0, 2 ** 32); } catch (e) { console.log(e.message); } read();`},
		{name: "shared memory as a clock against checks", code: `const s = new Int32Array(new SharedArrayBuffer(4)); Atomics.wait(s, 0, 0, 1); read();`},
		{name: "FinalizationRegistry and weak references to the bootstrap's", code: `const r = new FinalizationRegistry((v) => console.log("reached", v)); r.register({}, 1); read();`},
		{name: "permissions by Deno.permissions' own prototype", code: `Object.getPrototypeOf(Deno.permissions).querySync = () => ({ state: "granted" }); Object.getPrototypeOf(Deno.permissions).requestSync = () => ({ state: "granted" }); read();`},
		{name: "revoked and granted again", code: `Deno.permissions.revokeSync({ name: "net" }); try { Deno.permissions.requestSync({ name: "read", path: "%DIR%" }); } catch {} read();`,
			control: nil},
		{name: "import.meta of the program", code: `import.meta.main = true; import.meta.url = "file://%DIR%/secret.txt"; try { console.log(await (await fetch(import.meta.url)).text()); } catch (e) { console.log(e.message.slice(0, 60)); } read();`},
		{name: "Deno.mainModule changed", code: `try { Deno.mainModule = "file://%DIR%/secret.txt"; } catch {} try { Object.defineProperty(Deno, "mainModule", { value: "file://%DIR%/secret.txt" }); } catch (e) { console.log(e.message.slice(0, 60)); } read();`},
		{name: "a debugger statement and console.profile", code: `debugger; console.profile?.("x"); console.profileEnd?.("x"); console.timeStamp?.("x"); read();`},
		{name: "Deno.test, Deno.bench and jupyter", code: `for (const n of ["test", "bench"]) try { Deno[n]("x", () => {}); } catch (e) { console.log(e.message.slice(0, 60)); } read();`},
		{name: "WebGPU and canvas", code: `try { console.log(await navigator.gpu?.requestAdapter?.() ?? "none"); } catch (e) { console.log(e.message.slice(0, 60)); } read();`},
		{name: "navigator and location", code: `console.log(navigator.hardwareConcurrency > 0, typeof location); read();`},
		{name: "OpenTelemetry settings", code: `for (const n of ["OTEL_DENO", "OTEL_EXPORTER_OTLP_ENDPOINT", "DENO_TRACE_PERMISSIONS"]) try { Deno.env.set(n, "http://%HTTP%"); } catch (e) { console.log(e.message.slice(0, 60)); } read();`},
	}
	for i := range rows {
		rows[i].code = read + rows[i].code
		rows[i].evidence = says("reached ext:")
		rows[i].ends = crash
	}
	try(t, rows)
}
