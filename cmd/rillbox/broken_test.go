//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAWriteThatFailsIsAnError, and ends what would go on for nobody; a reader who
// has left is none.
func TestAWriteThatFailsIsAnError(t *testing.T) {
	needRuntimes(t)
	for name, args := range map[string][]string{
		"javascript":            {"run", "-l", "js", "-c", "for (;;) console.log('x'.repeat(1000));"},
		"python":                {"run", "-l", "py", "-c", "while True: print('x' * 1000)"},
		"what is shown":         {"run", "-l", "py", "-c", "display({'text/plain': 'x'}, raw=True)"},
		"the structured result": {"run", "--json", "-l", "js", "-c", "1"},
		"a session":             {"repl", "-l", "js"},
		"the version":           {"version"},
		"the settings":          {"config"},
	} {
		t.Run(name, func(t *testing.T) {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer full.Close()
			status, said := writingTo(t, full, args)
			if status != statusBroken || !strings.Contains(said, "no space left on device") {
				t.Errorf("with a full disk it ends with %d and says %q", status, said)
			}
			for _, ignored := range []bool{false, true} {
				read, write, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				read.Close()
				command := args
				if ignored {
					command = append([]string{"sh", "-c", "trap '' PIPE; exec \"$@\"", "sh", "rillbox"}, args...)
				}
				status, said := writingTo(t, write, command)
				write.Close()
				if status != statusPipe && status != 128+int(syscall.SIGPIPE) || said != "" {
					t.Errorf("without a reader (SIGPIPE ignored: %v) it ends with %d and says %q", ignored, status, said)
				}
			}
		})
	}
}

// writingTo runs rillbox, or a shell, with its standard output there.
func writingTo(t *testing.T, stdout *os.File, args []string) (status int, stderr string) {
	t.Helper()
	name := "rillbox"
	if args[0] == "sh" {
		name, args = "sh", args[1:]
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), scriptEnvironment(t, t.TempDir())...)
	cmd.Stdin, cmd.Stdout = strings.NewReader("console.log(1)\n"), stdout
	var said strings.Builder
	cmd.Stderr = &said
	began := time.Now()
	err := cmd.Run()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	exit := (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		if wait := exit.Sys().(syscall.WaitStatus); wait.Signaled() {
			return 128 + int(wait.Signal()), said.String()
		}
		return exit.ExitCode(), said.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, said.String()
}
