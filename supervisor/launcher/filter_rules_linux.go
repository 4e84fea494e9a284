package launcher

import "golang.org/x/sys/unix"

// These lists were found by tracing the test suite's programs, the top packages of npm
// and PyPI, and programs that use each part of Deno and of its Node modules. All other
// calls are refused with EPERM.

// anywhere are calls that reach no more than the process itself, its descriptors, and
// files as far as Deno's permissions, the child's root or Landlock allow.
const anywhere = "" +
	// Descriptors, and waiting for them.
	" read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 close close_range lseek" +
	" dup dup2 dup3 pipe pipe2 eventfd eventfd2 sendfile copy_file_range" +
	" poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2" +
	// Files and directories.
	" access faccessat faccessat2 stat lstat fstat newfstatat fstatat statx statfs fstatfs" +
	" readlink readlinkat getdents getdents64 getcwd chdir fchdir umask" +
	" mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat" +
	" truncate ftruncate fallocate fadvise64 fsync fdatasync flock fchown" +
	" inotify_init inotify_init1 inotify_add_watch inotify_rm_watch" +
	// Memory: V8 makes machine code, and may protect it by keys.
	" mmap munmap mprotect mremap madvise brk pkey_alloc pkey_free pkey_mprotect" +
	// Threads, their own signals, and sleep.
	" exit exit_group futex set_robust_list rseq set_tid_address restart_syscall" +
	" sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_get_priority_max sched_get_priority_min" +
	" rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack" +
	" nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time" +
	// What the process and the machine are.
	" getpid getppid gettid getpgrp getuid geteuid getgid getegid getgroups getresuid getresgid" +
	" getrandom uname sysinfo times getrusage getcpu getpriority getrlimit setrlimit" +
	// Sockets that it has.
	" connect bind listen accept accept4 getsockname getpeername shutdown recvfrom recvmsg recvmmsg"

// execute is for every child, since Deno is executed under this filter. Without new
// processes it only replaces the child by another program in its root, behind the same
// wall.
const execute = "execve"

// withProcesses are what shells, coreutils, Python, git, Node and native libraries
// also use.
const withProcesses = "" +
	// Processes, waiting for them, and signals.
	" fork vfork execveat wait4 waitid pidfd_open pidfd_send_signal kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo" +
	" getpgid getsid capget get_robust_list rt_sigpending rt_sigtimedwait rt_sigsuspend pause signalfd signalfd4" +
	" sched_getattr sched_rr_get_interval ioprio_get" +
	// Timers.
	" getitimer setitimer alarm timer_create timer_settime timer_gettime timer_getoverrun timer_delete" +
	" timerfd_create timerfd_settime timerfd_gettime" +
	// Files, their attributes, and memory.
	" splice tee readahead sync_file_range getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr" +
	" memfd_create msync mincore mlock munlock mlock2 membarrier"

// withProcessesAndOwnRoot would reach beyond the child where paths and process IDs are
// the machine's.
const withProcessesAndOwnRoot = `
	setsid setpgid sched_setaffinity sched_setparam sched_setscheduler sched_setattr ioprio_set setpriority
	setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
	setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid
`

// withOwnRoot change a file's attributes by its path. They follow links, which Deno's
// permissions don't see and Landlock has no right for.
const withOwnRoot = `
	chown lchown fchownat utime utimes futimesat utimensat symlink symlinkat
`

// absent are calls that libraries try and do without. clone3 has its flags in memory,
// where a filter can't see them; the C library then uses clone.
func (f filter) absent() string {
	names := `
		clone3 io_uring_setup io_uring_enter io_uring_register io_setup
		futex_waitv futex_wake futex_wait futex_requeue mseal map_shadow_stack cachestat
		mbind set_mempolicy get_mempolicy set_mempolicy_home_node move_pages migrate_pages
		landlock_create_ruleset landlock_add_rule landlock_restrict_self
		setxattrat getxattrat listxattrat removexattrat statmount listmount
		lsm_get_self_attr lsm_set_self_attr lsm_list_modules open_tree_attr uretprobe openat2`
	if !f.processes {
		names += " pidfd_open membarrier memfd_create"
	}
	if !f.ownRoot {
		names += " fchmodat2"
	}
	return names
}

