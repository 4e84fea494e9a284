//go:build !windows

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C, and what a service manager sends, end a run at once and say so by the
// exit status.
func TestASignalCancelsTheRun(t *testing.T) {
	needRuntimes(t)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		for language, code := range map[string]string{
			"javascript": "console.log('started'); for (;;);",
			"python":     "print('started', flush=True)\nwhile True: pass",
		} {
			t.Run(language+" "+signal.String(), func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), "rillbox", "run", "-l", language, "-c", code)
				cmd.Env = append(os.Environ(), scriptEnvironment(t, t.TempDir())...)
				stdout, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewReader(stdout)
				if line, err := lines.ReadString('\n'); line != "started\n" {
					t.Fatalf("the program prints %q (%v)", line, err)
				}
				sent := time.Now()
				if err := cmd.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, lines) // ends when nobody can write to it any more
				err = cmd.Wait()
				exit := (*exec.ExitError)(nil)
				if !errors.As(err, &exit) || exit.ExitCode() != statusCancelled {
					t.Errorf("it ends with %v, want exit status %d", err, statusCancelled)
				}
				if took := time.Since(sent); took > 3*time.Second {
					t.Errorf("it ended after %v", took)
				}
			})
		}
	}
}
