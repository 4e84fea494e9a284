//go:build !windows

package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// TestGuestsOfOneSessionDoNotReachAnother: a program of one client's session goes
// for another's workspace by its real path, for its process and for its way to
// packages. What it is told of that (paths, process IDs, ports) it could not know.
func TestGuestsOfOneSessionDoNotReachAnother(t *testing.T) {
	needWall(t)
	t.Parallel()
	needProc(t)
	h := openHouse(t, job.DefaultLimits())
	secret := newSecret()
	victims := map[string]*victim{}
	for _, says := range speeches {
		victims[says.language] = openVictim(t, h, says, secret)
	}
	for _, says := range speeches {
		t.Run(says.language, func(t *testing.T) {
			session := createSession(t, h.rude, says.language, nil)
			for _, against := range speeches {
				v := victims[against.language]
				t.Run("against "+against.language, func(t *testing.T) {
					for _, row := range guestAttacks(says.language) {
						if !v.has(row.code) {
							continue
						}
						a := call(t, h.rude, map[string]any{"session_id": session, "language": says.language, "code": v.fill(row.code), "timeout_seconds": 10})
						if a.Status != "failed" || strings.Contains(fmt.Sprint(a, string(a.Result)), secret) {
							t.Errorf("%s: %+v %s", row.name, a, a.Result)
						}
						t.Logf("%s: %.200s", row.name, a.Error.Message)
						v.check(t, row.name)
					}
				})
			}
		})
	}
	t.Run("control", func(t *testing.T) {
		h := openHouseOf(t, houseOptions{limits: job.DefaultLimits(), withoutWall: true, grants: []string{"--allow-all"}})
		for _, says := range speeches {
			v := openVictim(t, h, says, secret)
			session := createSession(t, h.rude, says.language, nil)
			for _, row := range guestAttacks(says.language) {
				if !row.reads {
					continue
				}
				if a := cell(t, h.rude, session, says.language, v.fill(row.code)); !strings.Contains(fmt.Sprint(a, string(a.Result)), secret) {
					t.Errorf("%s, %s: it does not get there without the boundary either: %+v %s", says.language, row.name, a, a.Result)
				}
			}
		}
	})
}

type guestAttack struct {
	name, code string
	reads      bool // it tells the secret where nothing keeps it from that
}

// TestTheSecondWallHoldsAWorkspace: Deno's own boundary has a hole in a directory
// that is both readable and writable, which a workspace is. Without the second
// wall a guest with no permission of the operator's gets out of its own.
func TestTheSecondWallHoldsAWorkspace(t *testing.T) {
	needWall(t)
	t.Parallel()
	needProc(t)
	for _, row := range []struct {
		name        string
		withoutWall bool
	}{{"without it", true}, {"with it", false}} {
		t.Run(row.name, func(t *testing.T) {
			h := openHouseOf(t, houseOptions{limits: job.DefaultLimits(), withoutWall: row.withoutWall})
			v := openVictim(t, h, speechOf(t, "python"), newSecret())
			a := cell(t, h.rude, createSession(t, h.rude, "javascript", nil), "javascript", v.fill(wasiEscapeFromWorkspace))
			made, err := os.ReadFile(v.dir + "/escaped")
			if got := err == nil; got != row.withoutWall {
				t.Errorf("a file in another's workspace: %q %v; %+v", made, err, a)
			}
			t.Logf("%s%s", a.Stdout, a.Error.Message)
		})
	}
}

// wasiEscapeFromWorkspace makes a file outside of the workspace by node:wasi.
var wasiEscapeFromWorkspace = strings.ReplaceAll(wasiEscape, `"%GRANTED%"`, `Deno.cwd()`)

