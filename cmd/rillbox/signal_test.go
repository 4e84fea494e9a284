//go:build !windows

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C and Ctrl-\, and what a service manager sends, end a run at once and say so by
// the exit status.
func TestASignalCancelsTheRun(t *testing.T) {
	needRuntimes(t)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT} {
		for language, code := range map[string]string{
			"javascript": "console.log('started'); for (;;);",
			"python":     "print('started', flush=True)\nwhile True: pass",
		} {
			t.Run(language+" "+signal.String(), func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), "rillbox", "run", "-l", language, "-c", code)
				cmd.Env = append(os.Environ(), scriptEnvironment(t, t.TempDir())...)
				var stderr strings.Builder
				cmd.Stderr = &stderr
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
				if strings.Contains(stderr.String(), "goroutine") {
					t.Errorf("it shows its own stack:\n%.500s", stderr.String())
				}
				if took := time.Since(sent); took > 20*time.Second {
					t.Errorf("it ended after %v", took)
				}
			})
		}
	}
}

// TestServeEndsWhileAReadBlocks: a file system that hangs, here a pipe that nobody
// writes to in place of npm's configuration, does not hold up the end for ever.
func TestServeEndsWhileAReadBlocks(t *testing.T) {
	needRuntimes(t)
	for _, end := range []string{"signal", "end of input"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			pipe := filepath.Join(home, ".npmrc")
			if err := syscall.Mkfifo(pipe, 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "rillbox", "serve")
			cmd.Env = append(append(os.Environ(), scriptEnvironment(t, t.TempDir())...), "HOME="+home)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(stdout)
			for _, line := range []string{
				`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"javascript","code":"1","packages":["is-odd"]}}}`,
			} {
				if _, err := io.WriteString(stdin, line+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			for { // until it reads
				writer, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
				if err == nil {
					defer writer.Close()
					break
				}
				if !errors.Is(err, syscall.ENXIO) {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
			if end == "signal" {
				err = cmd.Process.Signal(syscall.SIGTERM)
			} else {
				err = stdin.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case err := <-ended:
				if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != statusBroken {
					t.Errorf("it ended with %v, want exit status %d", err, statusBroken)
				}
			case <-time.After(time.Minute):
				_ = cmd.Process.Kill()
				t.Error("it does not end")
			}
		})
	}
}

// A doctor who is sent away says nothing: what was cut short is not BAD.
func TestASignalEndsTheDoctor(t *testing.T) {
	needRuntimes(t)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGQUIT} {
		for _, after := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond} {
			cmd := exec.CommandContext(t.Context(), "rillbox", "doctor")
			cmd.Env = append(os.Environ(), scriptEnvironment(t, t.TempDir())...)
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != statusCancelled || said.Len() > 0 {
				t.Errorf("after %v and %v it ends with %v, and says\n%s", after, signal, err, said.String())
			}
		}
	}
}

// What has no end is not read to it.
func TestAnEndlessProgramIsRefused(t *testing.T) {
	needRuntimes(t)
	cmd := exec.CommandContext(t.Context(), "rillbox", "run", "-l", "py", "-")
	cmd.Env = append(os.Environ(), scriptEnvironment(t, t.TempDir())...)
	var given endless
	cmd.Stdin = &given
	out, err := cmd.CombinedOutput()
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) || exit.ExitCode() != statusUsage || !strings.Contains(string(out), "the program has more than") {
		t.Fatalf("it ends with %v and says %.300s", err, out)
	}
	if given > 64<<20 {
		t.Errorf("it read %d bytes", given)
	}
}

// endless has zeros for ever, and counts what is read.
type endless int64

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	*e += endless(len(p))
	return len(p), nil
}
