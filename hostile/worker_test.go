//go:build !windows

package hostile

import (
	"fmt"
	"strings"
	"testing"
)

// inWorker is a program that runs code in a worker and prints what the worker
// posts. source makes the worker's URL of the text source.
func inWorker(source, options, code string) string {
	return fmt.Sprintf(`const source = %s;
const worker = new Worker(%s, { type: "module", %s });
await new Promise((done) => {
  worker.onmessage = (e) => { console.log(e.data); done(); };
  worker.onerror = (e) => { e.preventDefault(); console.log("error:", e.message); done(); };
});
worker.terminate();`, "`"+strings.NewReplacer("`", "\\`", "$", "\\$").Replace(code)+"`", source, options)
}

// workerOptions lets Deno take permissions for a worker; no run has it.
var workerOptions = []string{"--unstable-worker-options"}

const (
	fromData = `"data:text/javascript," + encodeURIComponent(source)`
	fromBlob = `URL.createObjectURL(new Blob([source], { type: "text/javascript" }))`
	reads    = `postMessage(Deno.readTextFileSync("%DIR%/secret.txt"));`
	imports  = `import s from "file://%DIR%/secret.mjs"; postMessage(s);`
)

func TestWorkers(t *testing.T) {
	t.Parallel()
	writeWorker := func(t *testing.T, s *scene) {
		write(t, s.dir()+"/worker.mjs", `postMessage("`+s.secret+`");`)
		write(t, s.dir()+"/worker.cjs", `require("node:worker_threads").parentPort.postMessage("`+s.secret+`");`)
	}
	// What node:worker_threads starts, printed.
	nodeWorker := func(arguments string) string {
		return `import { Worker, SHARE_ENV } from "node:worker_threads";
const worker = new Worker(` + arguments + `);
await new Promise((done) => {
  worker.on("message", (m) => { console.log(m); done(); });
  worker.on("error", (e) => { console.log("error:", e.message); done(); });
});
await worker.terminate();`
	}
	try(t, []attack{
		{name: "worker of a data: URL reads a file", code: inWorker(fromData, "", reads)},
		{name: "worker of a blob: URL reads a file", code: inWorker(fromBlob, "", reads)},
		{name: "worker of a data: URL imports a local file statically", code: inWorker(fromData, "", imports)},
		{name: "worker of a blob: URL imports a local file statically", code: inWorker(fromBlob, "", imports)},
		{name: "worker imports local JSON statically", code: inWorker(fromBlob, "", `import s from "file://%DIR%/secret.json" with { type: "json" }; postMessage(s.secret);`)},
		{name: "worker imports a local file as text statically", code: inWorker(fromBlob, "", `import s from "file://%DIR%/secret.txt" with { type: "text" }; postMessage(s);`)},
		{name: "worker imports a local file dynamically", code: inWorker(fromBlob, "", `postMessage((await import("file://%DIR%/secret.mjs")).default);`)},
		{name: "worker of a local file", code: inWorker(`"file://%DIR%/worker.mjs"`, "", ""), prepare: writeWorker},
		{name: "worker of a relative URL", code: inWorker(`new URL("../../../../../../../../..%DIR%/worker.mjs", import.meta.url).href`, "", ""), prepare: writeWorker},
		{name: "worker with read permission of its own", bareFlags: workerOptions, code: inWorker(fromBlob, `deno: { permissions: { read: true } }`, reads)},
		{name: "worker with a path's read permission of its own", bareFlags: workerOptions, code: inWorker(fromBlob, `deno: { permissions: { read: ["%DIR%/secret.txt"] } }`, reads)},
		{name: "worker with a file URL's read permission of its own", bareFlags: workerOptions, code: inWorker(fromBlob, `deno: { permissions: { read: [new URL("file://%DIR%/secret.txt")] } }`, reads)},
		{name: "worker that inherits permissions", bareFlags: workerOptions, code: inWorker(fromBlob, `deno: { permissions: "inherit" }`, reads)},
		{name: "worker that inherits read permission", bareFlags: workerOptions, code: inWorker(fromBlob, `deno: { permissions: { read: "inherit" } }`, reads)},
		{name: "worker with import permission of its own", bareFlags: workerOptions, code: inWorker(fromBlob, `deno: { permissions: { import: true, read: true } }`, imports)},
		{name: "worker with environment permission of its own", bareFlags: workerOptions,
			code: inWorker(fromBlob, `deno: { permissions: { env: true } }`, `postMessage(JSON.stringify(Deno.env.toObject()));`)},
		{name: "worker with network permission of its own", bareFlags: workerOptions,
			code: inWorker(fromBlob, `deno: { permissions: { net: true } }`, `postMessage(await (await fetch("http://%HTTP%/")).text());`)},
		{name: "worker with run permission of its own", bareFlags: workerOptions, code: inWorker(fromBlob, `deno: { permissions: { run: true } }`,
			`postMessage(new TextDecoder().decode(new Deno.Command("%DIR%/run.sh").outputSync().stdout));`)},
		{name: "worker in a worker with permission of its own", bareFlags: workerOptions,
			code: inWorker(fromBlob, "", inWorker(fromBlob, `deno: { permissions: { read: true } }`, reads)+"\npostMessage(1);")},
		{name: "worker in a worker reads a file and prints", code: inWorker(fromBlob, "",
			`const inner = new Worker("data:text/javascript," + encodeURIComponent('console.log(Deno.readTextFileSync("%DIR%/secret.txt")); postMessage(1)'), { type: "module" });
inner.onmessage = () => postMessage("printed"); inner.onerror = (e) => { e.preventDefault(); postMessage(e.message); };`)},
		{name: "worker requests permission", code: inWorker(fromBlob, "",
			`await Deno.permissions.request({ name: "read" }); `+reads)},
		{name: "worker whose main module is replaced", code: inWorker(fromBlob, `name: "main"`, `self.name = "x"; `+reads)},
		{name: "node worker of a text", code: nodeWorker(`'require("node:worker_threads").parentPort.postMessage(require("fs").readFileSync("%DIR%/secret.txt", "utf8"))', { eval: true }`)},
		{name: "node worker of a local file", code: nodeWorker(`"%DIR%/worker.cjs"`), prepare: writeWorker},
		{name: "node worker of a local file's URL", code: nodeWorker(`new URL("file://%DIR%/worker.cjs")`), prepare: writeWorker},
		{name: "node worker of a data: URL", code: nodeWorker(
			`new URL("data:text/javascript," + encodeURIComponent('import { parentPort } from "node:worker_threads"; import fs from "node:fs"; parentPort.postMessage(fs.readFileSync("%DIR%/secret.txt", "utf8"))'))`)},
		{name: "node worker with our environment", bare: true,
			code: nodeWorker(`'require("node:worker_threads").parentPort.postMessage(JSON.stringify({...process.env}))', { eval: true, env: SHARE_ENV }`)},
	})
}
