//go:build !windows

package hostile

import (
	"os"
	"testing"
)

func TestPythonProcesses(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const childProcess = runJS + "child_process = await run_js(\"import('node:child_process')\")\n"
	tryTogether(t, []attack{
		{name: "Deno.Command", code: runJS + `
output = run_js("new Deno.Command('/bin/cat', { args: ['%DIR%/secret.txt'] }).outputSync()")
print(bytes(output.stdout.to_py()))`},
		{name: "Deno.Command of Deno with all permissions", code: runJS + `
output = run_js("""new Deno.Command(Deno.execPath(),
  { args: ["eval", "console.log(Deno.readTextFileSync('%DIR%/secret.txt'))"] }).outputSync()""")
print(bytes(output.stdout.to_py()))`},
		{name: "Deno.Command of a script", code: runJS + `print(bytes(run_js("new Deno.Command('%DIR%/run.sh').outputSync()").stdout.to_py()))`},
		{name: "Deno.Command with a loader's variable", code: runJS + `
run_js("new Deno.Command('/bin/true', { env: { LD_PRELOAD: '%DIR%/secret.txt' } }).outputSync()")
print("a process ran with LD_PRELOAD")`, evidence: printed("a process ran with LD_PRELOAD")},
		{name: "child_process.execFileSync", code: childProcess + `
print(child_process.execFileSync("/bin/cat", run_js("['%DIR%/secret.txt']"), run_js("({ encoding: 'utf8' })")))`},
		{name: "child_process.execSync", code: childProcess + `print(child_process.execSync("/bin/cat %DIR%/secret.txt", run_js("({ encoding: 'utf8' })")))`},
		{name: "child_process.spawnSync", code: childProcess + `child_process.spawnSync("/bin/touch", run_js("['%DIR%/made']"))`},
		{name: "child_process.spawn", code: runJS + `
await run_js("""async () => {
  const { spawn } = await import("node:child_process");
  await new Promise((resolve, reject) => spawn("/bin/touch", ["%DIR%/made"]).on("close", resolve).on("error", reject));
}""")()`},
		{name: "os.system", code: `import os; os.system("/bin/touch %DIR%/made")`},
		{name: "the library of C: system", code: `import ctypes; ctypes.CDLL(None).system(b"/bin/touch %DIR%/made")`},
		{name: "os.popen", code: `import os; print(os.popen("cat %DIR%/secret.txt").read())`,
			noControl: "Pyodide itself has no pipes to processes"},
		{name: "subprocess.run", code: `import subprocess; print(subprocess.run(["cat", "%DIR%/secret.txt"], capture_output=True))`,
			noControl: "Pyodide itself starts no processes for subprocess"},
		{name: "os.fork and os.execv", code: `import os; os.fork() or os.execv("/bin/touch", ["touch", "%DIR%/made"])`,
			noControl: "Pyodide itself has no fork"},
		{name: "multiprocessing", code: `
import multiprocessing, os
multiprocessing.Process(target=os.system, args=("touch %DIR%/made",)).start()`,
			noControl: "Pyodide itself has no multiprocessing"},
		{name: "Deno.dlopen of the C library", linux: true, code: runJS + `
run_js("""Deno.dlopen("libc.so.6", { system: { parameters: ["buffer"], result: "i32" } })
  .symbols.system(new TextEncoder().encode("/bin/touch %DIR%/made\\0"))""")`},
		{name: "Deno.UnsafePointerView of any address", code: runJS + `
print("byte", run_js("""(() => {
  const own = new Uint8Array([77]);
  return Deno.UnsafePointerView.getArrayBuffer(Deno.UnsafePointer.create(Deno.UnsafePointer.value(Deno.UnsafePointer.of(own))), 1).byteLength;
})()"""))`, evidence: printed("byte 1")},
		{name: "ctypes of the host's C library", linux: true, code: `import ctypes; ctypes.CDLL("/lib/x86_64-linux-gnu/libc.so.6").system(b"/bin/touch %DIR%/made")`,
			noControl: "ctypes loads WebAssembly only"},
		{name: "Deno.kill", code: `import js; js.Deno.kill(%VICTIM%, "SIGTERM")`},
		{name: "process.kill", code: `import js; js.process.kill(%VICTIM%, "SIGTERM")`},
		{name: "process.kill, to see whether there is one", code: `import js; js.process.kill(%VICTIM%, 0); print("it is alive")`, evidence: printed("it is alive")},
		{name: "os.setPriority of another process", code: runJS + `
(await run_js("import('node:os')")).setPriority(%VICTIM%, 19)
print("its priority was changed")`, evidence: printed("its priority was changed")},
		{name: "os.kill", code: `import os; os.kill(%VICTIM%, 9)`,
			noControl: "Pyodide's kill reaches no other process"},
		{name: "js.Deno.env of the server", bare: true, code: `import js; print(js.Deno.env.get("RILLBOX_HOSTILE_SECRET"))`},
		{name: "js.Deno.env, all of it", bare: true, code: `import js; print(js.JSON.stringify(js.Deno.env.toObject()))`},
		{name: "js.process.env of the server", bare: true, code: `import js; print(js.process.env.RILLBOX_HOSTILE_SECRET)`},
		{name: "js.process.env, all of it", bare: true, code: runJS + `print(run_js("JSON.stringify({ ...process.env })"))`},
		{name: "environment of a worker", bare: true, code: worker + `print(await worker('postMessage(Deno.env.get("RILLBOX_HOSTILE_SECRET"))'))`},
		{name: "os.environ", code: `import os; print(dict(os.environ))`,
			noControl: "Pyodide's os.environ is its own"},
		{name: "Deno.hostname", code: `import js; print("the host is", js.Deno.hostname())`, evidence: printed("the host is " + host)},
		{name: "node:os hostname", code: runJS + `print("node says", (await run_js("import('node:os')")).hostname())`, evidence: printed("node says " + host)},
		{name: "Deno.networkInterfaces", code: runJS + `print("interfaces", run_js("Deno.networkInterfaces().map((i) => i.address).join()"))`,
			evidence: printed("interfaces 127.0.0.1")},
		{name: "node:os userInfo", code: runJS + `print("the home is", (await run_js("import('node:os')")).userInfo().homedir)`,
			evidence: printed("the home is /")},
		{name: "Deno.systemMemoryInfo", code: `import js; print("memory of", js.Deno.systemMemoryInfo().total)`, evidence: printed("memory of ")},
		{name: "process.report", code: runJS + `print("report", run_js("JSON.stringify(process.report.getReport())"))`, evidence: printed(`"cwd"`),
			noControl: "Deno writes no report yet"},
	})
}
