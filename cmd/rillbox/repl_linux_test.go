package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rillbox/cmd/rillbox/terminal"
	"rillbox/supervisor/job"
)

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	tab   = "\t"
	up    = "\x1b[A"
)

// line is what a person types, and what appears then; not what is echoed.
type line struct{ typed, appears string }

var transcripts = map[job.Language][]line{
	py: {
		{"x = 6 * 7\n", ">>> "},
		{"x\n", "\n42\n>>> "},
		{"'a' + \"b\"\n", "\n'ab'\n>>> "},
		{"(1, None)\n", "\n(1, None)\n>>> "},
		{"None\n", ">>> "},
		{"print('out', end='')\n", "\nout\n>>> "},
		{"def double(n):\n    return 2 * n\n\n", ">>> "},
		{"double(\nx)\n", "\n84\n>>> "},
		{"1 / 0\n", "ZeroDivisionError: division by zero\n>>> "},
		{"if x:\n    for i in range(2):\n        print('i', i)\n\n", "\ni 0\ni 1\n>>> "},
		{"_ = [x for _ in range(3)]; _\n", "\n[42, 42, 42]\n>>> "},
		{"name = input('who? ')\n", "\nwho? "},
		{"Ada\n", ">>> "},
		{"name.upper()\n", "\n'ADA'\n>>> "},
		{"doub" + tab + "(4)\n", "\n8\n>>> "},
		{"name.swapc" + tab + "()\n", "\n'aDA'\n>>> "},
		{"print('g' + 'o'); [0 for _ in iter(int, 1)]\n", "\ngo\n"},
		{ctrlC, "KeyboardInterrupt\n>>> "},
		{"x\n", "\n42\n>>> "},
		{"not a statement", "not a statement"},
		{ctrlC, "\n>>> "},
		{"open('a b.txt', 'w').write('abc')\n", "\n3\n>>> "},
		{".files\n", "3  a b.txt\n>>> "},
		{"grüße = '日本語'; grüße\n", "\n'日本語'\n>>> "},
		{up + up + up + "\n", "\n3\n>>> "},
		{"\x1b[200~def f():\n    return 'pasted'\n\nf()\x1b[201~\n\n", "\n'pasted'\n>>> "},
		{".nothing\n", "there is no command .nothing; .help lists those that there are\n>>> "},
		{".help\n", "Ctrl-C interrupts"},
		{".reset\n", ">>> "},
		{"x\n", "NameError: name 'x' is not defined\n>>> "},
		{"open('a b.txt').read()\n", "\n'abc'\n>>> "},
	},
	js: {
		{"let x = 6 * 7\n", "> "},
		{"x\n", "\n42\n> "},
		{"'a' + \"b\"\n", "\n\"ab\"\n> "},
		{"undefined\n", "> "},
		{"({ a: [1, 2n] })\n", "\n{ a: [ 1, 2n ] }\n> "},
		{"Deno.stdout.writeSync(new TextEncoder().encode('o' + 'ut')); null\n", "\nout\nnull\n> "},
		{"function double(n) {\n  return 2 * n;\n}\n", "> "},
		{"double(\nx)\n", "\n84\n> "},
		{"`a\n${x}`\n", "\n\"a\\n42\"\n> "},
		{"null.x\n", "TypeError: Cannot read properties of null"},
		{"throw new Error('no ' + 'more')\n", "Error: no more"},
		{"await Promise.resolve('lat' + 'er')\n", "\n\"later\"\n> "},
		{"doub" + tab + "(4)\n", "\n8\n> "},
		{"x.toFix" + tab + "(1)\n", "\n\"42.0\"\n> "},
		{"console.log('g' + 'o'); for (;;) {}\n", "\ngo\n"},
		{ctrlC, "Interrupted\n> "},
		{"console.log('g' + 'o'); await new Promise(() => {})\n", "\ngo\n"},
		{ctrlC, "Interrupted\n> "},
		{"x\n", "\n42\n> "},
		{"not a statement", "not a statement"},
		{ctrlC, "\n> "},
		{"Deno.writeTextFileSync('a.txt', 'abc')\n", "> "},
		{".files\n", "3  a.txt\n> "},
		{".reset\n", "> "},
		{"x\n", "ReferenceError: x is not defined"},
		{"Deno.readTextFileSync('a.txt')\n", "\n\"abc\"\n> "},
	},
	ts: {
		{"interface Point { x: number; y: number }\n", "> "},
		{"const p: Point = { x: 1, y: 2 }\n", "> "},
		{"p.x + p.y\n", "\n3\n> "},
		{"function norm({ x, y }: Point): number {\n  return Math.hypot(x, y);\n}\n", "> "},
		{"norm({ x: 3, y: 4 })\n", "\n5\n> "},
		{"enum Colour { Red = 'r' }\n", "> "},
		{"Colour.Red\n", "\n\"r\"\n> "},
		{"console.log('g' + 'o'); for (;;) {}\n", "\ngo\n"},
		{ctrlC, "Interrupted\n> "},
		{"p\n", "\n{ x: 1, y: 2 }\n> "},
	},
}

