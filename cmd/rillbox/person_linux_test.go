package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rillbox/supervisor/job"
)

// person sits at a terminal at which rillbox runs.
type person struct {
	t        *testing.T
	terminal *os.File // the person's side
	theirs   *os.File // the program's
	cmd      *exec.Cmd
	ended    chan error

	mu   sync.Mutex
	seen []byte
	read int           // how much of seen the person has read
	more chan struct{} // is closed when there is more to see
	gone bool          // nothing more comes
	// question is what the terminal answers with reply; seen was searched for it up
	// to asked.
	question, reply string
	asked           int
}

// personsPatience is how long a person waits at most: no run of ours takes so long.
const personsPatience = time.Minute

// sit starts rillbox at a terminal of the person's own.
func sit(t *testing.T, dir string, env []string, args ...string) *person {
	t.Helper()
	p := &person{t: t, ended: make(chan error, 1), more: make(chan struct{})}
	p.terminal, p.theirs = openTerminal(t)
	if err := unix.IoctlSetWinsize(int(p.terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100, Xpixel: 800, Ypixel: 640}); err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command("rillbox", args...)
	p.cmd.Dir, p.cmd.Env = dir, append(scriptEnvironment(t, t.TempDir()), append([]string{"TERM=xterm", "XDG_STATE_HOME=" + t.TempDir()}, env...)...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = p.theirs, p.theirs, p.theirs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	go p.watch()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// answers makes the terminal answer what a program asks it.
func (p *person) answers(question, reply string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.question, p.reply = question, reply
}

func (p *person) watch() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := p.terminal.Read(buffer)
		p.mu.Lock()
		p.seen = append(p.seen, buffer[:n]...)
		for p.question != "" {
			at := bytes.Index(p.seen[p.asked:], []byte(p.question))
			if at < 0 {
				break
			}
			p.asked += at + len(p.question)
			_, _ = io.WriteString(p.terminal, p.reply)
		}
		p.gone = err != nil
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
		if err != nil { // EIO, when nobody has the other side open
			return
		}
	}
}

// types types text, in which a newline is the return key.
func (p *person) types(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.terminal, strings.ReplaceAll(text, "\n", "\r")); err != nil {
		p.t.Fatal(err)
	}
}

// escapes are what terminals obey; see ECMA-48.
var escapes = regexp.MustCompile("\x1b(\\[[0-9;?]*[ -/]*[@-~]|[@-Z\\\\^_])|\r")

// sees waits until text appears, and gives what was seen until then. Escape
// sequences, but for pictures, are not seen.
func (p *person) sees(text string) string {
	p.t.Helper()
	deadline := time.After(personsPatience)
	for {
		p.mu.Lock()
		now := string(p.seen[p.read:])
		gone, more := p.gone, p.more
		p.mu.Unlock()
		if until, found := before(now, text); found {
			p.mu.Lock()
			p.read += len(until)
			p.mu.Unlock()
			return shown(until)
		}
		if gone {
			p.t.Fatalf("the end comes before %q; there is %q", text, shown(now))
		}
		select {
		case <-more:
		case <-deadline:
			p.t.Fatalf("no %q appears; there is %q", text, shown(now))
		}
	}
}

// shown is what is left of output for the eyes.
func shown(output string) string { return escapes.ReplaceAllString(output, "") }

// before is the beginning of seen, up to and with text, if it shows text.
func before(seen, text string) (string, bool) {
	end := sort.Search(len(seen)+1, func(end int) bool { return strings.Contains(shown(seen[:end]), text) })
	if end > len(seen) {
		return "", false
	}
	return seen[:end], true
}

// leaves waits for the end, and gives the exit status.
func (p *person) leaves() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(personsPatience):
		p.mu.Lock()
		defer p.mu.Unlock()
		p.t.Fatalf("it does not end; there is %q", shown(string(p.seen[p.read:])))
	}
	return -1
}

// all is everything that appeared, when the program has left.
func (p *person) all() string {
	p.t.Helper()
	if err := p.theirs.Close(); err != nil { // so that nobody has that side open
		p.t.Fatal(err)
	}
	for {
		p.mu.Lock()
		seen, gone, more := string(p.seen), p.gone, p.more
		p.mu.Unlock()
		if gone {
			return seen
		}
		<-more
	}
}

// TestAPersonMayThink: the time that a person takes to answer is not the program's.
func TestAPersonMayThink(t *testing.T) {
	if testing.Short() {
		t.Skip("takes longer than a program without a person may")
	}
	needRuntimes(t)
	for language, code := range map[string]string{
		"python":     "print('hello ' + input('who? '))",
		"javascript": "console.log('who? '); for await (const c of Deno.stdin.readable) { console.log('hello ' + new TextDecoder().decode(c)); break }",
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			p := sit(t, t.TempDir(), nil, "run", "-l", language, "-c", code)
			p.sees("who? ")
			time.Sleep(job.DefaultLimits().Timeout + 2*time.Second)
			p.types("Ada\n")
			p.sees("hello Ada")
			if status := p.leaves(); status != 0 {
				t.Errorf("it ends with %d", status)
			}
		})
	}
	t.Run("with a limit", func(t *testing.T) {
		t.Parallel()
		p := sit(t, t.TempDir(), nil, "run", "--timeout", "1s", "-l", "python", "-c", "input('who? ')")
		p.sees("who? ")
		if status := p.leaves(); status != statusTimedOut {
			t.Errorf("it ends with %d", status)
		}
	})
}
