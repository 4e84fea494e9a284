//go:build !windows

package main

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"testing"

	"rillbox/supervisor"
)

const (
	js = supervisor.JavaScript
	ts = supervisor.TypeScript
	py = supervisor.Python
)

func TestWhatIsUnfinishedWaitsForAnotherLine(t *testing.T) {
	for _, row := range []struct {
		language supervisor.Language
		text     string
		want     bool
	}{
		{py, "", false},
		{py, "x = 1", false},
		{py, "x =", false}, // an error, which no line mends
		{py, "f(", true},
		{py, "f(\n1)", false},
		{py, "f(]", false},
		{py, "[1, {2: (3", true},
		{py, "'''a", true},
		{py, "'''a\n\n", true},
		{py, "'''a'''", false},
		{py, "'a", false},
		{py, "'(' + \"[\"", false},
		{py, `'\'('`, false},
		{py, `"""a\"""`, true},
		{py, "x = 1 + \\", true},
		{py, "x = 1 + \\\n2", false},
		{py, "# a comment: (", false},
		{py, "if x:", true},
		{py, "if x:\n    pass", true},
		{py, "if x:\n    pass\n", false},
		{py, "if x:\n    pass\n    ", false},
		{py, "if x: pass", true},
		{py, "if x:  # why", true},
		{py, "if x:\n    f(\n\n", true},
		{py, "def f(a: int,\n      b):", true},
		{py, "x = {1: 2}", false},
		{py, "x[1:\n2]", false},
		{py, "lambda: 1", false},
		{py, "@cache", true},
		{py, "@cache\ndef f(): pass\n", false},
		{py, "iffy = 1", false},
		{py, "import x; x.y", false},
		{py, "s = '''\nif x:\n'''", false},
		{js, "", false},
		{js, "let x = 1", false},
		{js, "let x = {", true},
		{js, "let x = {\n a: 1 }", false},
		{js, "f(", true},
		{js, "f)", false},
		{js, "`a ${", true},
		{js, "`a\n", true},
		{js, "`a\n`", false},
		{js, "'a", false},
		{js, "/* a", true},
		{js, "// {", false},
		{js, "/[{(]/.test('x')", false},
		{js, "if (x) {", true},
		{js, "await fetch(x)", false},
		{js, "import { a } from 'x'", false},
		{js, "import {", true},
		{js, "<div>", true},
		{ts, "interface A {", true},
		{ts, "type A<T> = T extends", true},
		{ts, "let x: number = 1", false},
		{ts, "enum E { A }", false},
	} {
		if got := unfinished(row.language, row.text); got != row.want {
			t.Errorf("%s %q is unfinished: %v, want %v", row.language, row.text, got, row.want)
		}
	}
}

func TestPipedInputIsTakenStatementByStatement(t *testing.T) {
	for _, row := range []struct {
		name     string
		language supervisor.Language
		cells    []string
	}{
		{"lines", py, []string{"a = 1\n", "b = 2\n", "a"}},
		{"blocks", py, []string{"def f():\n    return 1\n\n\n    # more\n# and more\n    return 2\n\n", "f()\n"}},
		{"else", py, []string{"if a:\n    b\nelif c:\n    d\nelse:\n    e\n", "f\n"}},
		{"a one-line if and its else", py, []string{"if a: b\nelse: c\n", "d\n"}},
		{"try", py, []string{"try:\n    a\nexcept E:\n    b\nfinally:\n    c\n", "exception\n"}},
		{"decorators", py, []string{"@a\n@b(\n  1)\nclass C:\n    x = 1\n", "@c\ndef f(): pass\n", "f()\n"}},
		{"strings", py, []string{"s = '''a\nif b:\n\nc'''\n", "s\n"}},
		{"brackets", py, []string{"x = [\n1,\n\n2]\n", "x\n"}},
		{"statements", js, []string{"let a = 1\n", "a;\n"}},
		{"a function", js, []string{"function f() {\n\n  return `\n${1}`\n}\n", "f()\n"}},
		{"chains", js, []string{"a\n  .b()\n  ?.c()\n", "d\n"}},
		{"if and else", js, []string{"if (a) {\n}\nelse {\n}\n", "b\n"}},
		{"numbers and comments", js, []string{"a\n", ".5\n", "// b\n", "/c/\n"}},
		{"types", ts, []string{"type A =\n  | 1\n  | 2\n", "let a: A = 1\n"}},
		{"an end too early", py, []string{"a\n", "f(\n"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := &piped{language: row.language, lines: bufio.NewReader(strings.NewReader("\n" + strings.Join(row.cells, ""))), limit: 1 << 20}
			var got []string
			for {
				cell, err := p.next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, cell)
			}
			if !slices.Equal(got, row.cells) {
				t.Errorf("got %q, want %q", got, row.cells)
			}
		})
	}
}

func TestACellIsNoLongerThanAProgramMayBe(t *testing.T) {
	p := &piped{language: py, lines: bufio.NewReader(strings.NewReader("f(\n" + strings.Repeat("1,\n", 1000))), limit: 100}
	cell, err := p.next()
	if err != nil || len(cell) > 110 {
		t.Errorf("a cell has %d bytes (%v), and may have 100 and what it takes to see that it is too long", len(cell), err)
	}
}

func FuzzPiped(f *testing.F) {
	for _, seed := range []string{"a\nb\n", "def f():\n  1\nf()", "'''\n", "\\", "@a\n", "(\n)\n", "'\\\n'", "if a: b\nelse: c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := &piped{language: py, lines: bufio.NewReader(strings.NewReader(text)), limit: 1 << 20}
		var all strings.Builder
		for {
			cell, err := p.next()
			if err != nil {
				break
			}
			all.WriteString(cell)
		}
		if want := strings.Join(strings.Fields(text), " "); strings.Join(strings.Fields(all.String()), " ") != want {
			t.Errorf("%q became %q", text, all.String())
		}
	})
}
