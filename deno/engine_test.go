//go:build !windows

package deno_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/deno/binary"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
)

// newEngine makes an engine on the tests' shared cache, with Deno in place.
func newEngine(t testing.TB, flags string, change ...func(*deno.Options)) *deno.Engine {
	t.Helper()
	permissions, err := permission.ParseShell(flags)
	if err != nil {
		t.Fatal(err)
	}
	o := deno.Options{
		Cache:       cachetest.Open(t),
		Permissions: permissions,
		Limits:      job.DefaultLimits(),
		Log:         cachetest.Logger(t),
	}
	for _, c := range change {
		c(&o)
	}
	e, err := deno.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	cachetest.NeedNetwork(t, e.Prepare(t.Context(), func(job.Event) {}))
	return e
}

func ignore(job.Event) {}

func run(t testing.TB, e *deno.Engine, p job.Program, stdin ...io.Reader) job.Result {
	t.Helper()
	if p.Language == "" {
		p.Language = job.TypeScript
	}
	if p.Timeout == 0 {
		p.Timeout = job.DefaultLimits().Timeout
	}
	r, err := e.Run(context.WithoutCancel(t.Context()), p, job.Streams{Stdin: only(stdin), Emit: ignore})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStreamsArgumentsAndStdin(t *testing.T) {
	e := newEngine(t, "")
	for _, language := range []job.Language{job.JavaScript, job.TypeScript} {
		r := run(t, e, job.Program{
			Language: language,
			Code: `import process from "node:process";
console.log("out", Deno.args);
console.error("err");
console.log(process.argv.slice(2).join(), process.argv[1].split("/").pop(), process.argv.length);
console.log(Deno.mainModule === import.meta.url, import.meta.main);
console.log(await new Response(Deno.stdin.readable).text());
export default { answer: 42 };`,
			Args: []string{"a", "--b", "--allow-read", "--", "é\n"},
		}, strings.NewReader("the rest\nof it"))
		name := map[job.Language]string{job.JavaScript: "main.js", job.TypeScript: "main.ts"}[language]
		want := "out [ \"a\", \"--b\", \"--allow-read\", \"--\", \"é\\n\" ]\na,--b,--allow-read,--,é\n " + name + " 7\ntrue true\nthe rest\nof it\n"
		if r.Status != job.Completed || r.Stdout.String() != want || r.Stderr.String() != "err\n" || string(r.Value) != `{"answer":42}` {
			t.Errorf("%s: %s %q %q %s %+v\nwant %q", language, r.Status, r.Stdout, r.Stderr, r.Value, r.Error, want)
		}
		if r.Duration <= 0 || r.CPU <= 0 || r.PeakMemory < 1<<20 {
			t.Errorf("%s: not measured: %v %v %d", language, r.Duration, r.CPU, r.PeakMemory)
		}
	}
}

func TestNodeStdin(t *testing.T) {
	input := strings.Repeat("0123456789abcde\n", 10_000)
	r := run(t, newEngine(t, ""), job.Program{
		Code: `import process from "node:process";
let text = "";
for await (const chunk of process.stdin) text += chunk;
process.stdout.write(String(text.length) + text.slice(0, 5) + text.slice(-5));`,
	}, strings.NewReader(input))
	if r.Stdout.String() != "16000001234bcde\n" {
		t.Errorf("have %q %+v", r.Stdout, r.Error)
	}
	r = run(t, newEngine(t, ""), job.Program{Code: `console.log(await new Response(Deno.stdin.readable).text() === "")`})
	if r.Stdout.String() != "true\n" {
		t.Errorf("no stdin: have %q %+v", r.Stdout, r.Error)
	}
}

func TestValues(t *testing.T) {
	e := newEngine(t, "")
	for code, want := range map[string]string{
		`1`:                                                   ``,
		`export default 1`:                                    `1`,
		`export default null`:                                 `null`,
		`export default undefined`:                            ``,
		`export default "é\ud800"`:                            `"é\ud800"`,
		`export default { a: [1, { b: null }] }`:              `{"a":[1,{"b":null}]}`,
		`export default Promise.resolve(true)`:                `true`,
		`export default await Promise.resolve(2)`:             `2`,
		`export default 10n`:                                  `"10n"`,
		`export default NaN`:                                  `"NaN"`,
		`export default -0`:                                   `"-0"`,
		`export default new Map([[1, 2]])`:                    `"Map(1) { 1 => 2 }"`,
		`export default { a: undefined }`:                     `"{ a: undefined }"`,
		`export default [1, , 2]`:                             `"[ 1, <1 empty item>, 2 ]"`,
		`export default function f() {}`:                      `"[Function: f]"`,
		`export default class A {}`:                           `"[class A]"`,
		`export default Symbol("s")`:                          `"Symbol(s)"`,
		`const a: any = {}; a.a = a; export default a`:        `"<ref *1> { a: [Circular *1] }"`,
		`export default { toJSON() { return 1 } }`:            `"{ toJSON: [Function: toJSON] }"`,
		`export default { get x() { throw new Error("x") } }`: `"{ x: [Getter] }"`,
	} {
		if r := run(t, e, job.Program{Code: code}); r.Status != job.Completed || string(r.Value) != want {
			t.Errorf("%s: have %s %s, want %s (%+v)", code, r.Status, r.Value, want, r.Error)
		}
	}
	limit := int(job.DefaultLimits().Result)
	for _, code := range []string{`export default "x".repeat(5e6)`, `export default Array(1e6).fill("é")`, `export default "\u0001".repeat(5e6)`} {
		r := run(t, e, job.Program{Code: code})
		if r.Status != job.Completed || len(r.Value) == 0 || len(r.Value) > limit {
			t.Errorf("%s: have %s and a value of %d bytes, want at most %d (%+v)", code, r.Status, len(r.Value), limit, r.Error)
		}
	}
}

func TestCommonJS(t *testing.T) {
	e := newEngine(t, "")
	for _, test := range []struct{ name, code, want string }{
		{"", `const { join } = require("path"); module.exports = join("a", "b")`, `"a/b"`},
		{"", `exports.a = require("node:os").EOL`, `{"a":"\n"}`},
		{"", `const fs = require("fs"); console.log(typeof fs.readFileSync)`, ``},
		{"x.cjs", `module.exports = [require.main === module, __filename.endsWith("x.cjs"), this === exports]`, `[true,true,true]`},
		{"", `module.exports = Promise.resolve(3)`, `3`},
		{"", `const os = require("os"); await 1; console.log(typeof os)`, ``},
		{"", `import { createRequire } from "node:module"; const require = createRequire(import.meta.url); export default typeof require("fs").readFileSync`, `"function"`},
		{"", `let code; try { require("no" + name) } catch (e) { code = e.code } function name() {} module.exports = code`, `"MODULE_NOT_FOUND"`},
	} {
		r := run(t, e, job.Program{Language: job.JavaScript, Name: test.name, Code: test.code})
		if r.Status != job.Completed || string(r.Value) != test.want {
			t.Errorf("%s: have %s %s, want %s (%+v)", test.code, r.Status, r.Value, test.want, r.Error)
		}
	}
}

// Deno knows the bare names of Node's modules itself, also those that are put
// together at run time.
func TestBareBuiltins(t *testing.T) {
	r := run(t, newEngine(t, ""), job.Program{Code: `import { join } from "path/posix";
import { builtinModules } from "module";
const other = [];
for (const name of builtinModules.filter((name) => !name.includes(":"))) {
  if (await import(name) !== await import("node:" + name)) other.push(name);
}
export default [join("a", "b"), builtinModules.length > 50, other];`})
	if string(r.Value) != `["a/b",true,[]]` {
		t.Errorf("have %s %+v", r.Value, r.Error)
	}
}

func TestErrors(t *testing.T) {
	e := newEngine(t, "")
	js, ts := job.JavaScript, job.TypeScript
	for _, test := range []struct {
		name      string
		language  job.Language
		code      string
		error     string // "name: message", or part of it
		traceback string // the frames, or part of them
	}{
		{"thrown", ts, "const a: number = 1;\nfunction f() {\n  throw new RangeError('boom');\n}\nf();", "RangeError: boom", "RangeError: boom\n    at f (main.ts:3:9)\n    at main.ts:5:1"},
		{"caused", ts, "throw new Error('out', { cause: new TypeError('in') })", "Error: out", "Caused by: TypeError: in\n    at main.ts:1:33"},
		{"aggregated", js, "throw new AggregateError([new Error('a'), 'b'], 'many')", "AggregateError: many", "    [1] Error: a\n        at main.js:1:27\n    [2] Uncaught: b"},
		{"no error", js, "throw { a: 1 }", "Uncaught: { a: 1 }", "Uncaught: { a: 1 }"},
		{"in a prelude's line", ts, "import.meta.main; null.x", "TypeError: Cannot read properties of null", "at main.ts:1:24"},
		{"CommonJS", js, "const a = require('os');\nfunction f() { a.nope() }\nf()", "TypeError: a.nope is not a function", "    at f (main.js:2:18)\n    at Object.<anonymous> (main.js:3:1)"},
		{"later", js, "setTimeout(() => { throw new Error('late') })", "Error: late", "main.js:1:26"},
		{"rejected", js, "Promise.reject(new Error('late'))", "Error: late", "at main.js:1:16"},
		{"never", js, "1;\nawait new Promise(() => {})", "Error: Top-level await promise never resolved", "main.js:2:1"},
		{"never settled", js, "export default new Promise(() => {})", "Error: The promise that the program exports by default never settled", ""},
		{"syntax", ts, "1;\nconst x: = 3;", "SyntaxError: Unexpected token `=`", "at main.ts:2:10"},
		{"syntax in a prelude's line", ts, "import.meta.main; const x: = 3;", "1 | import.meta.main; const x: = 3;\n  |                            ~\n    at main.ts:1:28", ""},
		{"V8's syntax", js, "let a = 1;\nlet a = 2;", "SyntaxError: Identifier 'a' has already been declared at main.js:2:5", ""},
		{"CommonJS syntax", js, "require('os');\nlet a; let a;", "SyntaxError: Identifier 'a' has already been declared at main.js:2:12", ""},
		{"TypeScript as JavaScript", js, "const x: number = 3;", "run it with language typescript", ""},
		{"not TypeScript either", js, "const = 3;", "SyntaxError: ", ""},
		{"not TypeScript, but a name that is not there", js, "import { nope } from 'node:fs'", "does not provide an export named 'nope' at main.js:1:10$", ""},
		{"no such export", js, "import { nope } from 'node:fs'", "SyntaxError: The requested module 'node:fs' does not provide an export named 'nope'", ""},
		{"computed package", js, "await import('left-' + Deno.version.deno.slice(0, 1))", `TypeError: Cannot find package "left-2": an import that is computed is not fetched by itself; name it in packages`, ""},
		{"read", js, "Deno.readTextFileSync('/etc/passwd')", `NotCapable: Requires read access to "/etc/passwd": the operator can allow it with --allow-read in DENO_PERMISSION_ARGS`, "at main.js:1:6"},
		{"write", js, "Deno.writeTextFileSync('/x', '')", `Requires write access to "/x": the operator can allow it with --allow-write in DENO_PERMISSION_ARGS`, ""},
		{"net", js, "await fetch('https://example.com')", `Requires net access to "example.com:443": the operator can allow it with --allow-net=example.com:443 in DENO_PERMISSION_ARGS`, ""},
		{"env", js, "Deno.env.get('HOME')", `Requires env access to "HOME": the operator can allow it with --allow-env=HOME in DENO_PERMISSION_ARGS`, ""},
		{"run", js, "new Deno.Command('ls').outputSync()", `Requires run access to "ls": the operator can allow it with --allow-run in DENO_PERMISSION_ARGS`, ""},
		{"run in Node's words", js, "require('child_process').execSync('ls')", `Requires run access, to start a program: the operator can allow it with --allow-run in DENO_PERMISSION_ARGS`, ""},
		{"native code", js, "Deno.readFileSync('/x/better_sqlite3.node')", `better_sqlite3.node is native code, which is not loaded here`, ""},
		{"sys", js, "Deno.hostname()", `the operator can allow it with --allow-sys in DENO_PERMISSION_ARGS`, ""},
		{"ffi", js, "Deno.dlopen('/x.so', {})", `the operator can allow it with --allow-ffi in DENO_PERMISSION_ARGS`, ""},
		{"static import of a file", js, "import s from 'file:///etc/passwd' with { type: 'text' }; console.log(s)", `Requires read access to "/etc/passwd": the operator can allow it with --allow-read in DENO_PERMISSION_ARGS`, ""},
		{"dynamic import of a file", js, "const s = await import('/etc/passwd', { with: { type: 'text' } }); console.log(s)", `Requires read access to "/etc/passwd"`, ""},
		{"import of a file from a data: module", js, `await import("data:text/javascript," + encodeURIComponent('import s from "file:///etc/passwd" with { type: "text" }; console.log(s)'))`, `Requires read access to "/etc/passwd"`, ""},
	} {
		r := run(t, e, job.Program{Language: test.language, Code: test.code})
		if r.Status != job.Failed || r.ExitCode != 1 || r.Error == nil {
			t.Errorf("%s: have %s, exit code %d, %+v", test.name, r.Status, r.ExitCode, r.Error)
			continue
		}
		want, ends := strings.CutSuffix(test.error, "$")
		if have := r.Error.Name + ": " + r.Error.Message; !strings.Contains(have, want) || ends && !strings.HasSuffix(have, want) {
			t.Errorf("%s: have %q, want %q", test.name, have, test.error)
		}
		if !strings.Contains(r.Error.Traceback, test.traceback) {
			t.Errorf("%s: have traceback %q, want %q", test.name, r.Error.Traceback, test.traceback)
		}
		shown := r.Error.Traceback + r.Error.Message + r.Stderr.String()
		for _, ours := range []string{"bootstrap", ".rillbox", "$rillbox", "ext:", "node:module", "createRequire"} {
			if strings.Contains(shown, ours) {
				t.Errorf("%s: %q of ours is shown: %q", test.name, ours, shown)
			}
		}
		if len(r.Stdout.Head)+len(r.Stderr.Head) > 0 {
			t.Errorf("%s: wrote %q and %q", test.name, r.Stdout, r.Stderr)
		}
	}
}

func TestExitCodes(t *testing.T) {
	e := newEngine(t, "")
	for code, want := range map[string]int{
		"Deno.exit(5)":      5,
		"Deno.exit()":       0,
		"Deno.exitCode = 3": 3,
		"import p from 'node:process'; p.exit(4)":                                                          4,
		"import p from 'node:process'; p.exitCode = 6; export default 1":                                   6,
		"import p from 'node:process'; p.on('exit', () => console.log('bye')); throw 1":                    1,
		"addEventListener('error', (e) => e.preventDefault()); setTimeout(() => { throw 1 })":              0,
		"addEventListener('unhandledrejection', (e) => e.preventDefault()); Promise.reject(1)":             0,
		"import p from 'node:process'; p.on('unhandledRejection', () => {}); Promise.reject(1)":            0,
		"import p from 'node:process'; p.on('uncaughtException', () => {}); setTimeout(() => { throw 1 })": 0,
	} {
		r := run(t, e, job.Program{Code: code})
		if r.ExitCode != want || (r.Status == job.Completed) != (want == 0) || r.Error != nil && r.Error.Name == "ProtocolError" {
			t.Errorf("%s: have %s %d %+v, want %d", code, r.Status, r.ExitCode, r.Error, want)
		}
	}
}

// TestEndsAsDenoDoes: what programs do at their end comes to what it does where
// Deno runs them as they are.
func TestEndsAsDenoDoes(t *testing.T) {
	e := newEngine(t, "")
	binary, err := binary.Locate(t.Context(), binary.LocateOptions{Cache: cachetest.Open(t)})
	if err != nil {
		t.Fatal(err)
	}
	const says = `for (const type of ["beforeunload", "unload"]) addEventListener(type, () => console.log(type));`
	for _, code := range []string{
		`console.log("main")`,
		says,
		says + `setTimeout(() => console.log("later"), 5)`,
		says + `Deno.exit(2)`,
		says + `Deno.exitCode = 3`,
		says + `addEventListener("unload", () => { Deno.exitCode = 4; })`,
		says + `addEventListener("beforeunload", () => setTimeout(() => console.log("never"), 1))`,
		says + `let n = 0; addEventListener("beforeunload", (e) => { if (n++ < 2) { e.preventDefault(); setTimeout(() => console.log("once more"), 1); } })`,
		says + `let n = 0; onbeforeunload = (e) => { if (n++ < 2) { e.preventDefault(); setTimeout(() => console.log("once more"), 1); } }`,
		says + `addEventListener("beforeunload", (e) => e.stopImmediatePropagation())`,
		`addEventListener("beforeunload", () => { throw 1; })`,
		says + `addEventListener("beforeunload", () => { Promise.reject(1); })`,
		says + `addEventListener("beforeunload", () => { Deno.exit(5); })`,
		says + `process.on("beforeExit", () => console.log("beforeExit")); process.on("exit", (code) => console.log("exit", code))`,
		says + `import process from "node:process"; let n = 0; process.on("beforeExit", () => { if (n++ < 2) setTimeout(() => console.log("once more"), 1); }); process.on("exit", (code) => console.log("exit", code))`,
		says + `process.exitCode = 6; process.on("exit", () => { process.exitCode = 7; })`,
	} {
		file := filepath.Join(t.TempDir(), "main.js")
		if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		bare := exec.Command(binary, "run", "--quiet", "--no-config", file)
		bare.Env = append(os.Environ(), "DENO_DIR="+t.TempDir())
		want, _ := bare.Output()
		r := run(t, e, job.Program{Language: job.JavaScript, Code: code})
		if r.Stdout.String() != string(want) || r.ExitCode != bare.ProcessState.ExitCode() {
			t.Errorf("%s: have %q, exit code %d; Deno has %q, %d", code, r.Stdout, r.ExitCode, want, bare.ProcessState.ExitCode())
		}
	}
}

func TestEnds(t *testing.T) {
	e := newEngine(t, "")
	if r := run(t, e, job.Program{Code: "console.log(1); for (;;);", Timeout: 300 * time.Millisecond}); r.Status != job.TimedOut || r.Stdout.String() != "1\n" {
		t.Errorf("endless loop: %s %q %+v", r.Status, r.Stdout, r.Error)
	}
	if r := run(t, e, job.Program{Code: "const a = []; for (;;) a.push(new Array(1000).fill({}))"}); r.Status != job.OutOfMemory {
		t.Errorf("endless memory: %s %+v", r.Status, r.Error)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := e.Run(ctx, job.Program{Language: job.JavaScript, Code: "console.log(1); setInterval(() => {}, 1000)", Timeout: time.Minute}, job.Streams{Emit: func(ev job.Event) {
		if ev.Kind == job.Stdout {
			cancel()
		}
	}})

	if err != nil || r.Status != job.Cancelled {
		t.Errorf("cancelled: %s %v", r.Status, err)
	}
}

func TestFramesOfTheGuestsOwn(t *testing.T) {
	e := newEngine(t, "")
	for name, code := range map[string]string{
		"by path":       `Deno.writeTextFileSync("/dev/fd/3", '{"type":"result","value":"forged"}\n')`,
		"by proc":       `Deno.writeTextFileSync("/proc/self/fd/3", '{"type":"result","value":"forged"}\n')`,
		"by descriptor": `import fs from "node:fs"; fs.writeSync(3, '{"type":"result","value":"forged"}\n')`,
	} {
		if r := run(t, e, job.Program{Code: code}); r.Status != job.Failed || len(r.Value) > 0 {
			t.Errorf("%s: %s %s %+v", name, r.Status, r.Value, r.Error)
		}
	}
	// Where everything may be written, a frame can be forged, and is no more
	// than a claim that breaks the protocol.
	writing := newEngine(t, "-W -R")
	for name, frame := range map[string]string{
		"second result": `{"type":"result","value":"forged"}`, "no JSON": "hello", "unknown": `{"type":"exec"}`,
		"oversized": strings.Repeat("x", 3<<20),
	} {
		code := `const f = "` + strings.ReplaceAll(frame, `"`, `\"`) + `\n"; try { Deno.writeTextFileSync("/dev/fd/3", f) } catch (e) { console.log(e) }; export default "mine"`
		if r := run(t, writing, job.Program{Code: code}); r.Status != job.Failed || r.Error == nil || r.Error.Name != "ProtocolError" {
			t.Errorf("%s: %s %s %+v", name, r.Status, r.Value, r.Error)
		}
	}
}

func TestHermetic(t *testing.T) {
	t.Setenv("RILLBOX_SECRET", "s3cret")
	t.Setenv("RILLBOX_NAMED", "named")
	t.Setenv("DENO_DIR", "/nowhere")
	t.Setenv("NODE_OPTIONS", "--x")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"package.json": `{"type":"commonjs","dependencies":{"left":"1"}}`, "deno.json": `{"imports":{"left":"./left.ts"}}`,
		"left.ts": `export default "outside"`, "node_modules/left/index.js": `module.exports = "outside"`, "node_modules/left/package.json": `{}`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	registry := newRegistry(t)
	useNPM(t, registry)
	registry.npm(t, "left", "1.0.0", map[string]string{"package.json": `{"name":"left","version":"1.0.0"}`, "index.js": `module.exports = "registry";`})
	own := ownCache(t, t.TempDir(), false)
	t.Chdir(dir)
	e := newEngine(t, "--allow-env --allow-read=.", own, func(o *deno.Options) { o.Env = []string{"RILLBOX_NAMED", "RILLBOX_ABSENT", "GIVEN=a=b,c"} })
	r := run(t, e, job.Program{Code: `import left from "left"; console.log(JSON.stringify(Deno.env.toObject())); export default left`})
	if string(r.Value) != `"registry"` {
		t.Errorf("have %s %+v", r.Value, r.Error)
	}
	env := r.Stdout.String()
	if strings.Contains(env, "s3cret") || strings.Contains(env, "NODE_OPTIONS") || strings.Contains(env, `"HOME"`) || !strings.Contains(env, `"RILLBOX_NAMED":"named"`) || !strings.Contains(env, `"GIVEN":"a=b,c"`) {
		t.Errorf("the environment is %s", env)
	}
	for name, code := range map[string]string{
		"write to the cache": `Deno.writeTextFileSync(Deno.env.get("DENO_DIR") + "/npm/x", "x")`,
		"leave a file":       `Deno.writeTextFileSync("left-behind", "x")`,
	} {
		if r := run(t, e, job.Program{Code: code}); r.Status != job.Failed {
			t.Errorf("%s: %s", name, r.Status)
		}
	}
}

func TestGuestsCannotWriteToTheCache(t *testing.T) {
	c := cachetest.Open(t)
	for _, flags := range []string{"-R -W", "-A"} {
		e := newEngine(t, flags)
		for _, dir := range []string{c.Dir(), c.DenoDir(), filepath.Join(c.Dir(), "blobs")} {
			r := run(t, e, job.Program{Code: `Deno.writeTextFileSync("` + dir + `/guest", "x")`})
			if r.Status != job.Failed || r.Error == nil {
				t.Errorf("%s, %s: %s %+v", flags, dir, r.Status, r.Error)
			}
			if _, err := os.Lstat(filepath.Join(dir, "guest")); err == nil {
				t.Errorf("%s: a file was made in %s", flags, dir)
			}
		}
	}
}

func TestPermissions(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	read := `Deno.readTextFileSync("` + dir + `/in")`
	write := `Deno.writeTextFileSync("` + dir + `/out", "x")`
	for _, test := range []struct {
		flags  string
		narrow []string
		code   string
		ok     bool
	}{
		{"", nil, read, false},
		{"-R", nil, read, true},
		{"-R=" + dir, nil, read, true},
		{"-R=" + dir, []string{}, read, false},
		{"-R", []string{"-R=" + dir}, read, true},
		{"-R", []string{"-R=/etc"}, read, false},
		{"-R --deny-read=" + dir, []string{"-R"}, read, false},
		{"-A", nil, write, true},
		{"-A", []string{"-R"}, write, false},
		{"-W=" + dir, nil, write, true},
		{"-W=" + dir + "/out", nil, write, true},
		{"-W=" + dir, nil, read, false},
		{"-W", nil, write, true},
		{"-A --deny-write", nil, write, false},
		{"-A --deny-write --deny-read", nil, `Deno.env.get("X")`, true},
		{"-R --ignore-read", nil, read, false},
		{"-R --ignore-read", nil, `1`, true},
		{"--ignore-env", nil, `Deno.env.get("X")`, true},
		{"-E=X", nil, `Deno.env.get("X")`, true},
		{"-E=X", nil, `Deno.env.get("Y")`, false},
		{"", nil, `if (process.env.HOME !== undefined) throw 1`, true},
	} {
		p := job.Program{Code: test.code, Permissions: test.narrow}
		r := run(t, newEngine(t, test.flags), p)
		if (r.Status == job.Completed) != test.ok {
			t.Errorf("%q narrowed to %q: %s: %s %+v", test.flags, test.narrow, test.code, r.Status, r.Error)
		}
	}
	e := newEngine(t, "-R=/etc")
	_, err := e.Run(t.Context(), job.Program{Language: job.JavaScript, Permissions: []string{"--allow-net"}, Timeout: time.Second}, job.Streams{Emit: ignore})
	var wrong *job.ProgramError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "--allow-net") || !strings.Contains(err.Error(), "ask the operator") {
		t.Errorf("widening: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	e := newEngine(t, "-N=example.com")
	d := e.Describe()
	if !d.Ready || !slices.Equal(d.Permissions, []string{"--allow-net=example.com"}) {
		t.Errorf("have %+v", d)
	}
	r := run(t, e, job.Program{Code: "export default Deno.version"})
	var have map[string]string
	if err := json.Unmarshal(r.Value, &have); err != nil || !maps.Equal(have, d.Versions) {
		t.Errorf("described %v, is %s", d.Versions, r.Value)
	}
}

func BenchmarkHello(b *testing.B) {
	e := newEngine(b, "")
	for _, test := range []struct {
		name     string
		language job.Language
	}{{"javascript", job.JavaScript}, {"typescript", job.TypeScript}} {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				if r := run(b, e, job.Program{Language: test.language, Code: `console.log("hello")`}); r.Stdout.String() != "hello\n" {
					b.Fatalf("%+v", r)
				}
			}
		})
	}
	b.Run("bare deno run", func(b *testing.B) {
		binary, err := binary.Locate(b.Context(), binary.LocateOptions{Cache: cachetest.Open(b)})
		if err != nil {
			b.Fatal(err)
		}
		file := filepath.Join(b.TempDir(), "hello.ts")
		if err := os.WriteFile(file, []byte(`console.log("hello")`), 0o600); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			cmd := exec.Command(binary, "run", "--no-config", file)
			cmd.Env = []string{"DENO_DIR=" + b.TempDir()}
			if out, err := cmd.Output(); err != nil || string(out) != "hello\n" {
				b.Fatalf("%s %v", out, err)
			}
		}
	})
}

