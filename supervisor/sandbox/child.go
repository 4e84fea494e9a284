// Package sandbox is one child: a Deno process behind a wall (launcher), with its
// limits, its streams and its end, and the pool of those that are started ahead.
//
// What flows through it: a Command becomes a Child; what the guest prints is kept
// within its budget and emitted as it comes; an Exit says how it ended.
//
// It promises that a child ends with its whole process group at its deadline, with
// its context and with us, also when we are killed, and that what an Exit says was
// measured here and by the kernel, not told by the guest.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// Command says how to start a child.
type Command struct {
	// Path is the executable, Args its arguments without argv[0].
	Path string
	Args []string
	// Env is the child's whole environment.
	Env []string
	// Dir is the child's own directory, made by NewRunDir; it is removed when the
	// child has ended.
	Dir string
	// WorkDir is the workspace, if there is one. It stays when the child ends. One
	// made by NewRunDir is bounded as Dir is.
	WorkDir string
	// Cwd is the working directory, by the name that it has for the child; empty
	// means WorkDir, and without one Dir.
	Cwd string
	// OwnDir is a directory in Dir with files of ours, which do not count
	// towards Limits.FileBytes and Limits.Files; the guest must not be able to
	// write there. Empty means that there is none.
	OwnDir string
	// Runtime is how many bytes the child may use beside Limits.Memory until
	// MarkBaseline tells what its runtime really needs.
	Runtime int64
	// Wall is what the kernel lets the child reach; nil leaves that to Deno.
	Wall *launcher.Wall
	// Background says that nobody waits for the child: it has the processor time
	// that others leave.
	Background bool
	// Ahead says that the child is started before there is a run for it: until
	// Attach it has the processor time that others leave, where the machine can
	// undo that (it can with cgroups; niceness stays).
	Ahead bool
	// JoinLater lets the child start while the kernel puts it into its cgroup, which
	// takes 5 to 30 ms where no other has been put into one just before. The child
	// must run nothing of a guest's until Stdin or MarkBaseline was called: they wait
	// for it.
	JoinLater bool
	// Combined makes descriptors 1 and 2 one pipe, so that what is written to them is
	// read in the order in which it was written, as Stdout.
	Combined bool
	// Stdin is the child's descriptor 0, which Start closes on our side. nil
	// means a pipe, whose other end Child.Stdin gives.
	Stdin *os.File
}

// Child is one process of ours with its process group. The group ends when the
// process does, when Kill is called, when the context given to Attach ends, at
// its deadline, when it uses too much memory, and when we die.
type Child struct {
	command Command
	limits  job.Limits
	process *os.Process
	handing sync.Mutex       // held while sockets are used or closed
	sockets launcher.Started // in its own network
	left    bool             // the sockets are closed
	stdin   *os.File
	frames  *frames
	group   *launcher.Cgroup

	mu       sync.Mutex
	status   job.Status // why we killed it; empty if we did not
	reason   string
	deadline *time.Timer
	allowed  allowance
	exited   bool // it is not to be signalled any more
	paused   atomic.Bool

	placed   atomic.Int64 // how many files and folders of its directory are ours
	meter    meter
	looks    *time.Ticker   // when watch looks at it
	attached sync.WaitGroup // readers of out and err
	out, err *stream        // fds 1 and 2
	tellsEnd bool           // the kernel will tell us how it ends
	end      end            // set when over is closed
	joined   chan struct{}  // closed when it is in its cgroup
	over     chan struct{}  // closed when it executes nothing any more
	done     chan struct{}  // closed when the process has ended
}

// end is what the kernel says of a process that ended.
type end struct {
	status syscall.WaitStatus
	cpu    time.Duration
	peak   int64
}

