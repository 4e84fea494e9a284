//go:build !windows

package hostile

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"testing"

	"rillbox/supervisor/launcher"
)

// Each way of node:fs to a file's content, a directory's names or a change.
func TestNodeFiles(t *testing.T) {
	t.Parallel()
	const fs = `import fs from "node:fs"; import * as fsp from "node:fs/promises"; import * as os from "node:os"; const dir = "%DIR%", file = dir + "/secret.txt";
`
	rows := []attack{
		{name: "readFileSync", code: `console.log(fs.readFileSync(file, "utf8"));`},
		{name: "readFileSync by URL", code: `console.log(fs.readFileSync(new URL("file://" + file), "utf8"));`},
		{name: "readFileSync by bytes", code: `console.log(fs.readFileSync(Buffer.from(file), "utf8"));`},
		{name: "readFileSync by a relative path", code: `console.log(fs.readFileSync("../../../../../../../../../.." + file, "utf8"));`},
		{name: "readFileSync through a granted-looking path", code: `console.log(fs.readFileSync(new URL(import.meta.url).pathname + "/../../../../../../../../../.." + file, "utf8"));`,
			noControl: "the path goes through a file, which the kernel refuses; Deno must not normalise it into a file that is granted"},
		{name: "readFile with a callback", code: `await new Promise((r) => fs.readFile(file, "utf8", (e, s) => { console.log(e?.code, s); r(); }));`},
		{name: "promises.readFile", code: `console.log(await fsp.readFile(file, "utf8"));`},
		{name: "openSync and readSync", code: `const fd = fs.openSync(file); const b = Buffer.alloc(100); fs.readSync(fd, b); console.log(b.toString());`},
		{name: "openSync with numeric flags", code: `const fd = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_NOFOLLOW); const b = Buffer.alloc(100); fs.readSync(fd, b); console.log(b.toString());`},
		{name: "promises.open and read", code: `const h = await fsp.open(file); console.log((await h.read()).buffer.toString()); await h.close();`},
		{name: "FileHandle.readLines", code: `const h = await fsp.open(file); for await (const line of h.readLines()) console.log(line);`},
		{name: "createReadStream", code: `for await (const c of fs.createReadStream(file, "utf8")) console.log(c);`},
		{name: "openAsBlob", code: `console.log(await (await fs.openAsBlob(file)).text());`},
		{name: "readdirSync", code: `console.log(fs.readdirSync(dir + "/names"));`},
		{name: "readdir with types, recursively", code: `console.log(await fsp.readdir(dir, { withFileTypes: true, recursive: true }));`},
		{name: "opendirSync", code: `const d = fs.opendirSync(dir + "/names"); console.log(d.readSync().name); d.closeSync();`},
		{name: "glob", code: `for await (const f of fsp.glob(dir + "/names/*")) console.log(f);`},
		{name: "globSync with a cwd", code: `console.log(fs.globSync("*", { cwd: dir + "/names" }));`},
		{name: "readlinkSync", code: `console.log(fs.readlinkSync(dir + "/link"));`, prepare: secretLink},
		{name: "realpathSync", code: `console.log(fs.realpathSync(dir + "/link"));`, prepare: secretLink},
		{name: "realpathSync.native", code: `console.log(fs.realpathSync.native(dir + "/link"));`, prepare: secretLink},
		{name: "promises.readlink", code: `console.log(await fsp.readlink(dir + "/link"));`, prepare: secretLink},
		{name: "statSync", code: `console.log("size", fs.statSync(file).size);`, evidence: says("size 32")},
		{name: "lstat", code: `console.log("size", (await fsp.lstat(file)).size);`, evidence: says("size 32")},
		{name: "existsSync", code: `console.log("exists", fs.existsSync(file));`, evidence: says("exists true")},
		{name: "accessSync", code: `fs.accessSync(file); console.log("exists");`, evidence: says("exists\n")},
		{name: "statfsSync", code: `console.log("blocks", fs.statfsSync(dir).blocks > 0);`, evidence: says("blocks true")},
		{name: "watch", code: `const w = fs.watch(dir, (e, f) => { console.log("saw", f); w.close(); });
import { writeFileSync } from "node:fs"; await new Promise((r) => setTimeout(r, 50)); writeFileSync(dir + "/new", "x");`},
		{name: "watchFile", code: `fs.watchFile(file, { interval: 10 }, () => {}); fs.unwatchFile(file); console.log("watched", fs.statSync(file).size);`, evidence: says("watched 32")},
		{name: "writeFileSync of a new file", code: `fs.writeFileSync(dir + "/new", "x");`},
		{name: "writeFileSync over a file", code: `fs.writeFileSync(file, "x");`},
		{name: "appendFile", code: `await fsp.appendFile(file, "x");`},
		{name: "createWriteStream", code: `const w = fs.createWriteStream(dir + "/new"); await new Promise((r) => w.on("error", r).on("finish", r).end("x"));`},
		{name: "truncateSync", code: `fs.truncateSync(file);`},
		{name: "mkdirSync", code: `fs.mkdirSync(dir + "/a/b", { recursive: true });`},
		{name: "mkdtempSync", code: `fs.mkdtempSync(dir + "/t-");`},
		{name: "rmSync", code: `fs.rmSync(dir + "/names", { recursive: true });`},
		{name: "unlinkSync", code: `fs.unlinkSync(file);`},
		{name: "renameSync", code: `fs.renameSync(file, dir + "/moved");`},
		{name: "renameSync of the program to outside", code: `fs.renameSync(new URL(import.meta.url).pathname, dir + "/moved");`},
		{name: "copyFileSync out of the program", code: `fs.copyFileSync(new URL(import.meta.url).pathname, dir + "/copy");`},
		{name: "cpSync of a tree to the run's directory", code: `fs.cpSync(dir, process.cwd() + "/copy", { recursive: true }); console.log(fs.readFileSync("copy/secret.txt", "utf8"));`},
		{name: "linkSync into the run's directory", code: `fs.linkSync(file, "hard"); console.log(fs.readFileSync("hard", "utf8"));`},
		{name: "symlinkSync over the program's own file, and read",
			code: `const own = new URL(import.meta.url).pathname; fs.unlinkSync(own); fs.symlinkSync(file, own); console.log(fs.readFileSync(own, "utf8"));`},
		{name: "symlinkSync outside", code: `fs.symlinkSync("/etc", dir + "/etc");`},
		{name: "chmodSync", code: `fs.chmodSync(file, 0o600);`},
		{name: "chownSync", code: `fs.chownSync(dir + "/run.sh", os.userInfo().uid, os.userInfo().gid); fs.chmodSync(dir + "/run.sh", 0o777);`},
		{name: "utimesSync", code: `fs.utimesSync(file, 1, 1);`},
		{name: "lutimesSync", code: `fs.lutimesSync(file, 1, 1);`},
		{name: "fs through process.getBuiltinModule", code: `console.log(process.getBuiltinModule("fs").readFileSync(file, "utf8"));`},
		{name: "fs through a patched check", code: `Object.defineProperty(globalThis, "Deno", { value: { ...Deno, permissions: { querySync: () => ({ state: "granted" }) } } }); console.log(fs.readFileSync(file, "utf8"));`},
	}
	for i := range rows {
		rows[i].code = fs + rows[i].code
	}
	try(t, rows)
}

