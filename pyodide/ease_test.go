//go:build !windows

package pyodide

import (
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// TestThreadsTakeTurns: threads go on when others wait; where all would, one says so.
func TestThreadsTakeTurns(t *testing.T) {
	s := open(t, newEngine(t), job.SessionOptions{})
	const setup = "import asyncio, queue, threading, time\nfrom concurrent.futures import *\nfrom threading import *\nseen = []\n"
	for _, row := range []struct{ name, code, want string }{
		{"a thread", "t = Thread(target=lambda: seen.append(current_thread() is t and t.is_alive()))\nt.start(); t.join()\n[seen, t.is_alive(), current_thread() is main_thread(), active_count()]", `[[true], false, true, 1]`},
		{"its error is its own", "t = Thread(target=lambda: 1/0); t.start(); t.join()\n'on'", `"on"`},
		{"its exit too", "import sys\nt = Thread(target=sys.exit); t.start()\n'on'", `"on"`},
		{"a thread of a thread", "t = Thread(target=lambda: Thread(target=lambda: seen.append(1)).start()); t.start(); t.join()\nseen", `[1]`},
		{"a pool", "with ThreadPoolExecutor(4) as pool: a = [*pool.map(pow, [1, 2, 3], [2, 2, 2])]\na", `[1, 4, 9]`},
		{"a pool's results", "with ThreadPoolExecutor(1, initializer=seen.append, initargs=('begun',)) as pool:\n  f = [pool.submit(abs, n) for n in (-1, -2)]\n  a = [sorted(r.result(1) for r in as_completed(f)), len(wait(f).done), seen]\na", `[[1, 2], 2, ["begun"]]`},
		{"a pool's error", "with ThreadPoolExecutor() as pool: f = pool.submit(lambda: 1/0)\nrepr(f.exception())", `"ZeroDivisionError('division by zero')"`},
		{"a pool in a pool", "with ThreadPoolExecutor() as pool: a = pool.submit(lambda: pool.submit(lambda: 7).result()).result()\na", `7`},
		{"a pool's threads sleep beside one another", "begun = time.monotonic()\nwith ThreadPoolExecutor(9) as pool: [*pool.map(time.sleep, [0.2] * 9)]\ntime.monotonic() - begun < 1.5", `true`},
		{"consumers before their producer", "q = queue.Queue()\ndef work():\n  for n in iter(q.get, None): seen.append(n); q.task_done()\nts = [Thread(target=work) for _ in range(3)]\nfor t in ts: t.start()\nfor n in range(9): q.put(n)\nq.join()\nfor t in ts: q.put(None)\nfor t in ts: t.join()\nsorted(seen)", `[0, 1, 2, 3, 4, 5, 6, 7, 8]`},
		{"an event", "e, f = Event(), Event()\ndef work():\n  e.wait(); seen.append(1); f.set()\nThread(target=work).start()\ne.set()\n[f.wait(), seen]", `[true, [1]]`},
		{"a barrier", "b = Barrier(2); t = Thread(target=b.wait); t.start(); b.wait(); t.join()\nb.n_waiting", `0`},
		{"a wait with a time", "[Event().wait(0.01), Lock().acquire(timeout=1), queue.SimpleQueue().empty()]", `[false, true, true]`},
		{"a timer", "e = Event(); Timer(0.01, e.set).start()\nother = Timer(1000, print); other.start(); other.cancel()\ne.wait()", `true`},
		{"locks are each thread's", "l, r = Lock(), RLock()\ndef work(n):\n  with l, r, r:\n    seen.append(n); time.sleep(0.01); seen.append(n)\nwith ThreadPoolExecutor() as pool: [*pool.map(work, range(3))]\nseen", `[0, 0, 1, 1, 2, 2]`},
		{"locals are each thread's", "o = local(); o.x = 1\nt = Thread(target=lambda: seen.append(hasattr(o, 'x'))); t.start(); t.join()\n[seen, o.x]", `[[false], 1]`},
		{"errors are each thread's", "import sys\ndef work(n):\n  try: raise ValueError(n)\n  except ValueError as e:\n    time.sleep(0.01); return sys.exc_info()[1] is e\nwith ThreadPoolExecutor() as pool: a = [*pool.map(work, range(4))]\na", `[true, true, true, true]`},
		{"to_thread", "await asyncio.to_thread(lambda: 5)", `5`},
		{"a loop in a thread", "async def f(): await asyncio.sleep(0.01); return 5\nwith ThreadPoolExecutor() as pool: a = pool.submit(asyncio.run, f()).result()\na", `5`},
		{"loops in threads, each with its tasks", "async def f(n):\n  asyncio.create_task(asyncio.sleep(9)); await asyncio.sleep(n / 50); return n\nwith ThreadPoolExecutor() as pool: a = [*pool.map(lambda n: (asyncio.run(f(n)), time.sleep(n / 100))[0], range(4))]\n[a, len(asyncio.all_tasks() - {asyncio.current_task()})]", `[[0, 1, 2, 3], 0]`},
		{"a coroutine's result", "async def five(): return 5\nasync def main(): return asyncio.run_coroutine_threadsafe(five(), asyncio.get_running_loop()).result()\nawait main()", `5`},
		{"a lock that a task holds while it sleeps", "l = Lock()\nasync def a():\n  with l: time.sleep(0.02)\n  seen.append('a')\nasync def b():\n  with l: seen.append('b')\nawait asyncio.gather(a(), b())\nsorted(seen)", `["a", "b"]`},
		{"garbage is collected while others wait", "import gc\ne = Event()\ndef wait(n):\n  own = [n]\n  e.wait(); seen.append(own)\nts = [Thread(target=wait, args=(n,)) for n in range(3)]\nfor t in ts: t.start()\ndef deep(n): return max([n], key=lambda _: deep(n - 1) if n else gc.collect() * 0)\nfor _ in range(5): deep(60); keep = [[[]] for _ in range(20000)]\ne.set()\nfor t in ts: t.join()\nseen", `[[0], [1], [2]]`},
		{"a daemon that waits is left", "Thread(target=queue.Queue().get, daemon=True).start()\n'on'", `"on"`},
	} {
		t.Run(row.name, func(t *testing.T) { gives(t, s, setup+row.code, row.want) })
	}
	for name, code := range map[string]string{
		"a lock":                "l = Lock(); l.acquire(); l.acquire()",
		"a lock that is left":   "l = Lock(); t = Thread(target=l.acquire); t.start(); t.join(); l.acquire()",
		"a queue":               "queue.Queue().get()",
		"a simple queue":        "queue.SimpleQueue().get()",
		"an event":              "Event().wait()",
		"a semaphore":           "Semaphore(0).acquire()",
		"a future":              "Future().result()",
		"one that waits itself": "t = Thread(target=Event().wait, daemon=True); t.start(); t.join()",
		"who ends without":      "e = Event(); Thread(target=time.sleep, args=(0.01,)).start(); e.wait()",
	} {
		r := in(t, s, python(setup+code))
		if r.Status != job.Failed || r.State != "" || r.Error == nil || r.Error.Name != "threading.WouldWait" || !strings.Contains(r.Error.Message, "no other thread or task can bring that about") {
			t.Errorf("%s: %s %s, %+v", name, r.Status, r.State, r.Error)
		}
	}
	r := in(t, s, python(setup+"for _ in range(3): Thread(target=print).start()"))
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "Threads take turns here") {
		t.Errorf("notes %q", r.Notes)
	}
	if r := in(t, s, python(setup+"Lock().acquire()")); len(r.Notes) != 0 {
		t.Errorf("notes %q without a thread", r.Notes)
	}
	if r := in(t, s, brief(setup+"def work():\n  while True: pass\nThread(target=work).start()")); r.Status != job.TimedOut || r.State != job.StateKept {
		t.Errorf("a thread that computes for ever: %s %s, %+v", r.Status, r.State, r.Error)
	}
	gives(t, s, "6 * 7", "42")
}

