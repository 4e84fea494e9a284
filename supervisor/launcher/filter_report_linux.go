package launcher

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

var reportRefused atomic.Pointer[func(call string)]

// ReportRefused has report called for each system call that a filter refuses, in all
// children that are started until it is called with nil. Calls that libraries are known
// to do without are not reported. report must be safe for concurrent use. Start fails
// where the kernel can't report.
func ReportRefused(report func(call string)) {
	if report == nil {
		reportRefused.Store(nil)
		return
	}
	reportRefused.Store(&report)
}

// question is struct seccomp_notif, and reply struct seccomp_notif_resp.
type question struct {
	id           uint64
	pid, flags   uint32
	number       int32
	architecture uint32
	instruction  uint64
	arguments    [6]uint64
}

type reply struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

func reportCalls(listener int, report func(call string)) {
	defer unix.Close(listener)
	info, err := arch.GetInfo("")
	if err != nil {
		return // its calls fail with ENOSYS then
	}
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err == unix.EINTR {
			continue
		} else if err != nil || ready[0].Revents&unix.POLLIN == 0 {
			return // all processes with the filter have ended
		}
		var q question
		if !control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&q)) {
			continue // the process that asked has ended
		}
		name, known := info.SyscallNumbers[int(q.number)]
		errno := unix.EPERM
		if !known {
			name, errno = fmt.Sprintf("number %d", q.number), unix.ENOSYS
		}
		report(fmt.Sprintf("%s(%#x, %#x, %#x)", name, q.arguments[0], q.arguments[1], q.arguments[2]))
		r := reply{id: q.id, errno: -int32(errno)}
		control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
	}
}

func control(fd int, request uintptr, argument unsafe.Pointer) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	return errno == 0
}
