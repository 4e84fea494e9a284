//go:build !windows

package deno_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/deno"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// testSession is a session with the workspace that it has.
type testSession struct {
	job.Session
	t         testing.TB
	workspace string
	language  job.Language
}

func openSession(t testing.TB, e *deno.Engine, language job.Language) *testSession {
	t.Helper()
	workspace, err := sandbox.NewRunDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(workspace) })
	s, err := e.OpenSession(t.Context(), job.SessionOptions{Language: language, Workspace: workspace}, ignore)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &testSession{s, t, workspace, language}
}

func (s *testSession) run(p job.Program, stdin ...io.Reader) job.Result {
	s.t.Helper()
	p.Language = s.language
	if p.Timeout == 0 {
		p.Timeout = job.DefaultLimits().Timeout
	}
	r, err := s.Run(context.WithoutCancel(s.t.Context()), p, job.Streams{Stdin: only(stdin), Emit: ignore})
	if err != nil {
		s.t.Fatalf("%s: %v", p.Code, err)
	}
	return r
}

func (s *testSession) cell(code string) job.Result {
	s.t.Helper()
	return s.run(job.Program{Code: code})
}

// step is one cell of a transcript and what must come of it.
type step struct {
	program job.Program
	stdin   string
	value   string // JSON
	stdout  string
	err     string // how the error begins, with its name
	trace   string // the traceback, without its first line
	shows   string // the MIME types of what is shown, sorted
	status  job.Status
	state   job.State
}

func (s *testSession) play(steps []step) {
	s.t.Helper()
	for i, step := range steps {
		r := s.run(step.program, strings.NewReader(step.stdin))
		if step.status == "" {
			step.status = job.Completed
			if step.err != "" {
				step.status = job.Failed
			}
		}
		said, trace := "", ""
		if r.Error != nil {
			said = r.Error.Name + ": " + r.Error.Message
			_, trace, _ = strings.Cut(r.Error.Traceback, "\n")
		}
		var shows []string
		for _, d := range r.Displays {
			shows = append(shows, strings.Join(slices.Sorted(maps.Keys(d)), " "))
		}
		if r.Status != step.status || string(r.Value) != step.value || r.Stdout.String() != step.stdout || r.State != step.state ||
			!strings.HasPrefix(said, step.err) || step.err == "" && said != "" || step.trace != "" && trace != step.trace || strings.Join(shows, ", ") != step.shows {
			s.t.Errorf("cell %d, %q\nhave %s %s stdout=%q %q shows=%q state=%q\n%s\nstderr=%q notes=%q\nwant %+v", i+1, step.program.Code,
				r.Status, r.Value, r.Stdout, said, shows, r.State, trace, r.Stderr, r.Notes, step)
		}
	}
}

func code(text string) job.Program { return job.Program{Code: text} }

// publish makes the registry's packages for the transcripts.
func publish(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "left", "1.2.0", map[string]string{
		"package.json": `{"name":"left","version":"1.2.0","main":"i.js","dependencies":{"deep":"^2"}}`,
		"i.js":         `exports.pad = (s) => require("deep") + s;`,
		"sub.js":       `module.exports = "sub";`,
	})
	r.npm(t, "deep", "2.0.1", map[string]string{"package.json": `{"name":"deep","version":"2.0.1"}`, "index.js": `module.exports = "*";`})
	r.npm(t, "shapes", "3.0.0", map[string]string{
		"package.json": `{"name":"shapes","version":"3.0.0","type":"module","exports":{".":"./i.js","./jsx-runtime":"./jsx.js"}}`,
		"i.js":         `export const svg = (r) => ({ [Symbol.for("Jupyter.display")]: () => ({ "image/svg+xml": "<svg r='" + r + "'/>" }) }); export default "shapes";`,
		"jsx.js":       `export const jsx = (tag, props) => "<" + tag + ">" + (props.children ?? ""); export const jsxs = jsx;`,
	})
}

const png = `new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0])`

