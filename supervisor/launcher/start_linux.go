package launcher

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// becomeChild is of other systems' way to start a child.
func becomeChild() {}

// Start starts a child. It must be called from a thread that lives as long as
// the child may: the kernel ends the child with SIGKILL when that thread ends.
//
// The child shares this process's memory, as with vfork(2), and makes nothing but
// system calls until execve, all of them prepared here. That costs a small part of
// what executing our own binary once more did (6 ms of processor time), and spares
// a copy of our page tables and of each page that we write to meanwhile (2 ms).
func Start(c Command) (*os.Process, error) {
	f, err := prepare(c)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	defer f.close()
	syscall.ForkLock.Lock() // no descriptor is half-made meanwhile
	pid, errno := f.fork()
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return nil, fmt.Errorf("start %s: fork: %w", c.Path, errno)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	f.closeOpened() // the child's copy of failure is then the last one; execve closes it
	var failed failure
	size := unsafe.Sizeof(failed)
	n, err := f.failureOut.Read(unsafe.Slice((*byte)(unsafe.Pointer(&failed)), size))
	if n == 0 {
		return process, nil // EOF: it has become the child
	}
	_, _ = process.Wait()
	if n != int(size) || failed.step >= uintptr(len(stepNames)) {
		return nil, fmt.Errorf("start %s: the child did not say why it ended: %w", c.Path, err)
	}
	return nil, fmt.Errorf("start %s: %s: %w", c.Path, stepNames[failed.step], failed.errno)
}

// forked is all that the child needs between fork and execve, allocated before.
type forked struct {
	path       *byte
	argv, envp []*byte
	dir        *byte
	files      []int // become 0, 1, …
	cgroups    []int
	nice       int
	limits     []limit
	self       *byte // "/proc/self"
	ruleset    int   // -1: no wall
	ownRule    pathBeneath
	filter     unix.SockFprog
	ignore     sigaction
	server     uintptr // our process ID
	failure    int
	zero       [1]byte

	failureOut *os.File
	opened     []int
}

type limit struct {
	resource uintptr
	value    unix.Rlimit
}

// failure is what a child writes when it can't become what it should.
type failure struct {
	step  uintptr
	errno syscall.Errno
}

// The steps between fork and execve.
const (
	stepGroup = iota
	stepParent
	stepCgroup
	stepNice
	stepDirectory
	stepDescriptors
	stepLimits
	stepSignals
	stepPrivileges
	stepWall
	stepFilter
	stepExecute
)

var stepNames = [...]string{
	stepGroup:       "make a process group",
	stepParent:      "tie its life to ours",
	stepCgroup:      "join its cgroup",
	stepNice:        "lower its priority",
	stepDirectory:   "enter its directory",
	stepDescriptors: "close inherited descriptors",
	stepLimits:      "set its limits",
	stepSignals:     "ignore SIGXFSZ",
	stepPrivileges:  "give up new privileges",
	stepWall:        "raise the second wall",
	stepFilter:      "load the system call filter",
	stepExecute:     "execute it",
}

// lowestDescriptor is the first that is not the child's own.
const lowestDescriptor = 10

func prepare(c Command) (f *forked, err error) {
	f = &forked{ruleset: -1, nice: c.Policy.Nice, server: uintptr(os.Getpid())}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if f.path, err = syscall.BytePtrFromString(c.Path); err != nil {
		return f, err
	}
	if f.argv, err = syscall.SlicePtrFromStrings(append([]string{c.Path}, c.Args...)); err != nil {
		return f, err
	}
	if f.envp, err = syscall.SlicePtrFromStrings(c.Env); err != nil {
		return f, err
	}
	if f.dir, err = syscall.BytePtrFromString(c.Dir); err != nil {
		return f, err
	}
	if f.self, err = syscall.BytePtrFromString("/proc/self"); err != nil {
		return f, err
	}
	failureOut, failureIn, err := os.Pipe()
	if err != nil {
		return f, err
	}
	f.failureOut = failureOut
	f.failure, err = f.above(failureIn)
	_ = failureIn.Close() // nothing was written to it
	if err != nil {
		return f, err
	}
	for _, file := range c.Files {
		fd, err := f.above(file)
		if err != nil {
			return f, err
		}
		f.files = append(f.files, fd)
	}
	for _, procs := range c.Policy.Cgroup {
		fd, err := unix.Open(procs, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return f, fmt.Errorf("open the child's cgroup: %w", err)
		}
		f.opened = append(f.opened, fd)
		f.cgroups = append(f.cgroups, fd)
	}
	f.zero[0] = '0' // in cgroup.procs: the process that writes it
	if err := f.bound(c.Policy); err != nil {
		return f, err
	}
	if c.Policy.Wall == nil {
		return f, nil
	}
	if f.ruleset, err = c.Policy.Wall.ruleset(); err != nil {
		return f, fmt.Errorf("prepare the second wall: %w", err)
	}
	if f.ruleset >= 0 {
		f.opened = append(f.opened, f.ruleset)
		f.ownRule.access = readDirectory
	}
	f.filter, err = systemCallFilter(c.Policy.Wall.Processes)
	return f, err
}

// above gives a blocking descriptor of the file above those of the child's own.
func (f *forked) above(file *os.File) (int, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, lowestDescriptor)
	if err != nil {
		return -1, fmt.Errorf("duplicate a descriptor: %w", err)
	}
	f.opened = append(f.opened, fd)
	return fd, unix.SetNonblock(fd, false)
}

