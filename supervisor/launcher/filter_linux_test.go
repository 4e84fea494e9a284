package launcher

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

var (
	deno      = filter{}
	rooted    = filter{ownRoot: true}
	networked = filter{network: true}
	programs  = filter{processes: true, network: true}
	wide      = filter{processes: true, ownRoot: true}
	most      = filter{processes: true, network: true, ownRoot: true}

	filters = []filter{deno, rooted, networked, programs, wide, most, {processes: true}, {network: true, ownRoot: true}, {interfaces: true}}
)

// filterMachine runs a filter as the kernel would.
type filterMachine struct {
	t    *testing.T
	vm   *bpf.VM
	info *arch.Info
	size int
}

func newMachine(t *testing.T, f filter, info *arch.Info) filterMachine {
	t.Helper()
	program := f.program(info)
	if _, err := bpf.Assemble(program); err != nil { // its own limits: lengths of jumps
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return filterMachine{t, vm, info, len(program)}
}

func (m filterMachine) verdict(architecture, number uint32, arguments ...uint64) answer {
	m.t.Helper()
	// seccomp_data, seccomp(2): number, architecture, instruction pointer, six
	// arguments. The filterMachine reads all of it as big-endian words, the kernel as
	// its own, of which the lower is first.
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data, number)
	binary.BigEndian.PutUint32(data[4:], architecture)
	for i, a := range arguments {
		binary.BigEndian.PutUint32(data[16+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[20+8*i:], uint32(a>>32))
	}
	result, err := m.vm.Run(data)
	if err != nil {
		m.t.Fatal(err)
	}
	return answer(result)
}

func TestSystemCallFilter(t *testing.T) {
	const (
		high    = 1 << 32 // what the kernel does not look at
		newUser = unix.CLONE_THREAD | unix.CLONE_VM | unix.CLONE_NEWUSER
	)
	for _, row := range []struct {
		name      string
		call      string
		filter    filter
		arguments []uint64
		want      answer
	}{
		{"read", "read", deno, nil, allowed},
		{"execve, of the child itself", "execve", deno, nil, allowed},
		{"ptrace", "ptrace", deno, nil, refused},
		{"ptrace, with everything", "ptrace", most, nil, refused},
		{"io_uring", "io_uring_setup", deno, nil, absent},
		{"setsid", "setsid", deno, nil, refused},
		{"setsid of programs, without process IDs of its own", "setsid", programs, nil, refused},
		{"setsid of programs", "setsid", wide, nil, allowed},
		{"a thread", "clone", deno, []uint64{unix.CLONE_THREAD | unix.CLONE_VM}, allowed},
		{"a thread in a namespace", "clone", deno, []uint64{newUser}, refused},
		{"a process", "clone", deno, []uint64{unix.CLONE_VM | unix.CLONE_VFORK}, refused},
		{"a process, granted", "clone", programs, []uint64{unix.CLONE_VM | unix.CLONE_VFORK}, allowed},
		{"a process in a namespace, granted", "clone", programs, []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, refused},
		{"a process of the parent's, granted", "clone", most, []uint64{unix.CLONE_PARENT}, refused},
		{"clone3", "clone3", most, nil, absent},
		{"a TCP socket", "socket", deno, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, unix.IPPROTO_TCP}, allowed},
		{"a TCP socket, with high bits", "socket", deno, []uint64{unix.AF_INET | high, unix.SOCK_STREAM | high, high}, allowed},
		{"MPTCP", "socket", most, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, refused},
		{"MPTCP, with high bits", "socket", most, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP | high}, refused},
		{"UDP", "socket", deno, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, refused},
		{"UDP of a network", "socket", networked, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, allowed},
		{"ping", "socket", most, []uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, refused},
		{"a raw socket", "socket", most, []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, refused},
		{"a packet socket", "socket", most, []uint64{unix.AF_PACKET, unix.SOCK_RAW, 0}, refused},
		{"netlink", "socket", most, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, refused},
		{"netlink to list interfaces", "socket", filter{interfaces: true}, []uint64{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE}, allowed},
		{"netlink for another purpose", "socket", filter{interfaces: true}, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, refused},
		{"a call that is told", "ptrace", filter{watched: true}, nil, asked},
		{"arguments that are told", "socket", filter{watched: true}, []uint64{unix.AF_PACKET}, asked},
		{"a call that is known to be tried", "clone3", filter{watched: true}, nil, absent},
		{"arguments that are known to be tried", "socket", filter{watched: true}, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, refused},
		{"a socket with a path", "socket", deno, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, refused},
		{"a socket with a path, on a network", "socket", networked, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, allowed},
		{"Fast Open", "sendto", most, []uint64{3, 0, 0, unix.MSG_FASTOPEN}, refused},
		{"Fast Open, with high bits", "sendto", most, []uint64{3, 0, 0, unix.MSG_FASTOPEN | high}, refused},
		{"Fast Open of a message", "sendmsg", most, []uint64{3, 0, unix.MSG_FASTOPEN}, refused},
		{"Fast Open of messages", "sendmmsg", most, []uint64{3, 0, 1, unix.MSG_FASTOPEN}, refused},
		{"Fast Open by an option", "setsockopt", most, []uint64{3, unix.SOL_TCP, unix.TCP_FASTOPEN_CONNECT}, refused},
		{"no delay", "setsockopt", deno, []uint64{3, unix.SOL_TCP, unix.TCP_NODELAY}, allowed},
		{"a socket's filter", "setsockopt", most, []uint64{3, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}, refused},
		{"typing into a terminal", "ioctl", most, []uint64{0, unix.TIOCSTI}, refused},
		{"typing into a terminal, with high bits", "ioctl", most, []uint64{0, unix.TIOCSTI | high}, refused},
		{"a thread's name", "prctl", deno, []uint64{unix.PR_SET_NAME}, allowed},
		{"outliving the server", "prctl", most, []uint64{unix.PR_SET_PDEATHSIG}, refused},
		{"outliving the server, with high bits", "prctl", most, []uint64{unix.PR_SET_PDEATHSIG | high}, refused},
		{"another domain of execution", "personality", most, []uint64{8}, refused},
		{"its own limits", "prlimit64", deno, []uint64{0}, allowed},
		{"another's limits", "prlimit64", most, []uint64{1}, refused},
		{"a signal to another", "kill", deno, []uint64{1, 9}, refused},
		{"a signal to another, of programs", "kill", programs, []uint64{1, 9}, allowed},
		{"signals of a descriptor to another", "fcntl", most, []uint64{3, unix.F_SETOWN, 1}, refused},
		{"chmod", "fchmodat", networked, nil, refused},
		{"chmod in its own root", "fchmodat", rooted, nil, allowed},
		{"newer chmod", "fchmodat2", deno, nil, absent},
		{"times of a descriptor", "utimensat", deno, []uint64{3, 0}, allowed},
		{"times of a path", "utimensat", programs, []uint64{3, 0x1000}, refused},
		{"times of a path at a round address", "utimensat", programs, []uint64{3, high}, refused},
		{"times of a path in its own root", "utimensat", rooted, []uint64{3, high}, allowed},
		{"a symbolic link", "symlinkat", programs, nil, refused},
		{"a pipe with a name", "mknodat", programs, []uint64{3, 0, unix.S_IFIFO | 0o600}, allowed},
		{"a device", "mknodat", most, []uint64{3, 0, unix.S_IFBLK | 0o600}, refused},
	} {
		for _, info := range []*arch.Info{arch.X86_64, arch.AARCH64} {
			number, ok := info.SyscallNames[row.call]
			if !ok {
				t.Fatalf("%s has no %s", info.Name, row.call)
			}
			if got := newMachine(t, row.filter, info).verdict(uint32(info.ID), uint32(number), row.arguments...); got != row.want {
				t.Errorf("%s: %s gave %#x, want %#x", info.Name, row.name, got, row.want)
			}
		}
	}
}

