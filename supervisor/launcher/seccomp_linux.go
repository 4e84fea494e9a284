package launcher

import (
	"fmt"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
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

// refuseSystemCalls makes the calls above fail with EPERM, and with them
// sockets of families other than those that Deno uses and, unless the operator
// granted it, starting processes: threads only. The filter holds for this
// architecture's own calling convention (and refuses x32's).
func refuseSystemCalls(processes bool) error {
	info, err := arch.GetInfo("")
	if err != nil {
		return err
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
	err = seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy:     seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: groups},
	})
	if err != nil {
		return fmt.Errorf("load the system call filter: %w", err)
	}
	return nil
}
