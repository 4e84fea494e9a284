package sandbox

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

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
