//go:build !windows

package pyodide

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
)

// newEngine makes an engine on the tests' shared cache, and skips the test when
// its runtimes can't be had.
func newEngine(t testing.TB, change ...func(*Options)) *Engine {
	t.Helper()
	o := Options{Options: deno.Options{Cache: cachetest.Open(t), Log: cachetest.Logger(t)}}
	for _, f := range change {
		f(&o)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	cachetest.NeedNetwork(t, e.Prepare(t.Context(), func(job.Event) {}))
	return e
}

func permit(t testing.TB, words ...string) func(*Options) {
	t.Helper()
	p, err := permission.Parse(words)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.Permissions = p }
}

func python(code string) job.Program {
	return job.Program{Language: job.Python, Code: code}
}

func run1(t testing.TB, e *Engine, p job.Program, stdin ...io.Reader) job.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	result, err := e.Run(ctx, p, job.Streams{Stdin: only(stdin), Emit: func(job.Event) {}})
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return result
}

func completed(t testing.TB, e *Engine, p job.Program, stdin ...io.Reader) job.Result {
	t.Helper()
	result := run1(t, e, p, stdin...)
	if result.Status != job.Completed {
		t.Fatalf("status %s, exit code %d, error %+v\nstdout: %s\nstderr: %s", result.Status, result.ExitCode, result.Error, result.Stdout, result.Stderr)
	}
	return result
}

// TestValues: a value is made in the same way for a program and for a cell, so that
// only what a program is given by itself needs a run of its own.
func TestValues(t *testing.T) {
	e := newEngine(t)
	s := open(t, e, job.SessionOptions{})
	for _, test := range []struct{ name, code, want string }{
		{"nested", `[1, 2.5, {"a": None, "b": ["é", True]}]`, `[1, 2.5, {"a": null, "b": ["é", true]}]`},
		{"no value", "x = 1", ``},
		{"None", "None", ``},
		{"large integer", "2**60", `"1152921504606846976"`},
		{"bytes", "b'a'", `"b'a'"`},
		{"top-level await", "import asyncio\nawait asyncio.sleep(0.01, 'later')", `"later"`},
		{"coroutine", "async def main(): return 5\nmain()", `5`},
		{"gather", "import asyncio\nasyncio.run(asyncio.wait_for(asyncio.sleep(0, 3), 1))", `3`},
		{"promise", "from js import Promise\nawait Promise.resolve(9)", `9`},
		{"no permission to ask who it is", "import os\nos.getuid()", `0`},
		{"no permission to run", "import os\nos.system('true')", `-1`},
	} {
		t.Run(test.name, func(t *testing.T) { gives(t, s, test.code, test.want) })
	}
	for _, test := range []struct{ name, code, want string }{
		{"last expression", "x = 6\nx * 7", `42`},
		{"asyncio.run", "import asyncio\nasync def main():\n  await asyncio.sleep(0.01)\n  return 5\nasyncio.run(main())", `5`},
		{"dataclass of main", "import dataclasses, pickle\n@dataclasses.dataclass\nclass P:\n  x: int\npickle.loads(pickle.dumps(P(4)))", `"P(x=4)"`},
		{"source of main", "import inspect\ndef f(): return 1\ninspect.getsource(f)", `"def f(): return 1\n"`},
		{"module", "__name__, __file__", `"('__main__', '/home/pyodide/main.py')"`},
		{"working directory", "open('x.txt', 'w').write('hi')\nopen('x.txt').read()", `"hi"`},
		{"memory error", "try:\n  x = [bytearray(10**8) for _ in range(100)]\nexcept MemoryError: x = 'caught'\nx", `"caught"`},
		{"environment", "import os\n'HOME' in os.environ and 'PYTHONINSPECT' not in os.environ", `true`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if r := completed(t, e, python(test.code)); string(r.Value) != test.want {
				t.Errorf("value %s, want %s", r.Value, test.want)
			}
		})
	}
}

