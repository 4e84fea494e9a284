package launcher

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Start starts a child. It must be called from a thread that lives as long as
// the child may: the kernel ends the child with SIGKILL when that thread ends.
func Start(c Command) (Started, error) {
	f, err := prepare(c)
	defer func() { closeAll(f.opened) }()
	var started Started
	if err == nil {
		started, err = f.start()
	}
	if err != nil {
		return Started{}, fmt.Errorf("start %s: %w", c.Path, err)
	}
	return started, nil
}

// start forks the child, and returns when it has been executed.
func (f *forked) start() (s Started, err error) {
	dumpable, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	syscall.ForkLock.Lock() // no descriptor is half-made meanwhile
	inTime := f.bound(startTime)
	pid, errno := f.fork()
	syscall.ForkLock.Unlock()
	executed := inTime()
	if f.other { // in our memory, the child became another user
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(dumpable), 0, 0, 0)
	}
	if errno != 0 {
		return s, fmt.Errorf("fork: %w", errno)
	}
	s.Process, _ = os.FindProcess(pid) // it never fails on Unix
	descriptors, err := f.receive()
	runtime.KeepAlive(f)
	if !executed {
		closeAll(descriptors)
		err = fmt.Errorf("it was not executed within %v", startTime)
	}
	if err != nil {
		_ = s.Process.Kill()
		_, _ = s.Process.Wait()
		return Started{}, err
	}
	if f.watch != nil {
		go answerQuestions(descriptors[len(descriptors)-1], *f.watch)
		descriptors = descriptors[:len(descriptors)-1]
	}
	for i, fd := range descriptors {
		_ = unix.SetNonblock(fd, true)
		file := os.NewFile(uintptr(fd), "a socket in a child's network")
		if i < len(f.wall.Listen) {
			s.Listeners = append(s.Listeners, file)
		} else {
			s.Socket = file
		}
	}
	return s, nil
}

// startTime is how long a child may take to its execve. One that is stopped before
// it, or waits for a file system that hangs, holds the thread that started it.
var startTime = 10 * time.Second

// bound kills the child after a time, unless inTime is called before, and the process
// waited for after that; inTime says whether it was alive until then.
func (f *forked) bound(limit time.Duration) (inTime func() bool) {
	done, alive := make(chan struct{}), make(chan bool)
	go func() {
		killed := false
		for after := time.After(limit); ; after = time.After(10 * time.Millisecond) { // it may not be there yet
			select {
			case <-done:
				alive <- !killed
				return
			case <-after:
				pid := atomic.LoadInt32(&f.child)
				killed = pid != 0 && syscall.Kill(int(pid), syscall.SIGKILL) == nil || killed
			}
		}
	}()
	return func() bool { close(done); return <-alive }
}

// stepError says which step of a child's start failed, and about what.
type stepError struct {
	step  step
	about string
	errno syscall.Errno
}

func (e *stepError) Error() string {
	text := string(e.step)
	if e.about != "" {
		text += ": " + e.about
	}
	if e.Is(ErrReplaced) {
		return text + ": " + ErrReplaced.Error()
	}
	return text + ": " + e.errno.Error()
}

// Is says that the error is ErrReplaced: what was judged is not there any more.
func (e *stepError) Is(target error) bool {
	gone := e.errno == syscall.ESTALE || e.errno == syscall.ELOOP || e.errno == syscall.ENOENT
	return target == ErrReplaced && gone && e.about != "" && (e.step == stepPlace || e.step == stepRoot)
}

func (e *stepError) Unwrap() error { return e.errno }

// forked is all that the child needs between fork and execve, allocated before.
type forked struct {
	calls
	flags uintptr // of clone(2), beside those of vfork
	wall  Wall    // what is around it, if anything is

	child   int32 // its process ID, from when there is one
	reports int   // our end of its socket
	report  int   // its own
	handed  int   // how many descriptors it hands over
	opened  []int // what only it needs

	watch *func(call string) // nil: the filter refuses by itself
	found []mounted
	other bool // it becomes another user
}

// lowestDescriptor is the first that is not the child's own.
const lowestDescriptor = 10

