//go:build !windows

package hostile

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// linkByWASI defines L(target, name): a symbolic link to any path, which node:wasi
// makes in the current directory without asking Deno's permissions.
const linkByWASI = `const { WASI } = await import("node:wasi");
const bytes = Uint8Array.from([0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,5,3,1,0,1,7,24,2,6,109,101,109,111,114,121,2,0,11,95,105,110,105,116,105,97,108,105,122,101,0,0,10,4,1,2,0,11]);
const wasi = new WASI({ version: "preview1", args: [], env: {}, preopens: { "/w": Deno.cwd() }, returnOnExit: true });
const calls = wasi.getImportObject().wasi_snapshot_preview1;
const { instance } = await WebAssembly.instantiate(bytes, {});
wasi.initialize(instance);
const put = (at, text) => { const b = new TextEncoder().encode(text); new Uint8Array(instance.exports.memory.buffer).set(b, at); return b.length; };
let links = 0;
const L = (target) => {
  const name = "link" + links++ + Math.random();
  const code = calls.path_symlink(4096, put(4096, target), 3, 8192, put(8192, name));
  if (code !== 0) console.log("no link:", code);
  return Deno.cwd() + "/" + name;
};
`

// linkRows are what a program without any grant does to what a link of its leads
// to. None of it is reading or writing, which Deno and Landlock know of.
var linkRows = []attack{
	{name: "chmod", code: `Deno.chmodSync(L("%DIR%/secret.txt"), 0o777);`},
	{name: "chmod of a directory", code: `Deno.chmodSync(L("%DIR%"), 0);`},
	{name: "chmod behind a link", code: `Deno.chmodSync(L("%DIR%") + "/run.sh", 0);`},
	{name: "chmod, asynchronous", code: `await Deno.chmod(L("%DIR%/secret.txt"), 0o777);`},
	{name: "chown", code: `Deno.chownSync(L("%DIR%/secret.txt"), 12345, 12345);`},
	{name: "chown to itself", code: `Deno.chownSync(L("%DIR%/run.sh"), Deno.uid?.() ?? 0, null); Deno.utimeSync(L("%DIR%/run.sh"), 1, 1);`},
	{name: "utime", code: `Deno.utimeSync(L("%DIR%/secret.txt"), 1, 1);`},
	{name: "utime of a directory", code: `await Deno.utime(L("%DIR%/names"), 1, 1);`},
	{name: "stat", code: `console.log("size", Deno.statSync(L("%DIR%/secret.txt")).size);`, evidence: says("size 32")},
	{name: "stat of a directory", code: `console.log("kind", Deno.statSync(L("%DIR%")).isDirectory);`, evidence: says("kind true")},
	{name: "stat behind a link", code: `console.log("size", Deno.statSync(L("%DIR%") + "/secret.txt").size);`, evidence: says("size 32")},
	{name: "stat of the cache", code: `console.log("kind", Deno.statSync(L("%CACHE%")).isDirectory);`, evidence: says("kind true")},
	{name: "stat of other runs' directory", code: `console.log("kind", Deno.statSync(L("%RUNS%")).isDirectory);`, evidence: says("kind true")},
	{name: "stat of the server's process", code: `console.log("kind", Deno.statSync(L("/proc/%SERVER%")).isDirectory);`, evidence: says("kind true"), linux: true},
	{name: "real path", code: `console.log("real", Deno.realPathSync(L("%DIR%/names")));`, evidence: says("real /")},
	{name: "existence", code: `console.log("there", Deno.statSync(L("%DIR%/secret.txt")) !== undefined, Deno.statSync(L("%DIR%/absent")));`,
		noControl: "it fails at what is absent; the row shows that what is there fails in the same way"},
	{name: "watch", code: `const watcher = Deno.watchFs(L("%DIR%")); console.log("wat" + "ching"); watcher.close();`, evidence: says("watching")},
	{name: "watch behind a link", code: `const watcher = Deno.watchFs(L("%DIR%") + "/names"); console.log("wat" + "ching"); watcher.close();`, evidence: says("watching")},
	{name: "read", code: `console.log(Deno.readTextFileSync(L("%DIR%/secret.txt")));`},
	{name: "list", code: `console.log([...Deno.readDirSync(L("%DIR%/names"))]);`},
	{name: "write", code: `Deno.writeTextFileSync(L("%DIR%") + "/new", "x");`},
	{name: "truncate", code: `Deno.truncateSync(L("%DIR%") + "/secret.txt");`},
	{name: "make a directory", code: `Deno.mkdirSync(L("%DIR%") + "/new");`},
	{name: "remove", code: `Deno.removeSync(L("%DIR%") + "/secret.txt");`},
	{name: "rename", code: `Deno.renameSync(L("%DIR%") + "/secret.txt", Deno.cwd() + "/taken"); console.log(Deno.readTextFileSync("taken"));`},
	{name: "hard link", code: `Deno.linkSync(L("%DIR%") + "/secret.txt", Deno.cwd() + "/hard"); console.log(Deno.readTextFileSync("hard"));`},
	{name: "copy", code: `Deno.copyFileSync(L("%DIR%/secret.txt"), Deno.cwd() + "/copy"); console.log(Deno.readTextFileSync("copy"));`},
	{name: "node's chmod", code: `(await import("node:fs")).chmodSync(L("%DIR%/secret.txt"), 0o777);`},
	{name: "node's access", code: `(await import("node:fs")).accessSync(L("%DIR%/secret.txt")); console.log("there");`, evidence: says("there\n")},
	{name: "node's utimes", code: `(await import("node:fs")).utimesSync(L("%DIR%/secret.txt"), 1, 1);`},
	{name: "node's statfs", code: `console.log("blocks", (await import("node:fs")).statfsSync(L("%DIR%")).blocks > 0);`, evidence: says("blocks true")},
	{name: "path_open with create", code: `L("%DIR%/new"); console.log(calls.path_open(3, 1, 8192, put(8192, "link0"), 1, 64n, 0n, 0, 16384));`, noControl: "TestNodeFiles has it"},
}