// Twenty cells of JavaScript.
func TestJavaScriptTranscript(t *testing.T) {
	publish(t)
	s := openSession(t, newEngine(t, "", ownCache(t, t.TempDir(), false)), job.JavaScript)
	s.play([]step{
		{program: code("const rows = [3, 1, 2]; let total = 0; class Sum { of(a) { return a.reduce((x, y) => x + y) } }")},
		{program: code("total = new Sum().of(rows); console.log(total); total / rows.length"), stdout: "6\n", value: "2"},
		{program: code("function mean(a) {\n  if (a.length === 0) throw new RangeError('nothing')\n  return total / a.length }")},
		{program: code("let before = 'kept'\nmean([])"), err: "RangeError: nothing", trace: "    at mean (cell3.js:2:29)\n    at cell4.js:2:1"},
		{program: code("before"), value: `"kept"`},
		{program: code("let rows = ["), err: "SyntaxError: Unexpected end of input at cell6.js:1:13"},
		{program: code(`import { pad } from "left"; pad("x")`), value: `"*x"`},
		{program: code(`const sub = await import("left/sub.js"); [sub.default, pad("y")]`), value: `["sub","*y"]`},
		{program: code(`const { pad: again } = require("left"); again === pad`), value: "true"},
		{program: code(`await Deno.writeTextFile("in.csv", "a,b\n1,2\n"); [...Deno.readDirSync(".")].map((e) => e.name)`), value: `["in.csv"]`},
		{program: code(`const text = await Deno.readTextFile("in.csv"); text.split("\n").length`), value: "3"},
		{program: code(`Deno.writeTextFileSync("lib.js", "export const twice = (n) => 2 * n; export default 'lib';");`)},
		{program: code(`import lib, { twice } from "./lib.js"; [lib, twice(rows.length)]`), value: `["lib",6]`},
		{program: code(png), value: `"Uint8Array(9) [\n  137, 80, 78, 71, 13,\n   10, 26, 10,  0\n]"`, shows: "image/png text/plain"},
		{program: code(`import { svg } from "shapes"; await display(svg(1)); svg(2)`), value: `"{ Symbol(Jupyter.display): [Function: [Jupyter.display]] }"`, shows: "image/svg+xml text/plain, image/svg+xml text/plain"},
		{program: job.Program{Code: `(await new Response(Deno.stdin.readable).text()).toUpperCase()`}, stdin: "from the client", value: `"FROM THE CLIENT"`},
		{program: job.Program{Code: "let turns = 0; while (true) turns++", Timeout: 200 * time.Millisecond}, err: "TimeoutError: the cell took longer than 200ms: the cell was interrupted, the session's state is kept", status: job.TimedOut, state: job.StateKept},
		{program: code("[turns > 0, total, pad('z')]"), value: `[true,6,"*z"]`},
		{program: code("await new Promise((r) => setTimeout(r, 10)); ({ a: [1, { b: null }], })"), value: `{"a":[1,{"b":null}]}`},
		{program: job.Program{Code: "require('node:crypto').pbkdf2Sync('a', 'b', 2e9, 64, 'sha512')", Timeout: 200 * time.Millisecond}, err: "TimeoutError: the cell took longer than 200ms, and could not be interrupted", status: job.TimedOut, state: job.StateLost},
	})
	if text, err := os.ReadFile(filepath.Join(s.workspace, "in.csv")); err != nil || string(text) != "a,b\n1,2\n" {
		t.Errorf("the workspace's file is %q, %v", text, err)
	}
}

