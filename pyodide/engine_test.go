//go:build !windows

package pyodide

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/supervisor"
)

// newEngine makes an engine on the tests' shared cache, and skips the test when
// its runtimes can't be had.
func newEngine(t testing.TB, change ...func(*Options)) *Engine {
	t.Helper()
	o := Options{Cache: cachetest.Open(t), Log: cachetest.Logger(t)}
	for _, f := range change {
		f(&o)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	cachetest.NeedNetwork(t, e.Prepare(t.Context(), func(supervisor.Event) {}))
	return e
}

func permit(t testing.TB, words ...string) func(*Options) {
	t.Helper()
	p, err := deno.Parse(words)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.Permissions = p }
}

// events keeps a run's events.
type events struct {
	mu   sync.Mutex
	list []supervisor.Event
}

func (e *events) emit(event supervisor.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	event.Data = append([]byte(nil), event.Data...)
	e.list = append(e.list, event)
}

func (e *events) stages() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var text []string
	for _, event := range e.list {
		if event.Kind == supervisor.Stage {
			text = append(text, event.Text)
		}
	}
	return strings.Join(text, "\n")
}

func python(code string) supervisor.Program {
	return supervisor.Program{Language: supervisor.Python, Code: code}
}

func run1(t testing.TB, e *Engine, p supervisor.Program) supervisor.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	result, err := e.Run(ctx, p, func(supervisor.Event) {})
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return result
}

func completed(t testing.TB, e *Engine, p supervisor.Program) supervisor.Result {
	t.Helper()
	result := run1(t, e, p)
	if result.Status != supervisor.Completed {
		t.Fatalf("status %s, exit code %d, error %+v\nstdout: %s\nstderr: %s", result.Status, result.ExitCode, result.Error, result.Stdout, result.Stderr)
	}
	return result
}

func TestHello(t *testing.T) {
	e := newEngine(t)
	start := time.Now()
	r := completed(t, e, python("print('hello', end='')\n6 * 7"))
	t.Log(time.Since(start), r.Duration, r.CPU, r.PeakMemory)
	if r.Stdout.String() != "hello" || string(r.Value) != "42" {
		t.Errorf("stdout %q, value %s", r.Stdout, r.Value)
	}
}
