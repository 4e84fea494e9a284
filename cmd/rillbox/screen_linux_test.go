package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rillbox/cmd/rillbox/terminal"
)

// commands are what a guest would have a terminal do.
const commands = "A\x1b]0;FORGED\aB\x1b]52;c;AAAA\x1b\\C\x1b[6n\x1b[c\x1b[>qD\x1bP$qm\x1b\\E\x1b[?1049h\x1b[?1000hF\u202eG\u009b6nH\x05\x0eI"

// hostilePrograms write the commands to both streams in parts, show them as text in
// each form, name an error and a file by them, and hide the cursor.
var hostilePrograms = map[string]string{
	"js": `const commands = %s;
const encoder = new TextEncoder();
for (const byte of encoder.encode(commands)) Deno.stdout.writeSync(new Uint8Array([byte]));
Deno.stderr.writeSync(encoder.encode("\x1b[1m" + commands + "\n"));
await display({ "text/plain": commands }, { raw: true });
await display({ "text/html": commands }, { raw: true });
Deno.stdout.writeSync(encoder.encode("\x1b[?25l\x1b[31mred"));
const e = new Error(commands);
e.name = commands;
e.stack = undefined;
throw e;
`,
	"py": `import sys
commands = %s
for byte in commands.encode():
    sys.stdout.buffer.write(bytes([byte])); sys.stdout.flush()
sys.stderr.write("\x1b[1m" + commands + "\n")
display({"text/plain": commands}, raw=True)
display({"text/html": commands}, raw=True)
sys.stdout.write("\x1b[?25l\x1b[31mred")
raise type(commands, (Exception,), {})(commands)
`,
}

// What comes through a screen, told without its parser: characters that a terminal
// does not obey, and sequences of a list.
var fitForATerminal = regexp.MustCompile(`^(?:[^\x00-\x1f\x7f-\x{9f}\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]|[\a-\r]|` +
	"\x1b(?:[78DEM]|\\[(?:[0-9:;]*[A-IK-MPXZ@`adefmST]|0*[012]?J|s|u|\\?25[hl])))*$")

// asItWas is what comes after an output that hid the cursor and changed the style.
var asItWas = regexp.MustCompile("(?s)\x1b\\[\\?25l.*\x1b\\[m.*\x1b\\[\\?25h")

// literal is a string as JavaScript and Python write it.
func literal(t *testing.T, text string) []byte {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return quoted
}

func TestAGuestDoesNotCommandATerminal(t *testing.T) {
	needRuntimes(t)
	for extension, program := range hostilePrograms {
		for _, asJSON := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s json=%v", extension, asJSON), func(t *testing.T) {
				dir := t.TempDir()
				name := "guest." + extension
				if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, program, literal(t, commands)), 0o600); err != nil {
					t.Fatal(err)
				}
				args := []string{"run", name}
				if asJSON {
					args = []string{"run", "--json", name}
				}
				p := sit(t, dir, nil, args...)
				if status := p.leaves(); status != 1 {
					t.Errorf("the exit status is %d", status)
				}
				seen := p.all()
				if !fitForATerminal.MatchString(seen) {
					t.Errorf("a terminal gets %q", seen)
				}
				if asJSON {
					return
				}
				// The two streams may come mixed, the displays do not.
				if n := strings.Count(seen, "ABCDEFG6nHI\r\n"); n < 2 || strings.Count(seen, "I") < 4 || !strings.Contains(seen, "\x1b[1m") {
					t.Errorf("what is harmless is not all there: %q", seen)
				}
				if !asItWas.MatchString(seen) {
					t.Errorf("the terminal is left as the guest wants it: %q", seen)
				}
			})
		}
	}
}

// A pipe gets the guest's very bytes.
func TestAPipeGetsAllThatAGuestWrites(t *testing.T) {
	needRuntimes(t)
	cmd := exec.Command("rillbox", "run", "-l", "js", "-c",
		fmt.Sprintf(`const bytes = new TextEncoder().encode(%s); Deno.stdout.writeSync(bytes); Deno.stderr.writeSync(bytes);`, literal(t, commands)))
	cmd.Env = scriptEnvironment(t, t.TempDir())
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stdout.String() != commands || stderr.String() != commands {
		t.Errorf("stdout is %q, stderr %q (%v)", stdout.String(), stderr.String(), err)
	}
}

func TestAReplShowsForgedNamesInQuotes(t *testing.T) {
	needRuntimes(t)
	p := sit(t, t.TempDir(), []string{"NO_COLOR=1"}, "repl", "-l", "js")
	p.sees("> ")
	p.types(`Deno.writeTextFileSync("a\n\x1b]0;t\x07\u202eb", ""); console.log("\x1b[?25l\x1b[8m" + "writ" + "ten")` + "\n")
	p.sees("\nwritten\n")
	p.sees("> ")
	p.types(".files\n")
	p.sees(`0  "a\n\x1b]0;t\a\u202eb"` + "\n> ")
	p.types(ctrlD)
	p.leaves()
	if seen := p.all(); !strings.Contains(seen, "\x1b[?25l\x1b[8mwritten\r\n\x1b[m\x1b[?25h") {
		t.Errorf("the terminal is left as the cell wants it: %q", seen)
	}
}

// What draws progress for people does so through a screen as it would without one.
func TestProgressBarsLookAsTheirAuthorsMeant(t *testing.T) {
	needRuntimes(t)
	for name, code := range map[string]string{
		"rich": `from rich.progress import Progress
from rich.console import Console
console = Console(force_terminal=True, width=60)
with Progress(console=console, auto_refresh=False) as progress:
    for task in [progress.add_task("one", total=3), progress.add_task("two", total=None)]:
        for _ in range(3): progress.update(task, advance=1, refresh=True)
        progress.print("[bold red]still[/] :heart: 日本語")
console.print_json('{"a": [1, null]}')
`,
		"tqdm": `from tqdm import tqdm
import sys
for _ in tqdm(range(3), position=0, file=sys.stdout, ncols=60, colour="green"):
    for _ in tqdm(range(3), position=1, leave=False, file=sys.stdout, ncols=60): pass
`,
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("rillbox", "run", "-l", "py", "-c", code)
			cmd.Env = scriptEnvironment(t, t.TempDir())
			drawn, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var through bytes.Buffer
			s := &terminal.Screen{To: &through}
			if _, err := s.Write(drawn); err != nil {
				t.Fatal(err)
			}
			if err := s.End(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(through.Bytes(), drawn) || !bytes.Contains(drawn, []byte("\x1b[")) {
				t.Errorf("%q became %q", drawn, &through)
			}
		})
	}
}