// Twenty cells of TypeScript.
func TestTypeScriptTranscript(t *testing.T) {
	publish(t)
	s := openSession(t, newEngine(t, "", ownCache(t, t.TempDir(), false)), job.TypeScript)
	s.play([]step{
		{program: code("interface Row { name: string; n: number }\nconst rows: Row[] = [{ name: 'a', n: 1 }, { name: 'b', n: 2 }];")},
		{program: code("type Names = Row['name'][];\nconst names = rows.map((r): string => r.name) as Names; names"), value: `["a","b"]`},
		{program: code("enum Colour { red = 1, green }\nColour.green"), value: "2"},
		{program: code("function pick<T>(list: T[], i: number): T {\n  const found = list[i]; if (found === undefined) throw new Error(`no ${i}`)\n  return found\n}")},
		{program: code("let picked: Row | undefined = pick(rows, 1);\npick(rows, 5)"), err: "Error: no 5", trace: "    at pick (cell4.ts:2:57)\n    at cell5.ts:2:1"},
		{program: code("picked!.name"), value: `"b"`},
		{program: code("let x: number = ;"), err: "SyntaxError: Expression expected\n"},
		{program: code("class Box { constructor(private readonly v: Colour) {}\n  get(): number { if (this.v > 1) throw new TypeError('too green')\n return this.v } }\nnew Box(Colour.red).get()"), value: "1"},
		{program: code("new Box(Colour.green).get()"), err: "TypeError: too green", trace: "    at Box.get (cell8.ts:2:41)\n    at cell9.ts:1:23"},
		{program: code(`import type { Nothing } from "./missing.ts"; import { type Other, pad } from "left"; pad("t")`), value: `"*t"`},
		{program: code(`Deno.writeTextFileSync("lib.ts", "export enum E { x = 4 }\nexport function fail(): never { throw new Error('in lib') }");`)},
		{program: code(`import { E, fail } from "./lib.ts"; E.x`), value: "4"},
		{program: code("fail()"), err: "Error: in lib", trace: "    at fail (lib.ts:2:39)\n    at cell13.ts:1:1"},
		{program: code(`Deno.writeTextFileSync("d.json", '{"k":[1]}'); import d from "./d.json" with { type: "json" }; d`), value: `{"k":[1]}`},
		{program: code("/** @jsxImportSource shapes */\nconst el: string = <p>{names.length}</p>; el"), value: `"<p>2"`},
		{program: code(`import shapes from "npm:shapes@^3"; export default [shapes, import.meta.main]`), value: `["shapes",true]`},
		{program: code(`const { svg }: { svg: (r: number) => unknown } = await import("shapes"); svg(7)`), value: `"{ Symbol(Jupyter.display): [Function: [Jupyter.display]] }"`, shows: "image/svg+xml text/plain"},
		{program: job.Program{Code: "let ticks = 0; setInterval(() => ticks++, 1); await new Promise<never>(() => {})", Timeout: 200 * time.Millisecond}, err: "TimeoutError", status: job.TimedOut, state: job.StateKept},
		{program: code("const had: number = ticks; await new Promise((r) => setTimeout(r, 30)); [had > 0, ticks === had, Colour[1]]"), value: `[true,true,"red"]`},
		{program: job.Program{Code: "import { pbkdf2Sync } from 'node:crypto';\nlet n: number = 1;\npbkdf2Sync('p', 's', 1e9, 64, 'sha512')", Timeout: 100 * time.Millisecond}, err: "TimeoutError", status: job.TimedOut, state: job.StateLost},
	})
}

func TestSessionsAreIsolated(t *testing.T) {
	e := newEngine(t, "")
	a, b := openSession(t, e, job.JavaScript), openSession(t, e, job.JavaScript)
	a.play([]step{{program: code("globalThis.secret = 1; const hidden = 2; Array.prototype.x = 3; Deno.writeTextFileSync('f', 'a')")}})
	b.play([]step{
		{program: code("[typeof secret, typeof hidden, typeof [].x, [...Deno.readDirSync('.')].length]"), value: `["undefined","undefined","undefined",0]`},
		{program: code(fmt.Sprintf("Deno.readTextFileSync(%q)", filepath.Join(a.workspace, "f"))), err: "NotCapable"},
		{program: code(fmt.Sprintf("Deno.writeTextFileSync(%q, '')", filepath.Join(a.workspace, "f"))), err: "NotCapable"},
		{program: code(fmt.Sprintf("await import(%q, { with: { type: 'text' } })", filepath.Join(a.workspace, "f"))), err: "TypeError: Requires read access"},
	})
	b.Close()
	a.play([]step{{program: code("secret + hidden"), value: "3"}})
	select {
	case <-b.Ended():
	default:
		t.Error("a closed session has not ended")
	}
	if _, err := b.Run(t.Context(), code("1"), job.Streams{Emit: ignore}); err == nil {
		t.Error("a closed session runs a cell")
	}
}

