//go:build !windows

package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"rillbox/supervisor/job"
	"rillbox/supervisor/wire"
)

// callFrame asks for a program in another language to be run: a shell's `python3 x.py`. It
// is a claim, judged as any call: its program has the caller's workspace and permissions,
// and what is left of its time, and nothing else of it.
const callFrame = "call"

// call is such a frame, and answered one.
type call struct {
	Language string   `json:"language"`
	Code     string   `json:"code"`
	Path     string   `json:"path,omitempty"` // of the program's file in the workspace; empty if it has none
	Args     []string `json:"args,omitempty"`
	Stdin    []byte   `json:"stdin,omitempty"`
	// Packages are to be fetched, and nothing run.
	Packages []string `json:"packages,omitempty"`
}

type answered struct {
	Code   int    `json:"code"`
	Stdout []byte `json:"stdout"`
	Stderr []byte `json:"stderr"`
}

// runCalling runs one program of a language that calls others, as the one cell of a
// session: so there is a way to answer it.
func (e *Engine) runCalling(ctx context.Context, rt runtime, l language, o childOptions, p job.Program, streams job.Streams) (job.Result, error) {
	w, ended, err := e.take(rt, l, o)
	defer ended()
	if err != nil {
		return job.Result{}, err
	}
	if !w.Ready {
		err = w.AwaitReady(ctx, startTime, "the start of "+l.Title)
	}
	switch {
	case ctx.Err() != nil:
		w.Discard()
		return job.CancelledBefore(""), nil
	case err != nil:
		return job.Result{}, fmt.Errorf("start %s: %w", l.Title, err)
	}
	s := newSession(e, l, w, job.SessionOptions{Permissions: p.Permissions, Most: p.Most, Policy: p.Policy, Workspace: p.Workspace, ReadOnly: p.ReadOnly})
	s.combined = p.Combined
	defer s.Close()
	r := e.request(l, p)
	r.Last = true
	result, err := s.do(ctx, p, r, streams)
	result.State = ""
	return result, err
}

// call answers a call frame.
func (s *session) call(clock *wire.CellClock, f wire.Frame, p job.Program, streams job.Streams) {
	var asked call
	a := answered{Code: 126}
	err := json.Unmarshal(f.JSON, &asked)
	if err == nil {
		a, err = s.beside(clock, asked, p, streams)
	}
	if err != nil {
		a.Stderr = append(a.Stderr, "rillbox: "+err.Error()+"\n"...)
	}
	// A child that asks again and again without reading its answers waits here, until its time is up.
	_ = wire.WriteRequest(s.worker.Stdin(), map[string]any{"call": a}) // of a child that has ended, its frames tell
}

func (s *session) beside(clock *wire.CellClock, asked call, p job.Program, streams job.Streams) (a answered, err error) {
	if streams.Beside == nil {
		return answered{Code: 126}, job.Refuse("a program that another one runs can't run others")
	}
	inner := job.Program{
		Language: job.Language(asked.Language), Code: asked.Code, Path: asked.Path, Args: asked.Args, Packages: asked.Packages,
		FetchOnly: len(asked.Packages) > 0, Permissions: s.options.Permissions, Workspace: s.options.Workspace, ReadOnly: s.options.ReadOnly,
		Timeout: max(clock.Left(), 1),
	}
	result, err := streams.Beside(clock, inner, job.Streams{Stdin: bytes.NewReader(asked.Stdin), Emit: func(e job.Event) {
		if e.Kind == job.Stage {
			streams.Emit(e)
		}
	}})
	if err != nil {
		return answered{Code: 126}, err
	}
	a = answered{Code: result.ExitCode, Stdout: whole(result.Stdout), Stderr: whole(result.Stderr)}
	if result.Status != job.Completed && result.Error != nil {
		said := result.Error.Traceback
		if said == "" {
			said = result.Error.Name + ": " + result.Error.Message
		}
		a.Stderr = append(a.Stderr, said+"\n"...)
	}
	if result.Status != job.Completed && a.Code == 0 {
		a.Code = 1
	}
	return a, nil
}

// whole is what was kept of a stream, with a word on what was not.
func whole(c job.Captured) []byte {
	text := append([]byte{}, c.Head...)
	if c.Omitted > 0 {
		text = fmt.Appendf(text, "\n… %d bytes are left out …\n", c.Omitted)
	}
	return append(text, c.Tail...)
}
