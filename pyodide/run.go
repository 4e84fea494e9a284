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

	// write gives the worker a request. installed are the files that it has from
	// before, by project; a program's worker has none.
	write     func(any) error
	installed map[string]string // a file's project → its SHA-256

	wish    *wish
	planned bool       // the wish's plan was known
	said    plan       // what was installed before the program started
	lacking []planFile // of that, what has no image yet
	before  int        // how many files had been served by then
	wished  time.Time  // when the wish came; zero before
	started time.Time  // of the program; zero before
	fatal   string     // what broke Python
	unread  error      // why the plan, if there is one, is not used
	failed  error      // of ours, for which the program is not started
	deep    bool       // that is the depth of the program's calls or data
}

// request is what a worker gets; see runner.Program.
type request struct {
	Code     string            `json:"code"`
	Name     string            `json:"name"`
	Args     []string          `json:"args"`
	Packages []string          `json:"packages"`
	Env      map[string]string `json:"env"`
	Limit    int64             `json:"limit"`
	Displays int64             `json:"displays"`
	Gateway  string            `json:"gateway"`
	Echo     bool              `json:"echo"`
}

func newRun(e *Engine, rt *runtime, w *worker, p supervisor.Program, emit func(supervisor.Event)) *run {
	write := func(request any) error { return deno.WriteRequest(w.child.Stdin(), request) }
	return &run{e: e, rt: rt, worker: w, program: p, emit: emit, write: write}
}

// do runs the program to its end.
func (r *run) do(ctx context.Context) (supervisor.Result, error) {
	child := r.worker.child
	r.grant = r.rt.gateway.Grant(r.tell)
	r.grant.At(child.gateway)
	defer r.grant.Close()
	emit, release := deno.HoldReport(r.emit)
	child.Attach(ctx, emit)
	if r.worker.ready {
		child.SetDeadline(r.e.o.Limits.InstallTimeout, "package installation")
	} else {
		child.SetDeadline(startTime, "the start of Python")
	}
	go r.send(r.request())
	outcome := deno.ReadOutcomeThen(r.worker.frames, r.worker.child.ExpectEnd, func(frame deno.Frame) error { return r.take(ctx, frame) })
	exit := child.Wait()
	ended := time.Now()
	r.e.makeImages(r.rt, r.lacking)

	if r.started.IsZero() && outcome.Result != nil && r.failed == nil {
		r.failed = r.installFailed()
	}
	if r.failed != nil {
		return supervisor.Result{}, r.failed
	}
	if r.started.IsZero() && outcome.Result == nil && (exit.Status == supervisor.Failed || exit.Status == supervisor.Crashed) {
		broken := r.broken(outcome, exit)
		if !r.worker.ready {
			return supervisor.Result{}, fmt.Errorf("%w: %w", errNotLoaded, broken)
		}
		if r.fatal == "" {
			return supervisor.Result{}, broken
		}
		// Reading the program or its packages was too much for Python.
		r.e.o.Log.Warn("a Python worker broke at its request", "error", broken)
	}
	result := r.result(outcome, exit)
	release(result)
	if !r.started.IsZero() {
		result.Duration = ended.Sub(r.started)
	}
	result.Installing = r.installing(ended)
	r.tellPackages(&result)
	return result, nil
}

// installing is how long the program's packages took, up to the run's end.
func (r *run) installing(ended time.Time) time.Duration {
	switch {
	case r.wished.IsZero():
		return 0
	case r.started.IsZero():
		return ended.Sub(r.wished)
	}
	return r.started.Sub(r.wished)
}

// tell tells of downloads.
func (r *run) tell(stage string, done, total int64) {
	r.emit(supervisor.Event{Kind: supervisor.Stage, Text: stage, Done: done, Total: total})
}

// result is the outcome of a run whose worker has ended.
func (r *run) result(outcome deno.Outcome, exit supervisor.Exit) supervisor.Result {
	result := outcome.Into(exit)
	switch {
	case exit.Status != supervisor.Failed:
	case r.deep:
		result.Error = &supervisor.GuestError{Name: "RecursionError", Message: "the program went too deep: functions that call one another, or values within values (to print, compare or free them), filled the stack of Python's C code, which ends Python; take it in steps, by a loop"}
	case r.fatal != "":
		result.Status = supervisor.Crashed
		result.Error = &supervisor.GuestError{Name: "FatalError", Message: "Python itself broke: " + r.fatal}
	}
	return result
}

// broken is the error of a worker that ended before its program started.
func (r *run) broken(outcome deno.Outcome, exit supervisor.Exit) error {
	why := r.fatal
	if outcome.Err != nil {
		why = outcome.Err.Error()
	}
	return fmt.Errorf("the Python worker ended before the program started (exit status %d %s): %s %s", exit.Code, exit.Reason, why, exit.Stderr)
}