func TestStreams(t *testing.T) {
	e := newEngine(t)
	p := python("import sys\nprint('a', end='')\nname = input('? ')\nprint(name, len(sys.stdin.read()), sys.argv, file=sys.stderr)\nsys.stdout.buffer.write(b'\\xff')\nprint('end', end='')")
	p.Args = []string{"-x", "ü"}
	r := completed(t, e, p, strings.NewReader("alice\n"+strings.Repeat("x", 300_000)))
	if got := r.Stdout.String(); got != "a? \xffend" {
		t.Errorf("stdout %q", got)
	}
	if got, want := r.Stderr.String(), "alice 300000 ['main.py', '-x', 'ü']\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	if r := completed(t, e, python("import sys\nsys.stdin.read()")); string(r.Value) != `""` {
		t.Errorf("without an input, stdin holds %s", r.Value)
	}
	if r := run1(t, e, python("input()")); r.Error == nil || r.Error.Name != "EOFError" {
		t.Errorf("input() at the end: %+v", r.Error)
	}
}

// TestOutputStreams shows that what is printed arrives while the program runs,
// also without a line break.
func TestOutputStreams(t *testing.T) {
	e := newEngine(t)
	p := python("import sys\nprint('first', end='')\nsys.stdin.read(1)\nprint('second')")
	in, answer := io.Pipe()
	_, err := e.Run(t.Context(), p, job.Streams{Stdin: in, Emit: func(event job.Event) {
		if event.Kind == job.Stdout && strings.HasPrefix(string(event.Data), "first") {
			_ = answer.Close()
		}
	}})

	if err != nil {
		t.Fatal(err)
	}
}

// TestEndings: errors are described in the same way for a program and for a cell, so
// that a session shows most of them; what ends the process, and how a program ends by
// itself, takes runs of their own.
func TestEndings(t *testing.T) {
	e := newEngine(t)
	s := open(t, e, job.SessionOptions{})
	for _, test := range []struct {
		name, code string
		status     job.Status
		exit       int
		error      string // name
		message    string // a part of it
		line       string // a part of the traceback
		stderr     string // a part of it
		cell       bool   // in a session
	}{
		{"exit", "import sys\nsys.exit(3)", job.Failed, 3, "", "", "", "", false},
		{"exit without code", "raise SystemExit", job.Completed, 0, "", "", "", "", false},
		{"exit with text", "import sys\nsys.exit('bye')", job.Failed, 1, "", "", "", "bye\n", false},
		{"exit in a coroutine", "import asyncio, sys\nasync def f(): sys.exit(7)\nasyncio.run(f())", job.Failed, 7, "", "", "", "", false},
		{"exit in a task", "import asyncio, sys\nasync def f(): sys.exit(8)\nt = asyncio.create_task(f())\nawait asyncio.sleep(60)", job.Failed, 8, "", "", "", "", false},
		{"os._exit", "import os\nprint('x', end='')\nos._exit(4)", job.Failed, 4, "", "", "", "", false},
		{"exception", "def f(n):\n  return 1 / n\nf(0)", job.Failed, 1, "ZeroDivisionError", "division by zero", `line 2, in f`, "", false},
		{"exception in a coroutine", "import asyncio\nasync def f():\n  raise KeyError('k')\nasyncio.run(f())", job.Failed, 1, "KeyError", "'k'", `line 3, in f`, "", false},
		{"qualified", "import json\njson.loads('{')", job.Failed, 1, "json.decoder.JSONDecodeError", "line 1", `line 2, in <module>`, "", true},
		{"chained", "try: 1/0\nexcept Exception as e: raise ValueError('b') from e", job.Failed, 1, "ValueError", "b", "direct cause", "", true},
		{"group", "raise ExceptionGroup('many', [ValueError('a')])", job.Failed, 1, "ExceptionGroup", "many", "ValueError: a", "", true},
		{"syntax", "x = 1\ndef f(:\n  pass", job.Failed, 1, "SyntaxError", "line 2", `def f(:`, "", false},
		{"indentation", "if True:\nx = 1", job.Failed, 1, "IndentationError", "line 2", `line 2`, "", true},
		{"recursion", "def f(): return f()\nf()", job.Failed, 1, "RecursionError", "depth", "Previous line repeated", "", true},
		{"memory", "x = [bytearray(10**8) for _ in range(100)]", job.Failed, 1, "MemoryError", "", "line 1", "", true},
		{"interrupt", "raise KeyboardInterrupt", job.Failed, 130, "KeyboardInterrupt", "", "", "", false},
		{"abort", "import os\nos.abort()", job.Crashed, 134, "FatalError", "", "", "", false},
		{"read", "import js\njs.Deno.readTextFileSync('/etc/passwd')", job.Failed, 1, "pyodide.ffi.JsException", "--allow-read in PYODIDE_PERMISSION_ARGS", "line 2", "", true},
		{"standard library", "import tkinter", job.Failed, 1, "ModuleNotFoundError", "standard library", "line 1", "", true},
		{"task left behind", "import asyncio\nasync def tick(): await asyncio.sleep(60)\nt = asyncio.create_task(tick())\nawait asyncio.sleep(0)", job.Completed, 0, "", "", "", "ended before these tasks did: tick", false},
		{"warning", "import warnings\nwarnings.warn('careful')", job.Completed, 0, "", "", "", "main.py:2: UserWarning: careful", false},
		{"atexit", "import atexit, sys\natexit.register(lambda: print('late', file=sys.stderr))", job.Completed, 0, "", "", "", "late\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r job.Result
			if test.cell {
				r = in(t, s, python(test.code))
			} else {
				r = run1(t, e, python(test.code))
			}
			if r.Status != test.status || r.ExitCode != test.exit {
				t.Errorf("%s with exit code %d, want %s with %d", r.Status, r.ExitCode, test.status, test.exit)
			}
			if !strings.Contains(r.Stderr.String(), test.stderr) {
				t.Errorf("stderr %q lacks %q", r.Stderr, test.stderr)
			}
			if test.error == "" {
				if r.Error != nil {
					t.Errorf("error %+v", r.Error)
				}
				return
			}
			if r.Error == nil || r.Error.Name != test.error || !strings.Contains(r.Error.Message, test.message) || !strings.Contains(r.Error.Traceback, test.line) {
				t.Fatalf("error %+v, want %s: …%s… at …%s…", r.Error, test.error, test.message, test.line)
			}
			for _, ours := range []string{"rillbox", "webloop", "_pyodide"} {
				if strings.Contains(r.Error.Traceback, ours) {
					t.Errorf("the traceback has a frame of %s:\n%s", ours, r.Error.Traceback)
				}
			}
		})
	}
}