// bound fills in resource limits: those of the policy, or lower ones in force.
func (f *forked) bound(p Policy) error {
	limits := []struct {
		resource int
		value    uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, p.OpenFiles}, {unix.RLIMIT_FSIZE, p.FileBytes}}
	for _, l := range limits {
		if l.value == 0 && l.resource != unix.RLIMIT_CORE {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return fmt.Errorf("read a resource limit: %w", err)
		}
		value := min(l.value, now.Max)
		f.limits = append(f.limits, limit{uintptr(l.resource), unix.Rlimit{Cur: value, Max: value}})
	}
	if p.FileBytes > 0 { // a longer write is an error, not the child's end
		f.ignore.handler = signalIgnore
	}
	return nil
}

func (f *forked) close() {
	f.closeOpened()
	if f.failureOut != nil {
		_ = f.failureOut.Close()
	}
}

// closeOpened closes what only the child needs.
func (f *forked) closeOpened() {
	for _, fd := range f.opened {
		_ = unix.Close(fd)
	}
	f.opened = nil
}

// sigaction is the kernel's own, rt_sigaction(2), as far as it is needed to
// ignore a signal: the rest is zero.
type sigaction struct {
	handler uintptr
	rest    [3]uintptr
}

const (
	signalIgnore  = 1 // SIG_IGN
	signalSetSize = 8 // bytes of the kernel's signal set
)

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// vfork makes a child that runs in this process's memory, on this stack, while
// the thread that called it waits for the child's execve or end.
//
//go:noescape
func vfork(flags uintptr) (pid, errno uintptr)

// fork starts the child. There it never returns: only this thread of the Go
// runtime goes on, in memory that all others use, so nothing but system calls can
// be made, and nothing be written but its own variables. Those of the parent are
// the same: it uses none that the child has written.
//
//go:noinline
//go:norace
func (f *forked) fork() (int, syscall.Errno) {
	var (
		parent uintptr
		errno  syscall.Errno
		failed failure
		fd     int
		i      int
	)
	beforeFork()
	pid, refused := vfork(uintptr(syscall.SIGCHLD) | syscall.CLONE_VM | syscall.CLONE_VFORK)
	if refused != 0 || pid != 0 {
		afterFork()
		return int(pid), syscall.Errno(refused)
	}
	afterForkInChild()

	failed.step = stepGroup
	if _, _, errno = syscall.RawSyscall(syscall.SYS_SETPGID, 0, 0, 0); errno != 0 {
		goto fail
	}
	failed.step = stepParent
	if _, _, errno = syscall.RawSyscall(syscall.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); errno != 0 {
		goto fail
	}
	if parent, _, errno = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0); errno != 0 || parent != f.server {
		goto fail // it has died already, and sends no signal any more
	}
	failed.step = stepCgroup
	for i = range f.cgroups {
		if _, _, errno = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(f.cgroups[i]), uintptr(unsafe.Pointer(&f.zero)), 1); errno != 0 {
			goto fail
		}
	}
	failed.step = stepNice
	if f.nice > 0 {
		if _, _, errno = syscall.RawSyscall(syscall.SYS_SETPRIORITY, syscall.PRIO_PROCESS, 0, uintptr(f.nice)); errno != 0 {
			goto fail
		}
	}
	failed.step = stepDirectory
	if _, _, errno = syscall.RawSyscall(syscall.SYS_CHDIR, uintptr(unsafe.Pointer(f.dir)), 0, 0); errno != 0 {
		goto fail
	}
	failed.step = stepDescriptors
	for i = range f.files {
		if _, _, errno = syscall.RawSyscall(syscall.SYS_DUP3, uintptr(f.files[i]), uintptr(i), 0); errno != 0 {
			goto fail
		}
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(len(f.files)), ^uintptr(0)>>1, unix.CLOSE_RANGE_CLOEXEC); errno != 0 {
		goto fail
	}
	failed.step = stepLimits
	for i = range f.limits {
		if _, _, errno = syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, f.limits[i].resource, uintptr(unsafe.Pointer(&f.limits[i].value)), 0, 0, 0); errno != 0 {
			goto fail
		}
	}
	failed.step = stepSignals
	if f.ignore.handler != 0 {
		if _, _, errno = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGXFSZ), uintptr(unsafe.Pointer(&f.ignore)), 0, signalSetSize, 0, 0); errno != 0 {
			goto fail
		}
	}
	if f.filter.Len > 0 {
		failed.step = stepPrivileges
		if _, _, errno = syscall.RawSyscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
			goto fail
		}
		if f.ruleset >= 0 {
			failed.step = stepWall
			// What is below /proc/self is known only now.
			if fd, errno = openPath(f.self); errno != 0 {
				goto fail
			}
			f.ownRule.parent = int32(fd)
			if _, _, errno = syscall.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(f.ruleset), rulePathBeneath, uintptr(unsafe.Pointer(&f.ownRule)), 0, 0, 0); errno != 0 {
				goto fail
			}
			if _, _, errno = syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(f.ruleset), 0, 0); errno != 0 {
				goto fail
			}
		}
		failed.step = stepFilter
		if _, _, errno = syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&f.filter))); errno != 0 {
			goto fail
		}
	}
	failed.step = stepExecute
	_, _, errno = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(f.path)), uintptr(unsafe.Pointer(&f.argv[0])), uintptr(unsafe.Pointer(&f.envp[0])))
fail:
	failed.errno = errno
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(f.failure), uintptr(unsafe.Pointer(&failed)), unsafe.Sizeof(failed))
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, FailureStatus, 0, 0)
	}
}

// openPath opens a path for rules; the descriptor is closed by execve.
//
//go:norace
//go:nosplit
func openPath(path *byte) (int, syscall.Errno) {
	at := unix.AT_FDCWD
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(path)), unix.O_PATH|unix.O_CLOEXEC, 0, 0, 0)
	return int(fd), errno
}
