//go:build !windows

package hostile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProcAndDev(t *testing.T) {
	t.Parallel()
	const read = `const read = (p) => { try { return Deno.readTextFileSync(p); } catch (e) { return e.message; } };
`
	rows := []attack{
		{name: "/proc/self/environ", code: `console.log(read("/proc/self/environ"));`},
		{name: "/proc/self/environ with /proc granted", grants: []string{"--allow-read=/proc"}, code: `console.log(read("/proc/self/environ"));`},
		{name: "/proc/<server>/environ", code: `console.log(read("/proc/%SERVER%/environ"));`},
		{name: "/proc/<server>/environ with all reads granted", grants: []string{"--allow-read"}, code: `console.log(read("/proc/%SERVER%/environ"));`},
		{name: "/proc/<other>/environ", code: `console.log(read("/proc/%VICTIM%/environ"));`},
		{name: "/proc/<other>/environ with all reads granted", grants: []string{"--allow-read"}, code: `console.log(read("/proc/%VICTIM%/environ"));`},
		{name: "/proc/<other>/cwd", code: `console.log(read("/proc/%VICTIM%/cwd/secret.txt"));`},
		{name: "/proc/<other>/root", code: `console.log(read("/proc/%VICTIM%/root%DIR%/secret.txt"));`},
		{name: "/proc/<other>/mem", code: `const f = Deno.openSync("/proc/%VICTIM%/mem"); console.log("open", f !== null);`, evidence: says("open true")},
		{name: "/proc/<other>/mem with all reads granted", grants: []string{"--allow-read"}, code: `const f = Deno.openSync("/proc/%VICTIM%/mem"); console.log("open", f !== null);`, evidence: says("open true")},
		{name: "/proc/<other>/task/*/environ", code: `console.log(read("/proc/%VICTIM%/task/%VICTIM%/environ"));`},
		{name: "/proc/self/root", code: `console.log(read("/proc/self/root%DIR%/secret.txt"));`},
		{name: "/proc/self/cwd", code: `console.log(read("/proc/self/cwd/../../../../../../..%DIR%/secret.txt"));`},
		{name: "/proc/self/root with a directory granted", grants: []string{"--allow-read=%GRANTED%"}, code: `console.log(read("/proc/self/root%DIR%/secret.txt"));`},
		{name: "/proc/thread-self/root", code: `console.log(read("/proc/thread-self/root%DIR%/secret.txt"));`},
		{name: "/proc/self/maps", code: `console.log("maps", read("/proc/self/maps").includes("[stack]"));`, evidence: says("maps true")},
		{name: "/proc/self/cmdline", code: `console.log("args", read("/proc/self/cmdline").includes("\0"));`, evidence: says("args true")},
		{name: "/proc/self/exe", code: `console.log("exe", Deno.readFileSync("/proc/self/exe").length > 1e6);`, evidence: says("exe true")},
		{name: "/proc/self/mem read", code: `console.log("mem", Deno.openSync("/proc/self/mem") !== null);`, evidence: says("mem true")},
		{name: "/proc/self/mem write", code: `console.log("mem", Deno.openSync("/proc/self/mem", { write: true }) !== null);`, evidence: says("mem true")},
		{name: "/proc/self/mem write with all writes granted", grants: []string{"--allow-write"}, code: `console.log("mem", Deno.openSync("/proc/self/mem", { write: true }) !== null);`, evidence: says("mem true")},
		{name: "/proc/self/mem write with reads and writes granted", grants: []string{"--allow-read", "--allow-write"}, code: `console.log("mem", Deno.openSync("/proc/self/mem", { write: true }) !== null);`, evidence: says("mem true")},
		{name: "/proc/self/mountinfo", code: `console.log("mounts", read("/proc/self/mountinfo").length > 100);`, evidence: says("mounts true")},
		{name: "/proc/net/tcp", code: `console.log("tcp", read("/proc/net/tcp").includes("local_address"));`, evidence: says("tcp true")},
		{name: "/proc/net/unix", code: `console.log("unix", read("/proc/net/unix").includes("RefCount"));`, evidence: says("unix true")},
		{name: "/proc/self/fd listing", code: `console.log("fds", [...Deno.readDirSync("/proc/self/fd")].length > 3);`, evidence: says("fds true")},
		{name: "/proc/self/fd/3", code: `console.log("fd 3", Deno.readLinkSync("/proc/self/fd/3"));`, evidence: says("fd 3 pipe")},
		{name: "/proc/self/oom_score_adj", code: `Deno.writeTextFileSync("/proc/self/oom_score_adj", "1000"); console.log("wrote");`, evidence: says("wrote\n")},
		{name: "/proc/self/clear_refs and coredump_filter", code: `Deno.writeTextFileSync("/proc/self/coredump_filter", "1"); console.log("wrote");`, evidence: says("wrote\n")},
		{name: "/proc/self/attr", code: `Deno.readTextFileSync("/proc/self/status"); console.log("status");`, evidence: says("status\n")},
		{name: "/proc of all processes", code: `for (const e of Deno.readDirSync("/proc")) if (/^\d+$/.test(e.name)) console.log(read("/proc/" + e.name + "/environ"), "%VICTIM%".slice(0, 0));`},
		{name: "/proc of all processes with all reads granted", grants: []string{"--allow-read"}, code: `for (const e of Deno.readDirSync("/proc")) if (/^\d+$/.test(e.name)) console.log(read("/proc/" + e.name + "/environ"), "%VICTIM%".slice(0, 0));`},
		{name: "/dev/mem and disks", code: `for (const d of ["/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/port"]) { try { Deno.openSync(d); console.log("opened"); } catch {} }`,
			evidence: says("opened\n"), noControl: "it depends on the machine and its user"},
		{name: "/dev/tty", code: `console.log("tty", Deno.openSync("/dev/tty", { read: true, write: true }) !== null);`, evidence: says("tty true"),
			noControl: "tests have no terminal"},
		{name: "/dev/shm", code: `Deno.writeTextFileSync("/dev/shm/rillbox-hostile-%SERVER%", "x"); console.log("wrote"); Deno.removeSync("/dev/shm/rillbox-hostile-%SERVER%");`, evidence: says("wrote\n")},
		{name: "/dev/ptmx", code: `console.log("pty", Deno.openSync("/dev/ptmx", { read: true, write: true }) !== null);`, evidence: says("pty true")},
		{name: "/dev/kvm, /dev/fuse and /dev/net/tun", code: `for (const d of ["/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/vsock"]) { try { Deno.openSync(d, { read: true, write: true }); console.log("opened"); } catch {} }`,
			evidence: says("opened\n"), noControl: "it depends on the machine"},
		{name: "/sys/kernel", code: `console.log("sys", [...Deno.readDirSync("/sys/kernel")].length > 0);`, evidence: says("sys true")},
		{name: "/sys/fs/cgroup write", code: `let n = 0; for (const p of ["", "/memory", "/pids"]) try { Deno.mkdirSync("/sys/fs/cgroup" + p + "/rillbox-hostile-%SERVER%"); n++; Deno.removeSync("/sys/fs/cgroup" + p + "/rillbox-hostile-%SERVER%"); } catch {} console.log("groups", n > 0);`, evidence: says("groups true"),
			noControl: "it depends on the machine and its user"},
		{name: "/etc/passwd and the home directory", code: `console.log("users", read("/etc/passwd").includes("root:"));`, evidence: says("users true")},
	}
	for i := range rows {
		rows[i].linux = true
		rows[i].bare = true // Deno lets a process with any denial, which every run of ours has, read little of /proc
		rows[i].code = read + rows[i].code
	}
	try(t, rows)
}