func TestCellsCanBeInterrupted(t *testing.T) {
	s := openSession(t, newEngine(t, ""), job.JavaScript)
	s.cell("let n = 0; async function spin() { for (;;) { n++; await null } }")
	for _, loop := range []string{
		"for (;;) n++",
		"for (;;) { try { for (;;) n++ } catch {} finally { n++ } }",
		"await spin()",
		"await new Promise((r) => setTimeout(r)); for (;;) n++",
		"while (true) await new Promise((r) => setTimeout(r))",
		"await new Promise((r) => setTimeout(r, 1e8))",
		"setInterval(() => console.log('tick'), 1); await new Promise(() => {})",
		"[1].forEach(() => { for (;;); })",
		"eval('for (;;);')",
		"/(a+)+$/.test('a'.repeat(50) + 'b')",
		"Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
		"await new Promise((_, no) => AbortSignal.timeout(1e8).addEventListener('abort', no))",
		"for (;;) console.log('x'.repeat(100))",
		`({ [Symbol.for("Deno.customInspect")]() { for (;;); }, f() {} })`,
		`({ async [Symbol.for("Jupyter.display")]() { await null; for (;;); } })`,
		"throw { get [Symbol.toStringTag]() { for (;;); } }",
		"await new Response(Deno.stdin.readable).text()",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		p := job.Program{Language: job.JavaScript, Code: "console.log('begun');" + loop, Timeout: time.Minute}
		stdin, writer, err := os.Pipe() // it never ends
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(loop, "stdin") {
			stdin = nil
		}
		began := false
		r, err := s.Run(ctx, p, job.Streams{Stdin: stdin, Emit: func(ev job.Event) {
			if ev.Kind == job.Stdout && !began {
				began = true
				cancel()
			}
		}})

		if err != nil || r.Status != job.Cancelled || r.State != job.StateKept || r.Error == nil || r.Error.Name != "Cancelled" {
			t.Errorf("%s: %s %s %+v %v", loop, r.Status, r.State, r.Error, err)
		}
		_, _ = writer.Close(), stdin.Close()
		if after := s.cell("typeof n + (await 1)"); string(after.Value) != `"number1"` || after.Stdout.String() != "" {
			t.Fatalf("%s: after it: %s %q %+v", loop, after.Value, after.Stdout, after.Error)
		}
		if after := s.cell("{ const then = n; await new Promise((r) => setTimeout(r, 20)); n - then }"); string(after.Value) != "0" {
			t.Errorf("%s: it goes on: %s", loop, after.Value)
		}
	}
}

// TestInterruptedCellsDoNotGoOn: what goes on in turns of the event loop can't
// always be interrupted with the state kept; it is stopped all the same.
func TestInterruptedCellsDoNotGoOn(t *testing.T) {
	e := newEngine(t, "")
	for _, loop := range []string{
		"for (;;) { n++; await Deno.stat('.') }",
		"const same = async () => { for (;;) { n++; await Deno.readTextFile('none').catch(() => {}) } }; await Promise.all([same(), same(), same()])",
		"for (;;) { n++; await Deno.stdout.write(new Uint8Array(9)) }",
		"import('node:fs/promises').then(async (fs) => { for (;;) { n++; await fs.stat('.') } }); await new Promise((r) => globalThis.held = r)",
		"import { setImmediate } from 'node:timers'; (function again() { n++; setImmediate(again); })(); await new Promise((r) => globalThis.held = r)",
		"const c = new MessageChannel(); c.port1.onmessage = () => { n++; c.port2.postMessage(0); }; c.port2.postMessage(0); await new Promise((r) => globalThis.held = r)",
		"const again = () => { n++; queueMicrotask(() => Deno.stat('.').then(again)); }; again(); await new Promise((r) => globalThis.held = r)",
		"const again = () => { n++; setTimeout(again); }; Promise.resolve().then(async () => { for (;;) { setTimeout(again); await Deno.stat('.'); } }); await new Promise((r) => globalThis.held = r)",
	} {
		s := openSession(t, e, job.JavaScript)
		s.cell("let n = 0")
		r, err := s.Run(t.Context(), job.Program{Language: job.JavaScript, Code: loop, Timeout: 300 * time.Millisecond}, job.Streams{Emit: ignore})
		if err != nil || r.Status != job.TimedOut || r.Duration > 300*time.Millisecond+job.InterruptGrace+15*time.Second {
			t.Errorf("%s: %s after %v, %+v %v", loop, r.Status, r.Duration, r.Error, err)
		}
		t.Logf("%s: %s after %v", loop, r.State, r.Duration)
		if r.State == job.StateLost {
			continue
		}
		if after := s.cell("{ const then = n; await new Promise((r) => setTimeout(r, 20)); n - then }"); string(after.Value) != "0" {
			t.Errorf("%s: it goes on: %s %+v", loop, after.Value, after.Error)
		}
	}
}

