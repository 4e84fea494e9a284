package supervisor

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Darwin has no parent-death signal: the keeper ends the children of a server
// that was killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

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

func onOwnThread(f func()) { f() }
