package sandbox

import (
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// awaitExit returns when the process has ended, and leaves it to be reaped.
func awaitExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(queue) }()
	watch := unix.Kevent_t{Fflags: unix.NOTE_EXIT}
	unix.SetKevent(&watch, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	events := make([]unix.Kevent_t, 1)
	for {
		// ESRCH: it has already ended.
		if _, err := unix.Kevent(queue, []unix.Kevent_t{watch}, events, nil); err != unix.EINTR {
			return
		}
	}
}

// cpuTime is not known: the system's own call for it needs cgo.
func cpuTime(int) time.Duration { return 0 }

// TellsCPU says that the system does not tell how much processor time a child has used.
const TellsCPU = false

func (c *Child) spent() time.Duration { return 0 }

func (c *Child) processes() []int { return []int{c.pid()} }

// connect is of systems where a child can have a network of its own.
func connect(*os.File, uint16) (net.Conn, error) { return nil, errors.ErrUnsupported }