func TestACancelledCellDoesNotBegin(t *testing.T) {
	s := openSession(t, newEngine(t, ""), job.JavaScript)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more"))
	r, err := s.Run(ctx, job.Program{Code: "globalThis.ran = 1", Timeout: time.Minute}, job.Streams{Emit: ignore})
	if err != nil || r.Status != job.Cancelled || r.State != job.StateKept {
		t.Errorf("have %s %s %v", r.Status, r.State, err)
	}
	if r := s.cell("typeof ran"); string(r.Value) != `"undefined"` {
		t.Errorf("it ran: %s", r.Value)
	}
}

func TestStandardInputOfCells(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 1<<16)
	s := openSession(t, newEngine(t, ""), job.TypeScript)
	for i, test := range []struct{ code, stdin, want string }{
		{"await new Response(Deno.stdin.readable).text()", "first", `"first"`},
		{"await new Response(Deno.stdin.readable).text()", "second\n", `"second\n"`},
		{"await new Response(Deno.stdin.readable).text()", "", `""`},
		{"(await new Response(Deno.stdin.readable).text()).length", large, "1048576"},
		{"1", large, "1"}, // it is not read, and is nobody else's
		{"let t = ''; for await (const c of process.stdin) t += c; t", "node", `"node"`},
		{"t = ''; for await (const c of process.stdin) t += c; t", "again", `"again"`},
		{"t = ''; for await (const c of process.stdin) t += c; t", "", `""`},
		{"const { createInterface } = require('node:readline'); const lines = []; for await (const l of createInterface({ input: process.stdin })) lines.push(l); lines", "a\nb\n", `["a","b"]`},
		{"require('fs').readFileSync(0, 'utf8')", "sync", `"sync"`},
		{"const b = new Uint8Array(3); [Deno.stdin.readSync(b), await Deno.stdin.read(b), await Deno.stdin.read(b)]", "abcd", "[3,1,null]"},
		{"await new Response(Deno.stdin.readable).text()", "last", `"last"`},
	} {
		if r := s.run(code(test.code), strings.NewReader(test.stdin)); string(r.Value) != test.want {
			t.Errorf("cell %d: %s %+v, want %s", i+1, r.Value, r.Error, test.want)
		}
	}
}

func TestArgumentsAndNamesOfCells(t *testing.T) {
	s := openSession(t, newEngine(t, ""), job.TypeScript)
	arguments := "[Deno.args, process.argv.slice(2), process.argv[1] === `${Deno.cwd()}/cell.ts`]"
	s.play([]step{
		{program: job.Program{Code: arguments, Args: []string{"a", "é\n"}}, value: `[["a","é\n"],["a","é\n"],true]`},
		{program: code(arguments), value: `[[],[],true]`},
		{program: job.Program{Code: "function f() { throw new Error('here') }", Name: "report.ts"}},
		{program: job.Program{Code: "f()", Name: "my report.mts"}, err: "Error: here", trace: "    at f (report.ts:1:22)\n    at cell4.mts:1:1"},
		{program: job.Program{Code: "#!/usr/bin/env deno\n\nf()"}, err: "Error: here", trace: "    at f (report.ts:1:22)\n    at cell5.ts:3:1"},
		{program: job.Program{Code: "const j = 1 as number", Name: "x.js"}, err: "SyntaxError: Unexpected identifier 'as' at x.js:1:13"},
	})
	if _, err := s.Run(t.Context(), job.Program{Code: "1", Name: "x.py", Timeout: time.Second}, job.Streams{Emit: ignore}); err == nil || !strings.Contains(err.Error(), `"x.py" has none of the extensions`) {
		t.Errorf("a name of another language: %v", err)
	}
}

