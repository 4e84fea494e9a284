//go:build !windows

package pyodide

import (
	"os"
	"path/filepath"
	"testing"

	"rillbox/deno"
	"rillbox/supervisor"
)

// idle waits until the pool has done what it has to, and gives its idle workers.
func idle(e *Engine) []*worker {
	e.pool.jobs.Wait()
	e.pool.mu.Lock()
	defer e.pool.mu.Unlock()
	return append([]*worker(nil), e.pool.idle...)
}

func TestWarmWorkers(t *testing.T) {
	e := newEngine(t, func(o *Options) { o.Warm = 1 })
	if n := len(idle(e)); n != 0 {
		t.Fatalf("%d workers before the first run", n)
	}
	mark := python("import builtins\nseen = hasattr(builtins, 'mark')\nbuiltins.mark = 1\nseen")
	completed(t, e, mark)
	first := idle(e)
	if len(first) != 1 {
		t.Fatalf("%d workers after the first run, want 1", len(first))
	}
	if r := completed(t, e, mark); string(r.Value) != "false" {
		t.Errorf("a warm worker has seen another run")
	}
	select {
	case <-first[0].child.Ended():
	default:
		t.Error("the warm worker was not used, or outlived its run")
	}
	second := idle(e)
	if len(second) != 1 || second[0] == first[0] {
		t.Fatalf("the worker was not replaced by another one")
	}

	t.Run("own permissions take none", func(t *testing.T) {
		p := mark
		p.Permissions = []string{}
		completed(t, e, p)
		if now := idle(e); len(now) != 1 || now[0] != second[0] {
			t.Error("the run took the warm worker")
		}
	})
	t.Run("a dead one is passed over", func(t *testing.T) {
		second[0].child.Kill(supervisor.Crashed, "a test")
		<-second[0].child.Ended()
		if r := completed(t, e, mark); string(r.Value) != "false" {
			t.Errorf("value %s", r.Value)
		}
		if now := idle(e); len(now) != 1 || now[0] == second[0] {
			t.Error("the dead worker was not replaced")
		}
	})
	last := idle(e)
	e.Close()
	select {
	case <-last[0].child.Ended():
	default:
		t.Error("the idle worker outlived Close")
	}
	if _, err := e.Run(t.Context(), mark, func(supervisor.Event) {}); err == nil {
		t.Error("a closed engine ran a program")
	}
}

func TestNoWarmWorkersUnlessAskedFor(t *testing.T) {
	e := newEngine(t)
	completed(t, e, python("1"))
	if n := len(idle(e)); n != 0 {
		t.Errorf("%d workers", n)
	}
}

// BenchmarkHello measures a whole run of a hello program: what a bare Deno
// process takes (the floor), what loading Pyodide from its files takes, and
// runs in a fresh worker and in a warm one.
func BenchmarkHello(b *testing.B) {
	e := newEngine(b, func(o *Options) { o.Warm, o.Log = 1, nil })
	rt, err := e.ready(b.Context(), func(supervisor.Event) {})
	if err != nil {
		b.Fatal(err)
	}
	script := func(b *testing.B, text string) {
		file := filepath.Join(b.TempDir(), "script.mjs")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			child, err := e.startChild(rt, deno.Permissions{}, needs{read: []string{rt.pyodide.Dir, file}}, file)
			if err != nil {
				b.Fatal(err)
			}
			_ = child.Stdin().Close()
			child.Attach(b.Context(), func(supervisor.Event) {})
			if exit := child.Wait(); exit.Status != supervisor.Completed {
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
		cold := hello
		cold.Permissions = []string{} // never a warm worker
		for b.Loop() {
			completed(b, e, cold)
		}
	})
	b.Run("warm", func(b *testing.B) {
		completed(b, e, hello)
		for b.Loop() {
			b.StopTimer()
			if len(idle(e)) == 0 {
				b.Fatal("no warm worker")
			}
			b.StartTimer()
			completed(b, e, hello)
		}
	})
}
