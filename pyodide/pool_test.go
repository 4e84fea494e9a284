//go:build !windows

package pyodide

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"rillbox/cache/egress"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
)

func TestWarmWorkers(t *testing.T) {
	e := newEngine(t, func(o *Options) { o.Warm = 1 }, permit(t, "--allow-env=A"))
	if n := len(e.pool.Idle()); n != 0 {
		t.Fatalf("%d workers before the first run", n)
	}
	mark := python("import builtins\nseen = hasattr(builtins, 'mark')\nbuiltins.mark = 1\nseen")
	completed(t, e, mark)
	first := e.pool.Idle()
	if len(first) != 1 {
		t.Fatalf("%d workers after the first run, want 1", len(first))
	}
	if r := completed(t, e, mark); string(r.Value) != "false" {
		t.Errorf("a warm worker has seen another run")
	}
	select {
	case <-first[0].Ended(): // when its memory is free, which the run did not wait for
	case <-time.After(30 * time.Second):
		t.Error("the warm worker was not used, or outlived its run")
	}
	second := e.pool.Idle()
	if len(second) != 1 || second[0] == first[0] {
		t.Fatalf("the worker was not replaced by another one")
	}

	t.Run("what it was not made for takes none", func(t *testing.T) {
		for _, p := range []job.Program{
			{Permissions: []string{}},
			{Workspace: t.TempDir()},
			{Workspace: t.TempDir(), ReadOnly: true},
		} {
			p.Language, p.Code = mark.Language, mark.Code
			completed(t, e, p)
			if now := e.pool.Idle(); len(now) != 1 || now[0] != second[0] {
				t.Errorf("a run with permissions %q and workspace %q took the warm worker", p.Permissions, p.Workspace)
			}
		}
	})
	t.Run("the same permissions in other words take it", func(t *testing.T) {
		p := mark
		p.Permissions = []string{"--allow-env=A"}
		completed(t, e, p)
		third := e.pool.Idle()
		if len(third) != 1 || third[0] == second[0] {
			t.Error("the run did not take the warm worker")
		}
		second = third
	})
	t.Run("a dead one is passed over", func(t *testing.T) {
		second[0].Kill(job.Crashed, "a test")
		<-second[0].Ended()
		if r := completed(t, e, mark); string(r.Value) != "false" {
			t.Errorf("value %s", r.Value)
		}
		if now := e.pool.Idle(); len(now) != 1 || now[0] == second[0] {
			t.Error("the dead worker was not replaced")
		}
	})
	last := e.pool.Idle()
	e.Close()
	select {
	case <-last[0].Ended():
	default:
		t.Error("the idle worker outlived Close")
	}
	if _, err := e.Run(t.Context(), mark, job.Streams{Emit: func(job.Event) {}}); err == nil {
		t.Error("a closed engine ran a program")
	}
}

// stateOfPython tells of all that a program could find that another left.
const stateOfPython = `
import asyncio, atexit, builtins, collections, contextvars, gc, json, linecache, os, pickle, pyodide_js, re, sys, threading, warnings
tasks = [task.get_name() for task in asyncio.all_tasks(asyncio.get_event_loop())]
async def task(): return asyncio.current_task().get_name()
files = [(path, sorted(d), [(f, os.path.getsize(os.path.join(path, f))) for f in sorted(fs)])
         for root in ("/home", "/tmp", "/rillbox") for path, d, fs in os.walk(root)]
files += [sorted(os.listdir("/")), sorted(os.listdir("/proc/self/fd")), os.stat("main.py").st_ino]
state = {
    "modules": sorted(sys.modules), "builtins": sorted(vars(builtins)), "main": sorted(globals()),
    "environment": dict(os.environ), "path": [*sys.path], "files": files, "tasks": [tasks, await task()],
    "lines": sorted(linecache.cache), "threads": threading.active_count(), "atexit": atexit._ncallbacks(),
    "filters": str(warnings.filters), "hooks": [str(sys.excepthook), str(sys.displayhook), len(sys.path_importer_cache)],
    "thread": [str(threading.main_thread()), str(threading._counter)], "patterns": len(re._cache),
    "context": [str(variable) for variable in contextvars.copy_context()], "recursion": sys.getrecursionlimit(),
    "garbage": len(gc.garbage), "javascript": sorted(js_name for js_name in dir(__import__("js"))),
    "names": {name: sorted(vars(module)) for name, module in sys.modules.items() if hasattr(module, "__dict__")},
}
gc.collect()
state["objects"] = sorted(collections.Counter(f"{type(o).__module__}.{type(o).__qualname__}" for o in gc.get_objects()).items())
print(json.dumps(state))`

// As many programs at once as there may be warm workers are all served by one, once
// there has been such demand.
func TestSeveralProgramsAtOnceAreServedWarm(t *testing.T) {
	const many = 4
	e := newEngine(t, func(o *Options) { o.Warm = many })
	atOnce := func() {
		var running, ended sync.WaitGroup
		running.Add(many)
		for range many {
			once := sync.OnceFunc(running.Done)
			ended.Go(func() {
				defer once()
				r, err := e.Run(t.Context(), python("print('on')"), job.Streams{Emit: func(ev job.Event) {
					if ev.Kind == job.Stdout {
						once()
						running.Wait()
					}
				}})

				if err != nil || r.Status != job.Completed {
					t.Errorf("%s %+v, %v", r.Status, r.Error, err)
				}
			})
		}
		ended.Wait()
	}
	for tries := 0; len(e.pool.Idle()) < many; tries++ {
		if tries == 10 {
			t.Fatalf("%d workers wait, want %d", len(e.pool.Idle()), many)
		}
		atOnce()
	}
	warm := e.pool.Idle()
	atOnce()
	for _, w := range warm {
		select {
		case <-w.Ended():
		case <-time.After(30 * time.Second):
			t.Error("a warm worker was not used")
		}
	}
}

