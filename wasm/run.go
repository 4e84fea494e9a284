//go:build !windows

package wasm

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/wire"
)

// startTime is how long a child may take until it has loaded its language.
const startTime = 60 * time.Second

// frameRoom is what a result frame has beside the value or the error, in bytes.
const frameRoom = 64 << 10

// request is a program, or a cell, as the guest gets it; see guest/serve.ts.
type request struct {
	Cell     int               `json:"cell,omitempty"`
	Code     string            `json:"code"`
	File     string            `json:"file"`
	Files    map[string][]byte `json:"files,omitempty"`
	Args     []string          `json:"args,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Compiled []byte            `json:"compiled,omitempty"`
	Echo     bool              `json:"echo,omitempty"`
	Last     bool              `json:"last,omitempty"` // no other cell comes after it
	Limit    int64             `json:"limit"`
	Displays int64             `json:"displays"`
	// A text in place of code.
	Complete   *string `json:"complete,omitempty"`
	Unfinished *string `json:"unfinished,omitempty"`
}

// Run runs one program in one fresh process.
func (e *Engine) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	l := rowOf(p.Language)
	p.Timeout = cmp.Or(p.Timeout, e.o.Limits.Timeout)
	if l.translates {
		return e.runTranslated(ctx, l, p, streams)
	}
	permissions, err := e.check(l, p)
	if err != nil {
		return job.Result{}, err
	}
	began := time.Now()
	rt, err := e.runtime(ctx, l, streams.Emit)
	if ctx.Err() != nil {
		return job.CancelledBefore(""), nil
	}
	if err != nil {
		return job.Result{}, err
	}
	r := e.request(l, p)
	var made compiled
	if l.compiler != "" {
		var failed *job.Result
		if made, failed, err = e.compile(ctx, rt, l, p, r, streams); failed != nil || err != nil {
			return *cmp.Or(failed, &job.Result{}), err
		}
		r.Compiled = made.module
	}
	if p.FetchOnly {
		return job.Result{Status: job.Completed, Installing: time.Since(began)}, nil
	}
	o := childOptions{
		module: l.guest, flags: l.flags, heap: l.heap, permissions: permissions,
		workspace: p.Workspace, readOnly: p.ReadOnly, combined: p.Combined, session: l.calls,
	}
	if l.calls {
		return e.runCalling(ctx, rt, l, o, p, streams)
	}
	w, ended, err := e.take(rt, l, o)
	defer ended()
	if err != nil {
		return job.Result{}, err
	}
	result := e.runIn(ctx, w, l, p, r, streams)
	result.Installing = made.took
	if len(made.words) > 0 {
		said := result.Errors()
		said.Head = append(slices.Clone(made.words), said.Head...)
	}
	return result, nil
}

// check says what of a program can't be run in a language, and gives its permissions.
func (e *Engine) check(l language, p job.Program) (permission.Permissions, error) {
	permissions, err := e.o.Permissions.Narrow(p.Most, p.Permissions)
	switch {
	case err != nil:
		return permissions, job.Refuse("%v", err)
	case len(p.Packages) > 0:
		return permissions, errNoPackages(l, p.Packages)
	case p.Command != "":
		return permissions, job.Refuse("%s has no packages whose commands could be run", l.Title)
	}
	return permissions, nil
}

// request makes a program's request.
func (e *Engine) request(l language, p job.Program) request {
	r := request{
		Code: p.Code, Args: p.Args, Echo: p.Echo, Limit: e.o.Limits.Result, Displays: e.o.Limits.Displays,
		File: path.Join(workspaceName, cmp.Or(p.Path, p.Name, "main"+l.Extensions[0])),
		Env:  map[string]string{"HOME": "/home/user", "USER": "user", "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "PWD": workspaceName},
	}
	maps.Copy(r.Env, permission.Variables(e.o.Env))
	for name, content := range p.Files {
		if r.Files == nil {
			r.Files = map[string][]byte{}
		}
		r.Files[path.Join(workspaceName, path.Dir(p.Path), name)] = content
	}
	return r
}

// startWorker starts a child that loads its language, and takes a program or cells.
func (e *Engine) startWorker(rt runtime, o childOptions) (*wire.Worker, error) {
	child, err := e.startChild(rt, o)
	if err != nil {
		return nil, err
	}
	return &wire.Worker{Child: child, Reader: wire.NewFrameReader(child.Frames(), e.o.Limits.Result+frameRoom, stdinFrame, callFrame)}, nil
}

// runIn has a worker run a program to its end.
func (e *Engine) runIn(ctx context.Context, w *wire.Worker, l language, p job.Program, r request, streams job.Streams) job.Result {
	var started time.Time
	begin := func() {
		started = time.Now()
		w.Reader.AllowDisplays(e.o.Limits.Displays)
		w.SetDeadline(p.Timeout, "the program")
		w.LimitCPU("the program", func(reason string) { w.Kill(job.TimedOut, reason) })
		go feed(w, r, streams.Stdin)
	}
	emit, release := wire.HoldReport(streams.Emit)
	w.Attach(ctx, emit)
	if w.Ready {
		begin()
	} else {
		w.SetDeadline(startTime, "the start of "+l.Title)
	}
	outcome := wire.ReadOutcome(w.Reader, w.ExpectEnd, func(wire.Frame) error {
		if w.Ready {
			return fmt.Errorf("%w: a second ready frame", wire.ErrProtocol)
		}
		w.SetReady()
		begin()
		return nil
	})
	result := outcome.Into(w.Wait())
	release(result)
	tellOnce(&result)
	if !started.IsZero() {
		result.Duration = time.Since(started)
	}
	return result
}

// feed gives a worker its request, and then the guest's standard input.
func feed(w *wire.Worker, r request, stdin io.Reader) {
	to := w.Stdin()
	if err := wire.WriteRequest(to, r); err != nil {
		stdin = nil // the child has ended, and Wait says why
	}
	wire.Feed(to, stdin)
}

// tellOnce leaves a traceback out that the language itself has written to standard error.
func tellOnce(r *job.Result) {
	if r.Error == nil || r.Error.Traceback == "" {
		return
	}
	written := r.Errors()
	for line := range strings.Lines(r.Error.Traceback) {
		line := []byte(strings.TrimSpace(line))
		if !bytes.Contains(written.Head, line) && !bytes.Contains(written.Tail, line) {
			return
		}
	}
	r.Error.Traceback = ""
}
