package launcher

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Until its execve a child has a socket to us, on which it sends descriptors
// (SCM_RIGHTS, unix(7)) and the call that failed.

// failure is what a child sends before it gives up.
type failure struct {
	call  uintptr // its index
	errno syscall.Errno
}

// send has the child send us descriptors, the results of earlier calls.
func (f *plan) send(s step, descriptors ...*call) {
	control := unix.UnixRights(make([]int, len(descriptors))...)
	for i, d := range descriptors {
		d.result = (*int32)(unsafe.Pointer(&control[unix.CmsgLen(4*i)]))
	}
	message := &unix.Msghdr{Control: &control[0], Iov: &unix.Iovec{Base: new(byte)}, Iovlen: 1}
	message.Iov.SetLen(1)
	message.SetControllen(len(control))
	f.add(s, unix.SYS_SENDMSG, f.report, message, 0)
	f.sent += len(descriptors)
}

// receive returns the descriptors that the child has sent, or why it failed. It never
// blocks: the child has been executed or has ended, and sends no more.
func (f *plan) receive() (descriptors []int, err error) {
	var failed failure
	text := unsafe.Slice((*byte)(unsafe.Pointer(&failed)), unsafe.Sizeof(failed))
	control := make([]byte, unix.CmsgSpace(4*f.sent))
	for {
		n, rights, _, _, err := unix.Recvmsg(f.reports, text, control, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		if err == unix.EAGAIN || err == nil && n == 0 {
			break
		}
		var messages []unix.SocketControlMessage
		var fds []int
		if err == nil && rights == 0 {
			c := f.list[failed.call]
			err = &stepError{c.step, c.about, failed.errno}
		}
		if err == nil {
			messages, err = unix.ParseSocketControlMessage(control[:rights])
		}
		if err == nil {
			fds, err = unix.ParseUnixRights(&messages[0])
		}
		if err != nil {
			closeAll(descriptors)
			return nil, err
		}
		descriptors = append(descriptors, fds...)
	}
	if len(descriptors) != f.sent {
		closeAll(descriptors)
		return nil, fmt.Errorf("it sent %d of %d descriptors", len(descriptors), f.sent)
	}
	return descriptors, nil
}

func closeAll(descriptors []int) {
	for _, fd := range descriptors {
		_ = unix.Close(fd)
	}
}