// Exit is how a child ended, as we saw it.
type Exit struct {
	// Status is Completed or Failed by the exit code, TimedOut, Cancelled or
	// OutOfMemory when we ended it, Crashed when a signal did.
	Status job.Status
	// Code is the exit code, 128+n for signal n.
	Code int
	// Reason says in words why we ended it, or which signal did; empty when
	// the process ended by itself.
	Reason string
	// CPU is the user and system time of the process and of what it waited for.
	CPU time.Duration
	// PeakMemory is its largest resident size, in bytes.
	PeakMemory int64
	// Stdout and Stderr are what was kept of its output; Combined says that all of it
	// is Stdout.
	Stdout, Stderr job.Captured
	Combined       bool
}

// Start starts a child. Its output stays in the pipes until Attach.
func Start(command Command, limits job.Limits) (*Child, error) {
	group := newCgroup(limits)
	if command.Background || command.Ahead {
		group.Yield()
	}
	var ours, theirs [4]*os.File // the ends of its descriptors
	defer func() { closeFiles(theirs[:]...) }()
	undo := func() {
		closeFiles(ours[:]...)
		_ = group.Remove()
	}
	for fd := range theirs {
		var err error
		switch {
		case fd == 0 && command.Stdin != nil:
			theirs[fd] = command.Stdin
		case fd == 0:
			theirs[fd], ours[fd], err = os.Pipe()
		case fd == 2 && command.Combined:
			theirs[fd] = theirs[1]
		default:
			ours[fd], theirs[fd], err = os.Pipe()
		}
		if err != nil {
			undo()
			return nil, fmt.Errorf("make a pipe for the child's descriptor %d: %w", fd, err)
		}
	}
	join, nice := group.Join(), 5 // we come first
	if command.JoinLater {
		join = nil
	}
	if command.Background {
		nice = 19
	}
	started, err := spawn(launcher.Command{
		Path:      command.Path,
		Args:      command.Args,
		Env:       command.Env,
		Dir:       cmp.Or(command.Cwd, command.WorkDir, command.Dir),
		Files:     theirs[:],
		Wall:      command.Wall,
		Cgroup:    join,
		Nice:      nice,
		FileBytes: uint64(limits.FileBytes),
	})
	if errors.Is(err, launcher.ErrReplaced) { // another program may have done that
		err = job.Refuse("%v", err)
	}
	if err != nil {
		undo()
		return nil, err
	}
	keep := limits.Stdout
	if command.Combined {
		keep += limits.Stderr
	}
	c := &Child{
		command: command,
		limits:  limits,
		group:   group,
		process: started.Process,
		sockets: started,
		stdin:   ours[0],
		out:     newStream(ours[1], job.Stdout, keep),
		err:     newStream(ours[2], job.Stderr, limits.Stderr),
		frames:  &frames{File: ours[3], rest: streamBuffer},
		joined:  make(chan struct{}),
		over:    make(chan struct{}),
		done:    make(chan struct{}),
		meter:   meter{baseline: command.Runtime},
		looks:   time.NewTicker(idleInterval),
	}
	leaving.Add(1)
	living.Store(c, nil)
	tellKeeper(launcher.Kept{Group: c.pid(), Gone: c.ownProcesses(), Dir: command.Dir, Cgroup: group.Join()})
	if command.JoinLater {
		go c.join()
	} else {
		close(c.joined)
	}
	go c.reap()
	go c.watch()
	return c, nil
}

// join puts the child into its cgroup. One that can't be is not to run a guest.
func (c *Child) join() {
	defer close(c.joined)
	if err := c.group.Add(c.pid()); err != nil && !errors.Is(err, syscall.ESRCH) { // it has ended
		c.Kill(job.Crashed, err.Error())
	}
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // nil has nothing to close, and says so
	}
}

func (c *Child) pid() int { return c.process.Pid }

// Stdin is our end of the child's fd 0, where Command.Stdin was nil. Writing to
// a child that has ended fails with EPIPE.
func (c *Child) Stdin() io.WriteCloser {
	<-c.joined
	return c.stdin
}

