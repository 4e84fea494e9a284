package launcher

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

var reportRefused atomic.Pointer[func(call string)]

// ReportRefused has report told of each system call that the filters of children
// refuse which are started from now on, until it is called with nil. The calls
// fail all the same; those that libraries are known to do without are not told.
// report must be safe for concurrent use. Starting fails where the kernel can't
// tell.
func ReportRefused(report func(call string)) {
	if report == nil {
		reportRefused.Store(nil)
		return
	}
	reportRefused.Store(&report)
}

// watch is how a child's refused calls come to be known here: the kernel gives
// the child a descriptor for its filter's questions, and the child sends it to us.
type watch struct {
	report    func(call string)
	ours      *os.File
	theirs    int
	message   unix.Msghdr // with one byte, and one descriptor
	data      unix.Iovec
	zero      byte
	control   []byte
	listening *int32 // the descriptor, in control
}

func (f *forked) newWatch(report func(call string)) (*watch, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	w := &watch{report: report, ours: os.NewFile(uintptr(pair[0]), "refused calls"), control: unix.UnixRights(0)}
	theirs := os.NewFile(uintptr(pair[1]), "refused calls")
	w.theirs, err = f.above(theirs)
	_ = theirs.Close()
	w.listening = (*int32)(unsafe.Pointer(&w.control[unix.CmsgLen(0)]))
	w.data.Base = &w.zero
	w.data.SetLen(1)
	w.message.Iov = &w.data
	w.message.SetIovlen(1)
	w.message.Control = &w.control[0]
	w.message.SetControllen(len(w.control))
	return w, err
}

func (w *watch) close() {
	if w != nil {
		_ = w.ours.Close()
	}
}

// start answers the questions of the child's filter until the child has ended.
func (w *watch) start() error {
	if w == nil {
		return nil
	}
	control := make([]byte, len(w.control))
	_, n, _, _, err := unix.Recvmsg(int(w.ours.Fd()), make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return fmt.Errorf("receive the filter's descriptor: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("receive the filter's descriptor: %d messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return fmt.Errorf("receive the filter's descriptor: %d descriptors: %w", len(fds), err)
	}
	go answerQuestions(fds[0], w.report)
	return nil
}

// question is struct seccomp_notif, reply is struct seccomp_notif_resp.
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

func answerQuestions(listener int, report func(call string)) {
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
			return // nobody is under the filter any more
		}
		var q question
		if !control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&q)) {
			continue // who asked has ended
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
