// Makes system calls as native code in a child could, and prints what each answers.
// Arguments are such that a call that is let through changes nothing that lasts.
//
//	probe PORT SERVER FILE
//
// PORT is of a listener on 127.0.0.1, SERVER a process outside, FILE a file
// outside of the child's directories; the working directory is the child's own.
// Names that begin with "amd64:" are of calls that other architectures lack.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

// Calls that are newer than some C libraries; their numbers are the same everywhere.
#define SYS_FUTEX_WAITV 449
#define SYS_FCHMODAT2 452
#define SYS_STATMOUNT 457
#define SYS_LISTMOUNT 458
#define SYS_MSEAL 462
#define SYS_SETXATTRAT 463

#define HIGH (1L << 32) // what the kernel does not look at in an int
#define BAD ((void *)1) // no address

static void say(const char *name, long result) {
	const char *answer = "OK";
	if (result < 0 && !(answer = strerrorname_np(errno))) answer = "?";
	printf("%-40s %s\n", name, answer);
}

#define CALL(name, ...) say(name, syscall(__VA_ARGS__))
#define SAY(name, ...) CALL(#name, SYS_##name, ##__VA_ARGS__)

static void *nothing(void *x) { return x; }

// A call that makes a process: the process ends at once.
static void birth(const char *name, long result) {
	if (result == 0) _exit(0);
	say(name, result);
	if (result > 0) waitpid(result, NULL, __WALL);
}

