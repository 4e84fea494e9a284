//go:build !windows

package main

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/cmd/rillbox/terminal"
	"rillbox/deno"
	"rillbox/supervisor/job"
)

const (
	js = job.JavaScript
	ts = job.TypeScript
	py = job.Python
)

// sessionIn opens a session of a language, as a REPL does.
func sessionIn(t *testing.T, name job.Language) *repl {
	t.Helper()
	dir, err := cachetest.Dir()
	if err != nil {
		t.Fatal(err)
	}
	a := &app{config: newConfig(), log: cachetest.Logger(t), quiet: true}
	a.config.CacheDir, a.config.Engine.Warm = dir, 0
	engines, err := a.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeEngines(engines) })
	of, err := languageNamed(string(name))
	if err != nil {
		t.Fatal(err)
	}
	r := &repl{a: a, engines: engines, language: of, out: terminal.NewOutput(true)}
	if err := r.open(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPipedInputIsTakenStatementByStatement(t *testing.T) {
	needRuntimes(t)
	sessions := map[job.Language]*repl{js: sessionIn(t, js), ts: sessionIn(t, ts), py: sessionIn(t, py)}
	for _, row := range []struct {
		name     string
		language job.Language
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
			r := sessions[row.language]
			p := &piped{lines: bufio.NewReader(strings.NewReader("\n" + strings.Join(row.cells, ""))), limit: 1 << 20, continues: r.language.Continues,
				unfinished: func(text string) bool { return r.unfinished(t.Context(), text) }}
			var got []string
			for {
				cell, err := p.Next()
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
	p := &piped{lines: bufio.NewReader(strings.NewReader("f(\n" + strings.Repeat("1,\n", 1000))), limit: 100, unfinished: hasOpenBracket, continues: deno.Languages[0].Continues}
	cell, err := p.Next()
	if err != nil || len(cell) > 110 {
		t.Errorf("a cell has %d bytes (%v), and may have 100 and what it takes to see that it is too long", len(cell), err)
	}
}

// hasOpenBracket finds unfinished what has more brackets that open than that close.
func hasOpenBracket(text string) bool { return strings.Count(text, "(") > strings.Count(text, ")") }

func FuzzPiped(f *testing.F) {
	for _, seed := range []string{"a\nb\n", "def f():\n  1\nf()", "'''\n", "\\", "@a\n", "(\n)\n", "'\\\n'", "if a: b\nelse: c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := &piped{lines: bufio.NewReader(strings.NewReader(text)), limit: 1 << 20, unfinished: hasOpenBracket, continues: deno.Languages[0].Continues}
		var all strings.Builder
		for {
			cell, err := p.Next()
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