func prepare(c Command) (*forked, error) {
	f := &forked{}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return f, fmt.Errorf("make the child's socket: %w", err)
	}
	f.reports = pair[0]
	f.opened = pair[:]
	if f.report, err = f.above(pair[1]); err != nil {
		return f, err
	}
	for _, part := range []func(Command) error{f.begin, f.surround, f.finish} {
		if err := part(c); err != nil {
			return f, err
		}
	}
	return f, f.err
}

// begin makes the process ours to end, and bounds it.
func (f *forked) begin(c Command) error {
	f.add(stepGroup, unix.SYS_SETPGID, 0, 0)
	f.add(stepParent, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(syscall.SIGKILL))
	alive, err := life()
	if err != nil {
		return err
	}
	f.add(stepParent, unix.SYS_CLOSE, alive[1])
	f.isAlive(alive[0])
	for _, procs := range c.Cgroup {
		fd, err := unix.Open(procs, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open the child's cgroup: %w", err)
		}
		f.opened = append(f.opened, fd)
		f.add(stepCgroup, unix.SYS_WRITE, fd, "0", 1) // the process that writes it
	}
	if c.Nice > 0 {
		f.add(stepNice, unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, c.Nice)
	}
	return nil
}

// isAlive ends the child where the server has died already, which sends no signal
// any more: then nobody can write to the pipe that it alone holds open.
func (f *forked) isAlive(pipe int) {
	f.add(stepParent, unix.SYS_READ, pipe, new([8]byte), 1).must = syscall.EAGAIN
}

