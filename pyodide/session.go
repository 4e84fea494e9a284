//go:build !windows

package pyodide

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"rillbox/deno"
	"rillbox/pyodide/gateway"
	"rillbox/supervisor"
)

// Frames of a session's child that a worker's has not; see session.ts.
const (
	stdinFrame  = "stdin"
	exitedFrame = "exited"
)

// session is one child that takes cell after cell.
type session struct {
	e       *Engine
	rt      *runtime
	worker  *worker
	grant   *gateway.Grant    // its access to packages, as long as it lives
	control *os.File          // where the child sees which cell to interrupt
	turn    chan struct{}     // holds a token: whoever has it runs a cell
	has     map[string]string // what is installed: a project → its file's SHA-256

	writing sync.Mutex // held while a request is written

	ended chan struct{}
	exit  supervisor.Exit // set when ended is closed
}

var _ supervisor.SessionOpener = (*Engine)(nil)

// OpenSession starts a child of its own for a session. Its workspace is
// /workspace to Python, the very files and not a copy.
func (e *Engine) OpenSession(ctx context.Context, o supervisor.SessionOptions, emit func(supervisor.Event)) (supervisor.Session, error) {
	permissions, err := e.o.Permissions.Narrow(o.Permissions)
	if err != nil {
		return nil, &supervisor.ProgramError{Text: err.Error()}
	}
	rt, err := e.ready(ctx, serialised(emit))
	if err != nil {
		return nil, err
	}
	s := &session{e: e, rt: rt, turn: make(chan struct{}, 1), has: map[string]string{}, ended: make(chan struct{})}
	s.turn <- struct{}{}
	if err := s.start(permissions, o); err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *session) start(permissions deno.Permissions, o supervisor.SessionOptions) error {
	dir, err := supervisor.NewRunDir()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "control")
	if s.control, err = os.Create(path); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	own := needs{
		read: append(s.rt.reads(), seen{path, "/rillbox/control"}),
		dir:  dir, workspace: o.Workspace, readOnly: o.ReadOnly,
	}
	child, loan, err := s.e.startLending(s.rt, permissions, own, "session.js", s.rt.pyodide.Dir, s.rt.snapshot, path, o.Workspace)
	if err != nil {
		return errors.Join(err, s.control.Close(), os.RemoveAll(dir))
	}
	frames := deno.NewFrameReader(child.Frames(), startLimit, resolveFrame, installedFrame, startedFrame, fatalFrame, stdinFrame, exitedFrame)
	s.worker = &worker{child: child, frames: frames, loan: loan}
	s.grant = s.rt.gateway.Grant(nil)
	s.grant.At(child.gateway)
	child.Attach(context.Background(), func(supervisor.Event) {})
	go func() {
		s.exit = child.Wait()
		s.grant.Close()
		_ = s.control.Close()
		close(s.ended)
	}()
	return nil
}

// awaitReady waits until the child takes cells, and ends it when it does not.
func (s *session) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("the start of Python took longer than %v", startTime))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.worker.child.Kill(supervisor.Cancelled, "the session did not start") })
	err := s.worker.awaitReady()
	if !stop() {
		err = context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("its process has ended")
		select {
		case <-s.ended: // by itself, and says how
		case <-time.After(time.Second):
		}
	}
	if err != nil {
		s.Close()
		return fmt.Errorf("start a Python session: %w (%s) %s", err, s.exit.Reason, s.exit.Stderr)
	}
	s.worker.child.Pause()
	return nil
}

// Run runs one cell.
func (s *session) Run(ctx context.Context, p supervisor.Program, emit func(supervisor.Event)) (supervisor.Result, error) {
	return s.do(ctx, p, emit, func(c *cell) any {
		return struct {
			Cell int `json:"cell"`
			request
		}{c.number, c.request()}
	})
}

// completeTime is how long an answer about a text may take: an object's own code
// runs when it is asked for its attributes.
const completeTime = 2 * time.Second

// Complete gives the names that may stand in place of the last word of text.
func (s *session) Complete(ctx context.Context, text string) (names []string, err error) {
	err = s.ask(ctx, "complete", text, &names)
	return names, err
}

// Unfinished says whether text, as it is typed, waits for another line.
func (s *session) Unfinished(ctx context.Context, text string) (waits bool, err error) {
	err = s.ask(ctx, "unfinished", text, &waits)
	return waits, err
}

// ask asks the child something about a text.
func (s *session) ask(ctx context.Context, what, text string, answer any) error {
	result, err := s.do(ctx, supervisor.Program{Timeout: completeTime}, func(supervisor.Event) {}, func(c *cell) any {
		return map[string]any{"cell": c.number, what: text, "limit": c.request().Limit}
	})
	if err != nil || result.Value == nil {
		return err
	}
	if err := json.Unmarshal(result.Value, answer); err != nil {
		return fmt.Errorf("%s %.80q: %w", what, text, err)
	}
	return nil
}

// do has the child answer one request, as a cell.
func (s *session) do(ctx context.Context, p supervisor.Program, emit func(supervisor.Event), request func(*cell) any) (supervisor.Result, error) {
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		r := cancelled()
		r.State = supervisor.StateKept
		return r, nil
	}
	select {
	case <-s.ended:
		return supervisor.Result{}, errors.New("the Python session has ended")
	default:
	}
	c := s.newCell(p, serialised(emit))
	return c.do(ctx, request(c)), nil
}

// write gives the child a request.
func (s *session) write(request any) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return deno.WriteRequest(s.worker.child.Stdin(), request)
}

// Memory is how many bytes the child uses now.
func (s *session) Memory() int64 { return s.worker.child.Memory() }

// Ended is closed when the child has ended.
func (s *session) Ended() <-chan struct{} { return s.ended }

// Close ends the child and waits for its end.
func (s *session) Close() {
	s.worker.child.Kill(supervisor.Cancelled, "the session was ended")
	<-s.ended
}
