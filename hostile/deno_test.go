//go:build !windows

package hostile

import "testing"

func TestDenoFiles(t *testing.T) {
	t.Parallel()
	const head = `const dir = "%DIR%", file = dir + "/secret.txt";
`
	rows := []attack{
		{name: "readTextFile", code: `console.log(await Deno.readTextFile(file));`},
		{name: "readTextFileSync by URL", code: `console.log(Deno.readTextFileSync(new URL("file://" + file)));`},
		{name: "readFile", code: `console.log(new TextDecoder().decode(await Deno.readFile(file)));`},
		{name: "open", code: `const f = await Deno.open(file); console.log(await new Response(f.readable).text());`},
		{name: "openSync by a relative path", code: `const f = Deno.openSync("../../../../../../../../.." + file); const b = new Uint8Array(99); f.readSync(b); console.log(new TextDecoder().decode(b));`},
		{name: "readDir", code: `for await (const e of Deno.readDir(dir + "/names")) console.log(e.name);`},
		{name: "readDirSync", code: `console.log([...Deno.readDirSync(dir + "/names")]);`},
		{name: "readLink", code: `console.log(await Deno.readLink(dir + "/link"));`, prepare: secretLink},
		{name: "realPath", code: `console.log(await Deno.realPath(dir + "/link"));`, prepare: secretLink},
		{name: "stat", code: `console.log("size", (await Deno.stat(file)).size);`, evidence: says("size 32")},
		{name: "lstat", code: `console.log("size", Deno.lstatSync(file).size);`, evidence: says("size 32")},
		{name: "watchFs", code: `const w = Deno.watchFs(dir); setTimeout(() => Deno.writeTextFileSync(dir + "/new", "x"), 20); for await (const e of w) { console.log("saw", e.paths); break; }`},
		{name: "writeTextFile", code: `await Deno.writeTextFile(dir + "/new", "x");`},
		{name: "writeFile over a file", code: `Deno.writeFileSync(file, new Uint8Array(1));`},
		{name: "writeTextFile that appends", code: `Deno.writeTextFileSync(file, "x", { append: true });`},
		{name: "create", code: `Deno.createSync(dir + "/new").close();`},
		{name: "truncate", code: `Deno.truncateSync(file);`},
		{name: "remove", code: `Deno.removeSync(dir + "/names", { recursive: true });`},
		{name: "rename", code: `Deno.renameSync(file, dir + "/moved");`},
		{name: "copyFile", code: `Deno.copyFileSync(new URL(import.meta.url), dir + "/copy");`},
		{name: "link", code: `Deno.linkSync(file, "hard"); console.log(Deno.readTextFileSync("hard"));`},
		{name: "symlink", code: `Deno.symlinkSync("/etc", dir + "/etc");`},
		{name: "mkdir", code: `Deno.mkdirSync(dir + "/a/b", { recursive: true });`},
		{name: "makeTempFile outside", code: `Deno.makeTempFileSync({ dir });`},
		{name: "makeTempDir outside", code: `Deno.makeTempDirSync({ dir });`},
		{name: "makeTempFile by a prefix with a path", code: `Deno.makeTempFileSync({ dir: "/tmp", prefix: ".." + dir + "/p-" });`,
			noControl: "Deno refuses a prefix with a path in it"},
		{name: "chmod", code: `Deno.chmodSync(file, 0o600);`},
		{name: "chown", code: `Deno.chownSync(file, Deno.uid(), Deno.gid()); Deno.utimeSync(file, 1, 1);`},
		{name: "utime", code: `Deno.utimeSync(file, 1, 1);`},
		{name: "umask", code: `console.log("umask", Deno.umask(0) >= 0);`, noControl: "it is the child's own"},
		{name: "chdir", code: `Deno.chdir(dir); console.log(Deno.readTextFileSync("secret.txt"));`},
		{name: "fetch of a file: URL", code: `console.log(await (await fetch("file://" + file)).text());`},
		{name: "fetch of a file: URL with a host", code: `console.log(await (await fetch("file://localhost" + file)).text().catch((e) => e.message));`,
			noControl: "Deno's fetch takes no host in a file: URL"},
		{name: "XMLHttpRequest or EventSource of a file: URL", code: `const e = new EventSource("file://" + file); await new Promise((r) => { e.onerror = r; e.onmessage = (m) => { console.log(m.data); r(); }; }); e.close();`,
			noControl: "Deno's EventSource takes no file: URL"},
		{name: "fetch of a file: URL after a redirect", code: `const server = Deno.serve({ port: 0, onListen() {} }, () => new Response(null, { status: 302, headers: { location: "file://" + file } })); const r = await fetch("http://127.0.0.1:" + server.addr.port); console.log(await r.text()); await server.shutdown();`,
			grants: []string{"--allow-net"}, noControl: "Deno's fetch follows no redirect to a file: URL; the row shows that it stays so with --allow-net"},
		{name: "WebAssembly.compileStreaming of a local file", code: `const m = await WebAssembly.compileStreaming(fetch("file://%DIR%/module.wasm")); console.log(WebAssembly.Module.exports(m));`,
			prepare: wasmNamed, noControl: "Deno's fetch gives a local file no MIME type, which this needs"},
		{name: "WebAssembly with Deno's functions as imports", code: `
const bytes = new Uint8Array([0,97,115,109,1,0,0,0,1,4,1,96,0,0,2,7,1,1,101,1,102,0,0,3,2,1,0,7,7,1,3,114,117,110,0,1,10,6,1,4,0,16,0,11]);
const { instance } = await WebAssembly.instantiate(bytes, { e: { f: () => console.log(Deno.readTextFileSync(file)) } }); instance.exports.run();`},
		{name: "WebAssembly that calls Deno.writeTextFileSync itself", code: `
const bytes = new Uint8Array([0,97,115,109,1,0,0,0,1,4,1,96,0,0,2,7,1,1,101,1,102,0,0,3,2,1,0,7,7,1,3,114,117,110,0,1,10,6,1,4,0,16,0,11]);
const { instance } = await WebAssembly.instantiate(bytes, { e: { f: Deno.writeTextFileSync.bind(null, dir + "/new", "x") } }); instance.exports.run();`},
		{name: "permission by a path with NUL", code: `console.log(Deno.readTextFileSync(file + "\0.js"));`, noControl: "no path has a NUL in it; the row shows that none is cut off there"},
		{name: "permission by the program's own file and a fragment", code: `console.log(Deno.readTextFileSync(new URL(import.meta.url + "/../../../../../../.." + file)));`},
		{name: "path as an object that changes between check and use", code: `let n = 0; const own = new URL(import.meta.url).pathname; const p = { toString: () => n++ ? file : own, valueOf: () => file, [Symbol.toPrimitive]: () => n++ ? file : own }; console.log(Deno.readTextFileSync(p));`,
			noControl: "Deno takes strings and URLs only"},
		{name: "URL that changes between check and use", code: `const u = new URL(import.meta.url); let n = 0; Object.defineProperty(u, "pathname", { get: () => n++ ? file : new URL(import.meta.url).pathname }); Object.defineProperty(u, "href", { get: () => "file://" + file }); console.log(Deno.readTextFileSync(u)); console.log(Deno.readTextFileSync(new URL("file://" + file)));`},
	}
	for i := range rows {
		rows[i].code = head + rows[i].code
	}
	try(t, rows)
}