func TestErrorsOfCells(t *testing.T) {
	s := openSession(t, newEngine(t, ""), job.JavaScript)
	s.play([]step{
		{program: code("throw 'text'"), err: "Uncaught: text"},
		{program: code("throw { a: 1 }"), err: "Uncaught: { a: 1 }"},
		{program: code("throw new Error('outer', { cause: new TypeError('inner') })"), err: "Error: outer", trace: "    at cell3.js:1:7\nCaused by: TypeError: inner\n    at cell3.js:1:35"},
		{program: code("await Promise.reject(new RangeError('later'))"), err: "RangeError: later"},
		{program: code("JSON.parse('{')"), err: "SyntaxError: Expected property name"},
		{program: code("null.x"), err: "TypeError: Cannot read properties of null", trace: "    at cell6.js:1:6"},
		{program: code("undeclared = 1"), err: "ReferenceError: undeclared is not defined"},
		{program: code("return 1"), err: "SyntaxError: Illegal return statement at cell8.js:1:1"},
		{program: code("const a = 1; let b: number = 2"), err: "SyntaxError: Unexpected token ':' at cell9.js:1:19\nThe program is TypeScript: run it with language typescript"},
		{program: code("await 1; null"), value: "null"},
		{program: code("class X { static { throw new Error('static') } }"), err: "Error: static"},
		{program: code("const x = 1;\nimport { y } from './x.js'\nz()"), err: "TypeError: Module not found", trace: "    at async cell12.js:2:15"},
		{program: code("Deno.writeTextFileSync('x.js', 'export const y = 7')")},
		{program: code("import { y } from './x.js'\ny"), value: "7"},
		{program: code("import 'not-there:x'"), err: "TypeError"},
		{program: code("import { a } from 'x' import"), err: "SyntaxError"},
		{program: code("Object.defineProperty(globalThis, 'q', { get() { throw new Error('getter') } }); q"), err: "Error: getter"},
	})
}

func TestWhatNobodyCaughtEndsNoSession(t *testing.T) {
	s := openSession(t, newEngine(t, ""), job.JavaScript)
	r := s.cell(`setTimeout(() => { throw new Error("late") }, 1);
Promise.reject(new TypeError("nobody"));
await new Promise((r) => setTimeout(r, 30)); "still here"`)
	for _, want := range []string{"Uncaught Error: late\n    at Timeout._onTimeout (cell1.js:1:26)\n", "Uncaught TypeError: nobody\n    at cell1.js:2:16\n"} {
		if !strings.Contains(r.Stderr.String(), want) {
			t.Errorf("stderr has no %q: %q", want, r.Stderr)
		}
	}
	if string(r.Value) != `"still here"` {
		t.Errorf("have %s %+v", r.Value, r.Error)
	}
	s.play([]step{{program: code(`addEventListener("unhandledrejection", (e) => { console.log("mine", e.reason); e.preventDefault() }); Promise.reject(5); await new Promise((r) => setTimeout(r, 10))`), stdout: "mine 5\n"}})
}