// Place says that so many files and folders that are written into the child's directory,
// beside OwnDir, are ours and do not count towards Limits.Files.
func (c *Child) Place(entries int) { c.placed.Add(int64(entries)) }

// Frames is the child's fd 3; it ends when no process of the child's has it
// open any more. All of it must be read, or a child that writes there waits; what is not
// read a second after Wait is lost.
func (c *Child) Frames() io.Reader { return c.frames }

// Attach gives the child to a run: from here on its output is kept and emitted,
// each chunk as it comes, and the end of ctx ends it. Call it once. emit is
// called from two goroutines, one a stream; a slow emit slows the guest.
func (c *Child) Attach(ctx context.Context, emit func(job.Event)) {
	if c.command.Ahead {
		c.group.Resume()
	}
	c.BeginCell(emit)
	c.attached.Go(c.out.read)
	c.attached.Go(c.err.read)
	stop := context.AfterFunc(ctx, func() {
		c.Kill(job.Cancelled, "the run was cancelled")
	})
	go func() {
		<-c.done
		stop()
	}()
}

// SetDeadline ends the child with TimedOut after d, and replaces the deadline
// that was set before. what names what takes the time: "the program",
// "package installation".
func (c *Child) SetDeadline(d time.Duration, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline != nil {
		c.deadline.Stop()
	}
	if c.exited {
		return
	}
	c.deadline = time.AfterFunc(d, func() {
		c.Kill(job.TimedOut, fmt.Sprintf("%s took longer than %v", what, d))
	})
}

