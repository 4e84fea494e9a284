//go:build !windows

package pyodide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	gort "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/wire"
)

// workspace makes a directory for a session, by its real path.
func workspace(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t testing.TB, e *Engine, o job.SessionOptions) *session {
	t.Helper()
	s, err := e.OpenSession(t.Context(), o, func(job.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.(*session)
}

// in runs one cell.
func in(t testing.TB, s *session, p job.Program, stdin ...io.Reader) job.Result {
	t.Helper()
	r, err := s.Run(context.WithoutCancel(t.Context()), p, job.Streams{Stdin: only(stdin), Emit: func(job.Event) {}})
	if err != nil {
		t.Fatalf("%s: %v", p.Code, err)
	}
	return r
}

// gives runs a cell that must complete with a value.
func gives(t testing.TB, s *session, code, value string) {
	t.Helper()
	if r := in(t, s, python(code)); r.Status != job.Completed || string(r.Value) != value || r.State != "" {
		t.Errorf("%s\n%s %s, value %s, want %s; %+v, stderr %s", code, r.Status, r.State, r.Value, value, r.Error, r.Stderr)
	}
}

// brief is for cells that take longer than they may.
func brief(code string) job.Program {
	p := python(code)
	p.Timeout = 400 * time.Millisecond
	return p
}

// TestTranscript is one session from its first cell to its last.
func TestTranscript(t *testing.T) {
	e := newEngine(t, withLibraries(t))
	dir := workspace(t)
	s := open(t, e, job.SessionOptions{Workspace: dir})
	write := func(name, text string) func() {
		return func() {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, cell := range []struct {
		code   string
		before func()
		stdin  string
		status job.Status // empty means completed
		state  job.State
		value  string
		stdout string
		error  string   // its name
		line   string   // a part of the traceback
		shown  []string // MIME types, one of each display
		brings string   // the packages
	}{
		{code: "import json, sys\nx = {'a': 1}"},
		{code: "x['a'] + 1", value: "2"},
		{code: "_ * 10", value: "20"},
		{code: "def f(n):\n  return 10 / n\nf(2)", value: "5.0"},
		{code: "print('out', end='')\nprint('err', file=sys.stderr)", stdout: "out"},
		{code: "y = 1\nf(0)\ny = 2", status: job.Failed, error: "ZeroDivisionError", line: `File "<cell 4>", line 2, in f`},
		{code: "y", value: "1"},
		{code: "def broken(:", status: job.Failed, error: "SyntaxError", line: "<cell 8>"},
		{code: "import asyncio\nasync def slow():\n  await asyncio.sleep(0.01)\n  return 'later'\nawait slow()", value: `"later"`},
		{code: "with open('made.csv', 'w') as file: file.write('a,b\\n1,2\\n')"},
		{code: "open('given.txt').read(), sorted(__import__('os').listdir())", before: write("given.txt", "hello"), value: `"('hello', ['given.txt', 'made.csv'])"`},
		{code: "import pandas as pd\ndf = pd.DataFrame({'a': range(30)})", brings: "pandas"},
		{code: "df", value: `"<pandas.DataFrame object at 0x`, shown: []string{"text/plain"}},
		{code: "import matplotlib.pyplot as plt\n_ = plt.plot([1])", shown: []string{"image/png"}, brings: "matplotlib"},
		{code: "for i in range(2):\n  plt.plot([i]); plt.show()", shown: []string{"image/png", "image/png"}},
		{code: "z = 5\nwhile True: pass", status: job.TimedOut, state: job.StateKept, error: "TimeoutError", line: `File "<cell 16>", line 2`},
		{code: "[y, z, len(df.columns['a'])]", value: "[1, 5, 30]"},
		{code: "import time\ntime.sleep(60)", status: job.TimedOut, state: job.StateKept, error: "TimeoutError", line: `File "<cell 18>", line 2`},
		{code: "name = input('? ')\n[name, sys.stdin.read()]", stdin: "alice\nand more", stdout: "? ", value: `["alice", "and more"]`},
		{code: "sys.stdin.read()", value: `""`},
		{code: "sys.exit(4)", status: job.Failed},
		{code: "name", value: `"alice"`},
		{code: "while True:\n  try:\n    while True: pass\n  except KeyboardInterrupt: pass", status: job.TimedOut, state: job.StateLost, error: "TimeoutError"},
	} {
		if cell.before != nil {
			cell.before()
		}
		p := python(cell.code)
		if cell.status == job.TimedOut {
			p = brief(cell.code)
		}
		r := in(t, s, p, strings.NewReader(cell.stdin))
		var brings []string
		for _, p := range r.Packages {
			brings = append(brings, p.Name)
		}
		wrong := func(what string, have, want any) {
			t.Errorf("cell %d\n%s\n%s: %q, want %q; %+v, stderr %s", i+1, cell.code, what, have, want, r.Error, r.Stderr)
		}
		if want := cmp.Or(cell.status, job.Completed); r.Status != want {
			wrong("status", r.Status, want)
		}
		if r.State != cell.state {
			wrong("state", r.State, cell.state)
		}
		if !strings.HasPrefix(string(r.Value), cell.value) || cell.value == "" && r.Value != nil {
			wrong("value", r.Value, cell.value)
		}
		if r.Stdout.String() != cell.stdout {
			wrong("stdout", r.Stdout, cell.stdout)
		}
		if name := errorName(r); name != cell.error {
			wrong("error", name, cell.error)
		} else if name != "" && !strings.Contains(r.Error.Traceback, cell.line) {
			wrong("traceback", r.Error.Traceback, cell.line)
		}
		if have := strings.Join(brings, " "); have != cell.brings {
			wrong("packages", have, cell.brings)
		}
		if len(r.Displays) != len(cell.shown) {
			wrong("displays", r.Displays, cell.shown)
			continue
		}
		for i, kind := range cell.shown {
			if r.Displays[i][kind] == "" {
				wrong("display", r.Displays[i], kind)
			}
		}
	}
	select {
	case <-s.Ended():
	default:
		t.Error("the session's state is lost, and it goes on")
	}
	if _, err := s.Run(t.Context(), python("1"), job.Streams{Emit: func(job.Event) {}}); err == nil {
		t.Error("an ended session takes a cell")
	}
	if text, err := os.ReadFile(filepath.Join(dir, "made.csv")); string(text) != "a,b\n1,2\n" {
		t.Errorf("the file that a cell made: %q, %v", text, err)
	}
}

func errorName(r job.Result) string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Name
}

// TestInterruptions: what a cell does when its time is up, and what becomes of
// the session's state.
func TestInterruptions(t *testing.T) {
	e := newEngine(t, withLibraries(t))
	s := open(t, e, job.SessionOptions{})
	never := func() io.Reader {
		r, w := io.Pipe()
		t.Cleanup(func() { _ = w.Close() })
		return r
	}
	for _, test := range []struct {
		name, code string
		state      job.State
	}{
		{"a loop", "while True: pass", job.StateKept},
		{"time.sleep", "import time\ntime.sleep(60)", job.StateKept},
		{"await", "import asyncio\nawait asyncio.sleep(60)", job.StateKept},
		{"asyncio.run", "import asyncio\nasyncio.run(asyncio.sleep(60))", job.StateKept},
		{"a coroutine that is the value", "import asyncio\nasync def f():\n  while True: await asyncio.sleep(0)\nf()", job.StateKept},
		{"a loop in a task", "import asyncio\nasync def f():\n  while True: pass\nawait asyncio.gather(f(), f())", job.StateKept},
		{"a promise", "from js import Promise\nawait Promise.new(lambda *_: None)", job.StateKept},
		{"a promise that is waited for in the way of urllib3", "from js import Promise\nfrom pyodide.ffi import run_sync\nrun_sync(Promise.new(lambda *_: None))", job.StateKept},
		{"input", "input()", job.StateKept},
		{"a regular expression", "import re\nre.match('(a+)+$', 'a' * 60 + 'b')", job.StateKept},
		{"a repr", "class T:\n  def __repr__(self):\n    while True: pass\nT()", job.StateKept},
		{"a figure", "import matplotlib.pyplot as plt, matplotlib.figure\ndef draw(*_, **__):\n  while True: pass\nmatplotlib.figure.Figure.savefig = draw\nplt.plot([1])", job.StateKept},
		{"an error's text", "class E(Exception):\n  def __str__(self):\n    while True: pass\nraise E", job.StateLost},
		{"a handler of its own", "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\nwhile True: pass", job.StateLost},
		{"a function of C", "sum(range(10**12))", job.StateLost},
		{"JavaScript", "from pyodide.code import run_js\nrun_js('for (;;);')", job.StateLost},
	} {
		t.Run(test.name, func(t *testing.T) {
			select {
			case <-s.Ended():
				s = open(t, e, job.SessionOptions{})
			default:
			}
			gives(t, s, "mark = 'kept'\n1", "1")
			p := brief("print('on', flush=True)\n" + test.code)
			r := in(t, s, p, never())
			if r.Status != job.TimedOut || r.State != test.state || errorName(r) != "TimeoutError" || r.Value != nil || r.Stdout.String() != "on\n" {
				t.Errorf("%s, state %q, %+v, stdout %q, stderr %s", r.Status, r.State, r.Error, r.Stdout, r.Stderr)
			}
			if test.state == job.StateKept {
				gives(t, s, "mark", `"kept"`)
			}
		})
	}
}

// TestACancelledCellIsInterrupted: the state is kept, and the next cell runs.
func TestACancelledCellIsInterrupted(t *testing.T) {
	s := open(t, newEngine(t), job.SessionOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := s.Run(ctx, python("x = 1\nprint('on')\nwhile True: pass"), job.Streams{Emit: func(event job.Event) {
		if event.Kind == job.Stdout {
			cancel()
		}
	}})

	if err != nil || r.Status != job.Cancelled || r.State != job.StateKept || !strings.Contains(r.Error.Message, "state is kept") {
		t.Errorf("%s, state %q, %+v, %v", r.Status, r.State, r.Error, err)
	}
	if r, err := s.Run(ctx, python("x = 2"), job.Streams{Emit: func(job.Event) {}}); err != nil || r.Status != job.Cancelled || r.State != job.StateKept {
		t.Errorf("cancelled before it began: %s, state %q, %v", r.Status, r.State, err)
	}
	gives(t, s, "x", "1")
}

// TestInterruptionsAreACells: one that a cell caught does not come in the next.
func TestInterruptionsAreACells(t *testing.T) {
	s := open(t, newEngine(t), job.SessionOptions{})
	r := in(t, s, brief("caught = 0\nwhile caught < 1:\n  try:\n    while True: pass\n  except KeyboardInterrupt: caught += 1\nfor _ in range(10**6): pass\n'went on'"))
	if r.Status != job.TimedOut || r.State != job.StateKept || r.Value != nil {
		t.Errorf("%s, state %q, value %s, %+v", r.Status, r.State, r.Value, r.Error)
	}
	gives(t, s, "for _ in range(10**6): pass\ncaught", "1")
}

// deep makes a list in a list, and so on.
const deep = "print('on')\na = []\nfor _ in range(100000): a = [a]\n"

// TestDepthIsAnErrorOfTheProgram: where Python itself sees it, the session goes on.
func TestDepthIsAnErrorOfTheProgram(t *testing.T) {
	s := open(t, newEngine(t), job.SessionOptions{})
	in(t, s, python(deep))
	for _, code := range []string{"def f(): f()\nf()", "import copy\ncopy.deepcopy(a)", "class G:\n  def __getattr__(self, n): return getattr(self, n + 'x')\nG().y"} {
		if r := in(t, s, python(code)); r.Status != job.Failed || errorName(r) != "RecursionError" || r.State != "" {
			t.Errorf("%s: %s %s, %+v", code, r.Status, r.State, r.Error)
		}
	}
	gives(t, s, "1 + 1", "2")
}

// TestSessionsEndWithTheirProcess: what ends the child, and how that is told.
func TestSessionsEndWithTheirProcess(t *testing.T) {
	e := newEngine(t, permit(t, "--allow-write"), func(o *Options) {
		o.Limits = job.DefaultLimits()
		o.Limits.Memory = 128 << 20
	})
	for _, test := range []struct {
		name, code string
		status     job.Status
		exit       int
		error      string
	}{
		{"os._exit", "import os\nprint('on')\nos._exit(3)", job.Failed, 3, ""},
		{"os._exit without a code", "import os\nprint('on')\nos._exit(0)", job.Completed, 0, ""},
		{"os.abort", "import os\nprint('on')\nos.abort()", job.Crashed, 134, "FatalError"},
		{"deep repr", deep + "repr(a)", job.Failed, 1, "RecursionError"},
		{"deep json", deep + "import json\njson.dumps(a)", job.Failed, 1, "RecursionError"},
		{"deep ==", deep + "b = a[0]\na == [[b]]\nx = []\nfor _ in range(100000): x = [x]\na == x", job.Failed, 1, "RecursionError"},
		{"freed", deep + "a = None", job.Failed, 1, "RecursionError"},
		{"deep in a task", deep + "import asyncio\nasync def f(): repr(a)\nawait asyncio.create_task(f())", job.Failed, 1, "RecursionError"},
		{"functions by way of C", "print('on')\nclass A:\n  def __repr__(self): return repr(self)\nimport sys\nsys.setrecursionlimit(10**6)\nrepr(A())", job.Failed, 1, "RecursionError"},
		{"deep source", "print('on')\neval('+'.join(['1'] * 100000))", job.Failed, 1, "RecursionError"},
		{"Deno.exit", "import js\nprint('on')\njs.Deno.exit(5)", job.Failed, 5, "ProtocolError"},
		{"memory of JavaScript", "print('on')\nfrom pyodide.code import run_js\nrun_js('const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))')", job.OutOfMemory, 137, "OutOfMemory"},
		{"unknown frame", forge(`{"cell":1,"type":"owned"}`), job.Failed, 137, "ProtocolError"},
		{"malformed frame", forge(`{`), job.Failed, 137, "ProtocolError"},
		{"frame of a later cell", forge(`{"cell":2,"type":"result"}`), job.Failed, 137, "ProtocolError"},
		{"second start", forge(`{"cell":1,"type":"started"}`), job.Failed, 137, "ProtocolError"},
		{"plan", forge(`{"cell":1,"type":"installed","files":[],"missing":{}}`), job.Failed, 137, "ProtocolError"},
		{"endless frame", strings.Replace(forge(`{`), " + '\\n'", " + 'x' * (12 << 20)", 1), job.Failed, 137, "ProtocolError"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, e, job.SessionOptions{})
			r := in(t, s, python(test.code))
			if r.Status != test.status || r.ExitCode != test.exit || r.State != job.StateLost || errorName(r) != test.error || r.Stdout.String() != "on\n" {
				t.Errorf("%s with exit code %d, state %q, %+v, stdout %q, stderr %s", r.Status, r.ExitCode, r.State, r.Error, r.Stdout, r.Stderr)
			}
			select {
			case <-s.Ended():
			default:
				t.Error("it goes on")
			}
		})
	}
	t.Run("memory of Python", func(t *testing.T) {
		s := open(t, e, job.SessionOptions{})
		if r := in(t, s, python("x = 1\ny = [bytearray(10**8) for _ in range(9)]")); errorName(r) != "MemoryError" || r.State != "" {
			t.Errorf("%s, state %q, %+v", r.Status, r.State, r.Error)
		}
		gives(t, s, "x", "1")
	})
}

// forge is a cell that writes a line to fd 3 itself.
func forge(line string) string {
	return fmt.Sprintf("print('on')\nfrom pyodide.code import run_js\nw = run_js(\"Deno.openSync('/dev/fd/3', {write: true})\")\nb = run_js('(s) => new TextEncoder().encode(s)')(%q + '\\n')\nwhile b.length: b = b.subarray(w.writeSync(b))\n", line)
}

// TestForgedResults: a guest that forges its cell's result ends the cell, gets
// no time before the next one, and is never taken for it.
func TestForgedResults(t *testing.T) {
	if gort.GOOS != "linux" {
		t.Skip("looks at a process's time")
	}
	e := newEngine(t, permit(t, "--allow-write"))
	t.Run("and goes on", func(t *testing.T) {
		s := open(t, e, job.SessionOptions{})
		r := in(t, s, python(forge(`{"cell":1,"type":"result","value":"forged","code":0}`)+
			"display('late')\nfor _ in range(2 * 10**7): pass\nx = 'mine'\n'late'"))
		if string(r.Value) != `"forged"` || len(r.Displays) > 0 {
			t.Errorf("value %s, %v", r.Value, r.Displays)
		}
		before, _ := s.worker.Usage()
		for used(s, 50*time.Millisecond) { // the signal arrives
		}
		if after, _ := s.worker.Usage(); after-before > 200*time.Millisecond { // of the second that it needs
			t.Errorf("it runs for %v between two cells", after-before)
		}
		gives(t, s, "x", `"mine"`)
		gives(t, s, "3", "3")
	})
	t.Run("and never ends", func(t *testing.T) {
		s := open(t, e, job.SessionOptions{})
		in(t, s, python(forge(`{"cell":1,"type":"result"}`)+"while True: pass"))
		if r := in(t, s, brief("1")); r.Status != job.TimedOut || r.State != job.StateLost {
			t.Errorf("the next cell: %s, state %q, %+v", r.Status, r.State, r.Error)
		}
	})
	t.Run("and asks for input", func(t *testing.T) {
		s := open(t, e, job.SessionOptions{})
		asks := strings.Repeat(`{"cell":1,"type":"stdin"}`+"\n", 100)
		p := python(forge(asks+`{"cell":1,"type":"result"}`) + "x = input()")
		in(t, s, p, strings.NewReader(strings.Repeat("old\n", 1000)))
		p = python("input()")
		if r := in(t, s, p, strings.NewReader("new\n")); string(r.Value) != `"new"` {
			t.Errorf("value %s, %+v", r.Value, r.Error)
		}
	})
}

// TestAForgedInstallationIsToldOfNowhere: an earlier cell may write, before its next
// cell begins, what that one is said to have installed.
func TestAForgedInstallationIsToldOfNowhere(t *testing.T) {
	e := newEngine(t)
	rt, err := e.ready(t.Context(), func(job.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	w, err := e.startReady(t.Context(), rt, childOptions{module: sessionModule})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	r := newRun(e, w, python("1"), job.Streams{Emit: func(job.Event) {}})
	r.wanted = &requirements{}
	const forged = `{"files":[{"name":"forged","filename":"forged.whl","sha256":"00","dir":"site"}],"missing":{"forged":"it is"}}`
	if err := r.keep(t.Context(), wire.Frame{JSON: []byte(forged)}); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("it was kept: %v", err)
	}
	var result job.Result
	if r.complete(&result, time.Now()); len(result.Packages)+len(result.Notes) > 0 {
		t.Errorf("told of %+v, %q", result.Packages, result.Notes)
	}
}

// used says whether a session's child gets processor time meanwhile.
func used(s *session, d time.Duration) bool {
	before, _ := s.worker.Usage()
	time.Sleep(d)
	after, _ := s.worker.Usage()
	return after > before
}

// TestSessionsAreApart: two sessions, of one engine and at the same time, see
// nothing of each other.
func TestSessionsAreApart(t *testing.T) {
	e := newEngine(t)
	one, other := workspace(t), workspace(t)
	a := open(t, e, job.SessionOptions{Workspace: one})
	b := open(t, e, job.SessionOptions{Workspace: other})
	gives(t, a, "import builtins\nbuiltins.mark = x = 1\nopen('f', 'w').write('a')\nopen('/tmp/f', 'w').write('a')", "1")
	gives(t, b, "import builtins, os\n[hasattr(builtins, 'mark'), 'x' in globals(), os.listdir(), os.path.exists('/tmp/f')]", "[false, false, [], false]")
	for _, code := range []string{
		fmt.Sprintf("import js\njs.Deno.readTextFileSync(%q)", filepath.Join(one, "f")),
		fmt.Sprintf("import js\njs.Deno.writeTextFileSync(%q, '')", filepath.Join(one, "f")),
		fmt.Sprintf("import os\nos.chdir(%q)", one),
		"open('../../" + one + "/f')",
	} {
		if r := in(t, b, python(code)); r.Status != job.Failed {
			t.Errorf("%s: %s, value %s", code, r.Status, r.Value)
		}
	}
	done := make(chan job.Result)
	go func() { done <- in(t, a, brief("while True: pass")) }()
	gives(t, b, "2 + 2", "4")
	if r := <-done; r.State != job.StateKept {
		t.Errorf("state %q", r.State)
	}
	a.Close()
	gives(t, b, "5", "5")
}

// TestSessionWorkspace: the very files, within the permissions.
func TestSessionWorkspace(t *testing.T) {
	e := newEngine(t)
	dir := workspace(t)
	outside := filepath.Join(workspace(t), "secret")
	for name, text := range map[string]string{filepath.Join(dir, "in.txt"): "one", outside: "secret", filepath.Join(dir, "mine.py"): "value = 3"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"out": outside, "in": "in.txt"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, e, job.SessionOptions{Workspace: dir})
	for _, test := range [][2]string{
		{"import os, shutil, pathlib, sqlite3, tempfile\nos.getcwd()", `"/workspace"`},
		{"open('in.txt').read() + open('in').read() + open('/workspace/in.txt').read()", `"oneoneone"`},
		{"import mine\nmine.value", "3"},
		{"with open('a', 'w') as f: f.write('1')\nwith open('a', 'a') as f: f.write('2\\n'); f.write('3')\nwith open('a', 'r+b') as f: f.seek(1); f.write(b'x')\nopen('a').read()", `"1x\n3"`},
		{"os.makedirs('d/e'); os.rename('a', 'd/e/b'); os.rename('d/e', 'd/f')\n[os.path.exists('a'), open('d/f/b').read(), [list(w) for w in os.walk('d')]]", `[false, "1x\n3", [["d", ["f"], []], ["d/f", [], ["b"]]]]`},
		{"shutil.copytree('d', 'd2'); shutil.rmtree('d')\nsorted(os.listdir())", `["d2", "in", "in.txt", "mine.py", "out"]`},
		{"shutil.rmtree('d2')\ndb = sqlite3.connect('t.db'); db.execute('create table t (x)'); db.execute('insert into t values (7)'); db.commit()\ndb.execute('select x from t').fetchall()[0][0]", "7"},
		{"db.close(); os.remove('t.db')\nwith tempfile.NamedTemporaryFile(dir='.') as f: f.write(b'x'); f.flush(); size = os.stat(f.name).st_size\n[size, len(os.listdir())]", "[1, 4]"},
		{"p = pathlib.Path('ü 😀'); p.write_text('x'); os.utime(p, (1, 2)); s = p.stat(); p.unlink()\n[s.st_size, s.st_mtime, s.st_mode & 0o100000 > 0]", "[1, 2.0, true]"},
		{"f = open('gone', 'w+'); f.write('x'); f.flush(); os.remove('gone'); f.seek(0)\nf.read()", `"x"`},
		{"os.truncate('in.txt', 2)\nopen('in.txt').read()", `"on"`},
	} {
		gives(t, s, test[0], test[1])
	}
	for _, test := range [][2]string{
		{"open('out')", "FileNotFoundError"}, // what it leads to is not in Python's file system
		{"open('nowhere')", "FileNotFoundError"},
		{"open('in.txt/x')", "NotADirectoryError"},
		{"os.mkdir('in.txt')", "FileExistsError"},
		{"open('.')", "IsADirectoryError"},
		{"os.mkdir('d'); open('d/x', 'w').close(); os.rmdir('d')", "OSError"},
		{"os.symlink('/etc', 'link')", "PermissionError"},
		{"open('n' * 300, 'w')", "OSError"},
		{"import js\njs.Deno.readTextFileSync('out')", "pyodide.ffi.JsException"},
		{fmt.Sprintf("import js\njs.Deno.readTextFileSync(%q)", outside), "pyodide.ffi.JsException"},
	} {
		if r := in(t, s, python(test[0])); errorName(r) != test[1] {
			t.Errorf("%s: %s, %+v", test[0], r.Status, r.Error)
		}
	}

	// What others do to the files is seen at once, whatever Python knew of them.
	gives(t, s, "open('both', 'w').write('python')\nopen('both').read()", `"python"`)
	for _, step := range []struct {
		do         func() error
		code, want string
	}{
		{func() error { return os.WriteFile(filepath.Join(dir, "both"), []byte("go"), 0o600) }, "open('both').read()", `"go"`},
		{func() error { return os.Remove(filepath.Join(dir, "both")) }, "os.path.exists('both')", "false"},
		{func() error { return nil }, "open('both', 'w').write('2')\nopen('both').read()", `"2"`},
		{func() error {
			return os.Rename(filepath.Join(dir, "both"), filepath.Join(dir, "other"))
		}, "os.mkdir('both')\n[os.path.isdir('both'), open('other').read()]", `[true, "2"]`},
		{func() error { return os.Remove(filepath.Join(dir, "both")) }, "open('both', 'w').write('3')\nos.path.isfile('both')", "true"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		gives(t, s, step.code, step.want)
	}

	t.Run("read-only", func(t *testing.T) {
		s := open(t, e, job.SessionOptions{Workspace: dir, ReadOnly: true})
		gives(t, s, "open('in.txt').read()", `"on"`)
		for _, code := range []string{"open('in.txt', 'w')", "open('new', 'w')", "import os\nos.remove('in.txt')", "import os\nos.rename('in.txt', 'x')", "import os\nos.mkdir('x')", "import os\nos.chmod('in.txt', 0)", "import os\nos.utime('in.txt')", "import os\nos.truncate('in.txt', 0)"} {
			if r := in(t, s, python(code)); errorName(r) != "PermissionError" {
				t.Errorf("%s: %s, %+v", code, r.Status, r.Error)
			}
		}
		gives(t, s, "open('in.txt').read()", `"on"`)
	})
	t.Run("without a workspace", func(t *testing.T) {
		s := open(t, e, job.SessionOptions{})
		gives(t, s, "import os\nopen('f', 'w').write('x')\nos.getcwd()", `"/home/pyodide"`)
	})
}

// TestProgramsHaveWorkspaces: a program of its own has the files as a session
// has them, and its text is not among them.
func TestProgramsHaveWorkspaces(t *testing.T) {
	e := newEngine(t, func(o *Options) { o.Warm = 1 })
	dir := workspace(t)
	if err := os.WriteFile(filepath.Join(dir, "in.txt"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := python("import os\nopen('out.txt', 'w').write('made')\n[os.getcwd(), open('in.txt').read(), sorted(os.listdir()), __file__]")
	p.Workspace = dir
	for range 2 { // also when a warm worker waits for others
		if r := completed(t, e, p); string(r.Value) != `["/workspace", "one", ["in.txt", "out.txt"], "/home/pyodide/main.py"]` {
			t.Errorf("value %s", r.Value)
		}
		e.pool.Idle()
	}
	p.ReadOnly = true
	if r := run1(t, e, p); errorName(r) != "PermissionError" {
		t.Errorf("%s, %+v", r.Status, r.Error)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "out.txt")); string(text) != "made" {
		t.Errorf("%q, %v", text, err)
	}
	if r := completed(t, e, python("import os\nos.path.exists('/workspace')")); string(r.Value) != "false" {
		t.Error("a program without a workspace has one")
	}
}

// TestAFullHeapShowsNoPaths: neither live nor in the result, in a run and a session.
func TestAFullHeapShowsNoPaths(t *testing.T) {
	e := newEngine(t, func(o *Options) {
		o.Limits = job.DefaultLimits()
		o.Limits.Memory = 64 << 20
	})
	p := python("import sys\nprint('mine', file=sys.stderr)\nfrom pyodide.code import run_js\nrun_js('const a = []; for (;;) a.push(new Array(1e5).fill(1.5))')")
	for name, run := range map[string]func(context.Context, job.Program, job.Streams) (job.Result, error){"run": e.Run, "session": open(t, e, job.SessionOptions{}).Run} {
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

// TestSessionPackages: what a cell installed is there for the next, is told
// once, and becomes part of nobody else's plans.
func TestSessionPackages(t *testing.T) {
	e := newEngine(t, withLibraries(t))
	brings := func(r job.Result) string {
		var names []string
		for _, p := range r.Packages {
			names = append(names, p.Name)
		}
		return strings.Join(names, " ")
	}
	s := open(t, e, job.SessionOptions{})
	for _, step := range [][2]string{
		{"import micropip\nawait micropip.install('pillow')", "pillow"},
		{"import matplotlib\nfrom PIL import Image\nImage.new('L', (1, 1)).size", "matplotlib"},
		{"import pandas", "pandas"},
		{"import pandas, matplotlib, PIL", ""},
	} {
		r := in(t, s, python(step[0]))
		if r.Status != job.Completed || brings(r) != step[1] {
			t.Errorf("%s\n%s, packages %q, want %q; %+v", step[0], r.Status, brings(r), step[1], r.Error)
		}
	}
	if r := completed(t, e, python("import pandas")); brings(r) != "pandas" {
		t.Errorf("a program after it has %q", brings(r))
	}
	p := python("1")
	p.Packages = []string{"no-such-package-xyz"}
	if r := in(t, s, p); r.Status != job.Failed || errorName(r) != "PackageError" || r.State != "" {
		t.Errorf("%s, %+v", r.Status, r.Error)
	}
	if r := in(t, s, python("import nosuchmodulexyz")); errorName(r) != "ModuleNotFoundError" || !strings.Contains(r.Error.Message, "there is no package") {
		t.Errorf("%s, %+v", r.Status, r.Error)
	}
	// A plan of before is followed, but for what is there.
	s = open(t, e, job.SessionOptions{})
	in(t, s, python("import matplotlib"))
	p = python("import pandas, PIL\n1")
	completed(t, e, p)
	if r := in(t, s, p); brings(r) != "pandas pillow" && brings(r) != "pillow pandas" || string(r.Value) != "1" {
		t.Errorf("packages %q, %+v", brings(r), r.Error)
	}
}

// reads counts what is asked of a standard input.
type reads struct {
	io.Reader
	n int
}

func (r *reads) Read(p []byte) (int, error) {
	r.n++
	return r.Reader.Read(p)
}

// TestSessionInput: a cell's standard input is read when the cell does, and what
// it leaves is not the next one's.
func TestSessionInput(t *testing.T) {
	s := open(t, newEngine(t), job.SessionOptions{})
	long := strings.Repeat("0123456789", 30_000)
	p := python("import sys\nline = input()\n[line, len(sys.stdin.read()), sys.stdin.read()]")
	if r := in(t, s, p, strings.NewReader("first\n"+long)); string(r.Value) != `["first", 300000, ""]` {
		t.Errorf("value %s, %+v", r.Value, r.Error)
	}
	input := &reads{Reader: strings.NewReader(long)}
	p = python("1")
	in(t, s, p, input)
	if input.n > 0 {
		t.Errorf("it was read %d times for a cell that reads nothing", input.n)
	}
	p = python("sys.stdin.read(3)")
	if r := in(t, s, p, input); string(r.Value) != `"012"` {
		t.Errorf("value %s, %+v", r.Value, r.Error)
	}
	gives(t, s, "sys.stdin.read()", `""`)
	gives(t, s, "import io\nsys.stdin = io.StringIO('own')\n1", "1")
	gives(t, s, "sys.stdin.read()", `"own"`)
	if r := in(t, s, python("sys.stdin = sys.__stdin__\ninput()")); errorName(r) != "EOFError" {
		t.Errorf("%s, %+v", r.Status, r.Error)
	}
}

// TestSessionTasks: what a cell leaves going on rests until the next.
func TestSessionTasks(t *testing.T) {
	s := open(t, newEngine(t), job.SessionOptions{})
	gives(t, s, "import asyncio\nseen = []\nasync def tick():\n  while True: seen.append(1); await asyncio.sleep(0.01)\ntask = asyncio.create_task(tick())\nwhile len(seen) < 2: await asyncio.sleep(0.01)\n1", "1")
	gives(t, s, "before = len(seen)\n1", "1")
	gives(t, s, "while len(seen) == before: await asyncio.sleep(0.01)\n1", "1")
	gives(t, s, "task.cancel()", "true")
	if r := in(t, s, python("async def fail(): raise ValueError('no')\nasyncio.create_task(fail())\nawait asyncio.sleep(0.01)")); r.Status != job.Completed {
		t.Errorf("%s, %+v", r.Status, r.Error)
	}
	if r := in(t, s, python("async def leave(): raise SystemExit(6)\nt = asyncio.create_task(leave())\nawait asyncio.sleep(60)")); r.ExitCode != 6 || r.State != "" {
		t.Errorf("%s with exit code %d, state %q", r.Status, r.ExitCode, r.State)
	}
	gives(t, s, "1", "1")
	// Errors that nobody waits for are told, and are not the session's end.
	for _, code := range []string{
		"import js\nfrom pyodide.code import run_js\n_ = run_js('Promise.reject(new Error(\"astray\")); 1')\nawait asyncio.sleep(0.01)",
		"from pyodide.ffi import create_once_callable\ndef fail(): raise ValueError('astray')\njs.setTimeout(create_once_callable(fail), 0)\nawait asyncio.sleep(0.05)",
	} {
		r := in(t, s, python(code))
		later := in(t, s, python("await asyncio.sleep(0.01)\n2"))
		if r.Status != job.Completed || string(later.Value) != "2" || !strings.Contains(r.Stderr.String()+later.Stderr.String(), "astray") {
			t.Errorf("%s\n%s %+v, then %s %+v, stderr %s%s", code, r.Status, r.Error, later.Status, later.Error, r.Stderr, later.Stderr)
		}
	}
}

func TestSessionCompletion(t *testing.T) {
	s := open(t, newEngine(t), job.SessionOptions{})
	if names, err := s.Complete(t.Context(), "pri"); err != nil || !slices.Contains(names, "print") {
		t.Errorf("before the first cell: %v, %v", names, err)
	}
	in(t, s, python("import os\nmy_table = {}\nclass Slow:\n  def __dir__(self):\n    while True: pass\nslow = Slow()"))
	for text, want := range map[string]string{"my_t": "my_table", "x = os.path.isf": "os.path.isfile", "my_table.ke": "my_table.keys"} {
		if names, err := s.Complete(t.Context(), text); err != nil || !slices.Contains(names, want) {
			t.Errorf("%s: %v, %v", text, names, err)
		}
	}
	for text, want := range map[string]bool{"f(": true, "f()": false} {
		if waits, err := s.Unfinished(t.Context(), text); err != nil || waits != want {
			t.Errorf("%q is unfinished: %v, %v", text, waits, err)
		}
	}
	if names, err := s.Complete(t.Context(), "slow.x"); err != nil || len(names) > 0 {
		t.Errorf("an object that never answers: %v, %v", names, err)
	}
	gives(t, s, "1", "1")
}

// TestSessionLimits: what is shown and printed is bounded cell by cell.
func TestSessionLimits(t *testing.T) {
	e := newEngine(t, func(o *Options) {
		o.Limits = job.DefaultLimits()
		o.Limits.Displays = 1 << 20
		o.Limits.Stdout = 1000
	})
	s := open(t, e, job.SessionOptions{})
	for range 2 {
		r := in(t, s, python("print('x' * 5000)\nfor _ in range(10): display({'image/png': bytes(300_000)}, raw=True)\n'x' * 2_000_000"))
		if len(r.Displays) != 2 || len(r.Notes) != 1 || r.Stdout.Omitted != 4001 || len(r.Value) > 1<<20 || r.Status != job.Completed {
			t.Errorf("%s, %d displays, notes %q, %d bytes of output left out, %d of value", r.Status, len(r.Displays), r.Notes, r.Stdout.Omitted, len(r.Value))
		}
	}
	if r := in(t, s, python("1")); r.Stdout.String() != "" || len(r.Displays) > 0 {
		t.Errorf("stdout %q, displays %v", r.Stdout, r.Displays)
	}
	if s.Memory() == 0 {
		t.Error("its memory is not known")
	}
	s.Close()
	if s.Memory() != 0 {
		t.Error("an ended session uses memory")
	}
}

// BenchmarkCell measures a cell from Run to its result.
func BenchmarkCell(b *testing.B) {
	s := open(b, newEngine(b, func(o *Options) { o.Log = nil }), job.SessionOptions{Workspace: workspace(b)})
	for range 50 { // V8 compiles what is used often
		in(b, s, python("x = 41"))
	}
	before, _ := s.worker.Usage()
	for b.Loop() {
		in(b, s, python("x + 1"))
	}
	after, _ := s.worker.Usage()
	b.ReportMetric(float64((after-before).Microseconds())/float64(b.N), "child-µs/op")
}
