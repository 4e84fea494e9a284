package sandbox

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rillbox/supervisor/launcher"
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

// readMemory asks ps: the system's own call for it needs cgo.
func readMemory(pid int) (memory, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return memory{}, false
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return memory{own: kib << 10, peak: kib << 10}, err == nil
}

func maxResident(state *os.ProcessState) int64 {
	return state.SysUsage().(*syscall.Rusage).Maxrss // bytes, getrusage(2)
}

// tellsEnding: the system tells nothing of a process's end before it is over.
func tellsEnding(int) bool { return false }

func readEnding(int, *launcher.Cgroup) (syscall.WaitStatus, bool) { return 0, false }

func sleepBriefly(d time.Duration) { time.Sleep(d) }

// unnamed is what only Linux tells.
func (c *Child) unnamed() int64 { return 0 }