// What a grant names is the end of it, whatever leads out of it.
func TestGrantsEndWhereTheyEnd(t *testing.T) {
	t.Parallel()
	readable, writable := []string{"--allow-read=%GRANTED%"}, []string{"--allow-write=%GRANTED%"}
	both := slices.Concat(readable, writable)
	linkOut := func(t *testing.T, s *scene) {
		for name, target := range map[string]string{"out": s.dir(), "file": s.dir() + "/secret.txt", "new": s.dir() + "/new"} {
			if err := os.Symlink(target, filepath.Join(s.words["%GRANTED%"], name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	try(t, []attack{
		{name: "read beside the grant", grants: readable, code: `console.log(Deno.readTextFileSync("%GRANTED%/../outside/secret.txt"));`},
		{name: "read of a name that begins like the grant", grants: readable, code: `console.log(Deno.readTextFileSync("%GRANTED%-not/secret.txt"));`,
			prepare: func(t *testing.T, s *scene) {
				dir := s.words["%GRANTED%"] + "-not"
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, dir+"/secret.txt", s.secret)
			}},
		{name: "read through a symbolic link out", grants: readable, prepare: linkOut, code: `console.log(Deno.readTextFileSync("%GRANTED%/file"));`},
		{name: "read through a linked directory", grants: readable, prepare: linkOut, code: `console.log(Deno.readTextFileSync("%GRANTED%/out/secret.txt"));`},
		{name: "node read through a symbolic link out", grants: readable, prepare: linkOut, code: `console.log(process.getBuiltinModule("fs").readFileSync("%GRANTED%/file", "utf8"));`},
		{name: "import through a symbolic link out", grants: readable, prepare: linkOut, code: `console.log((await import("file://%GRANTED%/out/secret.mjs")).default);`},
		{name: "require through a symbolic link out", grants: readable, prepare: linkOut, file: "main.cjs", code: `console.log(require("%GRANTED%/out/secret.cjs"));`},
		{name: "fetch through a symbolic link out", grants: readable, prepare: linkOut, code: `console.log(await (await fetch("file://%GRANTED%/file")).text());`},
		{name: "list through a linked directory", grants: readable, prepare: linkOut, code: `console.log([...Deno.readDirSync("%GRANTED%/out/names")]);`},
		{name: "write with a read grant", grants: []string{"--allow-read=%DIR%"}, code: `Deno.writeTextFileSync("%DIR%/new", "x");`},
		{name: "read with a write grant", grants: []string{"--allow-write=%DIR%"}, code: `console.log(Deno.readTextFileSync("%DIR%/secret.txt"));`},
		{name: "import with a write grant", grants: []string{"--allow-write=%DIR%"}, code: `console.log((await import("file://%DIR%/secret.mjs")).default);`},
		{name: "write beside the grant", grants: writable, code: `Deno.writeTextFileSync("%GRANTED%/../outside/new", "x");`},
		{name: "write through a symbolic link out", grants: writable, prepare: linkOut, code: `Deno.writeTextFileSync("%GRANTED%/file", "x");`},
		{name: "write through a symbolic link to nothing yet", grants: writable, prepare: linkOut, code: `Deno.writeTextFileSync("%GRANTED%/new", "x");`,
			noControl: "Deno makes no file at the end of such a link"},
		{name: "write through a linked directory", grants: writable, prepare: linkOut, code: `Deno.writeTextFileSync("%GRANTED%/out/new", "x");`},
		{name: "symbolic link made in the grant, and read through", grants: both, code: `Deno.symlinkSync("%DIR%", "%GRANTED%/l"); console.log(Deno.readTextFileSync("%GRANTED%/l/secret.txt"));`},
		{name: "relative symbolic link made in the grant, and read through", grants: both, code: `Deno.symlinkSync("../outside", "%GRANTED%/l"); console.log(Deno.readTextFileSync("%GRANTED%/l/secret.txt"));`},
		{name: "node symbolic link made in the grant, and written through", grants: both, code: `const fs = process.getBuiltinModule("fs"); fs.symlinkSync("%DIR%", "%GRANTED%/l"); fs.writeFileSync("%GRANTED%/l/new", "x");`},
		{name: "hard link into the grant, and read", grants: both, code: `Deno.linkSync("%DIR%/secret.txt", "%GRANTED%/h"); console.log(Deno.readTextFileSync("%GRANTED%/h"));`},
		{name: "rename out of the grant", grants: both, code: `Deno.writeTextFileSync("%GRANTED%/f", "x"); Deno.renameSync("%GRANTED%/f", "%DIR%/f");`},
		{name: "rename into the grant, and read", grants: both, code: `Deno.renameSync("%DIR%/secret.txt", "%GRANTED%/f"); console.log(Deno.readTextFileSync("%GRANTED%/f"));`},
		{name: "directory swapped for a link between check and use", grants: both, code: `
const w = new Worker("data:text/javascript," + encodeURIComponent('for (let i = 0; i < 4000; i++) { try { Deno.renameSync("%GRANTED%/d", "%GRANTED%/e"); Deno.symlinkSync("%DIR%", "%GRANTED%/d"); Deno.removeSync("%GRANTED%/d"); Deno.renameSync("%GRANTED%/e", "%GRANTED%/d"); } catch {} } postMessage(1)'), { type: "module" });
Deno.mkdirSync("%GRANTED%/d"); Deno.writeTextFileSync("%GRANTED%/d/secret.txt", "innocent"); let done = false; w.onmessage = () => done = true;
while (!done) { for (let i = 0; i < 50; i++) try { const s = await Deno.readTextFile("%GRANTED%/d/secret.txt"); if (s !== "innocent") { console.log(s); done = true; break; } } catch {} await new Promise((r) => setTimeout(r)); } w.terminate();`,
			noControl: "it is a race, which the control need not win; the second wall leaves nothing to win"},
		{name: "copyFile out of what is readable into what is writable, with neither", grants: both, code: `Deno.copyFileSync("%DIR%/secret.txt", "%GRANTED%/copy"); console.log(Deno.readTextFileSync("%GRANTED%/copy"));`},
		{name: "denied below what is granted", grants: []string{"--allow-read", "--deny-read=%DIR%"}, code: `console.log(Deno.readTextFileSync("%DIR%/secret.txt"));`},
		{name: "denied below what is granted, by /proc", grants: []string{"--allow-read", "--deny-read=%DIR%"}, linux: true, bare: true, code: `console.log(Deno.readTextFileSync("/proc/self/root%DIR%/secret.txt"));`},
		{name: "node:wasi makes a file outside of a directory that may be read and written", grants: both, control: both, code: wasiEscape},
		{name: "node:wasi through process.getBuiltinModule", grants: both, control: both, code: swapped(wasiEscape, `await import("node:wasi")`, `process.getBuiltinModule("wasi")`)},
		{name: "node:wasi through createRequire", grants: both, control: both, code: `import { createRequire } from "node:module";` + swapped(wasiEscape, `await import("node:wasi")`, `createRequire(import.meta.url)("wasi")`)},
		{name: "node:wasi in CommonJS", grants: both, control: both, file: "main.cjs", noCellControl: "a cell ends without its promise", code: `(async () => {` + swapped(wasiEscape, `await import("node:wasi")`, `require("wasi")`) + `})();`},
		{name: "node:wasi in a worker", grants: both, control: both, code: inWorker(fromBlob, "", swapped(wasiEscape, "console.log", "postMessage"))},
		{name: "node:wasi with programs granted too", grants: slices.Concat(both, []string{"--allow-run=/bin/true"}), control: slices.Concat(both, []string{"--allow-run=/bin/true"}), code: wasiEscape},
		{name: "node:wasi with network granted too", grants: slices.Concat(both, []string{"--allow-net"}), control: slices.Concat(both, []string{"--allow-net"}), code: wasiEscape},
		{name: "node:wasi with a narrower writable directory", grants: slices.Concat(readable, []string{"--allow-write=%GRANTED%/sub"}), control: slices.Concat(readable, []string{"--allow-write=%GRANTED%/sub"}),
			prepare: func(t *testing.T, s *scene) {
				if err := os.Mkdir(s.words["%GRANTED%"]+"/sub", 0o755); err != nil {
					t.Fatal(err)
				}
			}, code: swapped(wasiEscape, `"%GRANTED%"`, `"%GRANTED%/sub"`)},
	})
}

// wasiEscape makes a symbolic link that leads out of %GRANTED%, opens it with
// the right to create, and writes: see Deno's node:wasi.
const wasiEscape = `const { WASI } = await import("node:wasi");
const bytes = new Uint8Array([0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,5,3,1,0,1,7,24,2,6,109,101,109,111,114,121,2,0,11,95,105,110,105,116,105,97,108,105,122,101,0,0,10,4,1,2,0,11]);
const wasi = new WASI({ version: "preview1", args: [], env: {}, preopens: { "/w": "%GRANTED%" }, returnOnExit: true });
const calls = wasi.getImportObject().wasi_snapshot_preview1;
const { instance } = await WebAssembly.instantiate(bytes, {});
wasi.initialize(instance);
const memory = instance.exports.memory;
const put = (at, text) => { const b = new TextEncoder().encode(text); new Uint8Array(memory.buffer).set(b, at); return b.length; };
const target = put(1024, "%DIR%/escaped"), link = put(2048, "link");
const linked = calls.path_symlink(1024, target, 3, 2048, link);
const opened = calls.path_open(3, 1, 2048, link, 1, 64n | 2n, 0n, 0, 4096);
const view = new DataView(memory.buffer);
view.setUint32(5000, 3000, true); view.setUint32(5004, put(3000, "escaped"), true);
console.log("symlink", linked, "open", opened, "write", calls.fd_write(view.getUint32(4096, true), 5000, 1, 5100));`

// swapped is strings.ReplaceAll that insists on having something to replace.
func swapped(text, old, with string) string {
	if !strings.Contains(text, old) {
		panic("not in the text: " + old)
	}
	return strings.ReplaceAll(text, old, with)
}