func TestTranscriptsOfAPersonAtATerminal(t *testing.T) {
	needRuntimes(t)
	for language, lines := range transcripts {
		t.Run(string(language), func(t *testing.T) {
			p := sit(t, t.TempDir(), []string{"NO_COLOR=1"}, "repl", "-l", string(language))
			p.sees("Ctrl-D ends.\n")
			p.sees("> ")
			for _, l := range lines {
				p.types(l.typed)
				p.sees(l.appears)
			}
			p.types(ctrlD)
			if status := p.leaves(); status != 0 {
				t.Errorf("the exit status is %d", status)
			}
		})
	}
}

func TestTheHistoryIsKeptForThePersonAlone(t *testing.T) {
	needRuntimes(t)
	state := t.TempDir()
	repl := func(lines ...line) {
		p := sit(t, t.TempDir(), []string{"NO_COLOR=1", "XDG_STATE_HOME=" + state}, "repl", "-l", "js")
		p.sees("\n> ")
		for _, l := range lines {
			p.types(l.typed)
			p.sees(l.appears)
		}
		p.types(ctrlD)
		p.leaves()
	}
	repl(line{"1 +\n1\n", "\n2\n> "})
	repl(line{up + "\n", "\n2\n> "})
	file := filepath.Join(state, "rillbox", "history-javascript.jsonl")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the history's mode is %o", mode)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("{\"block\":\"0\"}\n", 2*terminal.MaxHistory+1)), 0o644); err != nil {
		t.Fatal(err)
	}
	repl(line{up + " + 7\n", "\n7\n> "})
	content, err := os.ReadFile(file)
	if n := strings.Count(string(content), "\n"); err != nil || n != terminal.MaxHistory+1 {
		t.Errorf("a history that was too long has %d entries (%v), want %d", n, err, terminal.MaxHistory+1)
	}
}

func TestTheTerminalIsLeftAsItWas(t *testing.T) {
	needRuntimes(t)
	for name, row := range map[string]struct {
		typed  string
		signal syscall.Signal
		status int
	}{
		"Ctrl-D":                {ctrlD, 0, 0},
		"exit()":                {"exit()\n", 0, 0},
		".exit":                 {".exit\n", 0, 0},
		"exit with a status":    {"import sys; sys.exit(3)\n", 0, 3},
		"SIGTERM at the prompt": {"", syscall.SIGTERM, statusCancelled},
		"SIGTERM while it runs": {"print('g' + 'o'); [0 for _ in iter(int, 1)]\n", syscall.SIGTERM, statusCancelled},
		"SIGHUP at the prompt":  {"x", syscall.SIGHUP, statusCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			p := sit(t, t.TempDir(), nil, "repl")
			before, err := unix.IoctlGetTermios(int(p.theirs.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			p.sees(">>> ")
			p.types(row.typed)
			if strings.HasPrefix(row.typed, "print") {
				p.sees("\ngo\n")
			}
			if row.signal != 0 {
				if err := p.cmd.Process.Signal(row.signal); err != nil {
					t.Fatal(err)
				}
			}
			if status := p.leaves(); status != row.status {
				t.Errorf("the exit status is %d, want %d", status, row.status)
			}
			after, err := unix.IoctlGetTermios(int(p.theirs.Fd()), unix.TCGETS)
			if err != nil || *after != *before {
				t.Errorf("the terminal is %+v (%v), was %+v", after, err, before)
			}
		})
	}
}

// A guest can ask the terminal something, and keys can look like an answer: the
// editor gets neither, and what is typed meanwhile.
func TestTerminalsAnswersAreNotTyped(t *testing.T) {
	needRuntimes(t)
	p := sit(t, t.TempDir(), []string{"NO_COLOR=1"}, "repl", "-l", "js")
	p.answers("\x1b[6n", "\x1b[5;1R")
	p.sees("\n> ")
	p.types("console.log('\\x1b[6n')\n")
	p.sees("\n\n") // the answer may be echoed, too
	p.sees("> ")
	p.types("1 + \x1b[1;2R\x1b[?62;4")
	p.types("c\x1b[0n41 + 0\n")
	p.sees("\n42\n> ")
	p.types("'\x1b[D\x1b[Cb'\x1b[Da\x1b[1;5Dc\n") // the arrows are keys
	p.sees("\n\"cba\"\n> ")
	p.types(ctrlD)
	if status := p.leaves(); status != 0 {
		t.Errorf("the exit status is %d", status)
	}
}
