package sandbox

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// How often ExpectEnd looks, and how often at most: a child that is about to end
// takes half a millisecond.
const (
	endInterval = 200 * time.Microsecond
	endLooks    = 100
)

// ExpectEnd says that the child, by its own account, is about to end by itself.
// Freeing its memory takes the kernel up to 13 ms, and only then can it be waited
// for, but what it will be waited for with is known before: as soon as each of
// its threads is past the point from which the kernel lets none go on. ExpectEnd
// waits a few milliseconds for that moment. Where it comes, Wait does not wait
// for more, and Frames ends with what the child has written; the rest is done as
// for each child, behind the run. Where it does not come, or the kernel does not
// tell, nothing has changed.
func (c *Child) ExpectEnd() {
	if c.command.Wall == nil || c.command.Wall.Processes {
		return // what it has started may go on, and write
	}
	_, _ = c.meter.see(c.pid()) // it may have none any more
	if !c.tellsEnd || c.meter.seen() == 0 {
		return
	}
	for range endLooks {
		select {
		case <-c.over:
			return
		default:
		}
		if status, ended := readEnding(c.pid(), c.group); ended {
			if status.Exited() { // else its cgroup knows why
				c.endEarly(status)
			}
			return
		}
		sleepBriefly(endInterval)
	}
}

// endEarly takes the child for ended, unless somebody else has ended it.
func (c *Child) endEarly(status syscall.WaitStatus) {
	cpu, peak := cpuTime(c.pid()), c.meter.seen()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exited || c.status != "" {
		return
	}
	c.exited = true
	if c.deadline != nil {
		c.deadline.Stop()
	}
	c.frames.complete.Store(true)
	c.end = end{status, cpu, peak}
	close(c.over)
	c.finishStreams()
}

// finishStreams has what is in the pipes read, and no more.
func (c *Child) finishStreams() {
	for _, s := range []*stream{c.out, c.err} {
		_ = s.file.SetReadDeadline(time.Now()) // read ends; end takes what is there
	}
}

// frames is our end of a child's descriptor 3, for one reader.
type frames struct {
	*os.File
	complete atomic.Bool // all that comes is in the pipe
	rest     int         // how much of that may still be read, in bytes
}

// finish has what is in the pipe read, and no more.
func (f *frames) finish() {
	f.complete.Store(true)
	_ = f.SetReadDeadline(time.Now()) // wakes who waits; a closed one has been read
}

// Read closes the file at its end.
func (f *frames) Read(p []byte) (n int, err error) {
	if !f.complete.Load() {
		n, err = f.File.Read(p)
	}
	if f.complete.Load() && n == 0 && (err == nil || errors.Is(err, os.ErrDeadlineExceeded)) {
		n, err = f.readRest(p)
	}
	if err != nil {
		_ = f.Close()
	}
	return n, err
}

// readRest reads what is there, up to what a pipe holds: a descendant may go on writing.
func (f *frames) readRest(p []byte) (n int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	if f.rest <= 0 {
		return 0, io.EOF
	}
	p = p[:min(len(p), f.rest)]
	if controlErr := conn.Control(func(fd uintptr) { n, err = syscall.Read(int(fd), p) }); controlErr != nil {
		return 0, controlErr
	}
	if n <= 0 && (err == nil || errors.Is(err, syscall.EAGAIN)) {
		return 0, io.EOF
	}
	n = max(n, 0)
	f.rest -= n
	return n, err
}
