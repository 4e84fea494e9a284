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
func (f *plan) start() (s Started, err error) {
	dumpable, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	syscall.ForkLock.Lock() // no descriptor without close-on-exec is being made
	inTime := f.bound(startTime)
	pid, errno := f.fork()
	syscall.ForkLock.Unlock()
	executed := inTime()
	if f.other { // the child changed its user in memory that is also ours
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
		go reportCalls(descriptors[len(descriptors)-1], *f.watch)
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

// startTime is how long a child may take to its execve. Until then it blocks the
// thread that started it, also if it is stopped or waits for a file system that hangs.
var startTime = 10 * time.Second

// bound kills the child after a time unless inTime is called first. inTime reports
// whether the child was left alive, and must be called before the process is waited for.
func (f *plan) bound(limit time.Duration) (inTime func() bool) {
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

// stepError says which step of a child's start failed, and for which path.
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

// Is reports ErrReplaced where the file that was judged is no longer there.
func (e *stepError) Is(target error) bool {
	gone := e.errno == syscall.ESTALE || e.errno == syscall.ELOOP || e.errno == syscall.ENOENT
	return target == ErrReplaced && gone && e.about != "" && (e.step == stepPlace || e.step == stepRoot)
}

func (e *stepError) Unwrap() error { return e.errno }

// plan is all that a child needs between fork and execve, allocated before.
type plan struct {
	calls
	flags uintptr // of clone(2), beside those of vfork
	wall  Wall    // at level Namespaces

	child   int32 // the process ID; 0 before the fork
	life    int   // the first end of life
	reports int   // our end of the child's socket
	report  int   // the child's end
	sent    int   // how many descriptors it sends
	opened  []int // descriptors to close when it has been executed

	watch *func(call string) // what is told of refused calls, if anything
	found []mounted
	other bool // the child becomes otherUser
}

// lowestDescriptor is above those that the child keeps.
const lowestDescriptor = 10

func prepare(c Command) (*plan, error) {
	f := &plan{}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return f, fmt.Errorf("make the child's socket: %w", err)
	}
	f.reports = pair[0]
	f.opened = pair[:]
	if f.report, err = f.duplicate(pair[1]); err != nil {
		return f, err
	}
	for _, part := range []func(Command) error{f.begin, f.namespaces, f.execute} {
		if err := part(c); err != nil {
			return f, err
		}
	}
	return f, f.err
}

// begin ties the child's life to ours and puts it into its cgroup.
func (f *plan) begin(c Command) error {
	f.add(stepGroup, unix.SYS_SETPGID, 0, 0)
	f.add(stepParent, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(syscall.SIGKILL))
	alive, err := life()
	if err != nil {
		return err
	}
	f.add(stepParent, unix.SYS_CLOSE, alive[1])
	f.life = alive[0]
	f.checkServer()
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

// checkServer fails if the server died before the child asked for a signal at its
// death: reading the pipe, which the server alone holds open, then gives its end.
func (f *plan) checkServer() {
	f.add(stepParent, unix.SYS_READ, f.life, new([8]byte), 1).want = syscall.EAGAIN
}

// namespaces makes the child's own root, user and network.
func (f *plan) namespaces(c Command) (err error) {
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
	if f.other = f.mapPlaces(f.found); f.other {
		// Mounts from here on are the child's alone.
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

// execute gives the child its directory, descriptors and limits, takes its
// privileges away and executes its command.
func (f *plan) execute(c Command) error {
	f.add(stepDirectory, unix.SYS_CHDIR, c.Dir).on(c.Dir)
	for i, file := range c.Files {
		fd, err := f.duplicate(int(file.Fd()))
		if err != nil {
			return err
		}
		if f.other { // it may open /dev/fd/N once more
			_ = unix.Fchown(fd, otherUser, otherUser)
		}
		f.add(stepDescriptors, unix.SYS_DUP3, fd, i, 0)
	}
	f.add(stepDescriptors, unix.SYS_CLOSE_RANGE, len(c.Files), ^uintptr(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
	if w := c.Wall; w != nil {
		f.giveUpPrivileges()
		if err := f.landlock(w); err != nil {
			return fmt.Errorf("prepare the second wall: %w", err)
		}
		if err := f.loadFilter(w); err != nil {
			return err
		}
	}
	// Last: the child still has all descriptors of the server, which may be more than its
	// limit, and opens some for its wall.
	limits, err := c.limits()
	if err != nil {
		return err
	}
	for resource, limit := range limits {
		f.add(stepLimits, unix.SYS_PRLIMIT64, 0, resource, &limit, 0)
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
func (f *plan) loadFilter(w *Wall) error {
	f.watch = reportRefused.Load()
	program, err := filter{
		processes: w.Processes, network: w.Network, interfaces: w.Interfaces, ownRoot: w.Level == Namespaces, watched: f.watch != nil,
	}.assemble()
	if err != nil {
		return err
	}
	for _, own := range ownIDs(program) {
		f.add(stepFilter, unix.SYS_GETPID).result = (*int32)(unsafe.Pointer(own))
	}
	if f.watch == nil {
		f.add(stepFilter, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, program)
	} else {
		f.send(stepFilter, f.add(stepFilter, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, program))
	}
	return nil
}

// life is a pipe to which nothing is written. Only the server has its second end open.
var life = sync.OnceValues(func() (ends [2]int, err error) {
	err = unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK)
	return ends, err
})

// duplicate duplicates a descriptor, above those that the child keeps, and makes it
// a blocking one.
func (f *plan) duplicate(fd int) (int, error) {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, lowestDescriptor)
	if err != nil {
		return -1, fmt.Errorf("duplicate a descriptor: %w", err)
	}
	f.opened = append(f.opened, fd)
	return fd, unix.SetNonblock(fd, false)
}

// giveUpPrivileges leaves the child no capability, and none to get.
func (f *plan) giveUpPrivileges() {
	fails := syscall.EPERM // it is no root
	if f.flags != 0 {      // in a user namespace, where it has all
		fails = syscall.EINVAL // the kernel knows fewer
	}
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		f.add(stepPrivileges, unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability).ignored = fails
	}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	f.add(stepPrivileges, unix.SYS_CAPSET, header, &[2]unix.CapUserData{})
	f.add(stepPrivileges, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	// A keyring of its own, where the user's quota and a container allow it. The filter
	// refuses to read any.
	f.add(stepPrivileges, unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0).ignored = anyError
}