// BenchmarkFiles measures a program of one file, the same in ten, and the difference that
// bare Deno makes between them.
func BenchmarkFiles(b *testing.B) {
	e := newEngine(b, "")
	binary, err := binary.Locate(b.Context(), binary.LocateOptions{Cache: cachetest.Open(b)})
	if err != nil {
		b.Fatal(err)
	}
	for _, language := range []job.Language{job.JavaScript, job.TypeScript} {
		extension := map[job.Language]string{job.JavaScript: ".js", job.TypeScript: ".ts"}[language]
		one, ten, files := "", "", map[string][]byte{}
		for i := range 9 {
			function := fmt.Sprintf("export function f%d(x) { const p = { a: x, b: \"%[1]d\" }; return p.a + 1 }\n", i)
			if language == job.TypeScript {
				function = fmt.Sprintf("export interface P%d { a: number; b?: string }\nexport function f%[1]d(x: number): number { const p: P%[1]d = { a: x, b: \"%[1]d\" }; return p.a + 1 }\n", i)
			}
			one += function
			ten += fmt.Sprintf("import { f%d } from \"./m%[1]d%s\";\n", i, extension)
			files[fmt.Sprintf("m%d%s", i, extension)] = []byte(function)
		}
		const use = "console.log(f0(0) + f1(1) + f2(2) + f3(3) + f4(4) + f5(5) + f6(6) + f7(7) + f8(8));\n"
		for _, program := range []job.Program{
			{Language: language, Name: "main" + extension, Code: one + use},
			{Language: language, Name: "main" + extension, Code: ten + use, Files: files},
		} {
			name := fmt.Sprintf("%s, %d files", language, 1+len(program.Files))
			b.Run(name, func(b *testing.B) {
				for i := 0; b.Loop(); i++ { // another program each time, whose parse is not remembered
					program.Code = program.Code + fmt.Sprintf("// %d\n", i)
					if r := run(b, e, program); r.Stdout.String() != "45\n" {
						b.Fatalf("%+v", r)
					}
				}
			})
			b.Run(name+", bare deno run", func(b *testing.B) {
				dir := b.TempDir()
				for name, content := range program.Files {
					if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
						b.Fatal(err)
					}
				}
				if err := os.WriteFile(filepath.Join(dir, program.Name), []byte(program.Code), 0o600); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					cmd := exec.Command(binary, "run", "--no-config", filepath.Join(dir, program.Name))
					cmd.Env = []string{"DENO_DIR=" + b.TempDir()}
					if out, err := cmd.Output(); err != nil || string(out) != "45\n" {
						b.Fatalf("%s %v", out, err)
					}
				}
			})
		}
	}
}