// TestSocketsAreRefused: each way to use a socket that is not granted, or not to be had,
// is an error of the program's, which goes on.
func TestSocketsAreRefused(t *testing.T) {
	s := open(t, newEngine(t), job.SessionOptions{})
	const setup = "import os, socket\ns, u = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nto = ('127.0.0.1', 80)\n"
	const sentence = "A program can connect by TCP here, but neither listen nor use UDP."
	for _, code := range []string{
		"from http.server import HTTPServer; HTTPServer(('', 8000), None)", "s.listen()", "s.bind(to); s.listen()", "socket.create_server(to)", "socket.socketpair()", "u.bind(to)",
		"u.connect(to)", "u.sendto(b'x', to)", "u.sendmsg([b'x'], [], 0, to)", "import asyncio; await asyncio.start_server(print, *to)",
		"import asyncio; await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=to)",
	} {
		r := in(t, s, python(setup+code))
		if r.Status != job.Failed || r.State != "" || r.Error == nil || !strings.Contains(r.Error.Message, sentence) || !strings.Contains(r.Error.Traceback, sentence) {
			t.Errorf("%s: %s %s, %+v", code, r.Status, r.State, r.Error)
		}
	}
	for _, code := range []string{
		"s.connect(to)", "s.settimeout(1); s.connect(to)", "s.setblocking(False); s.connect(to)", "socket.create_connection(to)", "import asyncio; await asyncio.open_connection(*to)",
	} {
		r := in(t, s, python(setup+code))
		if r.Error == nil || r.Error.Name != "PermissionError" || !strings.HasSuffix(r.Error.Message, `Requires net access to "127.0.0.1:80": the operator can allow it with --allow-net=127.0.0.1:80 in PYODIDE_PERMISSION_ARGS`) {
			t.Errorf("%s: %s %s, %+v", code, r.Status, r.State, r.Error)
		}
	}
	for _, code := range []string{"s.accept()", "s.recv(1)", "s.send(b'x')", "os.write(s.fileno(), b'x')", "s.getpeername()", "s.shutdown(2)", "s.recvmsg(1)", "u.recv(1)", "socket.socket(socket.AF_INET6)", "socket.socket(fileno=1)"} {
		if r := in(t, s, python(setup+code)); r.Status != job.Failed || r.State != "" || r.Error == nil || r.Error.Name == "FatalError" {
			t.Errorf("%s: %s %s, %+v", code, r.Status, r.State, r.Error)
		}
	}
	gives(t, s, "1 + 1", "2")
}

