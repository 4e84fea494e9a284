//go:build !windows

package hostile

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// wire gives a program its own hold of descriptor 3: node:net asks no permission
// for a descriptor that is a pipe. send writes a line there.
const wire = `import net from "node:net"; const socket = new net.Socket({ fd: 3 }); socket.on("error", () => {});
const raw = (text) => new Promise((done) => socket.write(text, done)), send = (frame) => raw(JSON.stringify(frame) + "\n");
`

// file is the same for a program that may write everywhere; put returns when all
// is written.
const file = `const file = Deno.openSync("/dev/fd/3", { write: true });
const put = (text) => { let bytes = new TextEncoder().encode(text); while (bytes.length) bytes = bytes.subarray(file.writeSync(bytes)); };
`

// lie is a program that tells us what is not so.
type lie struct {
	name, code string
	grants     []string
	stdin      string
	timeout    time.Duration
	// held says what is wrong with the outcome; empty is nothing.
	held func(o outcome) string
}

var writes = []string{"--allow-write"}

// scriptLies are programs that write frames. That they reach us is shown by the
// first: the worst of it is that a program lies about its own value.
var scriptLies = []lie{
	{name: "a forged result", code: wire + `await send({ type: "result", value: "forged" });`,
		held: both(protocolError("a second result"), value(""))}, // the other is the bootstrap's
	{name: "a forged result that tells more", code: wire + `await send({ type: "result", value: "forged", status: "timed_out", exit_code: 7, cpu_ms: 0, duration_ms: 0, peak_memory_bytes: 0, execution_id: "x",
  packages: [{ name: "forged", version: "1" }], notes: ["forged"], stdout: "forged output", truncated: { stdout: 5 } }); process.reallyExit(0);`,
		held: both(both(ended(job.Completed, 0), value(`"forged"`)), measured)}, // a value it might have had
	{name: "a forged result before another exit status", code: wire + `await send({ type: "result", value: "forged" }); process.reallyExit(3);`,
		held: both(ended(job.Failed, 3), value(""))},
	{name: "a forged result before Deno.exit", code: wire + `await send({ type: "result", value: "forged" }); Deno.exit(4);`,
		held: both(ended(job.Failed, 4), value(""))},
	{name: "a forged result before a failure", code: wire + `await send({ type: "result", value: "forged" }); throw new Error("real");`,
		held: both(ended(job.Failed, 1), value(""))},
	{name: "a forged result before an abort", code: wire + `await send({ type: "result", value: "forged" }); process.abort();`,
		held: both(endedAs(job.Crashed), value(""))},
	{name: "a forged result before a full heap", code: wire + `await send({ type: "result", value: "forged" }); const a = []; for (;;) a.push(new Array(1e5).fill(1.5));`,
		held: both(endedAs(job.OutOfMemory), value(""))},
	{name: "an early result, and the program goes on", code: wire + `await send({ type: "result", value: "early" }); await new Promise((r) => setTimeout(r, 300)); console.log("later"); process.reallyExit(0);`,
		held: func(o outcome) string {
			if o.Stdout.String() != "later\n" || o.Duration < 300*time.Millisecond {
				return "the run ended before its process"
			}
			return ""
		}},
	{name: "an early result, and then for ever", timeout: time.Second, code: wire + `await send({ type: "result", value: "early" }); for (;;);`,
		held: both(endedAs(job.TimedOut), value(""))},
	{name: "a second result", code: wire + `await send({ type: "result", value: "first" }); export default "second";`,
		held: both(protocolError("a second result"), value(""))},
	{name: "a thousand results", code: wire + `for (let i = 0; i < 1000; i++) await send({ type: "result", value: i });`, held: protocolError("a second result")},
	{name: "an oversized result", grants: writes, code: file + `put(JSON.stringify({ type: "result", value: "x".repeat(50_000_000) }) + "\n");`,
		held: both(protocolError("larger than the limit"), func(o outcome) string {
			if len(o.text()) > 1<<20 {
				return "it came through"
			}
			return ""
		})},
	{name: "a line that never ends", grants: writes, code: file + `put('{"type":"result","value":"' + "x".repeat(16_000_000));`, held: protocolError("larger than the limit")},
	{name: "an incomplete frame", grants: writes, code: file + `addEventListener("unload", () => put('{"type":"uncaught","error":{'));`, held: both(protocolError("not complete"), value(""))},
	{name: "frames without end", timeout: 2 * time.Second, code: wire + `for (;;) await send({ type: "uncaught", error: { name: "E", message: "x".repeat(10_000), traceback: "" } });`,
		held: endedAs(job.TimedOut)},
	{name: "a frame that is no JSON", code: wire + `await raw("forged\n");`, held: protocolError("read frame")},
	{name: "a frame that is no object", code: wire + `await raw("[]\n");`, held: protocolError("read frame")},
	{name: "a frame that is null", code: wire + `await raw("null\n");`, held: protocolError("unknown type")},
	{name: "an empty frame", code: wire + `await raw("\n");`, held: protocolError("read frame")},
	{name: "a frame with control characters", code: wire + `await raw('{"type":"result","value":"\x00\x1b[2J"}\n');`, held: protocolError("read frame")},
	{name: "a frame that is no UTF-8", code: wire + `await raw(Uint8Array.of(0xff, 0xfe, 10)); process.reallyExit(0);`, held: protocolError("read frame")},
	{name: "a frame nested deeply", code: wire + `await raw('{"type":"result","value":' + "[".repeat(1e5) + "]".repeat(1e5) + "}\n");`, held: protocolError("read frame")},
	{name: "a frame with two types", code: wire + `await raw('{"type":"result","type":"exit","value":"forged"}\n'); process.reallyExit(0);`, held: protocolError("unknown type")},
	{name: "a frame with an error that is no object", code: wire + `await raw('{"type":"result","error":"forged"}\n'); process.reallyExit(0);`, held: protocolError("read frame")},
	{name: "an error frame of a program that goes well", code: wire + `await send({ type: "result", error: { name: "E", message: "forged", traceback: "" } }); process.reallyExit(0);`,
		held: endedAs(job.Failed)},
	{name: "a result with both a value and an error", code: wire + `await send({ type: "result", value: "forged", error: { name: "E", message: "m", traceback: "" } }); process.reallyExit(0);`,
		held: both(endedAs(job.Failed), value(""))},
	{name: "a frame of an unknown type", code: wire + `await send({ type: "exit", status: "completed" });`, held: protocolError(`unknown type "exit"`)},
	{name: "a frame of the Python engine", code: wire + `await send({ type: "resolve", requirements: ["x"], imports: [] });`, held: protocolError("unknown type")},
	{name: "a JSON-RPC message as a frame", code: wire + `await send({ jsonrpc: "2.0", id: 1, result: {} });`, held: protocolError("unknown type")},
	{name: "a JSON-RPC message on stdout", code: `console.log('{"jsonrpc":"2.0","id":1,"result":{}}'); export default 5;`, held: both(ended(job.Completed, 0), value("5"))},
	{name: "a JSON-RPC message as a value", code: `export default { jsonrpc: "2.0", id: 1, result: {} };`, held: both(ended(job.Completed, 0), value(`{"jsonrpc":"2.0","id":1,"result":{}}`))},
	{name: "a late ready frame, for a new deadline and baseline", timeout: time.Second, code: wire + `for (;;) { await send({ type: "ready", protocol: 1 }); await new Promise((r) => setTimeout(r, 200)); }`,
		held: func(o outcome) string {
			if o.Status == job.Completed || o.Duration > 15*time.Second {
				return "it got more time"
			}
			return ""
		}},
	{name: "a ready frame of another protocol", code: wire + `await send({ type: "ready", protocol: 2 });`, held: protocolError("speaks version 2")},
	{name: "an uncaught frame of a program that goes well", code: wire + `await send({ type: "uncaught", error: { name: "E", message: "forged", traceback: "" } }); export default 5;`,
		held: both(ended(job.Completed, 0), value("5"))},
	{name: "a forged result by the path, with all writes granted", grants: writes, code: file + `put('{"type":"result","value":"forged"}\n'); Deno.exit(6);`, held: both(ended(job.Failed, 6), value(""))},
	{name: "the wire closed", code: wire + `socket.destroy(); await new Promise((r) => setTimeout(r, 100)); export default 5;`,
		held: endedAs(job.Failed, job.Completed, job.Crashed)},
	{name: "the wire closed by node:fs", code: `const fs = process.getBuiltinModule("fs"); for (let fd = 3; fd < 64; fd++) try { fs.closeSync(fd); } catch {} export default 5;`,
		held: both(ended(job.Completed, 0), value("5"))},
	{name: "the request read again", stdin: "left", code: `console.log(new TextDecoder().decode(await new Response(Deno.stdin.readable).bytes()));`, held: func(o outcome) string {
		if o.Stdout.String() != "left\n" {
			return "stdin is not the program's alone"
		}
		return ""
	}},
	{name: "JSON and the encoder replaced", code: `JSON.stringify = () => "{}"; JSON.parse = () => 1; TextEncoder.prototype.encode = () => new Uint8Array([123, 10]); Deno.FsFile.prototype.writeSync = () => 1e9; throw new Error("real");`,
		held: failed},
	{name: "promises replaced", code: `Promise.prototype.then = Promise.prototype.catch = function () { return this; }; globalThis.queueMicrotask = () => {}; Deno.exit = () => {}; throw new Error("real");`, held: failed},
	{name: "promises replaced, and a later failure", code: `Promise.prototype.then = function () { return this; }; Deno.exit = process.exit = process.reallyExit = () => {}; setTimeout(() => { throw new Error("real"); }, 10);`, held: failed},
	{name: "arrays and objects replaced", code: `for (const o of [Array.prototype, Object.prototype, String.prototype, RegExp.prototype, Uint8Array.prototype.__proto__]) for (const k of Object.getOwnPropertyNames(o)) { if (typeof Object.getOwnPropertyDescriptor(o, k).value === "function" && k !== "constructor") try { o[k] = () => "forged"; } catch {} } throw new Error("real");`, held: failed},
	{name: "call and apply replaced, to catch the writer", code: `Function.prototype.call = function (to, bytes) { Deno.exit = () => {}; globalThis.caught = to; return bytes?.length ?? 0; }; throw new Error("real");`, held: failed},
	{name: "setters on the prototype of all frames", code: `for (const k of ["type", "value", "error", "name", "message", "traceback", "stack"]) Object.defineProperty(Object.prototype, k, { set() {}, get() { return "forged"; }, configurable: true }); throw { toString() { throw 1; } };`, held: failed},
	{name: "toJSON on all prototypes", code: `Object.prototype.toJSON = String.prototype.toJSON = Array.prototype.toJSON = () => ({ type: "result", value: "forged" }); throw new Error("real");`, held: failed},
	{name: "Error.prepareStackTrace", code: `Error.prepareStackTrace = (e, sites) => { for (const s of sites) { const f = s.getFunction?.(), t = s.getThis?.(); if (f || t) console.log("reached", String(f ?? t).slice(0, 50)); } return "forged"; }; new Error("x").stack; throw new Error("real");`, held: failed},
	{name: "an error whose properties throw", code: `throw new Proxy(new Error("real"), { get() { throw new Error("from a trap"); }, getPrototypeOf() { throw 1; } });`, held: failed},
	{name: "an error whose texts never end", timeout: 10 * time.Second, code: `const e = new Error("x"); let n = 0; Object.defineProperty(e, "message", { get: () => "y".repeat(5e8) }); Object.defineProperty(e, "stack", { get: () => "    at x\n".repeat(5e7) }); throw e;`,
		held: func(o outcome) string {
			if o.Status == job.Completed || len(o.text()) > 2<<20 {
				return "it was taken"
			}
			return ""
		}},
	{name: "a value whose getters run code", code: `export default { get a() { Deno.exit(8); } };`, held: func(o outcome) string {
		if o.Status == job.Completed && o.ExitCode != 0 {
			return "the exit status is not the process's"
		}
		return ""
	}},
	{name: "a value that is a proxy of the array's", code: `export default new Proxy([], { get: (t, k) => k === "length" ? 2 ** 32 : "x".repeat(1000), ownKeys: () => ["length"] });`, timeout: 5 * time.Second, held: func(o outcome) string {
		if len(o.Value) > 1<<20 {
			return "its value is larger than it may be"
		}
		return ""
	}},
	{name: "a value without end", code: `const a = []; for (let i = 0; i < 60; i++) a.push(a.length ? [a[i - 1], a[i - 1]] : "x"); export default a[59];`, timeout: 5 * time.Second, held: func(o outcome) string {
		if len(o.Value) > 1<<20 {
			return "its value is larger than it may be"
		}
		return ""
	}},
	{name: "listeners that stop the ending", code: `addEventListener("unload", (e) => { e.preventDefault(); e.stopImmediatePropagation(); }); addEventListener("error", (e) => e.stopImmediatePropagation(), true); addEventListener("unhandledrejection", (e) => e.stopImmediatePropagation()); setTimeout(() => { throw new Error("real"); }, 5); await new Promise((r) => setTimeout(r, 50));`, held: failed},
	{name: "dispatchEvent replaced, and a rejection that nobody handles", code: `EventTarget.prototype.dispatchEvent = () => true; Promise.reject(new Error("real")); await new Promise((r) => setTimeout(r, 50));`, held: failed},
	{name: "beforeunload that keeps it alive", timeout: time.Second, code: `addEventListener("beforeunload", (e) => { e.preventDefault(); setTimeout(() => {}, 1); });`, held: endedAs(job.TimedOut, job.Completed, job.Failed)},
	{name: "process.exitCode and exit listeners", code: `process.exitCode = 9; process.on("exit", () => { process.exitCode = 11; });`, held: ended(job.Failed, 11)},
	{name: "Deno.exitCode", code: `Deno.exitCode = 9; export default 5;`, held: ended(job.Failed, 9)},
}