// Calls by another convention, and calls that no table names.
func TestOtherConventionsFail(t *testing.T) {
	for _, f := range filters {
		m := newMachine(t, f, arch.X86_64)
		for _, row := range []struct {
			name                 string
			architecture, number uint32
			want                 answer
		}{
			{"i386's fork", unix.AUDIT_ARCH_I386, 2, refused},
			{"arm64's read", unix.AUDIT_ARCH_AARCH64, 63, refused},
			{"x32's read", unix.AUDIT_ARCH_X86_64, 0x40000000, absent},
			{"x32's execve", unix.AUDIT_ARCH_X86_64, 0x40000000 + 520, absent},
			{"number -1", unix.AUDIT_ARCH_X86_64, 0xffffffff, absent},
			{"a number between the tables", unix.AUDIT_ARCH_X86_64, 400, absent},
			{"a call of next year", unix.AUDIT_ARCH_X86_64, 600, absent},
		} {
			if got := m.verdict(row.architecture, row.number); got != row.want {
				t.Errorf("%+v: %s gave %#x, want %#x", f, row.name, got, row.want)
			}
		}
	}
}

// The search and the jumps against the lists, read as they stand.
func TestTheFilterSaysWhatItsListsSay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, info := range []*arch.Info{arch.X86_64, arch.AARCH64} {
		for _, f := range filters {
			m := newMachine(t, f, info)
			for number := range uint32(700) {
				name := info.SyscallNumbers[int(number)]
				for range 20 {
					arguments := f.randomArguments(random, name)
					want := f.plain(name, arguments)
					if got := m.verdict(uint32(info.ID), number, arguments...); got != want {
						t.Fatalf("%s %+v: %s (%d) with %#x gave %#x, want %#x", info.Name, f, name, number, arguments, got, want)
					}
				}
			}
			t.Logf("%s %+v: %d instructions", info.Name, f, m.size)
		}
	}
}

