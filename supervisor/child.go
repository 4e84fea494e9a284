//go:build !windows

package supervisor

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"rillbox/supervisor/launcher"
)

// Command says how to start a child.
type Command struct {
	// Path is the executable, Args its arguments without argv[0].
	Path string
	Args []string
	// Env is the child's whole environment.
	Env []string
	// Dir is the child's own directory, made by NewRunDir; the child's Wait
	// removes it.
	Dir string
	// OwnDir is a directory in Dir with files of ours, which do not count
	// towards Limits.FileBytes and Limits.Files; the guest must not be able to
	// write there. Empty means that there is none.
	OwnDir string
	// Runtime is how many bytes the child may use beside Limits.Memory until
	// MarkBaseline tells what its runtime really needs.
	Runtime int64
	// Wall is what the kernel lets the child reach; nil leaves that to Deno.
	Wall *launcher.Wall
}

// Child is one process of ours with its process group. The group ends when the
// process does, when Kill is called, when the context given to Attach ends, at
// its deadline, when it uses too much memory, and when we die.
type Child struct {
	command Command
	limits  Limits
	process *exec.Cmd
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	frames  *os.File
	group   *launcher.Cgroup

	mu       sync.Mutex
	status   Status // why we killed it; empty if we did not
	reason   string
	deadline *time.Timer
	exited   bool

	meter    meter
	attached sync.WaitGroup // copiers of fds 1 and 2
	out, err *capture
	done     chan struct{} // closed when the process has ended
}

// Exit is how a child ended, as we saw it.
type Exit struct {
	// Status is Completed or Failed by the exit code, TimedOut, Cancelled or
	// OutOfMemory when we ended it, Crashed when a signal did.
	Status Status
	// Code is the exit code, 128+n for signal n.
	Code int
	// Reason says in words why we ended it, or which signal did; empty when
	// the process ended by itself.
	Reason string
	// CPU is the user and system time of the process and of what it waited for.
	CPU time.Duration
	// PeakMemory is its largest resident size, in bytes.
	PeakMemory int64
	// Stdout and Stderr are what was kept of its output.
	Stdout, Stderr Captured
}

// Start starts a child. Its output stays in the pipes until Attach.
func Start(command Command, limits Limits) (*Child, error) {
	group := newCgroup(limits)
	// The child's descriptors 0 to 3, and the launcher's own 4.
	var ends [launcher.PolicyDescriptor + 1]struct{ ours, theirs *os.File }
	undo := func() {
		for _, end := range ends {
			closeFiles(end.ours, end.theirs)
		}
		_ = group.Remove()
	}
	for fd := range ends {
		r, w, err := os.Pipe()
		if err != nil {
			undo()
			return nil, fmt.Errorf("make a pipe for the child's descriptor %d: %w", fd, err)
		}
		if fd == 0 || fd == launcher.PolicyDescriptor {
			r, w = w, r
		}
		ends[fd].ours, ends[fd].theirs = r, w
	}
	self, err := os.Executable()
	if err != nil {
		undo()
		return nil, fmt.Errorf("find our own executable, to start the child with: %w", err)
	}
	c := &Child{
		command: command,
		limits:  limits,
		group:   group,
		stdin:   ends[0].ours, stdout: ends[1].ours, stderr: ends[2].ours, frames: ends[3].ours,
		out:   newCapture(limits.Output),
		err:   newCapture(limits.Output),
		done:  make(chan struct{}),
		meter: meter{baseline: command.Runtime},
		process: &exec.Cmd{
			Path:        self,
			Args:        launcher.Argv(command.Path, command.Args),
			Env:         command.Env,
			Dir:         command.Dir,
			Stdin:       ends[0].theirs,
			Stdout:      ends[1].theirs,
			Stderr:      ends[2].theirs,
			ExtraFiles:  []*os.File{ends[3].theirs, ends[launcher.PolicyDescriptor].theirs},
			SysProcAttr: childAttributes(),
		},
	}
	if c.process.Env == nil {
		c.process.Env = []string{} // nil would mean ours
	}
	if err := spawn(c.process); err != nil {
		undo()
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	for _, end := range ends {
		closeFiles(end.theirs)
	}
	go func() { // it may be longer than a pipe holds
		to := ends[launcher.PolicyDescriptor].ours
		_ = launcher.WritePolicy(to, launcher.Policy{ // it fails when the launcher has ended, and Wait says so
			Cgroup:    group.Join(),
			Wall:      command.Wall,
			Nice:      5,
			OpenFiles: 1024,
			FileBytes: uint64(limits.FileBytes),
		})
		_ = to.Close()
	}()
	tellKeeper(launcher.Kept{Group: c.pid(), Dir: command.Dir, Cgroup: group.Join()})
	go c.reap()
	go c.watchMemory()
	go c.watchDisk()
	return c, nil
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (c *Child) pid() int { return c.process.Process.Pid }

// Stdin is the child's fd 0. Writing to a child that has ended fails with EPIPE.
func (c *Child) Stdin() io.WriteCloser { return c.stdin }

// Frames is the child's fd 3; it ends when no process of the child's has it
// open any more. All of it must be read, or a child that writes there waits.
func (c *Child) Frames() io.Reader { return c.frames }

// Attach gives the child to a run: from here on its output is kept and emitted,
// each chunk as it comes, and the end of ctx ends it. Call it once. emit is
// called from two goroutines, one a stream; a slow emit slows the guest.
func (c *Child) Attach(ctx context.Context, emit func(Event)) {
	c.attached.Add(2)
	go c.copyStream(c.stdout, c.out, Stdout, emit)
	go c.copyStream(c.stderr, c.err, Stderr, emit)
	stop := context.AfterFunc(ctx, func() {
		c.Kill(Cancelled, "the run was cancelled")
	})
	go func() {
		<-c.done
		stop()
	}()
}

func (c *Child) copyStream(from io.Reader, to *capture, kind EventKind, emit func(Event)) {
	defer c.attached.Done()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			_, _ = to.Write(buffer[:n])
			emit(Event{Kind: kind, Data: buffer[:n]})
		}
		if err != nil {
			return // EOF, or closed by Wait
		}
	}
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
		c.Kill(TimedOut, fmt.Sprintf("%s took longer than %v", what, d))
	})
}

