//go:build !windows

package wasm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/supervisor/job"
)

// runCell runs one cell with a standard input.
func runCell(t *testing.T, s job.Session, p job.Program, stdin string) job.Result {
	t.Helper()
	r, err := s.Run(t.Context(), p, job.Streams{Stdin: strings.NewReader(stdin), Emit: ignore})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// stateful are, of each language that keeps state, cells that leave something, read it
// again, fail, and never end. reads, where there is such a thing, reads a line; exits ends
// with the status 3.
var stateful = map[job.Language]struct{ leaves, finds, fails, endless, reads, exits string }{
	"bash":         {"x=41", "echo $((x + 1))", "no_such_command", "while :; do :; done", "read -r l; echo $l", "exit 3"},
	"ruby":         {"x = 41", "puts x + 1", "raise 'bad'", "loop {}", "puts gets", "exit 3"},
	"php":          {"$x = 41;", "echo $x + 1;", "throw new Exception('bad');", "while (true);", "echo fgets(STDIN);", "exit(3);"},
	"perl":         {"$x = 41;", "print $x + 1;", "die 'bad';", "1 while 1;", "print scalar <STDIN>;", "exit 3;"},
	"lua":          {"x = 41", "print(x + 1)", "error('bad')", "while true do end", "print(io.read())", "os.exit(3)"},
	"r":            {"x <- 41", "cat(x + 1)", "stop('bad')", "repeat {}", "cat(readLines('stdin', 1))", "quit(status = 3)"},
	"sql":          {"CREATE TABLE t(x); INSERT INTO t VALUES (41);", "SELECT x + 1 FROM t;", "SELECT * FROM none;", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c;", "", ""},
	"duckdb":       {"CREATE TABLE t(x INTEGER); INSERT INTO t VALUES (41);", "SELECT x + 1 AS n FROM t;", "SELECT * FROM none;", "", "", ""},
	"postgresql":   {"CREATE TABLE t(x integer); INSERT INTO t VALUES (41);", "SELECT x + 1 AS n FROM t;", "SELECT * FROM none;", "", "", ""},
	"prolog":       {"x(41).", "?- x(X), Y is X + 1, write(Y), nl.", "?- X is foo + 1.", "?- repeat, fail.", "?- read(X), write(X), nl.", "?- halt(3)."},
	"scheme":       {"(define x 41)", "(display (+ x 1))", "(car 1)", "(let loop () (loop))", "(display (read-line))", "(exit 3)"},
	"clojure":      {"(def x 41)", "(println (+ x 1))", "(throw (ex-info \"bad\" {}))", "(loop [] (recur))", "", "(js/process.exit 3)"},
	"coffeescript": {"x = 41", "console.log x + 1", "throw new Error 'bad'", "loop 1", "", ""},
	"quickjs":      {"var x = 41", "print(x + 1)", "throw new Error('bad')", "for (;;);", "", "import('std').then((std) => std.exit(3))"},
}

// slowSessions are of the languages whose start takes a second or more.
var slowSessions = []job.Language{"duckdb", "postgresql", "r", "clojure"}

// A session of any language that keeps state finds in a cell what the cells before it
// left, after errors as well, and loses it when a cell has to be ended.
func TestStatefulSessions(t *testing.T) {
	for _, l := range rows {
		cells, tested := stateful[l.Name]
		if tested != l.keepsState {
			t.Errorf("%s keeps its state: %v, and is tested: %v", l.Name, l.keepsState, tested)
		}
		if !tested || testing.Short() && slices.Contains(slowSessions, l.Name) {
			continue
		}
		t.Run(string(l.Name), func(t *testing.T) {
			t.Parallel()
			s := openTestSession(t, l.Name)
			cell := func(code, stdin string) job.Result {
				t.Helper()
				return runCell(t, s, job.Program{Language: l.Name, Code: code, Timeout: time.Minute}, stdin)
			}
			finds := func(after string) {
				t.Helper()
				if r := cell(cells.finds, ""); r.Status != job.Completed || !strings.Contains(r.Stdout.String(), "42") || r.State != "" {
					t.Errorf("after %s: %s", after, shown(r))
				}
			}
			if r := cell(cells.leaves, ""); r.Status != job.Completed {
				t.Fatal(shown(r))
			}
			finds("a cell")
			if r := cell(cells.fails, ""); r.Status != job.Failed || r.ExitCode == 0 || r.Error == nil && len(r.Stderr.Head) == 0 || r.State == job.StateLost {
				t.Errorf("a cell that fails: %s", shown(r))
			}
			finds("an error")
			if cells.reads != "" {
				if r := cell(cells.reads, "piece.\nrest\n"); r.Status != job.Completed || !strings.HasPrefix(r.Stdout.String(), "piece") {
					t.Errorf("a cell that reads: %s", shown(r))
				}
			}
			if cells.exits != "" {
				r := cell(cells.exits, "")
				if r.Status != job.Failed || r.ExitCode != 3 {
					t.Errorf("a cell that ends with 3: %s", shown(r))
				}
				if r.State == job.StateLost { // it has ended the process
					return
				}
			}
			if cells.endless == "" {
				return
			}
			r := runCell(t, s, job.Program{Language: l.Name, Code: cells.endless, Timeout: 300 * time.Millisecond}, "")
			if r.Status != job.TimedOut {
				t.Errorf("a cell that never ends: %s", shown(r))
			}
			switch r.State {
			case job.StateKept: // it was interrupted
				if !l.translates {
					t.Errorf("a runtime that can't be interrupted keeps state: %s", shown(r))
				}
			case job.StateLost:
				select {
				case <-s.Ended():
				case <-time.After(20 * time.Second):
					t.Error("the state is lost, and the process goes on")
				}
				if _, err := s.Run(t.Context(), job.Program{Language: l.Name, Code: cells.finds, Timeout: time.Minute}, job.Streams{Emit: ignore}); err == nil {
					t.Error("a session that has ended ran a cell")
				}
			default:
				t.Errorf("what became of the state is not told: %s", shown(r))
			}
		})
	}
}

// A session of a language that keeps no variables keeps files, and says so once.
func TestSessionsOfFiles(t *testing.T) {
	e := newEngine(t, []job.Language{"c"})
	dir := newDir(t)
	s, err := e.OpenSession(t.Context(), job.SessionOptions{Language: "c", Workspace: dir}, ignore)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	cell := func(code string) job.Result {
		t.Helper()
		r := runCell(t, s, job.Program{Language: "c", Code: code, Timeout: time.Minute}, "")
		for _, note := range r.Notes {
			if strings.Contains(note, "no variables") {
				told++
			}
		}
		return r
	}
	if r := cell("#include <stdio.h>\nint main(void) { FILE *f = fopen(\"kept.txt\", \"w\"); fputs(\"kept\", f); return 0; }"); r.Status != job.Completed || told != 1 {
		t.Errorf("told %d times: %s", told, shown(r))
	}
	if r := cell("int main(void) { return x; }"); r.Status != job.Failed || r.State == job.StateLost {
		t.Error(shown(r))
	}
	if r := cell("#include <stdio.h>\nint main(void) { char b[9] = {0}; fgets(b, 9, fopen(\"kept.txt\", \"r\")); puts(b); return 0; }"); r.Stdout.String() != "kept\n" || told != 1 {
		t.Errorf("told %d times: %s", told, shown(r))
	}
	if text, err := os.ReadFile(filepath.Join(dir, "kept.txt")); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
	r := runCell(t, s, job.Program{Language: "c", Code: "int main(void) { for (;;); }", Timeout: 300 * time.Millisecond}, "")
	if r.Status != job.TimedOut || r.State != job.StateKept {
		t.Errorf("%q: %s", r.State, shown(r))
	}
	select {
	case <-s.Ended():
		t.Error("the session ended with its cell")
	default:
	}
	s.Close()
	s.Close()
	<-s.Ended()
}