// secretLink makes a symbolic link that leads to a name with the secret in it.
func secretLink(t *testing.T, s *scene) {
	if err := os.Symlink("names/"+s.secret, s.dir()+"/link"); err != nil {
		t.Fatal(err)
	}
}

// says takes any of some texts in the output as evidence.
func says(texts ...string) func(*scene, outcome) string {
	return func(_ *scene, o outcome) string {
		for _, text := range texts {
			if contains(o, text) {
				return "it printed " + text
			}
		}
		return ""
	}
}

func TestNodeProcess(t *testing.T) {
	t.Parallel()
	try(t, []attack{
		{name: "process.env", bare: true, code: `console.log({ ...process.env });`},
		{name: "process.env by name", bare: true, code: `console.log(process.env.RILLBOX_HOSTILE_SECRET);`},
		{name: "process.env keys", code: `console.log("names", Object.keys(process.env).length > 2);`, evidence: says("names true")},
		{name: "process.loadEnvFile", code: `process.loadEnvFile("%DIR%/env"); console.log(process.env.LOADED);`,
			prepare: func(t *testing.T, s *scene) { write(t, s.dir()+"/env", "LOADED="+s.secret) }},
		{name: "process.kill", code: `process.kill(%VICTIM%, "SIGTERM");`, evidence: settle},
		{name: "process.kill with SIGKILL", code: `process.kill(%VICTIM%, "SIGKILL");`, evidence: settle},
		{name: "process.kill of the process group", code: `process.kill(-%VICTIM%, "SIGUSR1");`, evidence: settle},
		{name: "process.kill that finds a process", code: `console.log("alive", process.kill(%VICTIM%, 0));`, evidence: says("alive true")},
		{name: "process._kill", code: `console.log(process._kill(%VICTIM%, 15));`, evidence: settle,
			noControl: "Deno has no such function; the row shows that none comes with a new version"},
		{name: "process.chdir and a relative path", code: `process.chdir("%DIR%"); console.log(process.getBuiltinModule("fs").readFileSync("secret.txt", "utf8"));`},
		{name: "process.report", code: `console.log(JSON.stringify(process.report.getReport())); process.report.writeReport("%DIR%/report.json");`,
			noControl: "Deno's report has no environment, and it writes none; the row shows that neither comes with a new version"},
		{name: "process.binding", code: `console.log(process.binding("fs").internalModuleReadJSON("%DIR%/secret.json"));`,
			noControl: "Deno's binding has no function that reads"},
		{name: "process.binding of process_wrap", code: `const { Process } = process.binding("process_wrap"); new Process().spawn({ file: "%DIR%/run.sh", args: ["run.sh"] });`,
			noControl: "Deno's binding has no such class"},
		{name: "process.dlopen", code: `const m = { exports: {} }; process.dlopen(m, "%DIR%/evil.node"); console.log(m.exports);`, prepare: addon, evidence: says("outside/evil.node: file too short")},
		{name: "require of an addon", file: "main.cjs", code: `console.log(require("%DIR%/evil.node"));`, prepare: addon, evidence: says("outside/evil.node: file too short")},
		{name: "process.setuid", code: `process.setuid(65534); console.log("uid", process.getuid());`, evidence: says("uid 65534"),
			noControl: "it needs root, and as root would change the child alone"},
		{name: "process.getuid", code: `console.log("uid", process.getuid(), "");`, evidence: says(fmt.Sprintf("uid %d \n", os.Getuid()))},
		{name: "process.title", code: `console.log("title", process.title = "renamed");`, noControl: "it changes the child's own title, if at all"},
		{name: "process.execve", linux: true, code: `process.execve("%DIR%/run.sh", ["run.sh"], {});`,
			noControl: "Deno has none; the row shows that none comes with a new version"},
		{name: "process.ppid", code: `process.kill(process.ppid, 0); console.log("parent is there");`, evidence: says("parent is there")},
		{name: "process.memoryUsage.rss", code: `console.log("rss", process.memoryUsage().rss > 0);`,
			noControl: "a process may know its own size; the row shows that asking does no harm"},
		{name: "process.constrainedMemory and resourceUsage", code: `console.log(process.constrainedMemory?.(), process.resourceUsage?.());`,
			noControl: "a process may know its own limits; the row shows that asking does no harm"},
		{name: "process.stdout's descriptor of another", code: `console.log(process.stdout.fd); process.getBuiltinModule("fs").writeSync(process.stdout.fd + 1000, "x");`,
			noControl: "there is no such descriptor to write to"},
		{name: "os.hostname", code: `import os from "node:os"; console.log("host", os.hostname());`, evidence: says("host " + hostname())},
		{name: "os.userInfo", code: `import os from "node:os"; console.log("home", os.userInfo().homedir, "");`, evidence: says(homes()...)},
		{name: "os.networkInterfaces", code: `import os from "node:os"; console.log("nics", Object.keys(os.networkInterfaces()).join(" "), "");`, evidence: says(" " + nic() + " "),
			noControl: map[bool]string{true: "this machine has no interface but loopback"}[nic() == "none"]},
		{name: "os.homedir", bare: true, code: `import os from "node:os"; console.log("home", os.homedir(), "");`, evidence: says(homes()...)},
		{name: "os.setPriority of another process", code: `import os from "node:os"; os.setPriority(%VICTIM%, 15); console.log("nice", os.getPriority(%VICTIM%));`, evidence: says("nice 15")},
		{name: "os.getPriority of another process", code: `import os from "node:os"; console.log("nice", os.getPriority(%VICTIM%) > -21);`, evidence: says("nice true")},
	})
}