// request is what the worker gets for the program.
func (r *run) request() request {
	limits := r.e.o.Limits
	return request{
		Code: r.program.Code, Name: r.program.Name, Args: r.program.Args, Packages: r.program.Packages,
		Env: deno.Variables(r.e.o.Env), Limit: max(limits.Result-256, 64), Displays: limits.Displays, Gateway: r.grant.BaseURL(), Echo: r.program.Echo,
	}
}

// send gives the worker a request.
func (r *run) send(request any) {
	if err := r.write(request); err != nil { // it has ended, and Wait says why
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
			Deep    bool   `json:"deep"`
		}
		_ = json.Unmarshal(frame.JSON, &fatal) // its text is for people
		r.fatal, r.deep = fatal.Message, fatal.Deep
		return nil
	case !r.started.IsZero():
		return fmt.Errorf("%w: %q after the program started", deno.ErrProtocol, frame.Type)
	case frame.Type == deno.ReadyFrame && !r.worker.ready:
		r.worker.getReady()
		r.worker.child.SetDeadline(r.e.o.Limits.InstallTimeout, "package installation")
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
	r.wish, r.wished = &wish{}, time.Now()
	if err := json.Unmarshal(frame.JSON, r.wish); err != nil {
		return fmt.Errorf("%w: %w", deno.ErrProtocol, err)
	}
	plan, err := r.e.findPlan(r.rt, *r.wish)
	r.unread = err
	plan = plan.without(r.installed)
	if plan != nil {
		if err := r.grant.Allow(plan.files()); err != nil {
			r.e.o.Log.Warn("an install plan is not followed", "error", err)
			plan = nil
		}
	}
	r.planned = plan != nil
	if !r.planned {
		r.emit(supervisor.Event{Kind: supervisor.Stage, Text: "installing " + strings.Join(r.wish.names(), ", ")})
		return r.write(plan.answer(nil))
	}
	images := r.lend(plan.Files)
	for i, file := range plan.Files {
		if images[i] == "" {
			r.lacking = append(r.lacking, file)
		}
	}
	return r.write(plan.answer(images))
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
	if failed := r.installFailed(); failed != nil && len(r.said.Missing) > 0 && r.installed == nil {
		r.failed = failed
		r.worker.child.Kill(supervisor.Failed, "its packages can't be installed")
		return r.failed
	}
	if r.planned || len(r.installed) > 0 { // others begin with nothing installed
		return nil
	}
	r.lacking = r.said.Files
	if err := r.e.storePlan(ctx, r.rt, *r.wish, r.said); err != nil {
		r.e.o.Log.Warn("an install plan is not kept", "error", err)
	}
	return nil
}

// installFailed is why packages may lack by this machine's fault; nil where they lack
// for another reason.
func (r *run) installFailed() error {
	why := r.grant.Broken()
	if why == nil {
		why = r.unread
	}
	if why == nil || r.wish == nil {
		return nil
	}
	return fmt.Errorf("install %s: %w", strings.Join(r.wish.names(), ", "), why)
}

// start is the moment from which the program has its time and its input.
func (r *run) start() error {
	r.begin()
	child := r.worker.child
	child.SetDeadline(r.e.timeout(r.program), "the program")
	child.LimitCPU("the program", func(reason string) { child.Kill(supervisor.TimedOut, reason) })
	go feed(child.Stdin(), r.program.Stdin)
	return nil
}

// begin takes note that the guest's code runs now: what comes is the guest's.
func (r *run) begin() {
	r.before = len(r.grant.Served())
	r.started = time.Now()
	r.worker.frames.SetLimit(r.e.o.Limits.Result)
	r.worker.frames.AllowDisplays(r.e.o.Limits.Displays)
}

// files are those that were installed, before the program and by it.
func (r *run) files() []gateway.File {
	files := r.said.files()
	if !r.started.IsZero() {
		files = append(files, r.grant.Served()[r.before:]...)
	}
	return slices.DeleteFunc(files, func(f gateway.File) bool { return r.installed[f.Name] == f.SHA256 })
}

// tellPackages says what was installed, and what could not be.
func (r *run) tellPackages(result *supervisor.Result) {
	result.Packages = packages(r.files())
	for _, module := range slices.Sorted(maps.Keys(r.said.Missing)) {
		reason := r.said.Missing[module]
		if result.Error == nil || !strings.Contains(result.Error.Message, reason) { // else it has been told
			result.Notes = append(result.Notes, fmt.Sprintf("nothing was installed for `import %s`: %s", module, reason))
		}
	}
}
