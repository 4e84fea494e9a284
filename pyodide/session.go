//go:build !windows

package pyodide

import (
	"context"
	"errors"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
	"rillbox/supervisor/wire"
)

// session is one child that takes cell after cell, one at a time.
type session struct {
	e         *Engine
	worker    *worker
	installed map[string]string // a project → its file's SHA-256

	ended chan struct{}
	exit  sandbox.Exit // set when ended is closed
}

var _ job.SessionOpener = (*Engine)(nil)

// OpenSession starts a child of its own for a session. Its workspace is
// /workspace to Python, the very files and not a copy.
func (e *Engine) OpenSession(ctx context.Context, o job.SessionOptions, emit func(job.Event)) (job.Session, error) {
	permissions, err := e.o.Permissions.Narrow(o.Most, o.Permissions)
	if err != nil {
		return nil, job.Refuse("%v", err)
	}
	rt, err := e.ready(ctx, emit)
	if err != nil {
		return nil, err
	}
	w, err := e.startReady(ctx, rt, childOptions{
		module: sessionModule, permissions: permissions, policy: e.o.Narrowed(o.Policy), workspace: o.Workspace, readOnly: o.ReadOnly,
	})
	if err != nil {
		return nil, err
	}
	s := &session{e: e, worker: w, installed: map[string]string{}, ended: make(chan struct{})}
	w.Attach(context.Background(), func(job.Event) {})
	w.Pause()
	go func() {
		s.exit = w.Wait()
		close(s.ended)
	}()
	return s, nil
}

// Run runs one cell.
func (s *session) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	return s.do(ctx, p, request{}, streams)
}

// Complete gives the names that may stand in place of the last word of text.
func (s *session) Complete(ctx context.Context, text string) (names []string, err error) {
	err = s.ask(ctx, request{Complete: &text}, &names)
	return names, err
}

// Unfinished says whether text, as it is typed, waits for another line.
func (s *session) Unfinished(ctx context.Context, text string) (waits bool, err error) {
	err = s.ask(ctx, request{Unfinished: &text}, &waits)
	return waits, err
}

// ask asks the child something about a text.
func (s *session) ask(ctx context.Context, question request, answer any) error {
	result, err := s.do(ctx, job.Program{Timeout: wire.QuestionTime}, question, job.Streams{Emit: func(job.Event) {}})
	return wire.Answer("Python", result, err, answer)
}

// do has the child run a cell, or answer a question about a text.
func (s *session) do(ctx context.Context, p job.Program, question request, streams job.Streams) (job.Result, error) {
	if ctx.Err() != nil {
		return job.CancelledBefore(job.StateKept), nil
	}
	select {
	case <-s.ended:
		return job.Result{}, errors.New("the Python session has ended")
	default:
	}
	c := &cell{run: newRun(s.e, s.worker, p, streams), s: s, number: s.worker.Reader.BeginCell(startLimit)}
	c.installed = s.installed
	return c.do(ctx, question), nil
}

// Memory is how many bytes the child uses now.
func (s *session) Memory() int64 { return s.worker.Memory() }

// Ended is closed when the child has ended.
func (s *session) Ended() <-chan struct{} { return s.ended }

// Close ends the child and waits for its end.
func (s *session) Close() {
	s.worker.Kill(job.Cancelled, "the session was ended")
	<-s.ended
}
