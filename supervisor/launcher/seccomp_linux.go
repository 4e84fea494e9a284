package launcher

import (
	"fmt"
	"sync"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// neverNeeded are system calls that no Deno process makes, and that have been
// ways out of a process or into the kernel.
var neverNeeded = []string{
	// other processes' memory and descriptors
	"ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise",
	// mounts, namespaces, handles that go round path checks
	"mount", "umount2", "pivot_root", "chroot", "unshare", "setns", "move_mount", "open_tree", "fsopen",
	"fsmount", "fsconfig", "fspick", "mount_setattr", "name_to_handle_at", "open_by_handle_at",
	// large kernel interfaces with a history
	"bpf", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd",
	"keyctl", "add_key", "request_key",
	// the machine itself
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon",
	"swapoff", "acct", "quotactl", "quotactl_fd", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "syslog",
	"sethostname", "setdomainname", "iopl", "ioperm", "lookup_dcookie", "vhangup",
	// leaving the process group, by which everything is ended
	"setsid", "setpgid",
}

// systemCallFilter gives a filter that makes the calls above fail with EPERM,
// and with them sockets of families other than those that Deno uses and, unless
// the operator granted it, starting processes: threads only. Calls by another
// convention than this architecture's own (i386's, x32's) fail, whatever they are.
func systemCallFilter(processes bool) (unix.SockFprog, error) {
	assemble := threadsOnly
	if processes {
		assemble = withProcesses
	}
	filter, err := assemble()
	if err != nil {
		return unix.SockFprog{}, fmt.Errorf("assemble the system call filter: %w", err)
	}
	return unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}, nil
}

var (
	threadsOnly   = sync.OnceValues(func() ([]unix.SockFilter, error) { return assembleFilter(false) })
	withProcesses = sync.OnceValues(func() ([]unix.SockFilter, error) { return assembleFilter(true) })
)

func assembleFilter(processes bool) ([]unix.SockFilter, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	known := func(names ...string) (there []string) {
		for _, name := range names {
			if _, ok := info.SyscallNames[name]; ok { // arm64 has no fork
				there = append(there, name)
			}
		}
		return there
	}
	groups := []seccomp.SyscallGroup{{
		Action: seccomp.ActionErrno,
		Names:  known(neverNeeded...),
		NamesWithCondtions: []seccomp.NameWithConditions{{
			Name: "socket",
			Conditions: seccomp.ArgumentConditions{
				{Argument: 0, Operation: seccomp.NotEqual, Value: unix.AF_UNIX},
				{Argument: 0, Operation: seccomp.NotEqual, Value: unix.AF_INET},
				{Argument: 0, Operation: seccomp.NotEqual, Value: unix.AF_INET6},
				{Argument: 0, Operation: seccomp.NotEqual, Value: unix.AF_NETLINK}, // getaddrinfo(3)
			},
		}, {
			// Landlock's rules for TCP say nothing of MPTCP.
			Name:       "socket",
			Conditions: seccomp.ArgumentConditions{{Argument: 2, Operation: seccomp.Equal, Value: unix.IPPROTO_MPTCP}},
		}},
	}}
	if !processes {
		groups = append(groups,
			seccomp.SyscallGroup{
				Action: seccomp.ActionErrno,
				Names:  known("fork", "vfork"),
				NamesWithCondtions: []seccomp.NameWithConditions{{
					Name:       "clone",
					Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsNotSet, Value: unix.CLONE_THREAD}},
				}},
			},
			// A filter can't look into clone3's arguments; with ENOSYS the C
			// library falls back to clone.
			seccomp.SyscallGroup{
				Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS),
				Names:  known("clone3"),
			})
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: groups}
	instructions, err := policy.Assemble()
	if err != nil {
		return nil, err
	}
	const architecture = 4 // its offset in seccomp_data, seccomp(2)
	raw, err := bpf.Assemble(append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: architecture, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(unix.EPERM)},
	}, instructions...))
	if err != nil {
		return nil, err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filter, nil
}
