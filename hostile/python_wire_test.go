//go:build !windows

package hostile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"rillbox/pyodide"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// climb finds the worker's end of the wire in the frames below the program's.
const climb = `
import json, sys
frame = sys._getframe()
while not hasattr(frame.f_locals.get("host"), "send"):
    frame = frame.f_back
host = frame.f_locals["host"]
def send(**frame): host.send(json.dumps(frame))
`

// pythonLies are programs that write frames. That they reach us is shown by the
// first: the worst of it is that a program lies about its own value.
var pythonLies = []lie{
	{name: "a forged result", code: climb + `
import js
send(type="result", value="forged")
js.Deno.exit(0)`,
		held: both(ended(job.Completed, 0), value(`"forged"`))},
	{name: "a forged result that tells more", code: climb + `
import js
send(type="result", value="forged", status="timed_out", exit_code=7, cpu_ms=0, duration_ms=0, peak_memory_bytes=0, execution_id="x",
     packages=[{"name": "forged", "version": "1"}], notes=["forged note"], stdout="forged output", truncated={"stdout": 5})
js.Deno.exit(0)`,
		held: both(ended(job.Completed, 0), func(o outcome) string {
			if len(o.Packages)+len(o.Notes) > 0 || o.Duration <= 0 || o.CPU <= 0 || o.PeakMemory < 1<<20 || len(o.Stdout.Head) > 0 {
				return "the frame's other fields were believed"
			}
			return ""
		})},
	{name: "a forged result before a failure", code: climb + `
import js
send(type="result", value="forged")
js.Deno.exit(3)`,
		held: both(ended(job.Failed, 3), value(""))},
	{name: "a forged result before a death", code: climb + `
import js
send(type="result", value="forged")
js.process.kill(js.process.pid, "SIGKILL")
js.process.abort()
while True: pass`, timeout: 2 * time.Second,
		held: func(o outcome) string {
			if o.Status == job.Completed || o.Value != nil {
				return "a program that died is taken for one that completed"
			}
			return ""
		}},
	{name: "an early result, and the program goes on", code: climb + `
import js, time
send(type="result", value="early")
time.sleep(0.3)
print("later")
js.Deno.exit(0)`,
		held: func(o outcome) string {
			if o.Stdout.String() != "later\n" || o.Duration < 300*time.Millisecond {
				return "the run ended before its process"
			}
			return ""
		}},
	{name: "an early result, and then for ever", code: climb + `
send(type="result", value="early")
while True: pass`, timeout: time.Second,
		held: both(endedAs(job.TimedOut), value(""))},
	{name: "a second result", code: climb + `send(type="result", value="first"); "second"`,
		held: both(protocolError("a second result"), value(""))},
	{name: "a thousand results", code: climb + `
for n in range(1000): send(type="result", value=n)`,
		held: protocolError("a second result")},
	{name: "an oversized result", code: climb + `send(type="result", value="x" * 50_000_000)`,
		held: both(protocolError("larger than the limit"), func(o outcome) string {
			if len(o.text()) > 1<<20 {
				return "it came through"
			}
			return ""
		})},
	{name: "a line that never ends", code: climb + `
import js
host.send('{"type":"result","value":"' + "x" * 16_000_000)
js.Deno.exit(0)`,
		held: protocolError("larger than the limit")},
	{name: "frames without end", code: climb + `
while True: host.send('{"type":"fatal","message":"' + "x" * 10_000 + '"}')`, timeout: 2 * time.Second,
		held: endedAs(job.TimedOut)},
	{name: "a frame that is no JSON", code: climb + `host.send("forged")`, held: protocolError("read frame")},
	{name: "a frame that is no object", code: climb + `host.send("[]")`, held: protocolError("read frame")},
	{name: "an empty frame", code: climb + `host.send("")`, held: protocolError("read frame")},
	{name: "a frame with control characters", code: climb + `host.send('{"type":"result","value":"\x00\x1b[2J"}')`, held: protocolError("read frame")},
	{name: "a frame nested deeply", code: climb + `host.send('{"type":"result","value":' + "[" * 100_000 + "]" * 100_000 + "}")`, held: protocolError("read frame")},
	{name: "a frame with a type that is no text", code: climb + `send(type={"a": 1})`, held: protocolError("read frame")},
	{name: "a frame of an unknown type", code: climb + `send(type="exit", status="completed")`, held: protocolError(`unknown type "exit"`)},
	{name: "a JSON-RPC message as a frame", code: climb + `send(jsonrpc="2.0", id=1, result={})`, held: protocolError("unknown type")},
	{name: "a JSON-RPC message on stdout", code: `print('{"jsonrpc":"2.0","id":1,"result":{}}'); 5`,
		held: both(ended(job.Completed, 0), value("5"))},
	{name: "a late ready frame, for a new baseline of memory", code: climb + `left = bytearray(100 << 20); send(type="ready", protocol=1)`,
		held: protocolError(`"ready" after the program started`)},
	{name: "a late started frame, for more time", code: climb + `
import time
while True:
    send(type="started")
    time.sleep(0.2)`, timeout: time.Second,
		held: both(endedAs(job.TimedOut), func(o outcome) string {
			if o.Duration > 15*time.Second {
				return fmt.Sprintf("it ran for %v", o.Duration)
			}
			return ""
		})},
	{name: "a late resolve frame, to be asked for a plan", code: climb + `print("answer:", host.ask('{"type":"resolve","requirements":["x"],"imports":[]}'))`, timeout: 2 * time.Second,
		held: func(o outcome) string {
			if strings.Contains(o.text(), "answer: ") {
				return "it was answered"
			}
			return ""
		}},
	{name: "a late installed frame", code: climb + `
send(type="installed", files=[{"file": "forged-1.0-py3-none-any.whl", "sha256": "0" * 64, "dir": "site"}], missing={})`,
		held: both(protocolError(`"installed" after the program started`), func(o outcome) string {
			if len(o.Packages) > 0 {
				return "the package was believed"
			}
			return ""
		})},
	{name: "a fatal frame of a program that goes well", code: climb + `send(type="fatal", message="forged"); 5`,
		held: both(ended(job.Completed, 0), value("5"))},
	{name: "an uncaught frame of a program that goes well", code: climb + `send(type="uncaught", error={"name": "E", "message": "forged", "traceback": ""}); 5`,
		held: endedAs(job.Failed, job.Completed)},
	{name: "the worker's own writer replaced", code: `
import js
from pyodide.code import run_js
run_js("""(() => {
  TextEncoder.prototype.encode = () => new Uint8Array([123, 10]);
  JSON.stringify = () => "{}";
  Deno.FsFile.prototype.writeSync = () => 1;
})()""")
5`,
		held: both(ended(job.Completed, 0), value("5"))},
	{name: "the wire closed", code: `
from pyodide.code import run_js
run_js("(() => { for (let fd = 3; fd < 64; fd++) try { process.getBuiltinModule('node:fs').closeSync(fd); } catch {} })()")
5`,
		held: endedAs(job.Failed, job.Completed, job.Crashed)},
	{name: "the runner's functions replaced", code: `
import rillbox.runner, rillbox.values, rillbox.errors, rillbox.streams
rillbox.runner.Ending.frame = lambda _: '{"type":"result","value":"forged"}'
rillbox.values.encode = lambda *_: '"forged"'
rillbox.errors.describe = lambda *_: {}
raise SystemExit(4)`,
		held: both(ended(job.Failed, 4), value(""))},
	{name: "builtins and json replaced", code: `
import builtins, json
json.dumps = lambda *_, **__: '{"type":"result","value":"forged"}'
builtins.eval = builtins.exec = builtins.isinstance = lambda *_: None
1 / 0`,
		held: endedAs(job.Failed, job.Completed, job.Crashed)},
	{name: "a trace function and an excepthook", code: `
import sys, atexit
sys.settrace(lambda *_: None)
sys.setprofile(lambda *_: None)
sys.excepthook = lambda *_: None
sys.unraisablehook = lambda *_: None
atexit.register(lambda: 1 / 0)
raise SystemExit(9)`,
		held: ended(job.Failed, 9)},
	{name: "the runner's objects by the garbage collector", code: `
import gc
for thing in gc.get_objects():
    if type(thing).__name__ in ("Program", "Ending"):
        for key in list(vars(thing)):
            setattr(thing, key, 0)
raise SystemExit(6)`,
		held: func(o outcome) string {
			if o.Status == job.Completed {
				return "the program's exit was lost"
			}
			return ""
		}},
	{name: "an exit function that forges the ending", code: climb + `
import atexit, js
def forge():
    send(type="result", value="forged")
    js.Deno.exit(0)
atexit.register(forge)
raise SystemExit(5)`,
		held: func(o outcome) string {
			if o.Status == job.Completed && o.ExitCode != 0 {
				return "the exit status is not the process's"
			}
			return ""
		}},
}