// TestProgramsEndWithTheirThreads: not with daemons, and not with those that wait for ever.
func TestProgramsEndWithTheirThreads(t *testing.T) {
	r := completed(t, newEngine(t), python("import queue, threading, time\n"+
		"def late(): time.sleep(0.05); print('late')\n"+
		"threading.Thread(target=queue.Queue().get, name='stuck').start()\n"+
		"e = threading.Event(); threading.Thread(target=e.wait).start(); e.set()\n"+
		"threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\nprint('end')\nthreading.Thread(target=late).start()"))
	if r.Stdout.String() != "end\nlate\n" || strings.Contains(r.Stderr.String(), "Traceback") || strings.Contains(r.Stderr.String(), "tasks") || !strings.Contains(r.Stderr.String(), "ended before these threads did: stuck\n") {
		t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
	}
}

// TestWhatIsNotHereSaysWhatToDo: what WebAssembly or no notebook has.
func TestWhatIsNotHereSaysWhatToDo(t *testing.T) {
	s := open(t, newEngine(t), job.SessionOptions{})
	for code, want := range map[string]string{
		"import subprocess, sys; subprocess.run([sys.executable, '-m', 'black', 'x'])": "runpy.run_module('black', run_name='__main__')",
		"import subprocess; subprocess.run(['python3', '-u', 'x.py'])":                 "runpy.run_path('x.py', run_name='__main__')",
		"import subprocess; subprocess.check_call('pip install x', shell=True)":        "%pip install x",
		"import os; os.popen('ls').read()":                                             "JavaScript can, where --allow-run is granted",
		"import asyncio; await asyncio.create_subprocess_exec('ls')":                   "JavaScript can",
		"import asyncio; await asyncio.create_subprocess_shell('python -c 1')":         "exec()",
		"import multiprocessing; multiprocessing.Pool()":                               "ThreadPoolExecutor",
		"import multiprocessing; multiprocessing.Process(target=print).start()":        "ThreadPoolExecutor",
		"from concurrent.futures import ProcessPoolExecutor as P; P().submit(print)":   "ThreadPoolExecutor",
		"x = 1\n%timeit x": "%timeit is a command of notebooks",
		"!ls":              "!ls would start another program",
		"%%bash\nls":       "%%bash is a command of notebooks",
		"import zoneinfo._common as z; raise z.ZoneInfoNotFoundError('x')": "name it in packages",
	} {
		if r := in(t, s, python(code)); r.Status != job.Failed || r.Error == nil || !strings.Contains(r.Error.Message, want) {
			t.Errorf("%s: %s, %+v", code, r.Status, r.Error)
		}
	}
}

