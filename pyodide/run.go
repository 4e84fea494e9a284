//go:build !windows

package pyodide

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rillbox/deno"
	"rillbox/pyodide/gateway"
	"rillbox/supervisor"
)

// run is one program in its worker.
type run struct {
	e       *Engine
	rt      *runtime
	worker  *worker
	program supervisor.Program
	emit    func(supervisor.Event)
	grant   *gateway.Grant

	wish    *wish
	planned bool      // the wish's plan was known
	said    plan      // what was installed before the program started
	before  int       // how many files had been served by then
	started time.Time // of the program; zero before
	fatal   string    // what broke Python
}

// request is what a worker gets; see runner.Program.
type request struct {
	Code     string            `json:"code"`
	Name     string            `json:"name"`
	Args     []string          `json:"args"`
	Packages []string          `json:"packages"`
	Env      map[string]string `json:"env"`
	Limit    int64             `json:"limit"`
	Gateway  string            `json:"gateway"`
}

func newRun(e *Engine, rt *runtime, w *worker, p supervisor.Program, emit func(supervisor.Event)) *run {
	return &run{e: e, rt: rt, worker: w, program: p, emit: emit}
}

// do runs the program to its end.
func (r *run) do(ctx context.Context) (supervisor.Result, error) {
	child, limits := r.worker.child, r.e.o.Limits
	r.grant = r.rt.gateway.Grant(func(stage string, done, total int64) {
		r.emit(supervisor.Event{Kind: supervisor.Stage, Text: stage, Done: done, Total: total})
	})
	defer r.grant.Close()
	child.Attach(ctx, r.emit)
	child.SetDeadline(limits.InstallTimeout, "package installation")
	go r.send(child)
	outcome := deno.ReadOutcome(r.worker.frames, func(frame deno.Frame) error { return r.take(ctx, frame) })
	exit := child.Wait()
	ended := time.Now()

	if r.started.IsZero() && outcome.Result == nil && (exit.Status == supervisor.Failed || exit.Status == supervisor.Crashed) {
		broken := r.broken(outcome, exit)
		if r.fatal == "" || !r.worker.ready {
			return supervisor.Result{}, broken
		}
		// Reading the program or its packages was too much for Python.
		r.e.o.Log.Warn("a Python worker broke at its request", "error", broken)
	}
	result := outcome.Into(exit)
	if r.fatal != "" && exit.Status == supervisor.Failed {
		result.Status = supervisor.Crashed
		result.Error = &supervisor.GuestError{Name: "FatalError", Message: "Python itself broke: " + r.fatal}
	}
	if !r.started.IsZero() {
		result.Duration = ended.Sub(r.started)
	}
	r.tellPackages(&result)
	return result, nil
}

// broken is the error of a worker that ended before its program started.
func (r *run) broken(outcome deno.Outcome, exit supervisor.Exit) error {
	why := r.fatal
	if outcome.Err != nil {
		why = outcome.Err.Error()
	}
	return fmt.Errorf("the Python worker ended before the program started (exit status %d %s): %s %s", exit.Code, exit.Reason, why, exit.Stderr)
}

// send gives the worker its request.
func (r *run) send(child *supervisor.Child) {
	err := deno.WriteRequest(child.Stdin(), request{
		Code: r.program.Code, Name: r.program.Name, Args: r.program.Args, Packages: r.program.Packages,
		Env: r.e.variables(), Limit: max(r.e.o.Limits.Result-256, 64), Gateway: r.grant.BaseURL(),
	})
	if err != nil { // it has ended, and Wait says why
		r.e.o.Log.Debug("a Python worker did not take its request", "error", err)
	}
}

// take takes a frame. Those of our worker come in one order and end when the
// program starts; what comes out of order is the guest's.
func (r *run) take(ctx context.Context, frame deno.Frame) error {
	switch {
	case frame.Type == fatalFrame:
		var fatal struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(frame.JSON, &fatal) // its text is for people
		r.fatal = fatal.Message
		return nil
	case !r.started.IsZero():
		return fmt.Errorf("%w: %q after the program started", deno.ErrProtocol, frame.Type)
	case frame.Type == deno.ReadyFrame && !r.worker.ready:
		r.worker.getReady()
		return nil
	case frame.Type == resolveFrame && r.wish == nil:
		return r.resolve(frame)
	case frame.Type == installedFrame && r.wish != nil && r.said.Files == nil:
		return r.keep(ctx, frame)
	case frame.Type == startedFrame:
		return r.start()
	}
	return fmt.Errorf("%w: %q out of order", deno.ErrProtocol, frame.Type)
}

// resolve answers what a worker wishes with the plan for it, if there is one.
func (r *run) resolve(frame deno.Frame) error {
	r.wish = &wish{}
	if err := json.Unmarshal(frame.JSON, r.wish); err != nil {
		return fmt.Errorf("%w: %w", deno.ErrProtocol, err)
	}
	plan := r.e.findPlan(r.rt, *r.wish)
	if plan != nil {
		if err := r.grant.Allow(plan.files()); err != nil {
			r.e.o.Log.Warn("an install plan is not followed", "error", err)
			plan = nil
		}
	}
	r.planned = plan != nil
	if !r.planned {
		r.emit(supervisor.Event{Kind: supervisor.Stage, Text: "installing " + strings.Join(r.wish.names(), ", ")})
	}
	return deno.WriteRequest(r.worker.child.Stdin(), plan.answer())
}

// keep checks what a worker installed, and keeps it as the wish's plan.
func (r *run) keep(ctx context.Context, frame deno.Frame) error {
	var said installed
	if err := json.Unmarshal(frame.JSON, &said); err != nil {
		return fmt.Errorf("%w: %w", deno.ErrProtocol, err)
	}
	var err error
	if r.said, err = checkPlan(said, r.grant.Served()); err != nil {
		return fmt.Errorf("%w: %w", deno.ErrProtocol, err)
	}
	if r.planned {
		return nil
	}
	if err := r.e.storePlan(ctx, r.rt, *r.wish, r.said); err != nil {
		r.e.o.Log.Warn("an install plan is not kept", "error", err)
	}
	return nil
}

// start is the moment from which the program has its time and its input.
func (r *run) start() error {
	r.before = len(r.grant.Served())
	r.started = time.Now()
	r.worker.child.SetDeadline(r.e.timeout(r.program), "the program")
	r.worker.frames.SetLimit(r.e.o.Limits.Result)
	go feed(r.worker.child.Stdin(), r.program.Stdin)
	return nil
}

// tellPackages says what was installed, before the program and by it.
func (r *run) tellPackages(result *supervisor.Result) {
	files := r.said.files()
	if !r.started.IsZero() {
		files = append(files, r.grant.Served()[r.before:]...)
	}
	result.Packages = packages(files)
	for _, module := range slices.Sorted(maps.Keys(r.said.Missing)) {
		result.Notes = append(result.Notes, fmt.Sprintf("nothing was installed for `import %s`: %s", module, r.said.Missing[module]))
	}
}
