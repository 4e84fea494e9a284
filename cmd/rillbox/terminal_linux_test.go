package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rillbox/cmd/rillbox/terminal"
	"rillbox/supervisor/job"
)

// What a download looks like on stderr: a bar at a terminal, one plain line
// when piped, nothing with --quiet. stdout is the same in all cases.
func TestADownloadIsShownAsTheReaderCanSeeIt(t *testing.T) {
	npm := startRegistry(t, 30<<20)
	for _, row := range []struct {
		name     string
		terminal bool
		args     []string
		check    func(stderr string) bool
	}{
		{"terminal", true, nil, func(s string) bool {
			return strings.Contains(s, "fetching Deno") && strings.Contains(s, "%") && strings.Contains(s, "\r")
		}},
		{"pipe", false, nil, func(s string) bool {
			return strings.Count(s, "\n") == 1 && strings.HasPrefix(s, "fetching Deno") && !strings.Contains(s, "\r")
		}},
		{"quiet terminal", true, []string{"--quiet"}, func(s string) bool { return s == "" }},
	} {
		t.Run(row.name, func(t *testing.T) {
			env := append(npm.environment(t.TempDir()), "TERM=xterm")
			stdout, stderr, err := runAt(t, row.terminal, env, append([]string{"which", "deno"}, row.args...)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			if !strings.HasSuffix(stdout, "/deno\n") || strings.Count(stdout, "\n") != 1 {
				t.Errorf("stdout is %q, want one path", stdout)
			}
			if !row.check(stderr) {
				t.Errorf("stderr is %q", stderr)
			}
		})
	}
}

// Nothing of a stage is left at a terminal when it is over.
func TestNothingIsLeftOfAStage(t *testing.T) {
	ours, theirs := openTerminal(t)
	stderr := os.Stderr
	os.Stderr = theirs
	p := terminal.NewProgress(false)
	os.Stderr = stderr
	p.Show(job.Event{Text: "installing numpy"})
	time.Sleep(terminal.ShowAfter + 300*time.Millisecond)
	p.Clear()
	if _, err := theirs.WriteString("the program's output\n"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	theirs.Close()
	var seen strings.Builder
	_, _ = io.Copy(&seen, ours) // ends with EIO when the other side is closed
	before, after, _ := strings.Cut(seen.String(), "the program's output")
	if !strings.Contains(before, "installing numpy") || strings.Contains(seen.String(), "0/-") || strings.TrimSpace(after) != "" {
		t.Errorf("there is %q, then %q", before, after)
	}
}

func TestErrorsAreRedOnlyAtATerminalWithoutNoColor(t *testing.T) {
	const escape = "\x1b["
	for _, row := range []struct {
		name     string
		terminal bool
		env      string
		want     bool
	}{
		{"terminal", true, "TERM=xterm", true},
		{"NO_COLOR", true, "NO_COLOR=1", false},
		{"dumb terminal", true, "TERM=dumb", false},
		{"pipe", false, "TERM=xterm", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			env := []string{"HOME=" + t.TempDir(), "TERM=xterm", row.env}
			_, stderr, err := runAt(t, row.terminal, env, "run", "missing.py")
			if err == nil || !strings.Contains(stderr, "missing.py") {
				t.Fatalf("err = %v, stderr = %q", err, stderr)
			}
			if got := strings.Contains(stderr, escape); got != row.want {
				t.Errorf("stderr is %q; coloured: %v, want %v", stderr, got, row.want)
			}
		})
	}
}

// runAt runs rillbox with a terminal or a pipe as its stderr.
func runAt(t *testing.T, terminal bool, env []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "rillbox", args...)
	cmd.Env = env
	var out, errors strings.Builder
	cmd.Stdout = &out
	if !terminal {
		cmd.Stderr = &errors
		err = cmd.Run()
		return out.String(), errors.String(), err
	}
	ours, theirs := openTerminal(t)
	cmd.Stderr = theirs
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&errors, ours) // ends with EIO when the other side is closed
	}()
	err = cmd.Run()
	theirs.Close()
	<-read
	return out.String(), errors.String(), err
}

// openTerminal makes a pseudoterminal; see pty(7).
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}