int main(int argc, char **argv) {
	if (argc != 4) return 2;
	int server = atoi(argv[2]), self = getpid();
	const char *outside = argv[3];
	char buffer[4096] = {0};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "./socket"};
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);

	puts("# what every child needs");
	int own = openat(AT_FDCWD, "own", O_RDWR | O_CREAT, 0600);
	say("openat of its own", own);
	SAY(write, own, "x", 1);
	SAY(pread64, own, buffer, 1, 0);
	SAY(ftruncate, own, 0);
	SAY(fallocate, own, 0, 0, 1);
	SAY(fsync, own);
	SAY(fchmod, own, 0600);
	SAY(fchown, own, -1, -1);
	CALL("utimensat of a descriptor", SYS_utimensat, own, NULL, NULL, 0);
	CALL("flock", SYS_flock, own, 2);
	CALL("fcntl F_DUPFD_CLOEXEC", SYS_fcntl, own, F_DUPFD_CLOEXEC, 10);
	SAY(mkdirat, AT_FDCWD, "directory", 0700);
	SAY(linkat, AT_FDCWD, "own", AT_FDCWD, "other", 0);
	SAY(renameat2, AT_FDCWD, "other", AT_FDCWD, "another", 0);
	SAY(unlinkat, AT_FDCWD, "another", 0);
	SAY(statx, AT_FDCWD, ".", 0, 0, buffer);
	SAY(faccessat2, AT_FDCWD, ".", R_OK, 0);
	SAY(inotify_init1, 0);
	SAY(eventfd2, 0, 0);
	SAY(pipe2, buffer, 0);
	SAY(epoll_create1, 0);
	SAY(getrandom, buffer, 8, 0);
	CALL("prctl PR_SET_NAME", SYS_prctl, PR_SET_NAME, "probe");
	CALL("prctl PR_SET_NO_NEW_PRIVS", SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	SAY(sched_getaffinity, 0, sizeof buffer, buffer);
	CALL("prlimit64 of its own", SYS_prlimit64, 0, 7, NULL, buffer);
	CALL("setpriority of its own", SYS_setpriority, 0, 0, 19);
	CALL("personality, asked for", SYS_personality, 0xffffffff);
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("mmap", code == MAP_FAILED ? -1 : 0);
	CALL("mprotect for machine code", SYS_mprotect, code, 4096, PROT_READ | PROT_EXEC);
	SAY(madvise, code, 4096, MADV_DONTNEED);
	SAY(close_range, 1000, 1001, 0);
	CALL("ioctl FIONREAD", SYS_ioctl, own, 0x541b, buffer);
	CALL("kill of itself", SYS_kill, self, 0);
	CALL("tgkill of itself", SYS_tgkill, self, self, 0);
	pthread_t thread;
	int failed = pthread_create(&thread, NULL, nothing, NULL);
	errno = failed;
	say("a thread", failed ? -1 : 0);
	if (!failed) pthread_join(thread, NULL);

	puts("# sockets");
	int pair[2];
	say("socketpair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	say("TCP", tcp);
	say("TCP, bind to a port of the system's", bind(tcp, (void *)&any, sizeof any));
	SAY(listen, tcp, 1);
	CALL("accept4", SYS_accept4, tcp, NULL, NULL, 0);
	int one = 1;
	CALL("setsockopt TCP_NODELAY", SYS_setsockopt, tcp, 6, TCP_NODELAY, &one, sizeof one);
	int six = socket(AF_INET6, SOCK_STREAM, IPPROTO_TCP);
	say("TCP over IPv6", six);
	int client = socket(AF_INET, SOCK_STREAM, 0);
	say("TCP, connect outside", connect(client, (void *)&address, sizeof address));
	close(client);
	const struct { const char *name; long domain, type, protocol; } reaching[] = {
		{"MPTCP", AF_INET, SOCK_STREAM, 262},
		{"MPTCP, 0x100000106", AF_INET, SOCK_STREAM, 262 | HIGH},
		{"MPTCP, all words high", AF_INET | HIGH, SOCK_STREAM | HIGH, 262 | HIGH},
		{"SCTP", AF_INET, SOCK_STREAM, 132},
	};
	for (size_t i = 0; i < sizeof reaching / sizeof *reaching; i++) {
		client = syscall(SYS_socket, reaching[i].domain, reaching[i].type, reaching[i].protocol);
		say(reaching[i].name, client < 0 ? -1 : connect(client, (void *)&address, sizeof address));
		close(client);
	}
	struct iovec data = {"x", 1};
	struct mmsghdr messages = {.msg_hdr = {.msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &data, .msg_iovlen = 1}};
	client = socket(AF_INET, SOCK_STREAM, 0);
	CALL("sendto MSG_FASTOPEN", SYS_sendto, client, "x", 1, MSG_FASTOPEN, &address, sizeof address);
	CALL("sendto MSG_FASTOPEN, high word", SYS_sendto, client, "x", 1, MSG_FASTOPEN | HIGH, &address, sizeof address);
	CALL("sendmsg MSG_FASTOPEN", SYS_sendmsg, client, &messages.msg_hdr, MSG_FASTOPEN);
	CALL("sendmmsg MSG_FASTOPEN", SYS_sendmmsg, client, &messages, 1, MSG_FASTOPEN);
	CALL("setsockopt TCP_FASTOPEN", SYS_setsockopt, tcp, 6, TCP_FASTOPEN, &one, sizeof one);
	CALL("setsockopt TCP_FASTOPEN_CONNECT", SYS_setsockopt, client, 6, 30, &one, sizeof one);
	CALL("setsockopt TCP_FASTOPEN_CONNECT, high word", SYS_setsockopt, client, 6 | HIGH, 30 | HIGH, &one, sizeof one);
	CALL("setsockopt TCP_ULP", SYS_setsockopt, client, 6, 31, "tls", 3);
	CALL("setsockopt SO_ATTACH_FILTER", SYS_setsockopt, client, 1, 26, BAD, 16);
	CALL("setsockopt IPT_SO_SET_REPLACE", SYS_setsockopt, client, 0, 64, BAD, 16);
	const struct { const char *name; long domain, type, protocol; } sockets[] = {
		{"UDP", AF_INET, SOCK_DGRAM, 0},
		{"UDP over IPv6", AF_INET6, SOCK_DGRAM, 17},
		{"UDP-Lite", AF_INET, SOCK_DGRAM, 136},
		{"ICMP, datagrams", AF_INET, SOCK_DGRAM, 1},
		{"ICMP, raw", AF_INET, SOCK_RAW, 1},
		{"raw", AF_INET, SOCK_RAW, 255},
		{"packets", AF_PACKET, SOCK_RAW, 0},
		{"netlink", AF_NETLINK, SOCK_RAW, 0},
		{"netlink of the audit", AF_NETLINK, SOCK_RAW, 9},
		{"vsock", AF_VSOCK, SOCK_STREAM, 0},
		{"the kernel's ciphers", AF_ALG, SOCK_SEQPACKET, 0},
		{"bluetooth", AF_BLUETOOTH, SOCK_RAW, 0},
		{"keys", AF_KEY, SOCK_RAW, 2},
		{"TIPC", AF_TIPC, SOCK_STREAM, 0},
		{"RDS", AF_RDS, SOCK_SEQPACKET, 0},
		{"XDP", AF_XDP, SOCK_RAW, 0},
		{"SMC", AF_SMC, SOCK_STREAM, 0},
	};
	for (size_t i = 0; i < sizeof sockets / sizeof *sockets; i++) {
		int s = syscall(SYS_socket, sockets[i].domain, sockets[i].type, sockets[i].protocol);
		say(sockets[i].name, s);
		close(s);
	}
	int named = socket(AF_UNIX, SOCK_STREAM, 0);
	say("a socket with a path", named < 0 ? -1 : bind(named, (void *)&path, sizeof path));

	puts("# files outside");
	int fd;
	say("openat to read", fd = openat(AT_FDCWD, outside, O_RDONLY));
	close(fd);
	say("openat to write", fd = openat(AT_FDCWD, outside, O_WRONLY));
	close(fd);
	SAY(truncate, outside, 0);
	CALL("unlinkat outside", SYS_unlinkat, AT_FDCWD, outside, 0);
	CALL("renameat2 outside", SYS_renameat2, AT_FDCWD, outside, AT_FDCWD, "stolen", 0);
	CALL("linkat outside", SYS_linkat, AT_FDCWD, outside, AT_FDCWD, "link", 0);
	SAY(fchmodat, AT_FDCWD, outside, 0777);
	CALL("fchmodat2", SYS_FCHMODAT2, AT_FDCWD, outside, 0777, 0);
	SAY(fchownat, AT_FDCWD, outside, -1, -1, 0);
	SAY(utimensat, AT_FDCWD, outside, NULL, 0);
	SAY(setxattr, outside, "user.probe", "x", 1, 0);
	SAY(lsetxattr, outside, "user.probe", "x", 1, 0);
	CALL("setxattrat", SYS_SETXATTRAT, AT_FDCWD, outside, 0, "user.probe", BAD, 16);
	SAY(removexattr, outside, "user.none");
	CALL("fsetxattr of its own", SYS_fsetxattr, own, "user.probe", "x", 1, 0);
	CALL("getxattr of its own", SYS_getxattr, "own", NULL, NULL, 0);
	SAY(symlinkat, outside, AT_FDCWD, "symlink");
	CALL("fchmodat of its own", SYS_fchmodat, AT_FDCWD, "own", 0600);
	CALL("mknodat, a pipe", SYS_mknodat, AT_FDCWD, "pipe", S_IFIFO | 0600, 0);
	CALL("mknodat, a device", SYS_mknodat, AT_FDCWD, "device", S_IFCHR | 0600, 0x103);
	CALL("mknodat, a device, high word", SYS_mknodat, AT_FDCWD, "device", S_IFCHR | 0600 | HIGH, 0x103);
	SAY(openat2, AT_FDCWD, BAD, BAD, 24);
	SAY(name_to_handle_at, AT_FDCWD, outside, BAD, BAD, 0);
	SAY(open_by_handle_at, AT_FDCWD, BAD, 0);
	SAY(fanotify_init, 0, 0);
	SAY(fanotify_mark, -1, 0, 0, -1, NULL);
	SAY(quotactl, -1, NULL, 0, NULL);
	SAY(sync);
	SAY(syncfs, own);

	puts("# other processes");
	birth("clone, a process", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	birth("clone CLONE_PARENT", syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
	birth("clone CLONE_NEWUSER", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
	birth("clone CLONE_NEWUSER, high word", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD | HIGH, 0, 0, 0, 0));
	SAY(clone3, BAD, 64);
	CALL("wait4", SYS_wait4, -1, NULL, WNOHANG, NULL);
	CALL("kill of the server", SYS_kill, server, 0);
	CALL("kill of the server, high word", SYS_kill, server | HIGH, 0);
	CALL("kill of all", SYS_kill, -1, 0);
	CALL("tkill of the server", SYS_tkill, server, 0);
	CALL("tgkill of the server", SYS_tgkill, server, server, 0);
	SAY(rt_sigqueueinfo, server, 0, BAD);
	CALL("fcntl F_SETOWN", SYS_fcntl, tcp, F_SETOWN, server);
	CALL("fcntl F_SETOWN, high word", SYS_fcntl, tcp, F_SETOWN | HIGH, server);
	CALL("ioctl FIOSETOWN", SYS_ioctl, tcp, 0x8901, &server);
	CALL("fcntl F_SETLEASE", SYS_fcntl, own, 1024, 2);
	CALL("prlimit64 of the server", SYS_prlimit64, server, 7, NULL, buffer);
	CALL("prlimit64 of the server, high word", SYS_prlimit64, server | HIGH, 7, NULL, buffer);
	CALL("setpriority of the server", SYS_setpriority, 0, server, 0);
	CALL("setpriority of the user", SYS_setpriority, 2, 0, -21);
	SAY(sched_setaffinity, server, 0, NULL);
	SAY(sched_setscheduler, server, 0, BAD);
	SAY(ioprio_set, 1, server, -1);
	SAY(pidfd_open, server, 0);
	SAY(pidfd_getfd, -1, 0, 0);
	SAY(pidfd_send_signal, -1, 0, NULL, 0);
	SAY(ptrace, 16 /* PTRACE_ATTACH */, -1, 0, 0);
	SAY(process_vm_readv, server, BAD, 1, BAD, 1, 0);
	SAY(process_vm_writev, server, BAD, 1, BAD, 1, 0);
	SAY(process_madvise, -1, BAD, 1, 0, 0);
	SAY(process_mrelease, -1, 0);
	SAY(kcmp, self, server, 1, 0, 0);
	SAY(move_pages, server, 0, NULL, NULL, NULL, 0);
	SAY(migrate_pages, server, 0, NULL, NULL);
	SAY(get_robust_list, server, BAD, BAD);
	SAY(setsid);
	SAY(setpgid, 0, 0);
	SAY(setuid, getuid());
	SAY(setgroups, -1, NULL);
	SAY(capget, BAD, NULL);
	SAY(capset, BAD, NULL);

	puts("# what ties it to the server, and its own rights");
	CALL("prctl PR_SET_PDEATHSIG", SYS_prctl, PR_SET_PDEATHSIG, 0);
	CALL("prctl PR_SET_PDEATHSIG, high word", SYS_prctl, PR_SET_PDEATHSIG | HIGH, 0);
	CALL("prctl PR_SET_DUMPABLE", SYS_prctl, PR_SET_DUMPABLE, 0);
	CALL("prctl PR_SET_MM", SYS_prctl, PR_SET_MM, 8, 0, 0, 0);
	CALL("prctl PR_SET_PTRACER", SYS_prctl, PR_SET_PTRACER, 0);
	CALL("prctl PR_SET_CHILD_SUBREAPER", SYS_prctl, PR_SET_CHILD_SUBREAPER, 0);
	CALL("prctl PR_SET_SECCOMP", SYS_prctl, PR_SET_SECCOMP, 0);
	CALL("prctl PR_SET_KEEPCAPS", SYS_prctl, PR_SET_KEEPCAPS, 0);
	CALL("prctl PR_CAP_AMBIENT", SYS_prctl, PR_CAP_AMBIENT, 4, 0, 0, 0);
	CALL("personality", SYS_personality, 0);
	CALL("personality, high word", SYS_personality, 0xffffffffL << 8);
	SAY(seccomp, -1, 0, NULL);
	SAY(landlock_create_ruleset, NULL, 0, 1);

	puts("# namespaces and mounts");
	SAY(unshare, 0);
	SAY(setns, -1, 0);
	SAY(mount, BAD, BAD, BAD, 0, NULL);
	SAY(umount2, BAD, 0);
	SAY(pivot_root, BAD, BAD);
	SAY(chroot, BAD);
	SAY(open_tree, -1, BAD, 0);
	SAY(move_mount, -1, BAD, -1, BAD, 0);
	SAY(fsopen, BAD, 0);
	SAY(fsconfig, -1, 0, NULL, NULL, 0);
	SAY(fsmount, -1, 0, 0);
	SAY(fspick, -1, BAD, 0);
	SAY(mount_setattr, -1, BAD, 0, NULL, 0);
	CALL("statmount", SYS_STATMOUNT, BAD, BAD, 0, 0);
	CALL("listmount", SYS_LISTMOUNT, BAD, BAD, 0, 0);

	puts("# shared memory and messages");
	SAY(shmget, 0, 4096, 0);
	SAY(shmat, -1, NULL, 0);
	SAY(shmctl, -1, 2, buffer);
	SAY(semget, 0, 1, 0);
	SAY(semop, -1, BAD, 1);
	SAY(msgget, 0, 0);
	SAY(msgsnd, -1, BAD, 1, 0);
	SAY(mq_open, BAD, 0, 0, NULL);
	SAY(mq_unlink, BAD);
	SAY(memfd_create, "x", 0);
	SAY(memfd_secret, -1);

	puts("# large parts of the kernel");
	SAY(bpf, -1, NULL, 0);
	SAY(perf_event_open, BAD, 0, -1, -1, 0);
	SAY(userfaultfd, -1);
	SAY(io_uring_setup, 0, NULL);
	SAY(io_uring_enter, -1, 0, 0, 0, NULL, 0);
	SAY(io_uring_register, -1, 0, NULL, 0);
	SAY(io_setup, 0, NULL);
	SAY(keyctl, -1, 0, 0, 0, 0);
	SAY(add_key, BAD, BAD, NULL, 0, 0);
	SAY(request_key, BAD, BAD, NULL, 0);
	SAY(splice, -1, NULL, -1, NULL, 0, 0);
	SAY(vmsplice, -1, NULL, 0, 0);
	SAY(remap_file_pages, BAD, 0, 0, 0, 0);
	SAY(mbind, BAD, 0, -1, NULL, 0, 0);
	SAY(membarrier, 0, 0, 0);
	CALL("futex_waitv", SYS_FUTEX_WAITV, NULL, 0, 0, NULL, 0);
	CALL("mseal", SYS_MSEAL, BAD, 0, 0);
	CALL("ioctl TIOCSTI", SYS_ioctl, -1, 0x5412, BAD);
	CALL("ioctl TIOCSTI, high word", SYS_ioctl, -1, 0x5412 | HIGH, BAD);
	CALL("ioctl TIOCLINUX", SYS_ioctl, -1, 0x541c, BAD);
	CALL("ioctl FS_IOC_SETFLAGS", SYS_ioctl, own, 0x40086602, BAD);
	CALL("a call of the future", 1000L);

	puts("# the machine");
	SAY(init_module, BAD, 0, BAD);
	SAY(finit_module, -1, BAD, 0);
	SAY(delete_module, BAD, 0);
	SAY(reboot, 0, 0, 0, 0);
	SAY(swapon, BAD, 0);
	SAY(swapoff, BAD);
	SAY(acct, BAD);
	SAY(settimeofday, BAD, NULL);
	SAY(clock_settime, -1, BAD);
	SAY(adjtimex, BAD);
	SAY(syslog, 10, NULL, 0);
	SAY(sethostname, NULL, -1);

#ifdef __x86_64__
	puts("# amd64 alone");
	CALL("amd64:open", SYS_open, "own", O_RDONLY);
	CALL("amd64:stat", SYS_stat, ".", buffer);
	CALL("amd64:chmod", SYS_chmod, outside, 0777);
	CALL("amd64:chown", SYS_chown, outside, -1, -1);
	CALL("amd64:lchown", SYS_lchown, outside, -1, -1);
	CALL("amd64:utime", SYS_utime, outside, NULL);
	CALL("amd64:utimes", SYS_utimes, outside, NULL);
	CALL("amd64:futimesat", SYS_futimesat, AT_FDCWD, outside, NULL);
	CALL("amd64:symlink", SYS_symlink, outside, "symlink2");
	CALL("amd64:mknod", SYS_mknod, "device2", S_IFCHR | 0600, 0x103);
	birth("amd64:fork", syscall(SYS_fork));
	CALL("amd64:arch_prctl ARCH_GET_FS", SYS_arch_prctl, 0x1003, buffer);
	CALL("amd64:arch_prctl ARCH_SET_CPUID", SYS_arch_prctl, 0x1012, 1);
	CALL("amd64:modify_ldt", SYS_modify_ldt, 0, buffer, 0);
	CALL("amd64:iopl", SYS_iopl, 0);
	CALL("amd64:ioperm", SYS_ioperm, 0, 1, 0);
	CALL("amd64:x32's getpid", 0x40000000L + SYS_getpid);
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L /* getpid */) : "memory", "r8", "r9", "r10", "r11");
	errno = -result;
	say("amd64:i386's getpid", result < 0 ? -1 : 0);
#endif

	puts("# another program in its place");
	SAY(execveat, -1, "", NULL, NULL, AT_EMPTY_PATH);
	char *none[] = {NULL};
	SAY(execve, "missing", none, none);
	return 0;
}