// addon writes a file that is no library: the error of the system's loader
// shows that it was asked.
func addon(t *testing.T, s *scene) { write(t, s.dir()+"/evil.node", "no library") }

func hostname() string {
	name, _ := os.Hostname()
	return name
}

// homes are what a program prints that knows the user's home directory: that of the
// system's list of users, or that of the environment.
func homes() (texts []string) {
	if u, err := user.Current(); err == nil {
		texts = append(texts, "home "+u.HomeDir+" \n")
	}
	if home, err := os.UserHomeDir(); err == nil {
		texts = append(texts, "home "+home+" \n")
	}
	return texts
}

// nic is an interface of this machine's that no sandbox has.
func nic() string {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			return i.Name
		}
	}
	return "none"
}

func TestNodePrograms(t *testing.T) {
	t.Parallel()
	const cp = `import cp from "node:child_process"; `
	try(t, []attack{
		{name: "execSync", code: cp + `console.log(cp.execSync("/bin/cat %DIR%/secret.txt").toString());`},
		{name: "exec", code: cp + `await new Promise((r) => cp.exec("%DIR%/run.sh", (e, out) => { console.log(e?.message, out); r(); }));`},
		{name: "execFileSync", code: cp + `console.log(cp.execFileSync("%DIR%/run.sh").toString());`},
		{name: "spawn", code: cp + `const p = cp.spawn("%DIR%/run.sh", { stdio: "inherit" }); await new Promise((r) => p.on("close", r).on("error", r));`},
		{name: "spawn through a shell", code: cp + `const p = cp.spawn("%DIR%/run.sh", { shell: "/bin/sh", stdio: "inherit" }); await new Promise((r) => p.on("close", r).on("error", r));`},
		{name: "spawn, detached", code: cp + `const p = cp.spawn("%DIR%/run.sh", { detached: true, stdio: "ignore" }); await new Promise((r) => p.on("close", r).on("error", r));`},
		{name: "spawnSync", code: cp + `console.log(cp.spawnSync("%DIR%/run.sh").stdout?.toString());`},
		{name: "fork", code: cp + `const p = cp.fork("%DIR%/child.cjs"); await new Promise((r) => p.on("message", (m) => { console.log(m); }).on("close", r).on("error", r));`,
			prepare: func(t *testing.T, s *scene) { write(t, s.dir()+"/child.cjs", `process.send("`+s.secret+`");`) }},
		{name: "fork with an execPath of its own", code: cp + `const p = cp.fork("x", { execPath: "%DIR%/run.sh", stdio: "inherit" }); await new Promise((r) => p.on("close", r).on("error", r));`},
		{name: "child process with LD_PRELOAD", code: cp + `console.log(cp.execFileSync(Deno.execPath(), ["eval", "console.log(Deno.readTextFileSync('%DIR%/secret.txt'))"], { env: { LD_PRELOAD: "x" } }).toString());`},
		{name: "Deno itself through process.execPath", code: cp + `console.log(cp.execFileSync(process.execPath, ["eval", "console.log(Deno.readTextFileSync('%DIR%/secret.txt'))"]).toString());`},
		{name: "cluster", code: `import cluster from "node:cluster"; cluster.setupPrimary({ exec: "%DIR%/child.cjs" }); const w = cluster.fork(); await new Promise((r) => w.on("message", (m) => { console.log(m); r(); }).on("exit", r).on("error", r));`,
			prepare:   func(t *testing.T, s *scene) { write(t, s.dir()+"/child.cjs", `process.send("`+s.secret+`");`) },
			noControl: "Deno does not implement it; the row shows that it doesn't come with a new version"},
	})
}