func TestJavaScriptWire(t *testing.T) {
	t.Parallel()
	for _, row := range scriptLies {
		t.Run(row.name, func(t *testing.T) {
			p := job.Program{ID: supervisor.NewID(), Language: job.JavaScript, Code: row.code, Timeout: row.timeout}
			if p.Timeout == 0 {
				p.Timeout = runTimeout
			}
			var o outcome
			o.Result, o.err = newEngine(t, job.JavaScript, row.grants, launcher.Best).Run(t.Context(), p, job.Streams{Stdin: strings.NewReader(row.stdin), Emit: func(job.Event) {}})
			if o.err != nil {
				t.Fatal(o.err)
			}
			t.Logf("bounded: %s", o.summary())
			if wrong := row.held(o); wrong != "" {
				t.Errorf("%s: %s", wrong, o.summary())
			}
		})
	}
}

// measured says that what a frame claims of the run was believed.
func measured(o outcome) string {
	if len(o.Packages)+len(o.Notes) > 0 || o.Duration <= 0 || o.CPU <= 0 || o.PeakMemory < 1<<20 || len(o.Stdout.Head) > 0 {
		return "the frame's other fields were believed"
	}
	return ""
}

// failed wants a failure, whatever its words.
func failed(o outcome) string {
	if o.Status == job.Completed || o.Value != nil {
		return "a program that failed is taken for one that completed"
	}
	return ""
}