func TestWarmingUpLeavesNoTrace(t *testing.T) {
	e := newEngine(t, func(o *Options) { o.Warm = 1 })
	look := func(e *Engine) map[string]any {
		var state map[string]any
		if err := json.Unmarshal([]byte(completed(t, e, python(stateOfPython)).Stdout.String()), &state); err != nil {
			t.Fatal(err)
		}
		return state
	}
	want := look(newEngine(t))
	e.pool.Warm()
	warm := e.pool.Idle()
	have := look(e)
	if len(warm) != 1 || len(e.pool.Idle()) != 1 || e.pool.Idle()[0] == warm[0] {
		t.Fatal("the program did not run in the warm worker")
	}
	for name := range want {
		if !reflect.DeepEqual(have[name], want[name]) {
			t.Errorf("%s: warm %v\ncold %v", name, have[name], want[name])
		}
	}
}

func TestNoWarmWorkersUnlessAskedFor(t *testing.T) {
	e := newEngine(t)
	completed(t, e, python("1"))
	if n := len(e.pool.Idle()); n != 0 {
		t.Errorf("%d workers", n)
	}
}

// BenchmarkHello measures a whole run of a hello program: what a bare Deno
// process takes (the floor), what loading Pyodide from its files takes, and
// runs in a fresh worker and in a warm one.
func BenchmarkHello(b *testing.B) {
	e := newEngine(b, func(o *Options) { o.Warm, o.Log = 1, nil })
	rt, err := e.ready(b.Context(), func(job.Event) {})
	if err != nil {
		b.Fatal(err)
	}
	script := func(b *testing.B, text string) {
		from := *rt
		from.worker = b.TempDir()
		if err := os.WriteFile(filepath.Join(from.worker, "script.mjs"), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			child, err := e.startChild(&from, childOptions{module: "script.mjs", files: rt.python()})
			if err != nil {
				b.Fatal(err)
			}
			_ = child.Stdin().Close()
			child.Attach(b.Context(), func(job.Event) {})
			if exit := child.Wait(); exit.Status != job.Completed {
				b.Fatalf("%s: %s", exit.Status, exit.Stderr)
			}
		}
	}
	b.Run("floor", func(b *testing.B) { script(b, "console.log('hello')") })
	b.Run("files", func(b *testing.B) {
		script(b, `const { loadPyodide } = await import("file://`+rt.pyodide.Dir+`/pyodide.mjs");
const py = await loadPyodide({ indexURL: "`+rt.pyodide.Dir+`/" }); py.runPython("print('hello')");`)
	})
	hello := python("print('hello')")
	b.Run("snapshot", func(b *testing.B) {
		cold := newEngine(b, func(o *Options) { o.Log = nil })
		for b.Loop() {
			completed(b, cold, hello)
		}
	})
	b.Run("warm", func(b *testing.B) {
		completed(b, e, hello)
		for b.Loop() {
			b.StopTimer()
			if len(e.pool.Idle()) == 0 {
				b.Fatal("no warm worker")
			}
			b.StartTimer()
			completed(b, e, hello)
		}
	})
}

// TestAWorkerIsTakenForItsPurposeOnly: whatever a child can be started with makes it
// another one, save who waits for it.
func TestAWorkerIsTakenForItsPurposeOnly(t *testing.T) {
	permissions, err := permission.ParseShell("--allow-env=A")
	if err != nil {
		t.Fatal(err)
	}
	other := childOptions{"other.js", []file{{"/a", "/b"}}, []string{"a"}, "/loan", permissions, egress.Policy{Deny: []string{"a"}}, "/w", true, true, true, true}
	fields := reflect.TypeFor[childOptions]()
	for i := range fields.NumField() {
		var o childOptions
		field := func(o *childOptions) reflect.Value {
			v := reflect.ValueOf(o).Elem().Field(i)
			return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
		}
		if field(&other).IsZero() {
			t.Fatalf("the test has no other %s", fields.Field(i).Name)
		}
		field(&o).Set(field(&other))
		same := o.purpose() == (childOptions{}).purpose()
		if want := fields.Field(i).Name == "background" || fields.Field(i).Name == "ahead"; same != want {
			t.Errorf("with another %s the purpose is the same: %v", fields.Field(i).Name, same)
		}
	}
}

// BenchmarkFiles measures a program of one file and the same in ten, in warm workers.
func BenchmarkFiles(b *testing.B) {
	e := newEngine(b, func(o *Options) { o.Warm, o.Log = 1, nil })
	one, ten, use, files := "", "", "print(0", map[string][]byte{}
	for i := range 9 {
		function := fmt.Sprintf("def f%d(x):\n    p = {'a': x, 'b': '%[1]d'}\n    return p['a'] + 1\n", i)
		one += function
		ten += fmt.Sprintf("from m%d import f%[1]d\n", i)
		use += fmt.Sprintf(" + f%d(%[1]d)", i)
		files[fmt.Sprintf("m%d.py", i)] = []byte(function)
	}
	for _, p := range []job.Program{{Code: one + use + ")"}, {Code: ten + use + ")", Files: files}} {
		p.Language, p.Name = job.Python, "main.py"
		completed(b, e, p)
		b.Run(fmt.Sprintf("%d files", 1+len(p.Files)), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				if len(e.pool.Idle()) == 0 {
					b.Fatal("no warm worker")
				}
				b.StartTimer()
				if r := completed(b, e, p); r.Stdout.String() != "45\n" {
					b.Fatalf("%+v", r)
				}
			}
		})
	}
}
