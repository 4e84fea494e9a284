//go:build !windows

package wasm

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
	"rillbox/supervisor/wire"
)

// OpenSession starts a session. Where its language keeps no state, each cell is a process
// of its own in the session's workspace.
func (e *Engine) OpenSession(ctx context.Context, o job.SessionOptions, emit func(job.Event)) (job.Session, error) {
	l := rowOf(o.Language)
	permissions, err := e.o.Permissions.Narrow(o.Most, o.Permissions)
	if err != nil {
		return nil, job.Refuse("%v", err)
	}
	if l.translates && l.keepsState {
		return e.openTranslated(ctx, l, o, emit)
	}
	if !l.keepsState {
		return &filesSession{e: e, options: o, ended: make(chan struct{})}, nil
	}
	rt, err := e.runtime(ctx, l, emit)
	if err != nil {
		return nil, err
	}
	w, err := e.startWorker(rt, childOptions{
		module: l.guest, flags: l.flags, heap: l.heap, permissions: permissions, workspace: o.Workspace, readOnly: o.ReadOnly, session: true,
	})
	if err != nil {
		return nil, err
	}
	if err := w.AwaitReady(ctx, startTime, "the start of "+l.Title); err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Title, err)
	}
	return newSession(e, l, w, o), nil
}

func newSession(e *Engine, l language, w *wire.Worker, o job.SessionOptions) *session {
	s := &session{e: e, l: l, worker: w, options: o, ended: make(chan struct{})}
	w.Attach(context.Background(), func(job.Event) {})
	w.Pause()
	go func() {
		s.exit = w.Wait()
		close(s.ended)
	}()
	return s
}

// filesSession keeps a workspace and nothing else.
type filesSession struct {
	e       *Engine
	options job.SessionOptions
	told    bool // that it keeps no variables
	once    sync.Once
	ended   chan struct{}
}

func (s *filesSession) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	p.Language, p.Permissions, p.Most, p.Policy = s.options.Language, s.options.Permissions, s.options.Most, s.options.Policy
	p.Workspace, p.ReadOnly = s.options.Workspace, s.options.ReadOnly
	result, err := s.e.Run(ctx, p, streams)
	if result.Status != job.Completed && result.Status != job.Failed {
		result.State = job.StateKept
	}
	if err == nil && !s.told {
		s.told = true
		result.Notes = append(result.Notes, rowOf(p.Language).Title+" keeps the session's files from cell to cell, and no variables: each cell is a whole program")
	}
	return result, err
}

func (s *filesSession) Complete(context.Context, string) ([]string, error) { return nil, nil }
func (s *filesSession) Unfinished(context.Context, string) (bool, error)   { return false, nil }
func (s *filesSession) Memory() int64                                      { return 0 }
func (s *filesSession) Ended() <-chan struct{}                             { return s.ended }
func (s *filesSession) Close()                                             { s.once.Do(func() { close(s.ended) }) }

// session is one child that takes cell after cell, one at a time. Its runtime can't be
// interrupted, so a cell whose time is up ends it.
type session struct {
	e       *Engine
	l       language
	worker  *wire.Worker
	options job.SessionOptions
	// combined says that the child's streams are one, which those of a lone program may be.
	combined bool
	ended    chan struct{}
	exit     sandbox.Exit // set when ended is closed
}

// stdinFrame asks for a piece of a cell's standard input.
const stdinFrame = "stdin"

// Run runs one cell.
func (s *session) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	if _, err := s.e.check(s.l, p); err != nil {
		return job.Result{}, err
	}
	return s.do(ctx, p, s.e.request(s.l, p), streams)
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

func (s *session) ask(ctx context.Context, question request, answer any) error {
	result, err := s.do(ctx, job.Program{Timeout: wire.QuestionTime}, question, job.Streams{Emit: func(job.Event) {}})
	return wire.Answer(s.l.Title, result, err, answer)
}

// do has the child take a request, and waits for its result.
func (s *session) do(ctx context.Context, p job.Program, r request, streams job.Streams) (job.Result, error) {
	w := s.worker
	select {
	case <-s.ended:
		return job.Result{}, fmt.Errorf("the session of %s has ended", s.l.Title)
	default:
	}
	if ctx.Err() != nil {
		return job.CancelledBefore(job.StateKept), nil
	}
	before, _ := w.Usage()
	emit, release := wire.HoldReport(streams.Emit)
	w.BeginCell(emit)
	r.Cell = w.Reader.BeginCell(s.e.o.Limits.Result + frameRoom)
	w.Reader.AllowDisplays(s.e.o.Limits.Displays)
	clock := wire.NewCellClock(ctx, w.Child)
	clock.Limit(p.Timeout, "the cell")
	clock.LimitCPU()
	stop := context.AfterFunc(clock, func() {
		status, reason := clock.Interruption()
		if status != "" {
			w.Kill(status, reason)
		}
	})
	w.Resume()
	started := time.Now()
	input := wire.Pieces(streams.Stdin, func(piece any) { _ = wire.WriteRequest(w.Stdin(), piece) })
	go func() { _ = wire.WriteRequest(w.Stdin(), r) }()
	outcome := wire.ReadCell(w.Reader, func(f wire.Frame) error {
		switch {
		case f.Type == stdinFrame:
			input.Ask()
		case f.Type == callFrame && s.l.calls:
			s.call(clock, f, p, streams)
		default:
			return fmt.Errorf("%w: a %s frame in a cell", wire.ErrProtocol, f.Type)
		}
		return nil
	})
	took := time.Since(started)
	input.End()
	stop()
	result := s.result(outcome, clock)
	clock.Stop()
	release(result)
	tellOnce(&result)
	result.CPU -= before
	result.Duration = took
	return result, nil
}

// result is a cell's, whose child lives on if it gave one.
func (s *session) result(outcome wire.Outcome, clock *wire.CellClock) job.Result {
	w := s.worker
	status, _ := clock.Interruption()
	if outcome.Result != nil && status == "" {
		w.Pause()
		var reported struct {
			Code uint8 `json:"code"`
		}
		_ = json.Unmarshal(outcome.Result.JSON, &reported) // a guest's own frame may have none
		exit := sandbox.Exit{Status: job.Completed, Code: int(reported.Code), Combined: s.combined}
		if exit.Code != 0 {
			exit.Status = job.Failed
		}
		exit.CPU, exit.PeakMemory = w.Usage()
		exit.Stdout, exit.Stderr = w.EndCell()
		return outcome.Into(exit)
	}
	if outcome.Err == nil { // the frames have ended: the child is about to
		select {
		case <-s.ended:
		case <-time.After(sandbox.EndGrace):
		}
	}
	w.Kill(job.Crashed, "its session's process can take no other cell")
	<-s.ended
	result := outcome.Into(s.exit)
	result.State = job.StateLost
	return result
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