// Flags of sockets and messages that don't change what is reached. MSG_FASTOPEN, which
// connects, is not one.
const (
	socketFlags  = unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC
	messageFlags = unix.MSG_OOB | unix.MSG_DONTROUTE | unix.MSG_DONTWAIT | unix.MSG_EOR | unix.MSG_NOSIGNAL | unix.MSG_MORE
)

// namespaces are clone's flags for new namespaces, and for a process that is not the
// caller's child.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_PARENT | unix.CLONE_PTRACE

// option is a rule for some of a level's socket options.
func option(level uint32, names ...uint32) rule {
	return rule{names: "setsockopt getsockopt", when: []condition{arg(1, level), arg(2, names...)}}
}

// socket are conditions on socket(2), whatever its flags.
func socket(domain, kind, protocol condition) []condition {
	return []condition{domain, kind.masked(^uint32(socketFlags)), protocol}
}

func (f filter) rules() []rule {
	rules := []rule{
		{names: anywhere},
		{names: execute},
		// Files, but none that run as their owner: where a mount maps users, a child's
		// files belong to us on the disk. openat2 has its mode in memory.
		{names: "open", when: []condition{arg(1, 0).masked(makesFile)}},
		{names: "openat", when: []condition{arg(2, 0).masked(makesFile)}},
		{names: "open", when: []condition{arg(2, 0).masked(setsID)}},
		{names: "openat", when: []condition{arg(3, 0).masked(setsID)}},
		{names: "creat fchmod", when: []condition{arg(1, 0).masked(setsID)}},
		// Threads.
		{names: "clone", when: []condition{arg(0, unix.CLONE_THREAD|unix.CLONE_VM).masked(namespaces | unix.CLONE_THREAD | unix.CLONE_VM)}},
		// Signals to itself, as from abort(3).
		{names: "kill tgkill", when: []condition{arg(0, ownProcess)}},
		{names: "prlimit64", when: []condition{arg(0, 0)}},
		{names: "setpriority", when: []condition{arg(0, unix.PRIO_PROCESS), arg(1, 0)}},
		{names: "personality", when: []condition{arg(0, 0xffffffff)}}, // which only asks
		// Times of a descriptor, not of a path.
		{names: "utimensat", when: []condition{arg(1, 0), upper(arg(1, 0))}},
		// Not F_SETOWN and F_SETSIG, which send signals to any process, nor leases and
		// watches of directories.
		{names: "fcntl", when: []condition{arg(1, unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
			unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW,
			unix.F_GETPIPE_SZ, unix.F_SETPIPE_SZ, unix.F_ADD_SEALS, unix.F_GET_SEALS)}},
		{names: "ioctl", when: []condition{arg(1, unix.TCGETS, unix.TCGETS2, unix.TIOCGWINSZ, unix.TIOCINQ, fionbio, fioclex, fionclex)}},
		{names: "prctl", when: []condition{arg(0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_CAPBSET_READ, unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_NO_NEW_PRIVS,
			unix.PR_GET_DUMPABLE, unix.PR_GET_SECCOMP, unix.PR_GET_PDEATHSIG)}},
		{names: "prctl", when: []condition{arg(0, unix.PR_SET_VMA), arg(1, unix.PR_SET_VMA_ANON_NAME)}},
		{names: "arch_prctl", when: []condition{arg(0, archSetFS, archGetFS, archCETStatus, archShadowStackStatus)}},

		// TCP; other walls decide what it reaches.
		{names: "socket", when: socket(arg(0, unix.AF_INET, unix.AF_INET6), arg(1, unix.SOCK_STREAM), arg(2, 0, unix.IPPROTO_TCP))},
		{names: "socketpair", when: []condition{arg(0, unix.AF_UNIX), arg(1, unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET).masked(^uint32(socketFlags)), arg(2, 0)}},
		{names: "sendto sendmmsg", when: []condition{arg(3, 0).masked(^uint32(messageFlags))}},
		{names: "sendmsg", when: []condition{arg(2, 0).masked(^uint32(messageFlags))}},
		// No filters of its own, no Fast Open, no TLS in the kernel, no tables of rules.
		option(unix.SOL_SOCKET, unix.SO_REUSEADDR, unix.SO_REUSEPORT, unix.SO_KEEPALIVE, unix.SO_LINGER,
			unix.SO_BROADCAST, unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDTIMEO, unix.SO_RCVTIMEO),
		option(unix.SOL_TCP, unix.TCP_NODELAY, unix.TCP_CORK, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL,
			unix.TCP_KEEPCNT, unix.TCP_QUICKACK, unix.TCP_USER_TIMEOUT),
		option(unix.SOL_IPV6, unix.IPV6_V6ONLY, unix.IPV6_UNICAST_HOPS),
		{names: "getsockopt", when: []condition{arg(1, unix.SOL_SOCKET), arg(2, unix.SO_ERROR, unix.SO_TYPE, unix.SO_DOMAIN, unix.SO_PROTOCOL,
			unix.SO_ACCEPTCONN, unix.SO_PEERCRED)}},
	}
	if f.ownRoot {
		rules = append(rules, rule{names: withOwnRoot},
			rule{names: "chmod", when: []condition{arg(1, 0).masked(setsID)}},
			rule{names: "fchmodat fchmodat2", when: []condition{arg(2, 0).masked(setsID)}},
		)
	}
	if f.network {
		rules = append(rules,
			// UDP, for names, QUIC and datagrams that are granted.
			rule{names: "socket", when: socket(arg(0, unix.AF_INET, unix.AF_INET6), arg(1, unix.SOCK_DGRAM), arg(2, 0, unix.IPPROTO_UDP))},
			option(unix.SOL_IP, unix.IP_TOS, unix.IP_TTL, unix.IP_PKTINFO, unix.IP_MTU_DISCOVER,
				unix.IP_RECVERR, unix.IP_RECVTTL, unix.IP_RECVTOS, unix.IP_MULTICAST_IF, unix.IP_MULTICAST_TTL, unix.IP_MULTICAST_LOOP,
				unix.IP_ADD_MEMBERSHIP, unix.IP_DROP_MEMBERSHIP, unix.IP_ADD_SOURCE_MEMBERSHIP, unix.IP_DROP_SOURCE_MEMBERSHIP),
			option(unix.SOL_IPV6, unix.IPV6_MULTICAST_IF, unix.IPV6_MULTICAST_HOPS, unix.IPV6_MULTICAST_LOOP,
				unix.IPV6_JOIN_GROUP, unix.IPV6_LEAVE_GROUP, unix.IPV6_MTU_DISCOVER, unix.IPV6_RECVERR, unix.IPV6_RECVPKTINFO, unix.IPV6_PKTINFO,
				unix.IPV6_RECVTCLASS, unix.IPV6_TCLASS, unix.IPV6_DONTFRAG, unix.IPV6_RECVHOPLIMIT),
			option(unix.SOL_UDP, unix.UDP_SEGMENT, unix.UDP_GRO),
		)
	}
	if f.interfaces { // getifaddrs(3); reading needs no right, and changing has none
		rules = append(rules, rule{names: "socket", when: socket(arg(0, unix.AF_NETLINK), arg(1, unix.SOCK_RAW, unix.SOCK_DGRAM), arg(2, unix.NETLINK_ROUTE))})
	}
	local := rule{names: "socket", when: socket(arg(0, unix.AF_UNIX), arg(1, unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET), arg(2, 0))}
	// The C library always tries nscd, which caches names.
	local.refuses = !f.network && !(f.processes && f.ownRoot)
	rules = append(rules, local)
	if f.processes {
		rules = append(rules,
			rule{names: withProcesses},
			rule{names: "clone", when: []condition{arg(0, 0).masked(namespaces)}},
			// Named pipes and plain files, not devices.
			rule{names: "mknod", when: []condition{arg(1, 0, unix.S_IFREG, unix.S_IFIFO).masked(unix.S_IFMT | setsID)}},
			rule{names: "mknodat", when: []condition{arg(2, 0, unix.S_IFREG, unix.S_IFIFO).masked(unix.S_IFMT | setsID)}},
			rule{names: "ioctl", when: []condition{arg(1, unix.TIOCGPGRP, unix.FICLONE)}},
		)
		if f.ownRoot {
			rules = append(rules, rule{names: withProcessesAndOwnRoot})
		}
	}
	return rules
}

// setsID are the mode bits that have a file run as its owner or group, makesFile the
// flags that make a file.
const (
	setsID    = unix.S_ISUID | unix.S_ISGID
	makesFile = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// Values that the unix package does not name on each architecture.
const (
	fionbio   = 0x5421
	fioclex   = 0x5451
	fionclex  = 0x5450
	archSetFS = 0x1002
	archGetFS = 0x1003

	archCETStatus         = 0x3001 // asked by some builds of the C library
	archShadowStackStatus = 0x5005
)
