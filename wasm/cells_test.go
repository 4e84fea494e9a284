//go:build !windows

package wasm

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// A cell of a session, and what is to come of it.
type cell struct {
	code, stdin string
	echo        bool
	stdout      string
	exit        int
	error       string // in the error's name and message
}

// In a session the cells after one see what it left, after errors and exits as well.
func TestCells(t *testing.T) {
	for language, cells := range map[job.Language][]cell{
		"php": {
			{code: "$x = 41; function next_one($n) { return $n + 1; }"},
			{code: "echo next_one($x), ' ', PHP_SAPI, \"\\n\";", stdout: "42 cli\n"},
			{code: "$x", echo: true, stdout: "int(41)\n"},
			{code: "['a' => $x] // so", echo: true, stdout: "array(1) {\n  [\"a\"]=>\n  int(41)\n}\n"},
			{code: "throw new LogicException('bad');", exit: 255, error: "LogicException: bad"},
			{code: "if (", exit: 255, error: "ParseError: "},
			{code: "echo fgets(STDIN);", stdin: "a line\n", stdout: "a line\n"},
			{code: "exit(3);", exit: 3},
			{code: "file_put_contents('kept.txt', $x); echo file_get_contents('kept.txt');", stdout: "41"},
			{code: "ob_start(); echo 'buffered';", stdout: "buffered"},
			{code: "function down($n) { return array_map('down', [$n]); } down(1);", exit: 255, error: "StackOverflow: "},
			{code: "echo $x ?? 'anew', file_get_contents('kept.txt');", stdout: "anew41"},
		},
		"lua": {
			{code: "x = 41 function next_one(n) return n + 1 end"},
			{code: "print(next_one(x))", stdout: "42\n"},
			{code: "x, 'two'", echo: true, stdout: "41\ttwo\n"},
			{code: "local y = 1 return y", echo: true, stdout: "1\n"},
			{code: "error('bad')", exit: 1, error: "Error: /workspace/main.lua:1: bad"},
			{code: "x = = 1", exit: 1, error: "SyntaxError: "},
			{code: "io.write('> ') print(io.read())", stdin: "a line\n", stdout: "> a line\n"},
			{code: "print(x)", stdout: "41\n"},
			{code: "io.write('end') os.exit(3)", stdout: "end", exit: 3},
			{code: "print(x)", stdout: "nil\n"},
		},
		"prolog": {
			{code: "parent(tom, bob).\nparent(tom, liz).\ngrand(X, Z) :- parent(X, Y), parent(Y, Z).\n"},
			{code: "parent(tom, X).", stdout: "X = bob ;\nX = liz.\n"},
			{code: "X = f(Y, _), Z = Y.", stdout: "X = f(Y, _1),\nY = Z.\n"},
			{code: "fail.", stdout: "false.\n"},
			{code: "writeln(hi).", echo: true, stdout: "hi\ntrue.\n"},
			{code: "likes(ann, wine).\n?- likes(ann, W).", stdout: "W = wine.\n"},
			{code: "X is foo + 1.", exit: 1, error: "is not a function"},
			{code: "p(1. ", exit: 1, error: "SyntaxError: "},
			{code: "read(X).", stdin: "term(1).\n", stdout: "X = term(1).\n"},
			{code: "between(1, inf, X).", stdout: "X = 1 ;\nX = 2 ;\nX = 3 ;\nX = 4 ;\nX = 5 ;\nX = 6 ;\nX = 7 ;\nX = 8 ;\nX = 9 ;\nX = 10 ;\n...\n"},
			{code: "_ := eval(\"1\").", exit: 1, error: "PermissionError: "},
			{code: "parent(tom, liz).", stdout: "true.\n"},
			{code: "halt(3).", exit: 3},
			{code: "catch(parent(_, _), error(E, _), true).", stdout: "E = existence_error(procedure, parent/2).\n"},
		},
	} {
		t.Run(string(language), func(t *testing.T) {
			s := openTestSession(t, language)
			for _, c := range cells {
				p := job.Program{Language: language, Code: c.code, Echo: c.echo, Timeout: time.Minute}
				result, err := s.Run(t.Context(), p, job.Streams{Stdin: strings.NewReader(c.stdin), Emit: func(job.Event) {}})
				if err != nil {
					t.Fatal(err)
				}
				said := ""
				if result.Error != nil {
					said = result.Error.Name + ": " + result.Error.Message
				}
				if string(result.Stdout.Head) != c.stdout || result.ExitCode != c.exit || !strings.Contains(said, c.error) || (said != "") != (c.error != "") {
					t.Errorf("%s\ngave %q, %d, error %q, standard error %q; want %q, %d, %q",
						c.code, result.Stdout.Head, result.ExitCode, said, result.Stderr.Head, c.stdout, c.exit, c.error)
				}
			}
		})
	}
}

func openTestSession(t *testing.T, language job.Language) job.Session {
	e := newTestEngine(t)
	cachetest.NeedNetwork(t, e.Prepare(t.Context(), func(job.Event) {}, language))
	dir, err := sandbox.NewRunDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := e.OpenSession(t.Context(), job.SessionOptions{Language: language, Workspace: dir}, func(job.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// What is typed waits for its end, and names are completed.
func TestTyped(t *testing.T) {
	for language, typed := range map[job.Language]struct {
		cell             string
		finished, waits  []string
		text, completion string
	}{
		"php": {
			"$variety = 1;", []string{"$x", "f();", "/* { */ 1;"}, []string{"function f() {", "f(1,", "'a"},
			"echo $vari", "$variety",
		},
		"lua": {
			"t = { field = 1 }", []string{"x = 1", "1 + 1", "x = = 1"}, []string{"for i = 1, 3 do", "x =", "f(1,", "s = [["},
			"print(t.fi", "field",
		},
		"prolog": {
			"friend(a).", []string{"X = 1.", "p(1) . q(2)."}, []string{"X = 1", "p :-", "X = [1,"},
			"X = 1, frie", "friend",
		},
	} {
		t.Run(string(language), func(t *testing.T) {
			s := openTestSession(t, language)
			p := job.Program{Language: language, Code: typed.cell, Timeout: time.Minute}
			if result, err := s.Run(t.Context(), p, job.Streams{Emit: func(job.Event) {}}); err != nil || result.Status != job.Completed {
				t.Fatalf("the cell ended as %s (%v): %s", result.Status, err, result.Stderr.Head)
			}
			for want, texts := range map[bool][]string{false: typed.finished, true: typed.waits} {
				for _, text := range texts {
					if got, err := s.Unfinished(t.Context(), text); err != nil || got != want {
						t.Errorf("Unfinished(%q) is %v, %v", text, got, err)
					}
				}
			}
			if names, err := s.Complete(t.Context(), typed.text); err != nil || !slices.Contains(names, typed.completion) {
				t.Errorf("Complete(%q) gave %q, %v", typed.text, names, err)
			}
		})
	}
}