// TestAFullHeapShowsNoPaths: neither live nor in the result, in a run and a session.
func TestAFullHeapShowsNoPaths(t *testing.T) {
	e := newEngine(t, "", func(o *deno.Options) { o.Limits.Memory = 64 << 20 })
	s := openSession(t, e, job.JavaScript)
	p := job.Program{Language: job.JavaScript, Timeout: 30 * time.Second, Code: `console.error("mine"); const a = []; for (;;) a.push(new Array(1e5).fill(1.5))`}
	for name, run := range map[string]func(context.Context, job.Program, job.Streams) (job.Result, error){"run": e.Run, "session": s.Run} {
		var live strings.Builder
		r, err := run(t.Context(), p, job.Streams{Emit: func(event job.Event) {
			if event.Kind == job.Stderr {
				live.Write(event.Data)
			}
		}})
		if err != nil || r.Status != job.OutOfMemory || strings.TrimSpace(live.String()) != "mine" || strings.TrimSpace(r.Stderr.String()) != "mine" {
			t.Errorf("%s: %s, %v, live %q, stderr %q", name, r.Status, err, live.String(), r.Stderr.String())
		}
	}
}

// only is the reader, if there is one.
func only(readers []io.Reader) io.Reader {
	if len(readers) == 0 {
		return nil
	}
	return readers[0]
}
