package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// awaitExit returns when the process has ended, and leaves it to be reaped.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// cpuTime reads the clock of another process's processor time, whose number is
// made of the process's as clock_getcpuclockid(3) does.
func cpuTime(pid int) time.Duration {
	const perProcess, scheduler = 0, 2
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|perProcess|scheduler), &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// TellsCPU says that the system tells how much processor time a child has used.
const TellsCPU = true

// spent is the processor time of all that the child has started or, where the machine
// doesn't count that, of its processes and of those that they have waited for.
func (c *Child) spent() (sum time.Duration) {
	if all, ok := c.group.CPUTime(); ok {
		return all
	}
	for _, pid := range c.processes() {
		sum += cpuTime(pid)
		for _, field := range []int{statChildUser, statChildSystem} {
			ticks, _ := statField(fmt.Sprintf("/proc/%d/stat", pid), field)
			sum += time.Duration(ticks) * time.Second / ticksPerSecond
		}
	}
	return sum
}

// processes are those of the child's cgroup; without one, the child and those that
// it has started, of which it is the parent once theirs has ended, in a process
// namespace of its own.
func (c *Child) processes() []int {
	if c.command.Wall != nil && !c.command.Wall.Processes {
		return []int{c.pid()}
	}
	if list := c.group.Processes(); len(list) > 0 {
		return list
	}
	list := []int{c.pid()}
	for i := 0; i < len(list); i++ {
		children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", list[i]))
		for _, file := range children {
			text, _ := os.ReadFile(file) // it may have just ended
			for _, child := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(child); err == nil {
					list = append(list, pid)
				}
			}
		}
	}
	return list
}

// connect connects a child's socket, which becomes the connection, to a port of the
// child's own loopback. A connection there is made, or refused, at once.
func connect(socket *os.File, port uint16) (net.Conn, error) {
	defer socket.Close()
	conn, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := conn.Control(func(fd uintptr) {
		err = unix.Connect(int(fd), &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
	})
	if err == unix.EINPROGRESS {
		err = nil
	}
	if err = errors.Join(controlErr, err); err != nil {
		return nil, err
	}
	return net.FileConn(socket)
}

// readMemory reads /proc/PID/status, proc_pid_status(5): sizes there are in KiB.
func readMemory(pid int) (memory, bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, false
	}
	anonymous, ok := statusField(status, "RssAnon:")
	if !ok {
		return memory{}, false // ended, not reaped yet
	}
	shared, _ := statusField(status, "RssShmem:")
	peak, _ := statusField(status, "VmHWM:")
	return memory{own: anonymous + shared, peak: peak}, true
}

func statusField(status []byte, name string) (int64, bool) {
	_, rest, ok := bytes.Cut(status, []byte("\n"+name))
	if !ok {
		return 0, false
	}
	line, _, _ := bytes.Cut(rest, []byte(" kB"))
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	return kib << 10, err == nil
}

func maxResident(state *os.ProcessState) int64 {
	return state.SysUsage().(*syscall.Rusage).Maxrss << 10 // KiB, getrusage(2)
}

// unnamed is how many bytes the files have that the child's processes have open and
// that have no name any more: they are on the disk until they are closed. They are
// looked for by the processes' descriptors alone.
func (c *Child) unnamed() (bytes int64) {
	type file struct{ device, inode uint64 }
	seen := map[file]bool{}
	for _, pid := range c.processes() {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		descriptors, err := os.ReadDir(dir)
		if err != nil {
			continue // it has just ended
		}
		for _, descriptor := range descriptors {
			path := dir + "/" + descriptor.Name()
			var stat syscall.Stat_t
			if syscall.Stat(path, &stat) != nil || stat.Nlink > 0 || stat.Mode&syscall.S_IFMT != syscall.S_IFREG {
				continue
			}
			key := file{uint64(stat.Dev), stat.Ino} // its type depends on the machine
			if target, err := os.Readlink(path); err != nil || strings.HasPrefix(target, "/memfd:") || seen[key] {
				continue // what is in memory is bounded as memory
			}
			seen[key] = true
			bytes += stat.Size
		}
	}
	return bytes
}