// internals finds the object that holds Deno's operations (its interface to
// Rust, below every check in JavaScript) by asking the inspector for all objects.
const internals = `import inspector from "node:inspector/promises"; const s = new inspector.Session(); s.connect();
const object = (await s.post("Runtime.evaluate", { expression: "Object.prototype" })).result.objectId;
const all = (await s.post("Runtime.queryObjects", { prototypeObjectId: object })).objects.objectId;
globalThis.keep = (o) => globalThis.ops = o;
await s.post("Runtime.callFunctionOn", { objectId: all, functionDeclaration: "function () { for (const o of this) { try { if (typeof o.op_fs_copy_file_sync === 'function') keep(o); } catch {} } }" });
const reach = async (name, ...args) => { try { return name.startsWith("op_") ? await ops[name](...args) : (ops ? name : ""); } catch (e) { return e.message; } };
`

func TestNodeOthers(t *testing.T) {
	t.Parallel()
	const taken = "a session's inspector is taken: its cells come by it"
	try(t, []attack{
		{name: "inspector.open", noCellControl: taken, code: `import inspector from "node:inspector"; inspector.open(0, "127.0.0.1"); console.log("listens", inspector.url());`, evidence: says("listens ws:")},
		{name: "inspector.Session", noCellControl: taken, code: `import inspector from "node:inspector"; const s = new inspector.Session(); s.connect();
s.post("Runtime.evaluate", { expression: "Deno.readTextFileSync('%DIR%/secret.txt')" }, (e, r) => console.log(e, r));`},
		{name: "inspector.Session that finds Deno's internals in the heap", code: internals + `console.log(await reach("Deno's own operations are mine"));`, evidence: says("are mine")},
		{name: "Deno's internals, with the inspector granted, read a file", grants: []string{"--allow-sys"},
			code: internals + `console.log(await reach("op_node_open_sync", "%DIR%/secret.txt", 0, 0)); console.log(await reach("op_fs_copy_file_sync", "%DIR%/secret.txt", "%DIR%/copy"));`},
		{name: "Deno's internals, with the inspector granted, signal a process", grants: []string{"--allow-sys"},
			code: internals + `console.log(await reach("op_node_process_kill", %VICTIM%, 15));`, evidence: settle},
		{name: "Deno's internals, with the inspector granted, read memory", grants: []string{"--allow-sys"},
			code: internals + `console.log("pointer", await reach("op_ffi_ptr_create", 4096n));`, evidence: says("pointer [Object: null prototype] {}")},
		{name: "SIGUSR1 to itself starts no inspector", code: `process.kill(process.pid, "SIGUSR1"); await new Promise((r) => setTimeout(r, 100)); console.log("alive"); process.debugPort = 1; process._debugProcess?.(%VICTIM%);`,
			evidence: settle, ends: crash, noControl: "Deno has no inspector that a signal starts; the row shows that none comes with a new version"},
		{name: "vm in a new context", code: `import vm from "node:vm"; console.log(vm.runInNewContext("this.constructor.constructor('return Deno')().readTextFileSync('%DIR%/secret.txt')"));`},
		{name: "vm with an object of ours", code: `import vm from "node:vm"; console.log(vm.runInNewContext("o.constructor.constructor('return globalThis')().Deno.readTextFileSync('%DIR%/secret.txt')", { o: {} }));`},
		{name: "vm.compileFunction", code: `import vm from "node:vm"; console.log(vm.compileFunction("return process.getBuiltinModule('fs').readFileSync('%DIR%/secret.txt', 'utf8')")());`},
		{name: "vm import of a local file", code: `import vm from "node:vm"; console.log((await vm.runInThisContext("import('file://%DIR%/secret.mjs')", { importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER })).default);`},
		{name: "vm in its own context imports a local file", code: `import vm from "node:vm"; console.log((await new vm.Script("import('file://%DIR%/secret.mjs')", { filename: "file:///x.js", importModuleDynamically: (s) => import(s) }).runInNewContext()).default);`},
		{name: "ShadowRealm or a new context's Deno.core", code: `import vm from "node:vm"; const g = vm.runInNewContext("globalThis"); console.log("core", typeof g.Deno?.core?.ops?.op_read_file_text_sync);`,
			evidence: says("core function"), noControl: "a new context has no such object; the row shows that none comes with a new version"},
		{name: "repl", code: `import repl from "node:repl"; import { PassThrough } from "node:stream"; const i = new PassThrough(); const r = repl.start({ input: i, output: process.stdout, useGlobal: true }); i.end("Deno.readTextFileSync('%DIR%/secret.txt')\n"); await new Promise((d) => setTimeout(d, 200));
console.log(eval("Deno.readTextFileSync('%DIR%/secret.txt')"));`},
		{name: "sqlite of a local file", code: `import { DatabaseSync } from "node:sqlite"; new DatabaseSync("%DIR%/new.db").exec("create table t (x)");`},
		{name: "sqlite ATTACH", code: `import { DatabaseSync } from "node:sqlite"; new DatabaseSync(":memory:").exec("attach '%DIR%/new.db' as a; create table a.t (x)");`,
			noControl: "Deno itself allows no attached database"},
		{name: "sqlite VACUUM INTO", code: `import { DatabaseSync } from "node:sqlite"; new DatabaseSync(":memory:").exec("create table t (x); vacuum into '%DIR%/new.db'");`,
			noControl: "Deno itself allows no attached database, and this needs one"},
		{name: "sqlite loadExtension", code: `import { DatabaseSync } from "node:sqlite"; const db = new DatabaseSync(":memory:", { allowExtension: true }); db.loadExtension("%DIR%/evil.node");`, prepare: addon, evidence: says("shared object file")},
		{name: "sqlite backup", code: `import { DatabaseSync, backup } from "node:sqlite"; const db = new DatabaseSync(":memory:"); db.exec("create table t (x)"); await backup(db, "%DIR%/new.db");`},
		{name: "sqlite temporary directory", code: `import fs from "node:fs"; import { DatabaseSync } from "node:sqlite"; const db = new DatabaseSync(":memory:"); db.exec("pragma temp_store_directory='%DIR%'; pragma temp_store=1; create temp table t (x); insert into t values (randomblob(10000000))"); console.log(fs.readdirSync("%DIR%"));`,
			noControl: "the file has no name while it is there", least: launcher.Landlock},
		{name: "wasi with a preopened directory", code: `import { WASI } from "node:wasi"; new WASI({ version: "preview1", preopens: { "/": "%DIR%" }, args: [], env: {} }); console.log("opened");`, evidence: says("opened\n")},
		{name: "v8.writeHeapSnapshot", code: `import v8 from "node:v8"; console.log(v8.writeHeapSnapshot("%DIR%/heap"));`},
		{name: "v8.setFlagsFromString for a file of V8's", code: `import v8 from "node:v8"; v8.setFlagsFromString("--logfile=%DIR%/v8.log"); v8.setFlagsFromString("--log-all"); v8.setFlagsFromString("--redirect-code-traces-to=%DIR%/trace"); v8.setFlagsFromString("--trace-turbo-path=%DIR%"); v8.setFlagsFromString("--trace-turbo"); let f = (x) => x + 1; for (let i = 0; i < 1e6; i++) f(i);`,
			noControl: "Deno passes only a few harmless flags on to V8; the row shows that none that names a file comes with a new version"},
		{name: "v8.startupSnapshot and coverage", code: `import v8 from "node:v8"; v8.takeCoverage?.(); v8.setHeapSnapshotNearHeapLimit?.(1); v8.startupSnapshot?.setDeserializeMainFunction?.(() => {}); process.env.NODE_V8_COVERAGE = "%DIR%";`,
			noControl: "Deno does not implement it; the row shows that it does not come with a new version"},
		{name: "trace_events", code: `import t from "node:trace_events"; t.createTracing?.({ categories: ["node", "v8"] }).enable();`,
			noControl: "Deno does not implement it; the row shows that it writes no log with a new version"},
		{name: "node:test with a snapshot", code: `import { test } from "node:test"; test("x", (t) => { t.assert.fileSnapshot?.("x", "%DIR%/new.snapshot"); });`,
			noControl: "node:test does not run outside of deno test"},
		{name: "tls with a local certificate", code: `import fs from "node:fs"; import tls from "node:tls"; tls.createSecureContext({ ca: fs.readFileSync("%DIR%/secret.txt") }); console.log("read");`, evidence: says("read\n")},
		{name: "zlib and pipeline to a local file", code: `import { pipeline } from "node:stream/promises"; import fs from "node:fs"; import { Readable } from "node:stream"; await pipeline(Readable.from(["x"]), fs.createWriteStream("%DIR%/new"));`},
		{name: "readline over a local file", code: `import rl from "node:readline"; import fs from "node:fs"; for await (const l of rl.createInterface({ input: fs.createReadStream("%DIR%/secret.txt") })) console.log(l);`},
		{name: "dns.lookup", code: `import dns from "node:dns/promises"; console.log("address", (await dns.lookup("localhost")).address);`, evidence: says("address ")},
		{name: "async_hooks' resources of the bootstrap", code: `import { executionAsyncResource, createHook } from "node:async_hooks"; createHook({ init() {} }).enable(); console.log(Object.keys(executionAsyncResource())); console.log(Deno.readTextFileSync("%DIR%/secret.txt"));`},
		{name: "diagnostics_channel of what others do", code: `import dc from "node:diagnostics_channel"; dc.subscribe("child_process", () => {}); dc.channel("module.require.start").subscribe((m) => console.log(m)); process.getBuiltinModule("module").createRequire(import.meta.url)("%DIR%/secret.cjs"); console.log(process.getBuiltinModule("module").createRequire(import.meta.url)("%DIR%/secret.cjs"));`},
	})
}