func TestValuesOfCells(t *testing.T) {
	s := openSession(t, newEngine(t, ""), job.TypeScript)
	for code, want := range map[string]string{
		"":                                  "",
		"// nothing":                        "",
		"undefined":                         "",
		"null":                              "null",
		"'é\\ud800'":                        `"é\ud800"`,
		"NaN":                               `"NaN"`,
		"-0":                                `"-0"`,
		"10n":                               `"10n"`,
		"Symbol('s')":                       `"Symbol(s)"`,
		"{}":                                "{}",
		"{ a: 1 }":                          `{"a":1}`,
		"{ let a = 1; a + 1 }":              "2",
		"[{ a: undefined }]":                `"[ { a: undefined } ]"`,
		"if (true) { 5 } else { 6 }":        "5",
		"new Date(0)":                       `"1970-01-01T00:00:00.000Z"`,
		"(class A {})":                      `"[class A]"`,
		"Promise.resolve(4)":                `"Promise { 4 }"`,
		"await Promise.resolve(4)":          "4",
		"let a = 1, b = 2; [a, b] = [b, a]": "[2,1]",
	} {
		if r := s.cell(code); r.Status != job.Completed || string(r.Value) != want {
			t.Errorf("%s: %s %s %+v, want %s", code, r.Status, r.Value, r.Error, want)
		}
	}
}

func TestLargeThingsOfCells(t *testing.T) {
	s := openSession(t, newEngine(t, ""), job.JavaScript)
	if r := s.cell("'x'.repeat(3e6)"); r.Status != job.Completed || len(r.Value) < 100_000 || len(r.Value) > 1<<20 || !strings.HasSuffix(string(r.Value), ` more characters)"`) {
		t.Errorf("a large string: %s %d bytes, %+v", r.Status, len(r.Value), r.Error)
	}
	r := s.cell("'x'.repeat(4e7)")
	if r.Status != job.Completed || r.Value != nil || !slices.Contains(r.Notes, "the cell's value is too large, and is left out") {
		t.Errorf("a string beyond all limits: %s %d bytes %q", r.Status, len(r.Value), r.Notes)
	}
	if r := s.cell("throw new Error('x'.repeat(3e6))"); r.Status != job.Failed || len(r.Error.Message)+len(r.Error.Traceback) > 1<<20 {
		t.Errorf("a large error: %s", r.Status)
	}
	if r := s.cell(`for (let i = 0; i < 12; i++) display({ "text/html": "x".repeat(1 << 20) }, { raw: true }); 1`); len(r.Displays) < 8 || len(r.Displays) > 10 || len(r.Notes) == 0 {
		t.Errorf("large displays: %d %q", len(r.Displays), r.Notes)
	}
	if r := s.cell(`for (let i = 0; i < 4e5; i++) console.log("0123456789")`); r.Stdout.Omitted < 3e6 {
		t.Errorf("large output: %d left out", r.Stdout.Omitted)
	}
	if r := s.cell("const all = []; for (;;) all.push(new Array(1e6).fill(1.5))"); r.Status != job.OutOfMemory || r.State != job.StateLost {
		t.Errorf("no end of memory: %s %s %+v", r.Status, r.State, r.Error)
	}
}

func TestEndsOfSessions(t *testing.T) {
	for program, want := range map[string]struct {
		status job.Status
		code   int
	}{
		"Deno.exit(0)":             {job.Completed, 0},
		"close()":                  {job.Completed, 0},
		"process.exit(7)":          {job.Failed, 7},
		"await null; Deno.exit(1)": {job.Failed, 1},
	} {
		s := openSession(t, newEngine(t, ""), job.JavaScript)
		r := s.cell("console.log('out');" + program)
		if r.Status != want.status || r.ExitCode != want.code || r.State != job.StateLost || r.Stdout.String() != "out\n" {
			t.Errorf("%s: %s %d %s %q %+v", program, r.Status, r.ExitCode, r.State, r.Stdout, r.Error)
		}
		<-s.Ended()
	}
}

