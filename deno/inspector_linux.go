package deno

import (
	"net"

	"golang.org/x/sys/unix"
)

// acknowledge has the kernel acknowledge what was received at once. The child's
// side sends a message that follows another only then, and the kernel would take
// 40 ms over it.
func acknowledge(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
		})
	}
}
