package sandbox

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"rillbox/supervisor/job"
)

// stream is one of the guest's two output streams, on our side of its pipe. All
// that is read is kept and emitted under its lock, so that whoever holds the
// lock and has read the pipe empty has all that the guest wrote before.
type stream struct {
	file *os.File // nil where there is none
	kind job.EventKind

	mu     sync.Mutex
	budget int64
	kept   *job.Capture
	emit   func(job.Event)
}

// streamBuffer is how much is read at once, in bytes: as much as a pipe holds,
// pipe(7).
const streamBuffer = 64 << 10

// buffers are those that no stream reads into.
var buffers = sync.Pool{New: func() any { return new([streamBuffer]byte) }}

func newStream(file *os.File, kind job.EventKind, budget int64) *stream {
	return &stream{file: file, kind: kind, budget: budget, kept: job.NewCapture(budget), emit: func(job.Event) {}}
}

// read reads the stream to its end, until file is closed, or until its deadline; what
// is there then is left to end.
func (s *stream) read() {
	conn, err := s.file.SyscallConn()
	if err != nil {
		return // it is closed
	}
	for ended := false; !ended && err == nil; {
		err = conn.Read(func(fd uintptr) (done bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			n, err := s.take(fd)
			ended = n == 0 && !errors.Is(err, syscall.EAGAIN)
			return n > 0 || ended
		})
	}
}

// take reads once, what is there now. It gives 0 and EAGAIN when there is
// nothing, 0 without an error at the stream's end.
func (s *stream) take(fd uintptr) (int, error) {
	buffer := buffers.Get().(*[streamBuffer]byte)
	defer buffers.Put(buffer)
	for {
		n, err := syscall.Read(int(fd), buffer[:])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if n <= 0 {
			return 0, err
		}
		_, _ = s.kept.Write(buffer[:n]) // it always can
		s.emit(job.Event{Kind: s.kind, Data: buffer[:n]})
		return n, nil
	}
}

// begin has what comes from here on emitted.
func (s *stream) begin(emit func(job.Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit = emit
}

// end takes what the guest has written by now, and gives all that was kept
// since the last end. What comes later belongs to the next cell.
func (s *stream) end() job.Captured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if conn, err := s.file.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { // else it is closed, and read has had it all
			for left := streamBuffer; left > 0; { // the guest may go on writing
				n, _ := s.take(fd)
				if n == 0 {
					return
				}
				left -= n
			}
		})
	}
	kept := s.kept.Captured()
	s.kept, s.emit = job.NewCapture(s.budget), func(job.Event) {}
	return kept
}

// BeginCell has the child's output emitted, until EndCell, as that of a cell.
// emit is called from two goroutines, one a stream; a slow emit slows the guest.
func (c *Child) BeginCell(emit func(job.Event)) {
	c.looks.Reset(BusyInterval)
	c.out.begin(emit)
	c.err.begin(emit)
}

// EndCell gives what was kept of the child's output since the last EndCell, all
// that the guest had written when it was called included, and emits no more.
// What the guest writes between two cells is part of the next.
func (c *Child) EndCell() (stdout, stderr job.Captured) {
	c.looks.Reset(idleInterval)
	return c.out.end(), c.err.end()
}