func TestTimeout(t *testing.T) {
	e := newEngine(t)
	for name, code := range map[string]string{"loop": "print('on')\nwhile True: pass", "sleep": "print('on')\nimport time\ntime.sleep(100)"} {
		t.Run(name, func(t *testing.T) {
			p := python(code)
			p.Timeout = 700 * time.Millisecond
			r := run1(t, e, p)
			if r.Status != job.TimedOut || r.Stdout.String() != "on\n" || r.Duration < p.Timeout || r.Duration > p.Timeout+2*time.Second {
				t.Errorf("%s after %v with %q", r.Status, r.Duration, r.Stdout)
			}
		})
	}
}

// TestMemory: Python's own heap ends in a MemoryError (see TestEndings), what
// JavaScript holds for it in the end of the run.
func TestMemory(t *testing.T) {
	e := newEngine(t, func(o *Options) {
		o.Limits = job.DefaultLimits()
		o.Limits.Memory = 128 << 20
	})
	if r := completed(t, e, python("n = 0\nx = []\ntry:\n  while True:\n    x.append(bytearray(10**6)); n += 1\nexcept MemoryError: pass\n60 < n < 200")); string(r.Value) != "true" {
		t.Errorf("MemoryError at the wrong size: %s", r.Value)
	}
	r := run1(t, e, python("print('on')\nfrom pyodide.code import run_js\nrun_js('const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))')"))
	if r.Status != job.OutOfMemory || r.Stdout.String() != "on\n" {
		t.Errorf("%s, %+v, stdout %q, stderr %q", r.Status, r.Error, r.Stdout, r.Stderr)
	}
}