// TestLinksLeadNowhere: a link to what a program was not given is a link to
// nothing, in each language, in runs with files and in sessions.
func TestLinksLeadNowhere(t *testing.T) {
	t.Parallel()
	for _, language := range []job.Language{job.JavaScript, job.TypeScript, job.Python} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			var rows []attack
			for _, row := range linkRows {
				row.language, row.workspace = language, true
				row.code = "{\n" + linkByWASI + row.code + "\n}"
				switch language {
				case job.TypeScript: // WebAssembly's exports and the calls have loose types
					row.code = "// @ts-nocheck\n" + row.code
				case job.Python:
					row.code = fmt.Sprintf("from pyodide.code import run_js\nawait run_js(%s)", strconv.Quote("(async () => "+row.code+")()"))
				}
				rows = append(rows, row)
			}
			if language == job.Python {
				tryTogether(t, rows)
				return
			}
			try(t, rows)
		})
	}
}

// TestProgramsSeeTheirRootAlone: programs of the system that the operator lets be
// run see what the guest sees, and no process of others.
func TestProgramsSeeTheirRootAlone(t *testing.T) {
	command := func(name string, args ...string) string {
		return fmt.Sprintf(`const { stdout, stderr, code } = new Deno.Command(%q, { args: %s }).outputSync();
console.log("code", code, new TextDecoder().decode(stdout), new TextDecoder().decode(stderr));`, name, "["+strings.Join(quoted(args), ", ")+"]")
	}
	rows := []attack{
		{name: "cat", code: command("cat", "%DIR%/secret.txt")},
		{name: "cat of the server's environment", code: command("cat", "/proc/%SERVER%/environ")},
		{name: "ls", code: command("ls", "-la", "%DIR%/names")},
		{name: "ls of other runs", code: command("ls", "-d", "%RUNS%"), evidence: says("code 0")},
		{name: "ls of the server's process", code: command("ls", "/proc/%SERVER%/status"), evidence: says("code 0")},
		{name: "stat", code: command("stat", "%DIR%/secret.txt"), evidence: says("code 0")},
		{name: "touch", code: command("touch", "%DIR%/new")},
		{name: "chmod", code: command("chmod", "777", "%DIR%/secret.txt")},
		{name: "kill", code: command("sh", "-c", "kill -TERM %VICTIM%"), evidence: settle},
		{name: "kill -0", code: command("sh", "-c", "kill -0 %VICTIM%"), evidence: says("code 0")},
		{name: "prlimit of the server", code: command("prlimit", "--pid", "%SERVER%", "--core=0:0"), evidence: says("code 0"), linux: true},
		{name: "renice of the victim", code: command("renice", "-n", "3", "-p", "%VICTIM%"), evidence: says("code 0")},
		{name: "a connection", code: command("sh", "-c", "echo x > /dev/tcp/127.0.0.1/%HTTPPORT% || exec bash -c 'echo x > /dev/tcp/127.0.0.1/%HTTPPORT%'")},
		{name: "run.sh", code: command("%DIR%/run.sh")},
		{name: "run.sh by a shell", code: command("sh", "%DIR%/run.sh")},
	}
	for i := range rows {
		rows[i].grants = []string{"--allow-run"}
		switch rows[i].name {
		case "ls of other runs", "ls of the server's process", "stat":
			rows[i].least = launcher.Namespaces // Landlock does not keep a program of the system from looking
		}
	}
	try(t, rows)
}

func quoted(texts []string) (quoted []string) {
	for _, text := range texts {
		quoted = append(quoted, strconv.Quote(text))
	}
	return quoted
}

// TestWhatMayBeRunRuns, and reads what was granted: a grant of a program works by
// itself.
func TestWhatMayBeRunRuns(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", []byte("granted"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		grants []string
		code   string
		want   string
	}{
		{[]string{"--allow-run=ls"}, `new TextDecoder().decode(new Deno.Command("ls", { args: ["--version"] }).outputSync().stdout)`, "coreutils"},
		{[]string{"--allow-run=cat", "--allow-read=" + dir}, `new TextDecoder().decode(new Deno.Command("cat", { args: ["` + dir + `/file"] }).outputSync().stdout)`, "granted"},
		{[]string{"--allow-run"}, `new TextDecoder().decode(new Deno.Command("sh", { args: ["-c", "echo a | tr a b"] }).outputSync().stdout)`, "b"},
		{[]string{"--allow-run=python3"}, `new TextDecoder().decode(new Deno.Command("python3", { args: ["-c", "import json; print(json.dumps([1]))"] }).outputSync().stdout)`, "[1]"},
		{[]string{"--allow-run=sh", "--allow-env"}, `(await import("node:child_process")).execFileSync("sh", ["-c", "echo hi"]).toString()`, "hi"},
	} {
		for _, level := range (attack{grants: row.grants}).levels(false) {
			o := runProgram(t.Context(), newEngine(t, job.JavaScript, row.grants, level), job.Program{Language: job.JavaScript, Code: "export default " + row.code}, nil)
			if !strings.Contains(string(o.Value), strings.Trim(strconv.Quote(row.want), `"`)) {
				t.Errorf("%q behind %v: %s", row.grants, level, o.summary())
			}
		}
	}
}