func TestDenoSystem(t *testing.T) {
	t.Parallel()
	try(t, []attack{
		{name: "Command", code: `console.log(new TextDecoder().decode(new Deno.Command("%DIR%/run.sh").outputSync().stdout));`},
		{name: "Command spawn", code: `const p = new Deno.Command("%DIR%/run.sh", { stdout: "inherit" }).spawn(); await p.status;`},
		{name: "Command with a cleared environment", code: `await new Deno.Command("/bin/sh", { args: ["%DIR%/run.sh"], clearEnv: true, stdout: "inherit" }).output();`},
		{name: "Command that is Deno", code: `console.log(new TextDecoder().decode(new Deno.Command(Deno.execPath(), { args: ["eval", "console.log(Deno.readTextFileSync('%DIR%/secret.txt'))"] }).outputSync().stdout));`},
		{name: "Command with detached", code: `new Deno.Command("%DIR%/run.sh", { detached: true, stdout: "inherit" }).outputSync();`},
		{name: "Deno.run and Deno.spawn of other versions", code: `await (Deno.run?.({ cmd: ["%DIR%/run.sh"] }))?.status(); await Deno.spawn?.("%DIR%/run.sh"); console.log(await Deno.spawnAndWait?.("%DIR%/run.sh")); console.log(new TextDecoder().decode(new Deno.Command("%DIR%/run.sh").outputSync().stdout));`},
		{name: "dlopen", code: `Deno.dlopen("%DIR%/evil.node", {});`, prepare: addon, evidence: says("file too short")},
		{name: "dlopen of the C library", code: `const c = Deno.dlopen("libc.so.6", { getpid: { parameters: [], result: "i32" } }); console.log("pid", c.symbols.getpid() > 0);`, evidence: says("pid true"), linux: true},
		{name: "UnsafePointer", code: `console.log("pointer", Deno.UnsafePointer.value(Deno.UnsafePointer.of(new Uint8Array(8))) > 0n);`, evidence: says("pointer true")},
		{name: "UnsafePointerView", code: `const p = Deno.UnsafePointer.of(new Uint8Array([42])); console.log("read", new Deno.UnsafePointerView(p).getUint8());`, evidence: says("read 42")},
		{name: "UnsafeCallback", code: `const c = new Deno.UnsafeCallback({ parameters: [], result: "void" }, () => {}); console.log("callback", c.pointer !== null); c.close();`, evidence: says("callback true")},
		{name: "UnsafeFnPointer", code: `new Deno.UnsafeFnPointer(Deno.UnsafePointer.create(1n), { parameters: [], result: "void" }); console.log("function");`, evidence: says("function\n")},
		{name: "kill", code: `Deno.kill(%VICTIM%, "SIGTERM");`, evidence: settle},
		{name: "kill with SIGKILL", code: `Deno.kill(%VICTIM%, "SIGKILL");`, evidence: settle},
		{name: "kill of the process group", code: `Deno.kill(-%VICTIM%, "SIGUSR2");`, evidence: settle},
		{name: "env.toObject", bare: true, code: `console.log(Deno.env.toObject());`},
		{name: "env.get", bare: true, code: `console.log(Deno.env.get("RILLBOX_HOSTILE_SECRET"));`},
		{name: "env.has", code: `console.log("path", Deno.env.has("DENO_DIR"));`, evidence: says("path true")},
		{name: "env.toObject with the environment granted", grants: []string{"--allow-env"}, bare: true, code: `console.log(Deno.env.toObject(), { ...process.env });`},
		{name: "env.get of the server's variable with the environment granted", grants: []string{"--allow-env=RILLBOX_HOSTILE_SECRET,HOME,PATH"}, bare: true,
			code: `console.log(Deno.env.get("RILLBOX_HOSTILE_SECRET"), Deno.env.get("HOME"), Deno.env.get("PATH"));`},
		{name: "env.set of what libraries load", grants: []string{"--allow-env"}, code: `for (const n of ["LD_PRELOAD", "DENO_DIR", "NODE_OPTIONS"]) Deno.env.set(n, "%DIR%/evil"); console.log(Deno.readTextFileSync("%DIR%/secret.txt"));`},
		{name: "hostname", code: `console.log("host", Deno.hostname());`, evidence: says("host " + hostname())},
		{name: "networkInterfaces", code: `console.log(JSON.stringify(Deno.networkInterfaces()));`, evidence: says(`"lo`)},
		{name: "osRelease", code: `console.log("release", Deno.osRelease().length > 0);`, evidence: says("release true")},
		{name: "loadavg", code: `console.log("load", Deno.loadavg().length);`, evidence: says("load 3")},
		{name: "systemMemoryInfo", code: `console.log("memory", Deno.systemMemoryInfo().total > 0);`, evidence: says("memory true")},
		{name: "osUptime", code: `console.log("up", Deno.osUptime() > 0);`, evidence: says("up true")},
		{name: "uid and gid", code: `console.log("uid", Deno.uid() >= 0, Deno.gid() >= 0);`, evidence: says("uid true true")},
		{name: "permissions.request", code: `console.log(await Deno.permissions.request({ name: "read" })); console.log(Deno.readTextFileSync("%DIR%/secret.txt"));`},
		{name: "permissions.requestSync of a path, answered on stdin", stdin: "y\nA\ny\n", code: `console.log(Deno.permissions.requestSync({ name: "read", path: "%DIR%/secret.txt" })); console.log(Deno.readTextFileSync("%DIR%/secret.txt"));`},
		{name: "prompt and confirm", stdin: "A\n", code: `console.log(prompt("Allow?"), confirm("Allow?")); console.log(Deno.readTextFileSync("%DIR%/secret.txt"));`},
		{name: "permission prompt by a terminal's sequences", code: `Deno.stdin.setRaw?.(true); console.log("\x1b[6n", Deno.consoleSize());`, noControl: "a child has no terminal", evidence: says("columns")},
		{name: "a PermissionStatus of its own", code: `const s = await Deno.permissions.query({ name: "read" }); Object.defineProperty(s, "state", { value: "granted" }); Deno.permissions.query = async () => s; console.log(Deno.readTextFileSync("%DIR%/secret.txt"));`},
		{name: "addSignalListener", code: `Deno.addSignalListener("SIGTERM", () => {}); console.log("listens"); Deno.exit(0);`, noControl: "it is the child's own signal, which ends nothing: children are ended by SIGKILL"},
		{name: "Deno.openKv of a file", bareFlags: []string{"--unstable-kv"}, code: `const kv = await Deno.openKv("%DIR%/kv.db"); await kv.set(["a"], 1); kv.close();`},
		{name: "Deno.cron", bareFlags: []string{"--unstable-cron"}, code: `Deno.cron("x", "* * * * *", () => {}); console.log("scheduled"); Deno.exit(0);`, evidence: says("scheduled\n")},
		{name: "Deno.bundle of a local file", bareFlags: []string{"--unstable-bundle"}, code: `const r = await Deno.bundle({ entrypoints: ["%DIR%/secret.mjs"], write: false }); console.log(r.outputFiles?.[0]?.text());`},
		{name: "Deno.lint and jupyter", code: `try { console.log(Object.keys(Deno.jupyter ?? {}), Object.keys(Deno.lint ?? {})); } catch (e) { console.log(e.message); } console.log(Deno.readTextFileSync("%DIR%/secret.txt"));`},
	})
}