func TestCancel(t *testing.T) {
	e := newEngine(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := e.Run(ctx, python("print('on')\nwhile True: pass"), job.Streams{Emit: func(event job.Event) {
		if event.Kind == job.Stdout {
			cancel()
		}
	}})

	if err != nil || r.Status != job.Cancelled {
		t.Errorf("%s, %v", r.Status, err)
	}
	if r, err := e.Run(ctx, python("1"), job.Streams{Emit: func(job.Event) {}}); err != nil || r.Status != job.Cancelled {
		t.Errorf("cancelled before the start: %s, %v", r.Status, err)
	}
}

// TestEachRunIsFresh: nothing of a run is left for another, and chance differs.
func TestEachRunIsFresh(t *testing.T) {
	e := newEngine(t)
	code := "import builtins, os, random\nseen = hasattr(builtins, 'mark') or os.path.exists('f')\nbuiltins.mark = open('f', 'w')\n[seen, random.random()]"
	first, second := completed(t, e, python(code)), completed(t, e, python(code))
	if !strings.HasPrefix(string(first.Value), "[false, ") || !strings.HasPrefix(string(second.Value), "[false, ") {
		t.Errorf("%s, then %s", first.Value, second.Value)
	}
	if string(first.Value) == string(second.Value) {
		t.Errorf("the same random number twice: %s", first.Value)
	}
}

// TestForgedFrames: what a guest writes to fd 3 can't change the verdict, also
// where it may open it.
func TestForgedFrames(t *testing.T) {
	e := newEngine(t, permit(t, "--allow-write"))
	for name, frame := range map[string]string{
		"second start": `{"type":"started"}`,
		"installed":    `{"type":"installed","files":[],"missing":{}}`,
		"unknown":      `{"type":"owned"}`,
		"malformed":    `{`,
		"long":         strings.Repeat("x", 2<<20),
	} {
		t.Run(name, func(t *testing.T) {
			p := python("import sys\nfrom pyodide.code import run_js\nw = run_js(\"Deno.openSync('/dev/fd/3', {write: true})\")\nw.writeSync(run_js('(s) => new TextEncoder().encode(s)')(sys.stdin.read()))")
			if r := run1(t, e, p, strings.NewReader(frame+"\n")); r.Status != job.Failed || r.Error == nil || r.Error.Name != "ProtocolError" {
				t.Errorf("%s, exit code %d, %+v", r.Status, r.ExitCode, r.Error)
			}
		})
	}
}

func TestPermissions(t *testing.T) {
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello from "+r.URL.Path)
	}))
	defer served.Close()
	host := strings.TrimPrefix(served.URL, "http://")
	fetch := python("from pyodide.http import pyfetch\nawait (await pyfetch('" + served.URL + "/a')).string()")

	without := newEngine(t)
	if r := run1(t, without, fetch); r.Error == nil || !strings.Contains(r.Error.Message, "--allow-net="+host+" in PYODIDE_PERMISSION_ARGS") {
		t.Errorf("without the permission: %s, %+v", r.Status, r.Error)
	}
	granted := newEngine(t, permit(t, "--allow-net="+host))
	if r := completed(t, granted, fetch); string(r.Value) != `"hello from /a"` {
		t.Errorf("with it: %s", r.Value)
	}
	requests := python("import requests\nrequests.get('" + served.URL + "/b').text")
	if r := completed(t, granted, requests); string(r.Value) != `"hello from /b"` {
		t.Errorf("requests: %s", r.Value)
	}
	fetch.Permissions = []string{}
	if r := run1(t, granted, fetch); r.Status != job.Failed {
		t.Errorf("narrowed to nothing: %s", r.Status)
	}
	fetch.Permissions = []string{"--allow-read"}
	if _, err := granted.Run(t.Context(), fetch, job.Streams{Emit: func(job.Event) {}}); err == nil || !strings.Contains(err.Error(), "--allow-read") {
		t.Errorf("widened: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("RILLBOX_TEST_SECRET", "s3cret")
	t.Setenv("RILLBOX_TEST_NAMED", "given")
	e := newEngine(t, permit(t, "--allow-env"), func(o *Options) { o.Env = []string{"RILLBOX_TEST_NAMED", "RILLBOX_TEST_UNSET", "GIVEN=a=b,c"} })
	r := completed(t, e, python("import os, js\n[os.environ.get('RILLBOX_TEST_NAMED'), os.environ.get('RILLBOX_TEST_SECRET'), os.environ.get('GIVEN'), js.Deno.env.get('GIVEN'), str(js.Deno.env.get('RILLBOX_TEST_SECRET'))]"))
	if string(r.Value) != `["given", null, "a=b,c", "a=b,c", "None"]` {
		t.Errorf("value %s", r.Value)
	}
}

// TestASnapshotThatIsNotLoadedIsReplacedForOneself has a snapshot of its own, since it
// is another one for a Pyodide of the operator's own. The shared one stays: others may
// use it.
func TestASnapshotThatIsNotLoadedIsReplacedForOneself(t *testing.T) {
	whole := newEngine(t)
	own := func(o *Options) { o.Path = whole.runtime.pyodide.Dir }
	key := newEngine(t, own).runtime.key
	if key == whole.runtime.key {
		t.Fatal("the operator's Pyodide has the same snapshot as ours")
	}
	t.Cleanup(func() {
		_ = whole.o.Cache.Remove(snapshotKind, key)
		_ = whole.o.Cache.Remove(snapshotKind, key+"/again")
	})
	shared, err := whole.o.Cache.Put(t.Context(), snapshotKind, key, strings.NewReader("no snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, own)
	var runs sync.WaitGroup
	for range 2 {
		runs.Go(func() {
			r, err := e.Run(t.Context(), python("6 * 7"), job.Streams{Emit: func(job.Event) {}})
			if err != nil || string(r.Value) != "42" {
				t.Errorf("%s, value %s, %v", r.Status, r.Value, err)
			}
		})
	}
	runs.Wait()
	if path, err := whole.o.Cache.Get(snapshotKind, key); err != nil || path != shared {
		t.Errorf("the shared snapshot is now %s, %v", path, err)
	}
	if r := completed(t, newEngine(t, own), python("6 * 7")); string(r.Value) != "42" {
		t.Errorf("value %s", r.Value)
	}
}

// only is the reader, if there is one.
func only(readers []io.Reader) io.Reader {
	if len(readers) == 0 {
		return nil
	}
	return readers[0]
}
