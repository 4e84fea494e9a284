//go:build !windows

package deno

import (
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/deno/modules"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
)

func warmEngine(t testing.TB, warm int) *Engine {
	t.Helper()
	permissions, err := permission.ParseShell("--allow-env=A")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{Cache: cachetest.Open(t), Permissions: permissions, Limits: job.DefaultLimits(), Warm: warm})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	cachetest.NeedNetwork(t, e.Prepare(t.Context(), func(job.Event) {}))
	return e
}

func completed(t testing.TB, e *Engine, p job.Program) job.Result {
	t.Helper()
	if p.Language == "" {
		p.Language = job.JavaScript
	}
	p.Timeout = e.options.Limits.Timeout
	r, err := e.Run(t.Context(), p, job.Streams{Emit: func(job.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != job.Completed {
		t.Fatalf("%s: %s %+v %s", p.Code, r.Status, r.Error, r.Stderr)
	}
	return r
}

func isOver(w *worker) bool {
	select {
	case <-w.Ended():
		return true
	default:
		return false
	}
}

// awaitRemoved waits for what is done behind a run that has ended.
func awaitRemoved(t *testing.T, dir string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s was left", dir)
		}
	}
}

func TestWarmWorkers(t *testing.T) {
	e := warmEngine(t, 1)
	mark := job.Program{Code: `const seen = globalThis.mark; globalThis.mark = 1; localStorage.setItem("mark", 1);
export default [seen ?? null, import.meta.main, Deno.mainModule === import.meta.url, Deno.args.length]`}
	for range 3 {
		ahead := e.pool.Idle()
		if len(ahead) != 1 {
			t.Fatalf("%d workers, want 1", len(ahead))
		}
		if r := completed(t, e, mark); string(r.Value) != "[null,true,true,0]" {
			t.Errorf("have %s", r.Value)
		}
		if !isOver(ahead[0]) {
			t.Error("the warm worker was not used, or outlived its run")
		}
		awaitRemoved(t, ahead[0].dir)
	}
	for _, p := range []job.Program{
		{Language: job.TypeScript, Code: `const x: number = 1; export default x`},
		{Name: "main.cjs", Code: `module.exports = 1`},
		{Code: `import { join } from "path"; console.log(process.argv.length); export default join.length * 0 + 1`},
		{Code: `export default 1`, Permissions: []string{"--allow-env=A"}},
		{Code: `export default Number(import.meta.filename.endsWith("/report.mjs"))`, Name: "report.mjs"},
		{Code: `import { one } from "./lib/one.ts"; export default one`, Files: map[string][]byte{"lib/one.ts": []byte("export const one: number = 1")}},
	} {
		ahead := e.pool.Idle()
		if r := completed(t, e, p); string(r.Value) != "1" || !isOver(ahead[0]) {
			t.Errorf("%q: %s, in the warm worker: %v", p.Code, r.Value, isOver(ahead[0]))
		}
	}
	for _, p := range []job.Program{
		{Code: `export default 1`, Permissions: []string{}},
		{Code: `export default Deno.args.length`, Args: []string{"a"}},
	} {
		ahead := e.pool.Idle()
		if r := completed(t, e, p); string(r.Value) != "1" || isOver(ahead[0]) {
			t.Errorf("%q: %s, in the warm worker: %v", p.Code, r.Value, isOver(ahead[0]))
		}
	}
	dead := e.pool.Idle()[0]
	dead.Kill(job.Crashed, "a test")
	<-dead.Ended()
	if r := completed(t, e, mark); string(r.Value) != "[null,true,true,0]" {
		t.Errorf("after a dead worker: %s", r.Value)
	}
	last := e.pool.Idle()[0]
	e.Close()
	if !isOver(last) {
		t.Error("the idle worker outlived Close")
	}
}

// TestAWorkerIsTakenForItsPurposeOnly: whatever a child can be started with makes it
// another one, save what only saves time.
func TestAWorkerIsTakenForItsPurposeOnly(t *testing.T) {
	permissions, err := permission.ParseShell("--allow-env=A")
	if err != nil {
		t.Fatal(err)
	}
	install := modules.Plan{Lock: []byte("{}")}
	other := launch{"other.js", permissions, "/w", true, map[string]string{"a": "b"}, modules.Names{Imports: map[string]string{"a": "b"}}, true, install, "/compiled", "/keep", []string{"other.js"}, "main.js", "https://example.com/main.js", []string{"other.js"}, []string{"a"}, true, "main.ts", map[string][]byte{"main.ts": nil}, map[string]string{"jsx": "react-jsx"}}
	fields := reflect.TypeFor[launch]()
	for i := range fields.NumField() {
		l := launch{}
		field := func(l *launch) reflect.Value {
			v := reflect.ValueOf(l).Elem().Field(i)
			return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
		}
		if field(&other).IsZero() {
			t.Fatalf("the test has no other %s", fields.Field(i).Name)
		}
		field(&l).Set(field(&other))
		same := l.purpose() == (launch{}).purpose()
		if want := fields.Field(i).Name == "codeCache"; same != want {
			t.Errorf("with another %s the purpose is the same: %v", fields.Field(i).Name, same)
		}
	}
}

// TestAWarmWorkerHasNoOthersWorkspace: under all permissions too, a program that has
// a workspace is in it.
func TestAWarmWorkerHasNoOthersWorkspace(t *testing.T) {
	permissions, err := permission.ParseShell("-A")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{Cache: cachetest.Open(t), Permissions: permissions, Limits: job.DefaultLimits(), Warm: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	cachetest.NeedNetwork(t, e.Prepare(t.Context(), func(job.Event) {}))
	for range 3 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "in.txt"), []byte(dir), 0o600); err != nil {
			t.Fatal(err)
		}
		ahead := e.pool.Idle()
		r := completed(t, e, job.Program{Code: `export default Deno.readTextFileSync("in.txt")`, Workspace: dir})
		if string(r.Value) != strconv.Quote(dir) || len(ahead) != 1 || isOver(ahead[0]) {
			t.Errorf("read %s, want %q; warm workers %d", r.Value, dir, len(ahead))
		}
	}
}

func TestNoWarmWorkersUnlessAskedFor(t *testing.T) {
	e := warmEngine(t, 0)
	completed(t, e, job.Program{Code: `require("fs")`})
	if workers, scanners := len(e.pool.Idle()), len(e.scanners.Pool.Idle()); workers+scanners != 0 {
		t.Errorf("%d workers and %d scanners", workers, scanners)
	}
}

// BenchmarkWorker measures a whole run of a hello program, in a fresh worker and
// in a warm one.
func BenchmarkWorker(b *testing.B) {
	hello := job.Program{Code: `console.log("hello")`}
	b.Run("fresh", func(b *testing.B) {
		e := warmEngine(b, 0)
		for b.Loop() {
			completed(b, e, hello)
		}
	})
	b.Run("warm", func(b *testing.B) {
		e := warmEngine(b, 1)
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
