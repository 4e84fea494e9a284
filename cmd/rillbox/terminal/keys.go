//go:build !windows

package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"

	"golang.org/x/sys/unix"
)

// keys filters what the editor reads from descriptor 0: it passes on what is typed
// while the editor waits for it, without a terminal's answers to queries. The editor,
// reeflective/readline, has the history, the multi-line input and the completion that
// the REPL needs, but hangs on an answer that it did not ask for; so this stays by hand.
type keys struct {
	to   *os.File
	held []byte // possibly the beginning of an answer
}

// openKeys gives the terminal a descriptor of its own, which is os.Stdin from
// then on, and the editor a pipe for its descriptor.
func openKeys() (*keys, error) {
	terminal, err := unix.FcntlInt(os.Stdin.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if err := unix.Dup2(int(from.Fd()), 0); err != nil {
		return nil, err
	}
	os.Stdin = os.NewFile(uintptr(terminal), "terminal")
	return &keys{to: to}, nil
}

var (
	// Where the cursor is, what the terminal is, how it is, and its window; xterm's
	// "ctlseqs" lists them.
	answers     = regexp.MustCompile(`\x1b\[[?>]?[0-9;]*[Rcnt]`)
	halfAnswers = regexp.MustCompile(`\x1b\[([?>][0-9;]*|[0-9][0-9;]*)$`)
)

// pass passes keys on until stop is called, which returns when no more are taken.
func (k *keys) pass() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 1024)
		for {
			n, err := Keyboard{ctx}.Read(buffer)
			if err != nil || n == 0 {
				if ctx.Err() == nil {
					k.to.Close() // there is no terminal any more: that is the end
				}
				return
			}
			k.held = answers.ReplaceAll(append(k.held, buffer[:n]...), nil)
			ready := len(k.held)
			if half := halfAnswers.FindIndex(k.held); half != nil {
				ready = half[0]
			}
			_, _ = k.to.Write(k.held[:ready]) // as long as we live, so does the reader
			k.held = k.held[ready:]
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// A Keyboard is a program's standard input at a terminal. It is at its end when Context
// is done: what is typed from then on is the next cell, or the terminal's answer to us.
type Keyboard struct{ Context context.Context }

func (k Keyboard) Read(p []byte) (int, error) {
	over, end, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer over.Close()
	stop := context.AfterFunc(k.Context, func() { end.Close() })
	defer func() {
		if stop() {
			end.Close()
		}
	}()
	for {
		wait := []unix.PollFd{{Fd: int32(over.Fd()), Events: unix.POLLIN}, {Fd: int32(os.Stdin.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(wait, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case wait[0].Revents != 0:
			return 0, io.EOF
		case wait[1].Revents != 0:
			return os.Stdin.Read(p)
		}
	}
}
