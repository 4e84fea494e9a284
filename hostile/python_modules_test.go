//go:build !windows

package hostile

import "testing"

// worker starts a worker on a module's text or URL, and gives its first message.
const worker = `
from pyodide.code import run_js
worker = run_js("""(text) => new Promise((resolve, reject) => {
  const url = /^(file|blob|http):/.test(text) ? text : "data:text/javascript," + encodeURIComponent(text);
  const worker = new Worker(url, { type: "module" });
  worker.onmessage = (event) => resolve(event.data);
  worker.onerror = (event) => { event.preventDefault(); reject(new Error(event.message)); };
})""")
`

// module imports a module from its text.
const module = `
from pyodide.code import run_js
module = run_js("(text) => import('data:text/javascript,' + encodeURIComponent(text))")
`

const runJS = "from pyodide.code import run_js\n"

func TestPythonImportsModules(t *testing.T) {
	t.Parallel()
	tryTogether(t, []attack{
		{name: "node:fs", code: runJS + `print((await run_js("import('node:fs')")).readFileSync("%DIR%/secret.txt", "utf8"))`},
		{name: "node:fs/promises", code: runJS + `print(await (await run_js("import('node:fs/promises')")).readFile("%DIR%/secret.txt", "utf8"))`},
		{name: "node:fs streams", code: runJS + `
print(await run_js("""async (path) => {
  const { createReadStream } = await import("node:fs");
  let text = "";
  for await (const part of createReadStream(path)) text += part;
  return text;
}""")("%DIR%/secret.txt"))`},
		{name: "process.getBuiltinModule", code: `import js; print(js.process.getBuiltinModule("node:fs").readFileSync("%DIR%/secret.txt", "utf8"))`},
		{name: "node:process", code: runJS + `
process = (await run_js("import('node:process')")).default
print(process.getBuiltinModule("fs").readFileSync("%DIR%/secret.txt", "utf8"))`},
		{name: "node:module: createRequire of fs", code: runJS + `
module = await run_js("import('node:module')")
print(module.createRequire("file:///x.js")("fs").readFileSync("%DIR%/secret.txt", "utf8"))`},
		{name: "node:module: createRequire of JSON", code: runJS + `
module = await run_js("import('node:module')")
print(module.createRequire("file:///x.js")("%DIR%/secret.json").secret)`},
		{name: "node:module: createRequire of CommonJS", code: runJS + `
module = await run_js("import('node:module')")
print(module.createRequire("file:///x.js")("%DIR%/secret.cjs"))`},
		{name: "node:vm in this context", code: runJS + `
vm = await run_js("import('node:vm')")
print(vm.runInThisContext('Deno.readTextFileSync("%DIR%/secret.txt")'))`},
		{name: "node:vm out of a new context", code: runJS + `
vm = await run_js("import('node:vm')")
print(vm.runInNewContext("""this.constructor.constructor('return Deno')().readTextFileSync("%DIR%/secret.txt")""", run_js("({})")))`},
		{name: "node:worker_threads", code: runJS + `
print(await run_js("""async (path) => {
  const { Worker } = await import("node:worker_threads");
  return await new Promise((resolve, reject) => {
    const text = 'const w = require("node:worker_threads"); w.parentPort.postMessage(require("node:fs").readFileSync(w.workerData, "utf8"));';
    new Worker(text, { eval: true, workerData: path }).on("message", resolve).on("error", reject);
  });
}""")("%DIR%/secret.txt"))`},
		{name: "node:wasi", code: runJS + `
print(await run_js("""async (dir) => {
  const { WASI } = await import("node:wasi");
  const wasi = new WASI({ version: "preview1", preopens: { "/d": dir } });
  const memory = new WebAssembly.Memory({ initial: 1 });
  const bytes = new Uint8Array(memory.buffer), view = new DataView(memory.buffer);
  wasi.initialize({ exports: { memory } });
  const host = wasi.getImportObject().wasi_snapshot_preview1;
  const name = new TextEncoder().encode("secret.txt");
  bytes.set(name, 100);
  host.path_open(3, 0, 100, name.length, 0, 2n, 0n, 0, 200);
  view.setUint32(300, 400, true);
  view.setUint32(304, 100, true);
  host.fd_read(view.getUint32(200, true), 300, 1, 308);
  return new TextDecoder().decode(bytes.slice(400, 500));
}""")("%DIR%"))`},
		{name: "WebAssembly with a function of the host", code: runJS + `
run_js("""(path) => {
  // (module (import "h" "f" (func)) (export "f" (func 0)))
  const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 104, 1, 102, 0, 0, 7, 5, 1, 1, 102, 0, 0]);
  const f = () => console.log(Deno.readTextFileSync(path));
  new WebAssembly.Instance(new WebAssembly.Module(bytes), { h: { f } }).exports.f();
}""")("%DIR%/secret.txt")`},
		{name: "node:sqlite", code: runJS + `(await run_js("import('node:sqlite')")).DatabaseSync.new("%DIR%/made").exec("create table t (x)")`},
		{name: "node:inspector: a session that evaluates", code: runJS + `
print(await run_js("""async (path) => {
  const { Session } = await import("node:inspector");
  const session = new Session();
  session.connect();
  return await new Promise((resolve) => session.post("Runtime.evaluate",
    { expression: "Deno.readTextFileSync(" + JSON.stringify(path) + ")" }, (error, answer) => resolve(String(error ?? answer.result.value))));
}""")("%DIR%/secret.txt"))`},
		{name: "node:inspector: open a port", code: runJS + `
print("inspector at", await run_js("""async () => {
  const inspector = await import("node:inspector");
  inspector.open(0, "127.0.0.1");
  const url = inspector.url();
  inspector.close();
  return url;
}""")())`, evidence: printed("inspector at ws://")},
		{name: "import of a file as text", code: runJS + `print((await run_js("import('file://%DIR%/secret.txt', { with: { type: 'text' } })")).default)`},
		{name: "import of a file as JSON", code: runJS + `print((await run_js("import('file://%DIR%/secret.json', { with: { type: 'json' } })")).default.secret)`},
		{name: "import of a file as code", code: runJS + `print((await run_js("import('file://%DIR%/secret.mjs')")).default)`},
		{name: "import of a file as TypeScript", code: runJS + `print((await run_js("import('file://%DIR%/secret.ts')")).default)`},
		{name: "import of a file by an escaped path", code: runJS + `print((await run_js("import('file://%DIR%/s%65cret.mjs')")).default)`},
		{name: "import of a file from Pyodide's directory", code: runJS + `
import js
print((await run_js("(url) => import(url)")("file://" + js.Deno.args[0] + "/.." * 30 + "%DIR%/secret.mjs")).default)`},
		{name: "import of a file by a data: module", code: module + `print((await module('export { default } from "file://%DIR%/secret.mjs";')).default)`},
		{name: "import of a file as text by a data: module", code: module +
			`print((await module('import s from "file://%DIR%/secret.txt" with { type: "text" }; export default s;')).default)`},
		{name: "import of a file by a blob: module", code: runJS + `
print((await run_js("(text) => import(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })))")(
    'export { default } from "file://%DIR%/secret.mjs";')).default)`},
		{name: "worker of a data: module", code: worker + `print(await worker('postMessage(Deno.readTextFileSync("%DIR%/secret.txt"))'))`},
		{name: "worker that imports a file", code: worker +
			`print(await worker('import s from "file://%DIR%/secret.txt" with { type: "text" }; postMessage(s);'))`},
		{name: "worker of a blob: module", code: worker + `
url = run_js("(text) => URL.createObjectURL(new Blob([text], { type: 'text/javascript' }))")
print(await worker(url('postMessage(Deno.readTextFileSync("%DIR%/secret.txt"))')))`},
		{name: "worker of a file", prepare: workerFile, code: worker + `print(await worker("file://%DIR%/worker.mjs"))`},
		{name: "worker of a worker", code: worker + `
print(await worker("""
  const worker = new Worker('data:text/javascript,postMessage(Deno.readTextFileSync("%DIR%/secret.txt"))', { type: "module" });
  worker.onmessage = (event) => postMessage(event.data);
"""))`},
		{name: "import over http", bare: true, code: runJS + `await run_js("import('http://%HTTP%/x.js')")`},
		{name: "worker over http", bare: true, code: worker + `await worker("http://%HTTP%/x.js")`},
		{name: "import over http by a data: module", bare: true, code: module + `await module('import "http://%HTTP%/x.js";')`},
	})
}