// Frames that a guest sends without end cost us next to nothing.
func TestFloodOfFramesCostsNothing(t *testing.T) {
	engine := newEngine(t, job.JavaScript, nil, launcher.Best)
	runProgram(t.Context(), engine, job.Program{Language: job.JavaScript, Code: `0`}, nil) // what is made once is there
	for name, code := range map[string]string{
		"many frames": wire + `for (;;) await send({ type: "uncaught", error: { name: "E", message: "x".repeat(10_000), traceback: "" } });`,
		"one frame":   wire + `const chunk = "x".repeat(1 << 20); await raw('{"type":"result","value":"'); for (;;) await raw(chunk);`,
	} {
		t.Run(name, func(t *testing.T) { checkFlood(t, engine, code) })
	}
	session := ownSession(t, job.JavaScript, engine)
	for name, code := range map[string]string{
		"many messages": takeAll + `const display = JSON.stringify({ method: "Runtime.bindingCalled", params: { name: "rillbox", payload: JSON.stringify({ type: "display", data: { "text/plain": "x".repeat(10000) } }) } });
for (;;) { say(display); await new Promise((r) => setTimeout(r)); }`,
		"one message": takeAll + `raw([0x01, 5, 123, 34, 105, 100, 34]); for (;;) { raw([0x00, 126, 255, 255]); raw(new Uint8Array(65535).fill(120)); await new Promise((r) => setTimeout(r)); }`,
	} {
		t.Run(name+" of a cell's", func(t *testing.T) {
			checkFlood(t, session, code)
			session.reset(t)
		})
	}
}

