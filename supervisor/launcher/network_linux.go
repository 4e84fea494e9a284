package launcher

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// network brings up loopback in the child's own network, opens the sockets that were
// asked for and sends them to us.
func (f *plan) network(w *Wall) {
	if w.Network {
		return
	}
	socket := func() *call {
		return f.add(stepNetwork, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	}
	up, _ := unix.NewIfreq("lo") // it fails for longer names
	up.SetUint16(unix.IFF_UP)
	lo := socket()
	f.add(stepNetwork, unix.SYS_IOCTL, lo, unix.SIOCSIFFLAGS, up)
	f.add(stepNetwork, unix.SYS_CLOSE, lo)

	var sockets []*call
	for _, port := range w.Listen {
		listening := socket()
		address := &unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&address.Port))[:], port)
		f.add(stepNetwork, unix.SYS_BIND, listening, address, unix.SizeofSockaddrInet4)
		f.add(stepNetwork, unix.SYS_LISTEN, listening, 128)
		sockets = append(sockets, listening)
	}
	if w.Dial {
		sockets = append(sockets, socket())
	}
	if sockets == nil {
		return
	}
	f.send(stepHand, sockets...)
	for _, s := range sockets {
		f.add(stepHand, unix.SYS_CLOSE, s)
	}
}
