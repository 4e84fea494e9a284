package launcher

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A child has a socket to us until its execve, on which it hands over descriptors
// (SCM_RIGHTS, unix(7)) and tells which call failed.

// failure is what a child writes when it can't become what it should.
type failure struct {
	call  uintptr // its index
	errno syscall.Errno
}

// hand has the child send us descriptors, which earlier calls give.
func (f *forked) hand(s step, descriptors ...*call) {
	control := unix.UnixRights(make([]int, len(descriptors))...)
	for i, d := range descriptors {
		d.gives = (*int32)(unsafe.Pointer(&control[unix.CmsgLen(4*i)]))
	}
	message := &unix.Msghdr{Control: &control[0], Iov: &unix.Iovec{Base: new(byte)}, Iovlen: 1}
	message.Iov.SetLen(1)
	message.SetControllen(len(control))
	f.add(s, unix.SYS_SENDMSG, f.report, message, 0)
	f.handed += len(descriptors)
}

// receive gives the descriptors that the child has handed over, or why it failed. It
// waits for nothing: a child that has been executed, or has ended, says no more.
func (f *forked) receive() (descriptors []int, err error) {
	var failed failure
	text := unsafe.Slice((*byte)(unsafe.Pointer(&failed)), unsafe.Sizeof(failed))
	control := make([]byte, unix.CmsgSpace(4*f.handed))
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
	if len(descriptors) != f.handed {
		closeAll(descriptors)
		return nil, fmt.Errorf("it handed over %d of %d descriptors", len(descriptors), f.handed)
	}
	return descriptors, nil
}

func closeAll(descriptors []int) {
	for _, fd := range descriptors {
		_ = unix.Close(fd)
	}
}