func guestAttacks(language string) []guestAttack {
	if language == "typescript" {
		language = "javascript"
	}
	return map[string][]guestAttack{
		"javascript": {
			{"read by its path", `Deno.readTextFileSync("%DIR%/secret.txt")`, true},
			{"read by its path, by node", `process.getBuiltinModule("fs").readFileSync("%DIR%/secret.txt", "utf8")`, true},
			{"read by a path from its own directory", `Deno.readTextFileSync("../%BASE%/secret.txt")`, true},
			{"read by /proc of itself", `Deno.readTextFileSync("/proc/self/cwd/../%BASE%/secret.txt")`, false},
			{"read by /proc of the other", `Deno.readTextFileSync("/proc/%PID%/cwd/secret.txt")`, false},
			{"read by the other's root", `Deno.readTextFileSync("/proc/%PID%/root%DIR%/secret.txt")`, false},
			{"read by import", `(await import("file://%DIR%/secret.txt", { with: { type: "text" } })).default`, true},
			{"read by import from beside", `(await import("../%BASE%/secret.txt", { with: { type: "text" } })).default`, true},
			{"read by fetch", `await (await fetch("file://%DIR%/secret.txt")).text()`, true},
			{"read by require", `require("%DIR%/secret.json")`, true},
			{"list", `[...Deno.readDirSync("%DIR%")].map((e) => e.name).join()`, false},
			{"list all sessions", `[...Deno.readDirSync("..")].map((e) => e.name).join()`, false},
			{"write", `Deno.writeTextFileSync("%DIR%/secret.txt", "forged")`, false},
			{"make a file", `Deno.writeTextFileSync("%DIR%/made", "forged")`, false},
			{"delete", `Deno.removeSync("%DIR%/secret.txt")`, false},
			{"rename away", `Deno.renameSync("%DIR%/secret.txt", "mine")`, false},
			{"rename into", `Deno.writeTextFileSync("mine", "forged"); Deno.renameSync("mine", "%DIR%/secret.txt")`, false},
			{"link to it", `Deno.symlinkSync("%DIR%", "link"); Deno.readTextFileSync("link/secret.txt")`, true},
			{"hard link to it", `Deno.linkSync("%DIR%/secret.txt", "hard"); Deno.readTextFileSync("hard")`, true},
			{"copy", `Deno.copyFileSync("%DIR%/secret.txt", "copy"); Deno.readTextFileSync("copy")`, true},
			{"chdir", `Deno.chdir("%DIR%"); Deno.readTextFileSync("secret.txt")`, false},
			{"link to it by node:wasi, and read", wasiLink, false},
			{"its environment", `Deno.readTextFileSync("/proc/%PID%/environ")`, false},
			{"its memory", `Deno.openSync("/proc/%PID%/mem").readSync(new Uint8Array(10))`, false},
			{"its descriptors", `Deno.writeTextFileSync("/proc/%PID%/fd/3", "forged\n")`, false},
			{"signal it", `Deno.kill(%PID%, "SIGKILL")`, false},
			{"signal it, by node", `process.kill(%PID%, "SIGKILL")`, false},
			{"stop its group", `process.kill(-%PID%, "SIGSTOP")`, false},
			{"connect to its inspector", `const c = await Deno.connect({ hostname: "127.0.0.1", port: %PORT% }); c.close(); "connected"`, false},
			{"its inspector's list", `"list " + await (await fetch("http://127.0.0.1:%PORT%/json/list")).text()`, false},
			{"its way to packages", `"status " + (await fetch("%GATEWAY%simple/x/")).status`, false},
		},
		"python": {
			{"read by its path", `open("%DIR%/secret.txt").read()`, false},
			{"read by Deno", `import js; js.Deno.readTextFileSync("%DIR%/secret.txt")`, true},
			{"read by node", `import js; js.process.getBuiltinModule("fs").readFileSync("%DIR%/secret.txt", "utf8")`, true},
			{"read by a path from its own directory", `import js; js.Deno.readTextFileSync(js.Deno.args[4] + "/../%BASE%/secret.txt")`, true},
			{"read beside the mount", `open("/workspace/../%BASE%/secret.txt").read()`, false},
			{"mounted", "import os, pyodide_js\nos.makedirs('/other', exist_ok=True)\npyodide_js.mountNodeFS('/other', '%DIR%')\nopen('/other/secret.txt').read()", true},
			{"a link in the workspace", `import os; os.symlink("%DIR%", "link"); open("link/secret.txt").read()`, false},
			{"a hard link in the workspace", `import os; os.link("%DIR%/secret.txt", "hard"); open("hard").read()`, false},
			{"read by /proc of the other", `import js; js.Deno.readTextFileSync("/proc/%PID%/cwd/secret.txt")`, false},
			{"write", `import js; js.Deno.writeTextFileSync("%DIR%/secret.txt", "forged")`, false},
			{"delete", `import js; js.Deno.removeSync("%DIR%/secret.txt")`, false},
			{"rename away", `import js; js.Deno.renameSync("%DIR%/secret.txt", js.Deno.args[4] + "/mine")`, false},
			{"list all sessions", `import js; [e.name for e in js.Array["from"](js.Deno.readDirSync(js.Deno.args[4] + "/.."))]`, false},
			{"its environment", `import js; js.Deno.readTextFileSync("/proc/%PID%/environ")`, false},
			{"its descriptors", `import js; js.Deno.writeTextFileSync("/proc/%PID%/fd/3", "forged\n")`, false},
			{"signal it", `import js; js.Deno.kill(%PID%, "SIGKILL")`, false},
			{"signal it, by node", `import js; js.process.kill(%PID%, "SIGKILL")`, false},
			{"connect to its inspector", "import js\nfrom pyodide.ffi import to_js\nc = await js.Deno.connect(to_js({'hostname': '127.0.0.1', 'port': %PORT%}, dict_converter=js.Object.fromEntries)); 'connected'", false},
		},
	}[language]
}

