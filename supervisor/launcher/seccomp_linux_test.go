package launcher

import (
	"encoding/binary"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// verdict runs the filter on one system call, as the kernel would.
func verdict(t *testing.T, processes bool, architecture uint32, number int, arguments ...uint64) uint32 {
	t.Helper()
	filter, err := assembleFilter(processes)
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]bpf.RawInstruction, len(filter))
	for i, f := range filter {
		raw[i] = bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	instructions, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter has instructions that are none")
	}
	machine, err := bpf.NewVM(instructions)
	if err != nil {
		t.Fatal(err)
	}
	// seccomp_data, seccomp(2): number, architecture, instruction pointer, six
	// arguments, of which the filter looks at each half; the machine reads all of
	// it as big-endian words, the kernel as its own.
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data, uint32(number))
	binary.BigEndian.PutUint32(data[4:], architecture)
	for i, a := range arguments {
		binary.BigEndian.PutUint32(data[16+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[20+8*i:], uint32(a>>32))
	}
	result, err := machine.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(result)
}

func TestSystemCallFilter(t *testing.T) {
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	own := uint32(info.ID)
	const (
		allowed = unix.SECCOMP_RET_ALLOW
		refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	for _, row := range []struct {
		name         string
		processes    bool
		architecture uint32
		number       int
		arguments    []uint64
		want         uint32
	}{
		{"read", false, own, unix.SYS_READ, nil, allowed},
		{"execve, of the child itself", false, own, unix.SYS_EXECVE, nil, allowed},
		{"ptrace", false, own, unix.SYS_PTRACE, nil, refused},
		{"ptrace, with processes", true, own, unix.SYS_PTRACE, nil, refused},
		{"io_uring", false, own, unix.SYS_IO_URING_SETUP, nil, refused},
		{"setsid", false, own, unix.SYS_SETSID, nil, refused},
		{"a thread", false, own, unix.SYS_CLONE, []uint64{unix.CLONE_THREAD | unix.CLONE_VM}, allowed},
		{"a process", false, own, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_VFORK}, refused},
		{"a process, granted", true, own, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_VFORK}, allowed},
		{"clone3", false, own, unix.SYS_CLONE3, nil, unknown},
		{"a TCP socket", false, own, unix.SYS_SOCKET, []uint64{unix.AF_INET}, allowed},
		{"a packet socket", false, own, unix.SYS_SOCKET, []uint64{unix.AF_PACKET}, refused},
		{"read, by another architecture's convention", false, own ^ 1, unix.SYS_READ, nil, refused},
		{"i386's fork", false, unix.AUDIT_ARCH_I386, 2, nil, refused},
		{"i386's fork, with processes", true, unix.AUDIT_ARCH_I386, 2, nil, refused},
	} {
		if got := verdict(t, row.processes, row.architecture, row.number, row.arguments...); got != row.want {
			t.Errorf("%s gave %#x, want %#x", row.name, got, row.want)
		}
	}
}
