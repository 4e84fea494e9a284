//go:build !windows

package wasm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rillbox/supervisor/job"
)

// compiles counts how often a run tells that it compiles.
func compiles(t *testing.T, e *Engine, p job.Program) (n int, r job.Result) {
	t.Helper()
	r = run(t, e, p, job.Streams{Emit: func(event job.Event) {
		if event.Kind == job.Stage && event.Text == "compiling" {
			n++
		}
	}})
	return n, r
}

// A program compiles once for as long as it and what it includes stay the same.
func TestWhatWasCompiledIsKept(t *testing.T) {
	e := newEngine(t, []job.Language{"c"})
	dir := newDir(t)
	header := func(value string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "x.h"), []byte("#define X "+value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unique := fmt.Sprintf("/* %d */\n", time.Now().UnixNano()) // the cache is of all tests, and stays
	p := job.Program{Language: "c", Workspace: dir, Timeout: time.Minute, Code: unique +
		"#include <stdio.h>\n#include \"x.h\"\n#warning mind this\nint main(void) { puts(X); return 0; }\n"}
	for _, row := range []struct {
		header, stdout string
		compiled       int
	}{{`"one"`, "one\n", 1}, {`"one"`, "one\n", 0}, {`"two"`, "two\n", 1}, {`"one"`, "one\n", 0}} {
		header(row.header)
		n, r := compiles(t, e, p)
		if n != row.compiled || r.Status != job.Completed || r.Stdout.String() != row.stdout || strings.Count(r.Stderr.String(), "mind this") == 0 {
			t.Errorf("X is %s: compiled %d times, want %d: %s", row.header, n, row.compiled, shown(r))
		}
	}
	p.Code = unique + "int main(void) { return missing; }"
	for range 2 {
		if n, r := compiles(t, e, p); n != 1 || r.Status != job.Failed || r.Error == nil || r.Error.Name != "CompileError" || !strings.Contains(r.Error.Message, "missing") {
			t.Errorf("what does not compile: compiled %d times, %s", n, shown(r))
		}
	}
	p.Code = unique + "#include <stdio.h>\nint main(void) { puts(\"both\"); return 0; }"
	var total atomic.Int64
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			n, r := compiles(t, e, p)
			total.Add(int64(n))
			if r.Stdout.String() != "both\n" {
				t.Error(shown(r))
			}
		})
	}
	if both.Wait(); total.Load() != 1 {
		t.Errorf("two at once compiled %d times", total.Load())
	}
}

// What becomes JavaScript runs as that, and its errors have its own lines.
func TestTranslated(t *testing.T) {
	t.Parallel()
	e := newEngine(t, []job.Language{"coffeescript"})
	r := run(t, e, job.Program{Language: "coffeescript", Name: "main.coffee", Code: "f = ->\n  throw new TypeError 'bad'\n\nf()\n"})
	if r.Status != job.Failed || r.Error == nil || r.Error.Name != "TypeError" || !strings.Contains(r.Error.Traceback+r.Stderr.String(), "main.coffee:2") {
		t.Error(shown(r))
	}
	if r := run(t, e, job.Program{Language: "coffeescript", Code: "a = (1"}); r.Status != job.Failed || r.Error == nil || len(r.Error.Message) == 0 {
		t.Error(shown(r))
	}
	dir := newDir(t)
	if err := os.WriteFile(filepath.Join(dir, "above.coffee"), []byte("export x = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := job.Program{Language: "coffeescript", Workspace: dir, Path: "sub/main.coffee", Code: "import { x } from '../above.coffee'\nconsole.log x"}
	if _, err := e.Run(t.Context(), p, job.Streams{Emit: ignore}); err != nil && !refused(err, "can't be imported") {
		t.Error(err)
	}
}

func TestTheFirstErrorOfACompiler(t *testing.T) {
	for words, want := range map[string]string{
		"a.c:1:1: warning: x\na.c:2:1: error: y\n":   "a.c:2:1: error: y",
		"a.c:1:1: warning: z\n./main.go:4:2: no x\n": "./main.go:4:2: no x",
		"clang: error: no input\n":                   "clang: error: no input",
		"":                                           errCompile.Error(),
	} {
		if got := firstError(words); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

// A compiler gets the sources of a workspace and nothing else of it, not through links either.
func TestSources(t *testing.T) {
	dir, outside := newDir(t), t.TempDir()
	for name, content := range map[string]string{"a.h": "a", "sub/b.c": "b", "data.csv": "1", ".git/c.c": "c"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "secret.h"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link.h": filepath.Join(outside, "secret.h"), "folder": outside} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := withSources(map[string][]byte{"/workspace/a.h": []byte("the program's own")}, c, dir)
	if err != nil || len(files) != 2 || string(files["/workspace/a.h"]) != "the program's own" || string(files["/workspace/sub/b.c"]) != "b" {
		t.Errorf("%q, %v", files, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "large.inc"), make([]byte, maxSources), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := withSources(nil, c, dir); !refused(err, "more than 16 MiB") {
		t.Errorf("much: %v", err)
	}
}