// wasiLink makes a symbolic link in the workspace without Deno's permission for
// that, as node:wasi has it, and reads through it.
var wasiLink = strings.NewReplacer(
	`"%GRANTED%"`, `Deno.cwd()`, `"%DIR%/escaped"`, `"%DIR%"`,
	`const opened =`, `Deno.readTextFileSync("link/secret.txt"); const opened =`,
).Replace(wasiEscape) + `; throw new Error("nothing was read")`

// victim is a session that others go for.
type victim struct {
	h              house
	says           speech
	secret         string
	session        string
	dir, base, pid string
	port           string // of its inspector, of scripts
	gateway        string // its way to packages, of Python
	fill           func(string) string
}

func openVictim(t *testing.T, h house, says speech, secret string) *victim {
	t.Helper()
	v := &victim{h: h, says: says, secret: secret, session: createSession(t, h.polite, says.language, nil)}
	ask := func(code string) string {
		a := cell(t, h.polite, v.session, says.language, code)
		if a.Status != "completed" {
			t.Fatalf("%s: %+v", code, a)
		}
		return strings.Trim(string(a.Result), `"`)
	}
	if says.language == "python" {
		v.gateway = ask("from micropip import package_index\npackage_index.PYPI_URL.removesuffix('simple')")
	} else {
		v.port = ask("process.debugPort")
	}
	mark := newSecret()
	if _, refusal := use[fileAnswer](t, h.polite, "write_file", map[string]any{"session_id": v.session, "path": mark, "text": "here"}); refusal != "" {
		t.Fatal(refusal)
	}
	v.dir, v.pid = whereItIs(t, mark)
	if err := os.Remove(filepath.Join(v.dir, mark)); err != nil {
		t.Fatal(err)
	}
	v.base = v.dir[strings.LastIndexByte(v.dir, '/')+1:]
	fill := strings.NewReplacer("%WORD%", secret, "%FILE%", "secret.txt", "%DIR%", v.dir, "%BASE%", v.base, "%PID%", v.pid, "%PORT%", v.port, "%GATEWAY%", v.gateway)
	v.fill = fill.Replace
	ask(v.fill(says.set))
	ask(v.fill(says.write))
	if _, refusal := use[fileAnswer](t, h.polite, "write_file", map[string]any{"session_id": v.session, "path": "secret.json", "text": `"` + secret + `"`}); refusal != "" {
		t.Fatal(refusal)
	}
	if text, err := os.ReadFile(v.dir + "/secret.txt"); err != nil || string(text) != secret {
		t.Fatalf("the secret is not where attacks look for it: %q %v", text, err)
	}
	return v
}

// whereItIs gives the directory of ours that is the workspace with the marked file,
// and the process, by our own number for it, that has it as its current one.
func whereItIs(t *testing.T, mark string) (dir, pid string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(runsDir(t), "*", mark))
	if err != nil || len(found) != 1 {
		t.Fatalf("the workspace is at %q, %v", found, err)
	}
	dir = filepath.Dir(found[0])
	processes, err := filepath.Glob("/proc/[0-9]*/cwd/" + mark) // by each process's own root
	if err != nil || len(processes) != 1 {
		t.Fatalf("the workspace is the current directory of %q, %v", processes, err)
	}
	return dir, strings.Split(processes[0], "/")[2]
}

// has says that it has what an attack's code names.
func (v *victim) has(code string) bool {
	return (v.port != "" || !strings.Contains(code, "%PORT%")) && (v.gateway != "" || !strings.Contains(code, "%GATEWAY%"))
}

// check checks that all is as it was.
func (v *victim) check(t *testing.T, after string) {
	t.Helper()
	text, err := os.ReadFile(v.dir + "/secret.txt")
	entries, _ := os.ReadDir(v.dir)
	if err != nil || string(text) != v.secret || len(entries) != 2 {
		t.Errorf("%s: then the file is %q %v, of %v", after, text, err, entries)
	}
	if a := cell(t, v.h.polite, v.session, v.says.language, v.says.get); string(a.Result) != fmt.Sprintf("%q", v.secret) {
		t.Errorf("%s: then the other session says %+v", after, a)
	}
}