// Listeners are the sockets in the child's own network that Wall.Listen asked for.
// They end with the child; there are none when it has ended, which Wait tells.
func (c *Child) Listeners() ([]net.Listener, error) {
	c.handing.Lock()
	defer c.handing.Unlock()
	if c.left {
		return nil, nil
	}
	var listeners []net.Listener
	for _, file := range c.sockets.Listeners {
		l, err := net.FileListener(file)
		if err != nil {
			return listeners, fmt.Errorf("listen in the child's network: %w", err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// Dial connects to a TCP port of 127.0.0.1 where the child listens: once, where it
// has a network of its own.
func (c *Child) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if c.sockets.Socket == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	c.handing.Lock()
	conn, err := connect(c.sockets.Socket, port)
	c.handing.Unlock()
	if err != nil {
		return nil, fmt.Errorf("connect to %s in the child's network: %w", address, err)
	}
	return conn, nil
}

// MarkBaseline says that the child's runtime is up and the guest comes next: the
// memory that the child has now is the runtime's, which does not count towards
// Limits.Memory, and from here on it gets Limits.CPUs' worth of time. Call it
// before ExpectEnd, from the same goroutine or before that one starts.
func (c *Child) MarkBaseline() {
	<-c.joined
	c.meter.markBaseline(c.pid())
	c.tellsEnd = tellsEnding(c.pid())
	c.group.BoundProcessors(c.limits.CPUs)
}

// Kill ends the child's whole process group at once. The first call's status
// and reason are the ones that Wait reports.
func (c *Child) Kill(status job.Status, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exited {
		return
	}
	if c.status == "" {
		c.status, c.reason = status, reason
	}
	c.kill()
}

// kill ends the child's processes. In a PID namespace of its own they end with the
// first of them, in whatever group they are.
func (c *Child) kill() {
	pid := -c.pid()
	if c.ownProcesses() {
		pid = -pid
	}
	_ = syscall.Kill(pid, syscall.SIGKILL) // ESRCH: it has just ended
}

func (c *Child) ownProcesses() bool {
	return c.command.Wall != nil && c.command.Wall.Level == launcher.Namespaces
}

// reap waits for the process, ends what is left of its group, and tells Wait.
func (c *Child) reap() {
	awaitExit(c.pid()) // not reaped yet: the group's number can't be another's
	c.mu.Lock()
	c.exited = true
	if c.deadline != nil {
		c.deadline.Stop()
	}
	c.mu.Unlock()
	if !c.ownProcesses() { // else none is left
		c.kill()
		<-c.joined // its number is its own until here
		c.group.Kill()
	}
	<-c.joined
	living.Delete(c)
	state, _ := c.process.Wait() // nobody else waits for it, so it can
	tellKeeper(launcher.Kept{Group: c.pid(), Gone: true, Dir: c.command.Dir, Cgroup: c.group.Join()})
	c.checkGroup()
	select {
	case <-c.over: // by ExpectEnd, which knew it before
		c.leave()
		close(c.done)
	default:
		// The kernel's own figure for an ended process is used only when the process was too
		// short to be looked at: it also counts what the process was before it became the child.
		peak := cmp.Or(c.meter.seen(), maxResident(state))
		c.end = end{state.Sys().(syscall.WaitStatus), state.UserTime() + state.SystemTime(), peak}
		c.leave()
		close(c.done)
		close(c.over)
	}
	// A descendant that left the group may still have fd 3 open.
	time.AfterFunc(drainTime, c.frames.finish)
}

// leaving counts the children that live, or whose directories and cgroups are
// being removed.
var leaving sync.WaitGroup

// living are the children whose processes have not ended.
var living sync.Map

// Living is how many children this process has now, and how many bytes they use, what
// they share with others left out.
func Living() (children int, memory int64) {
	living.Range(func(c, _ any) bool {
		children++
		memory += c.(*Child).Memory()
		return true
	})
	return children, memory
}

// leave removes the directory and the cgroup of a child that has ended. Nobody
// waits for that but RemoveServerDir.
func (c *Child) leave() {
	c.handing.Lock()
	c.sockets.Close()
	c.left = true
	c.handing.Unlock()
	go func() {
		defer leaving.Done()
		RemoveRunDir(c.command.Dir)
		wait := time.Millisecond
		for range 13 { // until the kernel has let the ended processes go, which takes seconds where it is busy
			if c.group.Remove() == nil {
				break
			}
			time.Sleep(wait)
			wait *= 2
		}
		tellKeeper(launcher.Kept{Group: c.pid(), Gone: true})
	}()
}

// drainTime is how long a stream may stay open after the child has ended, when
// a descendant that left its process group holds it.
const drainTime = time.Second

// Wait waits until the child executes nothing any more and its streams have
// been read to their end. Of a stream that does not end, what is there then is read.
func (c *Child) Wait() Exit {
	<-c.over
	_ = c.stdin.Close()
	late := time.AfterFunc(drainTime, c.finishStreams)
	c.attached.Wait()
	late.Stop()
	defer closeFiles(c.out.file, c.err.file)
	time.AfterFunc(drainTime, func() { _ = c.frames.Close() }) // which who read enough has left open

	exit := Exit{
		CPU:        c.end.cpu,
		PeakMemory: c.end.peak,
		Stdout:     c.out.end(),
		Stderr:     c.err.end(),
		Combined:   c.command.Combined,
	}
	status := c.end.status
	switch {
	case status.Signaled():
		exit.Status, exit.Code = job.Crashed, 128+int(status.Signal())
		exit.Reason = fmt.Sprintf("the process was ended by signal %d (%v)", status.Signal(), status.Signal())
	case status.ExitStatus() == 0:
		exit.Status = job.Completed
	default:
		exit.Status, exit.Code = job.Failed, status.ExitStatus()
	}
	if c.status != "" { // after over, nothing writes it
		exit.Status, exit.Reason = c.status, c.reason
	}
	return exit
}

// Ended is closed when the process has ended.
func (c *Child) Ended() <-chan struct{} { return c.done }

// starter calls functions on one thread that lives as long as we do: a child's
// parent-death signal comes when the thread that started it ends.
var starter = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

func spawn(command launcher.Command) (started launcher.Started, err error) {
	done := make(chan struct{})
	starter() <- func() {
		defer close(done)
		started, err = launcher.Start(command)
	}
	<-done
	return started, err
}
