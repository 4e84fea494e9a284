package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

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
