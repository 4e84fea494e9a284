//go:build !windows

package pyodide

import (
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

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