// A misspelt name would allow nothing. No architecture has all of them.
func TestTheListsNameSystemCalls(t *testing.T) {
	for _, f := range filters {
		lists := f.absent()
		for _, r := range f.rules() {
			lists += " " + r.names
		}
		for name := range strings.FieldsSeq(lists) {
			if _, ok := arch.X86_64.SyscallNames[name]; !ok && arch.AARCH64.SyscallNames[name] == 0 {
				t.Errorf("%s is no system call", name)
			}
		}
	}
}

// plain is what the lists say of a call.
func (f filter) plain(name string, arguments []uint64) answer {
	if name == "" {
		return absent
	}
	named := false
	for _, r := range f.rules() {
		if !names(r.names, name) {
			continue
		}
		named = true
		holds := true
		for _, c := range r.when {
			word := uint32(arguments[(c.offset-16)/8] >> ((c.offset - 16) % 8 * 8))
			is := false
			for _, value := range c.values {
				is = is || word&c.mask == value
			}
			holds = holds && is
		}
		if holds {
			return map[bool]answer{false: allowed, true: refused}[r.refuses]
		}
	}
	if !named && names(f.absent(), name) {
		return absent
	}
	return refused
}

func names(list, name string) bool {
	for one := range strings.FieldsSeq(list) {
		if one == name {
			return true
		}
	}
	return false
}

// randomArguments are near to what the conditions on the call compare.
func (f filter) randomArguments(random *rand.Rand, name string) []uint64 {
	arguments := make([]uint64, 6)
	for i := range arguments {
		arguments[i] = random.Uint64() >> random.IntN(65)
	}
	for _, r := range f.rules() {
		if !names(r.names, name) || random.IntN(2) == 0 {
			continue
		}
		for _, c := range r.when {
			a := &arguments[(c.offset-16)/8]
			shift := (c.offset - 16) % 8 * 8
			value := uint64(c.values[random.IntN(len(c.values))])
			if random.IntN(4) == 0 {
				value |= uint64(^c.mask) & random.Uint64()
			}
			if random.IntN(8) == 0 {
				value ^= 1 << random.IntN(32)
			}
			*a = *a&^(0xffffffff<<shift) | value<<shift
		}
	}
	return arguments
}

func TestOwnIDIsOnlyThisChilds(t *testing.T) {
	one, err := deno.assemble()
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range ownIDs(one) {
		*place = 1234
	}
	other, err := deno.assemble()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(len(ownIDs(one)), len(ownIDs(other))); got != "0 2" {
		t.Errorf("places for an own ID, after writing it and in the next filter: %s, want 0 2", got)
	}
}