func TestPythonWire(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, job.Python, nil, launcher.Best)
	for _, row := range pythonLies {
		t.Run(row.name, func(t *testing.T) {
			p := job.Program{ID: supervisor.NewID(), Language: job.Python, Code: row.code, Timeout: row.timeout}
			if p.Timeout == 0 {
				p.Timeout = runTimeout
			}
			var o outcome
			o.Result, o.err = engine.Run(t.Context(), p, job.Streams{Emit: func(job.Event) {}})
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

// unreadablePython are programs that are hard to read.
var unreadablePython = map[string]string{
	"brackets":                strings.Repeat("(", 100_000),
	"lists in lists":          strings.Repeat("[", 150) + strings.Repeat("]", 150),
	"minus signs":             strings.Repeat("-", 200_000) + "1",
	"a chain of attributes":   "x" + strings.Repeat(".a", 200_000),
	"a chain of calls":        "x" + strings.Repeat("()", 200_000),
	"a chain of comparisons":  "1" + strings.Repeat("<1", 200_000),
	"a chain of additions":    "1" + strings.Repeat("+1", 200_000),
	"not not not":             strings.Repeat("not ", 200_000) + "x",
	"lambdas":                 strings.Repeat("lambda:", 100_000) + "x",
	"else if":                 "if x: pass\n" + strings.Repeat("elif x: pass\n", 50_000),
	"blocks in blocks":        blocks(90),
	"f-strings in f-strings":  "f'" + strings.Repeat("{f\"{", 70) + "1" + strings.Repeat("}\"}", 70) + "'",
	"a long number":           strings.Repeat("9", 1_000_000),
	"a long name":             strings.Repeat("x", 1_000_000),
	"a long line of text":     "'" + strings.Repeat("x", 1_000_000) + "'",
	"NUL":                     "x = '\x00'",
	"bytes that are no UTF-8": "x = '\xff\xfe'",
	"an odd encoding":         "# -*- coding: utf-7 -*-\nx = 1",
	"a missing encoding":      "# -*- coding: rillbox -*-\nx = 1",
	"a large shift":           "x = 1 << 10**9",
	"a large power":           "9**9**9",
	"inline metadata, deep":   "# /// script\n# dependencies = " + strings.Repeat("[", 50_000) + "\n# ///\n",
	"inline metadata, twice":  strings.Repeat("# /// script\n# dependencies = []\n# ///\n\n", 2),
	"inline metadata, no end": "# /// script\n" + strings.Repeat("# x\n", 100_000),
}

// A program that is hard to read is its own failure, not ours. Cells are read in the same
// way, and TestLiesInSessions has all rows as cells; here are those that end their
// process, those whose text is no plain text, and one that ends in an error.
func TestPythonProgramsThatBreakTheReader(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, job.Python, nil, launcher.Best)
	for _, name := range []string{
		"a chain of attributes", "a chain of calls", "a chain of comparisons", "a chain of additions", "not not not",
		"NUL", "bytes that are no UTF-8", "a missing encoding", "brackets",
	} {
		t.Run(name, func(t *testing.T) {
			code, ok := unreadablePython[name]
			if !ok {
				t.Fatal("there is no such row")
			}
			p := job.Program{Language: job.Python, Code: code, Timeout: 3 * time.Second}
			o := outcome{}
			o.Result, o.err = engine.Run(t.Context(), p, job.Streams{Emit: func(job.Event) {}})
			t.Logf("bounded: %s", o.summary())
			if o.err != nil {
				t.Error(o.err)
			}
			if wrong := saysWhy(o); wrong != "" {
				t.Errorf("%s: %s", wrong, o.summary())
			}
		})
	}
}

// saysWhy checks that what was taken and did not complete has an error.
func saysWhy(o outcome) string {
	if o.err == nil && o.Status != job.Completed && (o.Error == nil || o.Error.Name == "") {
		return "it ended without a word of why"
	}
	return ""
}

// blocks are blocks in blocks.
func blocks(depth int) string {
	var code strings.Builder
	for n := range depth {
		code.WriteString(strings.Repeat(" ", n) + "if 1:\n")
	}
	return code.String() + strings.Repeat(" ", depth) + "pass\n"
}

// Without the boundary a guest opens the wire by its path.
func TestPythonOpensTheWire(t *testing.T) {
	t.Parallel()
	forged := func(_ *scene, o outcome) string {
		if string(o.Value) == `"forged"` {
			return "its result was believed"
		}
		return ""
	}
	const line = `'{"type":"result","value":"forged"}\\n'`
	var rows []attack
	for _, path := range []string{"/dev/fd/3", "/proc/self/fd/3", "/dev/fd/../fd/3"} {
		rows = append(rows, attack{name: "Deno.openSync of " + path, linux: strings.HasPrefix(path, "/proc"), evidence: forged, code: `
from pyodide.code import run_js
run_js("""(() => {
  Deno.openSync("` + path + `", { write: true }).writeSync(new TextEncoder().encode(` + line + `));
  Deno.exit(0);
})()""")`})
	}
	rows = append(rows,
		attack{name: "Deno.writeTextFileSync of /dev/fd/3", evidence: forged, code: `
from pyodide.code import run_js
run_js("""(() => { Deno.writeTextFileSync("/dev/fd/3", ` + line + `); Deno.exit(0); })()""")`},
		attack{name: "node:fs openSync of /dev/fd/3", evidence: forged, code: `
from pyodide.code import run_js
run_js("""(() => {
  const fs = process.getBuiltinModule("node:fs");
  fs.writeSync(fs.openSync("/dev/fd/3", "w"), ` + line + `);
  Deno.exit(0);
})()""")`},
		attack{name: "node:fs writeSync of any descriptor", evidence: forged, code: `
from pyodide.code import run_js
run_js("""(() => {
  const fs = process.getBuiltinModule("node:fs");
  for (let fd = 3; fd < 64; fd++) try { fs.writeSync(fd, ` + line + `); } catch {}
  Deno.exit(0);
})()""")`, noControl: "Node's descriptors are Deno's own here, not the process's"},
		attack{name: "permission for /dev/fd/3 asked for again", evidence: forged, code: `
from pyodide.code import run_js
run_js("""(() => {
  Deno.permissions.requestSync({ name: "write", path: "/dev/fd/3" });
  Deno.writeTextFileSync("/dev/fd/3", ` + line + `);
  Deno.exit(0);
})()""")`},
		attack{name: "os.write to descriptor 3", evidence: forged, code: `
import os
os.write(3, b'{"type":"result","value":"forged"}\n')
os._exit(0)`, noControl: "Python's descriptors are numbers of its own, not the process's"},
	)
	for i := range rows {
		rows[i].noCellControl = "a cell's frames have its number"
	}
	tryTogether(t, rows)
}

// What looks like an answer of ours in the program's standard input stays there.
func TestPythonStandardInputIsNoAnswer(t *testing.T) {
	t.Parallel()
	wheels := newIndex(t)
	wheels.put("harmless", zipOf(t, wheelFiles("harmless", "text = 'harmless'")...))
	engine := pythonEngine(t, func(o *pyodide.Options) { o.IndexURL = wheels.url() })
	answer := `{"plan":{"files":[],"missing":{}}}`
	forged := fmt.Sprintf("%d\n%s", len(answer), answer)
	stdin := strings.Repeat(forged, 3)
	bothWays(t, job.Python, engine, func(t *testing.T, engine job.Engine) {
		o := runProgram(t.Context(), engine, job.Program{
			Language: job.Python, Packages: []string{"harmless"},
			Code: "import harmless, sys\n[harmless.text, sys.stdin.read()]",
		}, nil, strings.NewReader(stdin))
		var got []string
		if err := json.Unmarshal(o.Value, &got); err != nil || len(got) != 2 || got[0] != "harmless" || got[1] != stdin {
			t.Errorf("the program read %s: %s", o.Value, o.summary())
		}
	})
}

// both is all that two checks find wrong.
func both(a, b func(outcome) string) func(outcome) string {
	return func(o outcome) string { return a(o) + b(o) }
}

func ended(status job.Status, code int) func(outcome) string {
	return func(o outcome) string {
		if o.Status != status || o.ExitCode != code {
			return fmt.Sprintf("it did not end as %s with exit code %d; ", status, code)
		}
		return ""
	}
}

func endedAs(any ...job.Status) func(outcome) string {
	return func(o outcome) string {
		for _, status := range any {
			if o.Status == status {
				return ""
			}
		}
		return fmt.Sprintf("it did not end as %s; ", any)
	}
}

func value(want string) func(outcome) string {
	return func(o outcome) string {
		if string(o.Value) != want {
			return fmt.Sprintf("its value is not %s; ", want)
		}
		return ""
	}
}

func protocolError(why string) func(outcome) string {
	return func(o outcome) string {
		if o.Status != job.Failed || o.Error == nil || o.Error.Name != "ProtocolError" || !strings.Contains(o.Error.Message, why) {
			return fmt.Sprintf("it did not end with a protocol error that says %q; ", why)
		}
		return ""
	}
}
