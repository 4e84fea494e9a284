package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rillbox/supervisor/launcher"
)

// exiting is the flag of a thread that the kernel is ending: it executes nothing
// of its program's any more (PF_EXITING, include/linux/sched.h).
const exiting = 0x4

// Fields of /proc/PID/stat by their numbers in proc_pid_stat(5).
const (
	statFlags       = 9
	statChildUser   = 16
	statChildSystem = 17
	statStartStack  = 28
	statExitCode    = 52
)

// ticksPerSecond is the unit of times in /proc/PID/stat, the same on all systems that
// Go knows (USER_HZ).
const ticksPerSecond = 100

// readEnding gives the status that a process will be waited for with, once each
// of its threads is ending; false before. tellsEnding must have been true. The
// threads are those of its cgroup: once /proc/PID/task has been listed, forgetting
// it keeps the kernel busy for up to 30 ms when the machine is.
func readEnding(pid int, group *launcher.Cgroup) (syscall.WaitStatus, bool) {
	leader := fmt.Sprintf("/proc/%d/stat", pid)
	if flags, ok := statField(leader, statFlags); !ok || flags&exiting == 0 {
		return 0, false
	}
	seen := map[string]bool{}
	for { // until no thread is there that had not been seen to end
		threads, err := group.Threads()
		if err != nil {
			return 0, false
		}
		other := false
		for _, thread := range threads {
			if seen[thread] {
				continue
			}
			other, seen[thread] = true, true
			path := "/proc/" + thread + "/stat"
			if flags, ok := statField(path, statFlags); (!ok || flags&exiting == 0) && !hasEnded(path) {
				return 0, false
			}
		}
		if !other {
			code, ok := statField(leader, statExitCode)
			return syscall.WaitStatus(code), ok
		}
	}
}

// hasEnded says that a thread has ended altogether.
func hasEnded(path string) bool {
	_, err := os.ReadFile(path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// tellsEnding says whether the kernel will tell us how a process ends. Since
// Linux 5.17 its stat file has its exit status from the moment that it is decided
// on, for those who may know; they see where its stack starts, too, while it has
// one.
func tellsEnding(pid int) bool {
	start, ok := statField(fmt.Sprintf("/proc/%d/stat", pid), statStartStack)
	return ok && start != 0 && decidedStatus()
}

var decidedStatus = sync.OnceValue(func() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var major, minor int
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 5 || major == 5 && minor >= 17)
})

// sleepBriefly sleeps for less than a millisecond, which the runtime's own timers
// may be late by.
func sleepBriefly(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&t, nil) // a signal cuts it short
}

// statField reads one field of a stat file.
func statField(path string, number int) (uint64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	return parseStat(text, number)
}

// parseStat gives a field of a stat file's text. The second, the program's name,
// may hold anything.
func parseStat(text []byte, number int) (uint64, bool) {
	_, rest, ok := bytes.Cut(text[max(bytes.LastIndexByte(text, ')'), 0):], []byte(" "))
	fields := bytes.Fields(rest)
	if i := number - 3; ok && i < len(fields) {
		n, err := strconv.ParseUint(string(fields[i]), 10, 64)
		return n, err == nil
	}
	return 0, false
}