// surround builds what is around it.
func (f *forked) surround(c Command) (err error) {
	if c.Wall == nil || c.Wall.Level < Namespaces {
		return nil
	}
	f.wall = *c.Wall
	w := &f.wall
	f.flags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if !w.Network {
		f.flags |= unix.CLONE_NEWNET
	}
	if f.found, err = f.collect(w, c.Path); err != nil {
		return err
	}
	proc := f.add(stepUser, unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self", unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY)
	if f.other = f.asOther(f.found); f.other {
		// What is mounted from here on is not mounted for others.
		f.add(stepRoot, unix.SYS_MOUNT, 0, "/", 0, unix.MS_REC|unix.MS_PRIVATE, 0)
	} else {
		f.flags |= unix.CLONE_NEWUSER
		f.nobody(proc, os.Geteuid(), os.Getegid())
	}
	f.root(w, c.Path, f.found)
	f.network(w)
	if f.other {
		f.becomeOther(proc)
	}
	return nil
}

// finish gives the child its directory, descriptors and limits, takes its
// privileges away, and executes it.
func (f *forked) finish(c Command) error {
	f.add(stepDirectory, unix.SYS_CHDIR, c.Dir).on(c.Dir)
	for i, file := range c.Files {
		fd, err := f.above(int(file.Fd()))
		if err != nil {
			return err
		}
		if f.other { // it opens its descriptors once more, by name
			_ = unix.Fchown(fd, otherUser, otherUser)
		}
		f.add(stepDescriptors, unix.SYS_DUP3, fd, i, 0)
	}
	f.add(stepDescriptors, unix.SYS_CLOSE_RANGE, len(c.Files), ^uintptr(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
	limits, err := c.limits()
	if err != nil {
		return err
	}
	for resource, limit := range limits {
		f.add(stepLimits, unix.SYS_PRLIMIT64, 0, resource, &limit, 0)
	}
	if w := c.Wall; w != nil {
		f.giveUpPrivileges()
		if err := f.landlock(w); err != nil {
			return fmt.Errorf("prepare the second wall: %w", err)
		}
		if err := f.loadFilter(w); err != nil {
			return err
		}
	}
	argv, err := syscall.SlicePtrFromStrings(append([]string{c.Path}, c.Args...))
	envp, wrong := syscall.SlicePtrFromStrings(c.Env)
	if err = errors.Join(err, wrong); err != nil {
		return err
	}
	f.add(stepExecute, unix.SYS_EXECVE, c.Path, &argv[0], &envp[0])
	return nil
}

// loadFilter loads the system call filter.
func (f *forked) loadFilter(w *Wall) error {
	f.watch = reportRefused.Load()
	program, err := filter{
		processes: w.Processes, network: w.Network, interfaces: w.Interfaces, ownRoot: w.Level == Namespaces, watched: f.watch != nil,
	}.assemble()
	if err != nil {
		return err
	}
	for _, own := range ownIDs(program) { // the child learns its process ID
		f.add(stepFilter, unix.SYS_GETPID).gives = (*int32)(unsafe.Pointer(own))
	}
	if f.watch == nil {
		f.add(stepFilter, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, program)
	} else {
		f.hand(stepFilter, f.add(stepFilter, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, program))
	}
	return nil
}

// life is a pipe whose second end we alone hold open, and never write to.
var life = sync.OnceValues(func() (ends [2]int, err error) {
	err = unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK)
	return ends, err
})

// above duplicates a descriptor above those of the child's own, to be a blocking one.
func (f *forked) above(fd int) (int, error) {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, lowestDescriptor)
	if err != nil {
		return -1, fmt.Errorf("duplicate a descriptor: %w", err)
	}
	f.opened = append(f.opened, fd)
	return fd, unix.SetNonblock(fd, false)
}

// giveUpPrivileges leaves the child no capability, and none to get.
func (f *forked) giveUpPrivileges() {
	none := syscall.EPERM // it has none to take away
	if f.flags != 0 {     // in a user namespace
		none = syscall.EINVAL // it has all; the kernel may know fewer
	}
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		f.add(stepPrivileges, unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability).fine = none
	}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	f.add(stepPrivileges, unix.SYS_CAPSET, header, &[2]unix.CapUserData{})
	f.add(stepPrivileges, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	// A keyring of its own, where the user may have one more and a container lets it
	// be made. The filter refuses to look at any.
	f.add(stepPrivileges, unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0).fine = anyError
}

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

//go:linkname enterSystemCall runtime.entersyscall
func enterSystemCall()

//go:linkname exitSystemCall runtime.exitsyscall
func exitSystemCall()

// rawVforkSyscall is the standard library's. The child runs on this stack, while the
// thread that called it waits for the child's execve or end, as with vfork(2).
//
//go:noescape
func rawVforkSyscall(trap, a1, a2, a3 uintptr) (r1 uintptr, err syscall.Errno)

// fork starts the child, which shares this process's memory until its execve: that
// spares a copy of our page tables and of each page that we write to meanwhile (2 ms).
// In the child it never returns. Only this thread of the Go runtime goes on there, so it
// makes nothing but system calls, and writes nothing but its own variables, of which the
// parent uses none, and what calls give.
//
//go:noinline
//go:norace
func (f *forked) fork() (int, syscall.Errno) {
	var (
		result uintptr
		errno  syscall.Errno
		failed failure
		c      *call
		a      [6]uintptr
		i, j   int
	)
	enterSystemCall() // the runtime need not wait for this thread, however long the child takes
	beforeFork()
	// The child's process ID is in f.child before the child begins.
	pid, refused := rawVforkSyscall(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD)|syscall.CLONE_VM|syscall.CLONE_VFORK|syscall.CLONE_PARENT_SETTID|f.flags, 0, uintptr(unsafe.Pointer(&f.child)))
	if refused != 0 || pid != 0 {
		afterFork()
		exitSystemCall()
		return int(pid), refused
	}
	afterForkInChild()
	for i = range f.list {
		c = f.list[i]
		a = c.args
		for j = range c.takes {
			if c.takes[j] != nil {
				a[j] = uintptr(*c.takes[j].gives)
			}
		}
		result, _, errno = syscall.RawSyscall6(c.number, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno == 0 && c.seen != nil && (c.seen.Dev != c.judged.Dev || c.seen.Ino != c.judged.Ino) {
			errno = syscall.ESTALE
		}
		if errno != c.must && (errno != c.fine && c.fine != anyError || c.must != 0) {
			break
		}
		if errno == 0 {
			*c.gives = int32(result)
		}
	}
	if errno == 0 {
		errno = syscall.ECANCELED // what should fail did not
	}
	failed.call, failed.errno = uintptr(i), errno
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(f.report), uintptr(unsafe.Pointer(&failed)), unsafe.Sizeof(failed))
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, FailureStatus, 0, 0)
	}
}
