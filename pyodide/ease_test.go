//go:build !windows

package pyodide

import (
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// TestThreadsRunInTurns: what only computes goes on; what would wait for ever says so.
func TestThreadsRunInTurns(t *testing.T) {
	s := open(t, newEngine(t), job.SessionOptions{})
	const setup = "import asyncio, queue, threading, time\nfrom concurrent.futures import *\nfrom threading import *\nseen = []\n"
	for _, row := range []struct{ name, code, want string }{
		{"a thread", "t = Thread(target=lambda: seen.append(current_thread() is t and t.is_alive()))\nt.start(); t.join()\n[seen, t.is_alive(), current_thread() is main_thread(), active_count()]", `[[true], false, true, 1]`},
		{"its error is its own", "t = Thread(target=lambda: 1/0); t.start(); t.join()\n'on'", `"on"`},
		{"its exit too", "import sys\nt = Thread(target=sys.exit); t.start()\n'on'", `"on"`},
		{"a thread of a thread", "t = Thread(target=lambda: Thread(target=lambda: seen.append(1)).start()); t.start()\nseen", `[1]`},
		{"a pool", "with ThreadPoolExecutor(4) as pool: a = [*pool.map(pow, [1, 2, 3], [2, 2, 2])]\na", `[1, 4, 9]`},
		{"a pool's results", "pool = ThreadPoolExecutor(initializer=seen.append, initargs=('begun',))\nf = [pool.submit(abs, n) for n in (-1, -2)]\n[f[0].done(), sorted(r.result(1) for r in as_completed(f)), len(wait(f).done), seen]", `[true, [1, 2], 2, ["begun"]]`},
		{"a pool's error", "f = ThreadPoolExecutor().submit(lambda: 1/0)\nrepr(f.exception())", `"ZeroDivisionError('division by zero')"`},
		{"a pool in a pool", "with ThreadPoolExecutor() as pool: a = pool.submit(lambda: pool.submit(lambda: 7).result()).result()\na", `7`},
		{"a consumer after its producer", "q = queue.Queue()\nfor n in 1, 2, None: q.put(n)\nt = Thread(target=lambda: [seen.append(n) or q.task_done() for n in iter(q.get, None)]); t.start()\nseen", `[1, 2]`},
		{"an event that is set", "e = Event(); Thread(target=e.set).start()\n[e.wait(), e.is_set()]", `[true, true]`},
		{"a wait with a time", "[Event().wait(0.01), Lock().acquire(timeout=1), queue.SimpleQueue().empty()]", `[false, true, true]`},
		{"a timer", "timer = Timer(0.01, lambda: seen.append(1)); timer.start(); time.sleep(0.05)\nother = Timer(1000, print); other.start(); other.cancel()\nseen", `[1]`},
		{"to_thread", "await asyncio.to_thread(lambda: 5)", `5`},
		{"a coroutine's result", "async def five(): return 5\nasync def main(): return asyncio.run_coroutine_threadsafe(five(), asyncio.get_running_loop()).result()\nawait main()", `5`},
		{"a lock that a task holds while another sleeps", "l = Lock()\nasync def a():\n  with l: time.sleep(0.02)\n  seen.append('a')\nasync def b():\n  with l: seen.append('b')\nawait asyncio.gather(a(), b())\nseen", `["a", "b"]`},
	} {
		t.Run(row.name, func(t *testing.T) { gives(t, s, setup+row.code, row.want) })
	}
	for name, code := range map[string]string{
		"a lock":                     "l = Lock(); l.acquire(); l.acquire()",
		"a lock of another":          "l = Lock(); l.acquire(); Thread(target=l.acquire).start()",
		"a queue":                    "queue.Queue().get()",
		"a simple queue":             "queue.SimpleQueue().get()",
		"an event":                   "Event().wait()",
		"an event with a time":       "Thread(target=Event().wait, args=(1000,)).start()",
		"a consumer":                 "q = queue.Queue(); Thread(target=q.get, daemon=True).start()",
		"a barrier":                  "Thread(target=Barrier(2).wait).start()",
		"a semaphore":                "Semaphore(0).acquire()",
		"a future":                   "Future().result()",
		"one that waits itself":      "def f(): Thread(target=t.join).start()\nt = Thread(target=f); t.start()",
		"itself":                     "t = Thread(target=lambda: t.join()); t.start(); Lock().__enter__(); Event().wait()",
		"a result of a pool's":       "q = queue.Queue(); ThreadPoolExecutor().submit(q.get).result()",
		"a thread that is no object": "import _thread; l = Lock(); l.acquire(); _thread.start_new_thread(l.acquire, ())",
	} {
		r := in(t, s, python(setup+code))
		if r.Status != job.Failed || r.State != "" || r.Error == nil || r.Error.Name != "threading.WouldWait" || !strings.Contains(r.Error.Message, "threads run in turns here") {
			t.Errorf("%s: %s %s, %+v", name, r.Status, r.State, r.Error)
		}
	}
	r := in(t, s, python(setup+"for _ in range(3): Thread(target=print).start()"))
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "Threads run in turns here") {
		t.Errorf("notes %q", r.Notes)
	}
	if r := in(t, s, python(setup+"Lock().acquire()")); len(r.Notes) != 0 {
		t.Errorf("notes %q without a thread", r.Notes)
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
