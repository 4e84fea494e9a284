package launcher

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// handed are the sockets that a child opens in its own network and hands to us,
// as one message with rights, unix(7).
type handed struct {
	ours    int
	control []byte // of the child's message: the result of socket goes into it
	count   int
}

func (h *handed) close() {
	if h != nil && h.ours >= 0 {
		_ = unix.Close(h.ours)
		h.ours = -1
	}
}

// network brings the loopback of the child's own network up, opens the sockets
// that were asked for, and hands them over.
func (f *forked) network(w *Wall) error {
	if w.Network {
		return nil
	}
	socket := func(fd *int32) {
		f.add(stepNetwork, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0).give(fd)
	}
	// struct ifreq, netdevice(7): the name in 16 bytes, then the flags.
	up := &[40]byte{'l', 'o'}
	binary.NativeEndian.PutUint16(up[16:], unix.IFF_UP)
	lo := f.result()
	socket(lo)
	f.add(stepNetwork, unix.SYS_IOCTL, 0, unix.SIOCSIFFLAGS, hold(&f.calls, up)).take(0, lo)
	f.add(stepNetwork, unix.SYS_CLOSE, 0).take(0, lo)
	count := len(w.Listen)
	if w.Dial {
		count++
	}
	if count == 0 {
		return nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make the sockets through which a child hands over its own: %w", err)
	}
	f.opened = append(f.opened, pair[1])
	f.handed = &handed{ours: pair[0], count: count, control: make([]byte, unix.CmsgSpace(4*count))}
	header := (*unix.Cmsghdr)(unsafe.Pointer(&f.handed.control[0]))
	header.Level, header.Type = unix.SOL_SOCKET, unix.SCM_RIGHTS
	header.SetLen(unix.CmsgLen(4 * count))
	slot := func(i int) *int32 { return (*int32)(unsafe.Pointer(&f.handed.control[unix.CmsgLen(4*i)])) }
	for i, port := range w.Listen {
		fd := slot(i)
		socket(fd)
		address := &unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&address.Port))[:], port)
		f.add(stepNetwork, unix.SYS_BIND, 0, hold(&f.calls, address), unix.SizeofSockaddrInet4).take(0, fd)
		f.add(stepNetwork, unix.SYS_LISTEN, 0, 128).take(0, fd)
	}
	if w.Dial {
		socket(slot(count - 1))
	}
	message := &unix.Msghdr{Control: &f.handed.control[0], Iov: &unix.Iovec{Base: new(byte)}, Iovlen: 1}
	message.Iov.SetLen(1)
	message.SetControllen(len(f.handed.control))
	f.add(stepHand, unix.SYS_SENDMSG, uintptr(pair[1]), hold(&f.calls, message), 0)
	for i := range count {
		f.add(stepHand, unix.SYS_CLOSE, 0).take(0, slot(i))
	}
	return nil
}

// receive takes the sockets that the child has handed over.
func (f *forked) receive() (s Started, err error) {
	if f.handed == nil {
		return s, nil
	}
	var one [1]byte
	control := make([]byte, len(f.handed.control))
	_, n, _, _, err := unix.Recvmsg(f.handed.ours, one[:], control, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return s, fmt.Errorf("take the child's sockets: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return s, fmt.Errorf("take the child's sockets: %d messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != f.handed.count {
		return s, fmt.Errorf("take the child's sockets: %d of %d: %w", len(fds), f.handed.count, err)
	}
	for i, fd := range fds {
		_ = unix.SetNonblock(fd, true)
		file := os.NewFile(uintptr(fd), "a socket in a child's network")
		if i < len(f.asked.Listen) {
			s.Listeners = append(s.Listeners, file)
		} else {
			s.Socket = file
		}
	}
	return s, nil
}