// checkFlood checks our heap while a program floods us until its time is up.
func checkFlood(t *testing.T, engine job.Engine, code string) {
	t.Helper()
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx, stop := context.WithCancel(t.Context())
	most := make(chan uint64)
	go func() {
		var largest uint64
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				most <- largest
				return
			case <-tick.C:
				runtime.ReadMemStats(&now)
				largest = max(largest, now.HeapAlloc)
			}
		}
	}()
	var o outcome
	o.Result, o.err = engine.Run(t.Context(), job.Program{ID: supervisor.NewID(), Language: job.JavaScript, Code: code, Timeout: 3 * time.Second}, job.Streams{Emit: func(job.Event) {}})
	stop()
	largest := <-most
	t.Logf("bounded: %s, state %s", o.summary(), o.State)
	if o.Status != job.TimedOut && o.State == "" || o.err != nil {
		t.Errorf("the run ended as %s", o.summary())
	}
	if grown := int64(largest) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("our heap grew by %d MiB", grown>>20)
	}
}

// Without the boundary a guest opens the wire by its path.
func TestJavaScriptOpensTheWire(t *testing.T) {
	t.Parallel()
	forged := func(_ *scene, o outcome) string {
		if string(o.Value) == `"forged"` || strings.Contains(o.frames, `"forged"`) {
			return "its frame came"
		}
		return ""
	}
	const line = `'{"type":"result","value":"forged"}\n'`
	rows := []attack{
		{name: "Deno.openSync of /dev/fd/3", code: `Deno.openSync("/dev/fd/3", { write: true }).writeSync(new TextEncoder().encode(` + line + `));`},
		{name: "Deno.openSync of /proc/self/fd/3", linux: true, code: `Deno.openSync("/proc/self/fd/3", { write: true }).writeSync(new TextEncoder().encode(` + line + `));`},
		{name: "Deno.openSync of a path that leads there", code: `Deno.openSync("/dev/fd/../fd/3", { write: true }).writeSync(new TextEncoder().encode(` + line + `));`},
		{name: "Deno.openSync that reads", code: `Deno.openSync("/dev/fd/3"); console.log("opened");`, evidence: says("opened\n")},
		{name: "Deno.writeTextFileSync", code: `Deno.writeTextFileSync("/dev/fd/3", ` + line + `);`},
		{name: "node:fs openSync", code: `const fs = process.getBuiltinModule("fs"); fs.writeSync(fs.openSync("/dev/fd/3", "w"), ` + line + `);`},
		{name: "node:fs createWriteStream", code: `const fs = process.getBuiltinModule("fs"); await new Promise((r) => fs.createWriteStream("/dev/fd/3").on("error", r).end(` + line + `, r));`},
		{name: "node:fs writeSync of any descriptor", code: `const fs = process.getBuiltinModule("fs"); for (let fd = 3; fd < 64; fd++) try { fs.writeSync(fd, ` + line + `); } catch {} Deno.exit(0);`,
			noControl: "Node's descriptors are Deno's own here, not the process's"},
		{name: "permission asked for again", code: `Deno.permissions.requestSync({ name: "write", path: "/dev/fd/3" }); Deno.writeTextFileSync("/dev/fd/3", ` + line + `);`},
		{name: "worker with the permission of its parent", code: inWorker(fromBlob, "", `Deno.writeTextFileSync("/dev/fd/3", '{"type":"result","value":"forged"}\\n'); postMessage(1);`)},
		{name: "child process that inherits it", code: `new Deno.Command("/bin/sh", { args: ["-c", "echo '\"forged\"' >&3; echo '\"forged\"'"], stdout: "inherit" }).outputSync();`},
		{name: "symbolic link to it", grants: []string{"--allow-read=%GRANTED%", "--allow-write=%GRANTED%"}, code: `Deno.symlinkSync("/dev/fd/3", "%GRANTED%/l"); Deno.writeTextFileSync("%GRANTED%/l", ` + line + `);`},
	}
	for i := range rows {
		rows[i].bare = true
		if rows[i].evidence == nil {
			rows[i].evidence = forged
		}
	}
	try(t, rows)
}

// Descriptors beside the four are none of ours: the program's writes to all of
// them reach nobody.
func TestDescriptorsAreTheChildsOwn(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ours, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	bothWays(t, job.JavaScript, newEngine(t, job.JavaScript, nil, launcher.Best), func(t *testing.T, engine job.Engine) {
		o := runProgram(t.Context(), engine, job.Program{
			Language: job.JavaScript,
			Code: `import net from "node:net"; let opened = 0;
for (let fd = 4; fd < 64; fd++) try { const s = new net.Socket({ fd }); s.on("error", () => {}); s.write("leaked"); opened++; } catch {}
console.log("opened", opened); await new Promise((r) => setTimeout(r, 200)); Deno.exit(0);`,
			Timeout: 10 * time.Second,
		}, nil)
		if o.err != nil {
			t.Fatal(o.err)
		}
		t.Logf("bounded: %s", o.summary())
	})
	if err := client.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 64)
	n, err := client.Read(buffer)
	var timeout net.Error
	if bytes.Contains(buffer[:n], []byte("leaked")) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a connection of ours gave %q, %v", buffer[:n], err)
	}
}