func TestAWorkspaceThatIsReadOnly(t *testing.T) {
	workspace, err := sandbox.NewRunDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(workspace) })
	if err := os.WriteFile(filepath.Join(workspace, "in.txt"), []byte("given"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := newEngine(t, "").OpenSession(t.Context(), job.SessionOptions{Language: job.JavaScript, Workspace: workspace, ReadOnly: true}, ignore)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	s := &testSession{opened, t, workspace, job.JavaScript}
	s.play([]step{
		{program: code("Deno.readTextFileSync('in.txt')"), value: `"given"`},
		{program: code("Deno.writeTextFileSync('in.txt', '')"), err: "NotCapable: Requires write access"},
	})
}

func TestComplete(t *testing.T) {
	s := openSession(t, newEngine(t, ""), job.TypeScript)
	s.cell("const rows = [{ name: 'a' }], rowCount = 1; let endless = new Proxy({}, { ownKeys() { for (;;); } }); function rowSum() {}; const nested = { inner: { deep: 1 }, get trap() { globalThis.sprung = true; return {} } }")
	for text, want := range map[string][]string{
		"ro":                {"rowCount", "rowSum", "rows"},
		"let x = rows.fla":  {"flat", "flatMap"},
		"nested.inner.":     {"deep"},
		"f(nested?.inner.d": {"deep"},
		"Deno.readTextFile": {"readTextFile", "readTextFileSync"},
		"nosuch.thing":      nil,
		"nested.trap.":      nil,
		"rillb":             nil,
		"rowCount.toF":      {"toFixed"},
	} {
		names, err := s.Complete(t.Context(), text)
		if text == "nested.inner." && len(names) > 0 {
			names = names[slices.Index(names, "deep"):][:1]
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%q: %q %v, want %q", text, names, err, want)
		}
	}
	for text, want := range map[string]bool{"f(": true, "f()": false} {
		if waits, err := s.Unfinished(t.Context(), text); err != nil || waits != want {
			t.Errorf("%q is unfinished: %v, %v", text, waits, err)
		}
	}
	if names, err := s.Complete(t.Context(), "endless."); err == nil {
		t.Errorf("names without an end: %q", names)
	}
	if r := s.cell("typeof sprung + rowCount"); string(r.Value) != `"undefined1"` {
		t.Errorf("after completing: %s %+v", r.Value, r.Error)
	}
}

func TestManyCells(t *testing.T) {
	s := openSession(t, newEngine(t, ""), job.TypeScript)
	s.cell("let n: number = 0")
	before := s.Memory()
	for range 60 {
		s.cell("n += 1; const big = Array.from({ length: 20_000 }, (_, i) => ({ i })); console.log(big); big")
	}
	if r := s.cell("n"); string(r.Value) != "60" {
		t.Errorf("have %s", r.Value)
	}
	if grown := s.Memory() - before; grown > 150<<20 {
		t.Errorf("60 cells have cost %d MiB", grown>>20)
	}
}

func BenchmarkCell(b *testing.B) {
	for _, language := range []job.Language{job.JavaScript, job.TypeScript} {
		b.Run(string(language), func(b *testing.B) {
			s := openSession(b, newEngine(b, ""), language)
			s.cell("let x = 41")
			for b.Loop() {
				if r := s.cell("x + 1"); string(r.Value) != "42" {
					b.Fatal(r.Error)
				}
			}
		})
	}
}

// TestACellThatHadNoProcessDidNotComplete: an earlier cell may have the process end as
// the next one begins. That one has
// run, or its result says that it has not, or may not have.
func TestACellThatHadNoProcessDidNotComplete(t *testing.T) {
	e := newEngine(t, "")
	for range 20 {
		s := openSession(t, e, job.JavaScript)
		s.cell("setTimeout(() => Deno.exit(0)); 1")
		r := s.cell("console.log('ran'); 6 * 7")
		ran := r.Stdout.String() == "ran\n"
		switch {
		case ran && string(r.Value) == "42":
		case r.Status == job.Completed && r.State == job.StateLost && strings.Contains(strings.Join(r.Notes, " "), "may not have run to its end"):
		case !ran && r.Status == job.Crashed && r.State == job.StateLost && strings.Contains(r.Error.Message, "before this cell began"):
		default:
			t.Fatalf("%s, %q, %s, state %q, %+v, %q", r.Status, r.Stdout, r.Value, r.State, r.Error, r.Notes)
		}
		s.Close()
	}
}
