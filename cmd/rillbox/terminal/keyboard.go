//go:build !windows

package terminal

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A Keyboard is a program's standard input at a terminal. It has an end when Context
// ends: what is typed from then on is somebody else's, the next cell or what the
// terminal answers us.
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
