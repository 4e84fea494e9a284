package launcher

import (
	"errors"
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
	defer func() {
		if err != nil {
			closeAll(descriptors)
		}
	}()
	control := make([]byte, unix.CmsgSpace(4*f.handed))
	for {
		var failed failure
		n, rights, _, _, err := unix.Recvmsg(f.reports, unsafe.Slice((*byte)(unsafe.Pointer(&failed)), unsafe.Sizeof(failed)), control, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN || err == nil && n == 0:
			if len(descriptors) != f.handed {
				return descriptors, fmt.Errorf("it handed over %d of %d descriptors", len(descriptors), f.handed)
			}
			return descriptors, nil
		case err != nil:
			return descriptors, fmt.Errorf("hear how it started: %w", err)
		case rights == 0:
			if n != int(unsafe.Sizeof(failed)) || failed.call >= uintptr(len(f.list)) {
				return descriptors, errors.New("it did not say why it ended")
			}
			c := f.list[failed.call]
			return descriptors, &stepError{c.step, c.about, failed.errno}
		}
		messages, err := unix.ParseSocketControlMessage(control[:rights])
		for i := range messages {
			fds, wrong := unix.ParseUnixRights(&messages[i])
			descriptors, err = append(descriptors, fds...), errors.Join(err, wrong)
		}
		if err != nil {
			return descriptors, fmt.Errorf("take its descriptors: %w", err)
		}
	}
}

func closeAll(descriptors []int) {
	for _, fd := range descriptors {
		_ = unix.Close(fd)
	}
}