// TestNotebooksWork: their commands, displays and backends, and time zones.
func TestNotebooksWork(t *testing.T) {
	e := newEngine(t)
	p := python("%pip install -q attrs  # a comment\n%matplotlib inline\nimport importlib\nif True:\n    !pip install attrs > /dev/null\n" +
		"from zoneinfo import ZoneInfo\nfrom datetime import datetime\nfrom IPython import get_ipython\nfrom IPython.display import *\n" +
		"display(HTML('<b>b</b>'), Markdown('*m*'), SVG('<svg/>'), JSON({'a': 1}), Image(b'\\x89PNG'))\nclear_output()\n" +
		"[importlib.import_module('attrs').__name__, get_ipython(), str(datetime(2026, 7, 1, tzinfo=ZoneInfo('Europe/Berlin')))]")
	r := run1(t, e, p)
	needIndex(t, r)
	if want := `["attrs", null, "2026-07-01 00:00:00+02:00"]`; string(r.Value) != want {
		t.Fatalf("%s, value %s, error %+v", r.Status, r.Value, r.Error)
	}
	var names, kinds []string
	for _, p := range r.Packages {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "attrs tzdata" {
		t.Errorf("packages %s", got)
	}
	for _, d := range r.Displays {
		for kind := range d {
			if kind != "text/plain" {
				kinds = append(kinds, kind)
			}
		}
	}
	if got := strings.Join(kinds, " "); got != "text/html text/markdown image/svg+xml application/json image/png" {
		t.Errorf("displays %s", got)
	}
}

// TestLostFilesAreTold: a program without a directory of files leaves some.
func TestLostFilesAreTold(t *testing.T) {
	e := newEngine(t)
	for code, want := range map[string]string{
		"import os\nopen('out.csv', 'w'); os.mkdir('d'); open('d/x', 'w'); open('/tmp/x', 'w'); open('.cache', 'w')": "d/x, out.csv are lost with the run",
		"import os, tempfile\nopen('x', 'w'); os.remove('x'); tempfile.NamedTemporaryFile(delete=False)":             "",
	} {
		r := completed(t, e, python(code))
		if notes := strings.Join(r.Notes, "\n"); want == "" && notes != "" || !strings.Contains(notes, want) {
			t.Errorf("%s: notes %q", code, notes)
		}
	}
}