// MarkBaseline says that the child's runtime is up and the guest comes next: the
// memory that the child has now is the runtime's, which does not count towards
// Limits.Memory, and from here on it gets one processor's worth of time.
func (c *Child) MarkBaseline() {
	c.meter.markBaseline(c.pid())
	c.group.BoundProcessors(processors)
}

// Kill ends the child's whole process group at once. The first call's status
// and reason are the ones that Wait reports.
func (c *Child) Kill(status Status, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exited {
		return
	}
	if c.status == "" {
		c.status, c.reason = status, reason
	}
	_ = syscall.Kill(-c.pid(), syscall.SIGKILL) // ESRCH: it has just ended
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
	_ = syscall.Kill(-c.pid(), syscall.SIGKILL)
	c.group.Kill()
	_ = c.process.Wait() // what it says is in ProcessState
	c.finishGroup()
	tellKeeper(launcher.Kept{Group: c.pid(), Gone: true})
	close(c.done)
	// A descendant that left the group may still have fd 3 open.
	time.AfterFunc(drainTime, func() { _ = c.frames.Close() })
}

// drainTime is how long a stream may stay open after the child has ended, when
// a descendant that left its process group holds it.
const drainTime = time.Second

// Wait waits for the end of the child and of its streams, and removes its
// directory. A stream that does not end is closed from our side.
func (c *Child) Wait() Exit {
	<-c.done
	_ = c.stdin.Close()
	drained := make(chan struct{})
	go func() {
		c.attached.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(drainTime):
		_ = c.stdout.Close()
		_ = c.stderr.Close()
		<-drained
	}
	closeFiles(c.stdout, c.stderr)
	removeRunDir(c.command.Dir)

	exit := Exit{
		CPU:        c.process.ProcessState.UserTime() + c.process.ProcessState.SystemTime(),
		PeakMemory: c.meter.peak(c.process.ProcessState),
		Stdout:     c.out.captured(),
		Stderr:     c.err.captured(),
	}
	state := c.process.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case state.Signaled():
		exit.Status, exit.Code = Crashed, 128+int(state.Signal())
		exit.Reason = fmt.Sprintf("the process was ended by signal %d (%v)", state.Signal(), state.Signal())
	case state.ExitStatus() == 0:
		exit.Status = Completed
	default:
		exit.Status, exit.Code = Failed, state.ExitStatus()
	}
	if c.status != "" { // after done, nothing writes it
		exit.Status, exit.Reason = c.status, c.reason
	}
	return exit
}

// Ended is closed when the process has ended.
func (c *Child) Ended() <-chan struct{} { return c.done }

// spawn starts commands from one thread that lives as long as we do: a child's
// parent-death signal comes when the thread that started it ends.
var spawn = func() func(*exec.Cmd) error {
	type request struct {
		command *exec.Cmd
		result  chan error
	}
	requests := make(chan request)
	var once sync.Once
	return func(command *exec.Cmd) error {
		once.Do(func() {
			go onOwnThread(func() {
				for r := range requests {
					r.result <- r.command.Start()
				}
			})
		})
		r := request{command, make(chan error, 1)}
		requests <- r
		return <-r.result
	}
}()
