//go:build !windows

package pyodide

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"rillbox/deno/permission"
	"rillbox/pyodide/gateway"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
	"rillbox/supervisor/wire"
)

// run is one program in its worker, or what a cell has in common with that.
type run struct {
	e       *Engine
	worker  *worker
	program job.Program
	stdin   io.Reader
	emit    func(job.Event)
	// installed are the files that a session's worker has from earlier cells.
	installed map[string]string // a file's project → its SHA-256

	wanted   *requirements // nil before the worker asked for them
	planned  bool          // their plan was known
	reported plan          // what was installed before the program started
	lacking  []planFile    // of that, what has no image yet
	before   int           // how many files had been served by then
	asked    time.Time     // when the worker asked; zero before
	started  time.Time     // of the program; zero before
	fatal    fatal         // what broke Python
	unread   error         // why the plan, if there is one, is not used
	failed   error         // of ours, for which the program is not started
}

// fatal is what a worker says when Python itself broke.
type fatal struct {
	Message string `json:"message"`
	Deep    bool   `json:"deep"` // by the depth of the program's calls or data
}

// request is what a worker gets; see runner.Program and guest/session.ts.
type request struct {
	Cell int `json:"cell,omitempty"`
	// A text in place of code.
	Complete   *string           `json:"complete,omitempty"`
	Unfinished *string           `json:"unfinished,omitempty"`
	Code       string            `json:"code"`
	Name       string            `json:"name,omitempty"`
	Args       []string          `json:"args,omitempty"`
	Packages   []string          `json:"packages,omitempty"`
	Files      map[string][]byte `json:"files,omitempty"`
	Folder     string            `json:"folder,omitempty"`
	Path       string            `json:"path,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Limit      int64             `json:"limit"`
	Displays   int64             `json:"displays"`
	Gateway    string            `json:"gateway"`
	Echo       bool              `json:"echo,omitempty"`
	// What the program's project says; see runner.Program.
	Constraints []string          `json:"constraints,omitempty"`
	Refused     map[string]string `json:"refused,omitempty"`
	Frozen      bool              `json:"frozen,omitempty"`
	FetchOnly   bool              `json:"fetch_only,omitempty"`
}

func newRun(e *Engine, w *worker, p job.Program, streams job.Streams) *run {
	p.Timeout = cmp.Or(p.Timeout, e.o.Limits.Timeout)
	if p.Manifest.Lock.File != "" {
		w.grant.Demand(p.Manifest.Lock.File, demanded(p, w.rt.gateway.Distributed()), p.Manifest.Frozen)
	}
	return &run{e: e, worker: w, program: p, stdin: streams.Stdin, emit: streams.Emit}
}

// do runs the program to its end.
func (r *run) do(ctx context.Context) (job.Result, error) {
	w := r.worker
	w.grant.SetProgress(r.tell)
	endBuilds := w.grant.Building(ctx)
	emit, release := wire.HoldReport(r.emit)
	w.Attach(ctx, emit)
	if w.Ready {
		w.SetDeadline(r.e.o.Limits.InstallTimeout, "package installation")
	} else {
		w.SetDeadline(startTime, "the start of Python")
	}
	go r.send(r.request())
	outcome := wire.ReadOutcome(w.Reader, w.ExpectEnd, func(frame wire.Frame) error { return r.take(ctx, frame) })
	exit := w.Wait()
	ended := time.Now()
	w.grant.Close()
	endBuilds()
	r.e.makeImages(r.worker.rt, r.lacking)

	if r.started.IsZero() && outcome.Result != nil && r.failed == nil {
		r.failed = r.installFailed()
	}
	if r.failed != nil {
		return job.Result{}, r.failed
	}
	if r.started.IsZero() && outcome.Result == nil && (exit.Status == job.Failed || exit.Status == job.Crashed) {
		broken := r.broken(outcome, exit)
		if !w.Ready {
			return job.Result{}, fmt.Errorf("%w: %w", errNotLoaded, broken)
		}
		if r.fatal.Message == "" {
			return job.Result{}, broken
		}
		// Reading the program or its packages was too much for Python.
		r.e.o.Log.Warn("a Python worker broke at its request", "error", broken)
	}
	result := r.result(outcome, exit)
	release(result)
	r.complete(&result, ended)
	r.addManifest(&result)
	return result, nil
}

// complete adds times and packages to a result.
func (r *run) complete(result *job.Result, ended time.Time) {
	if !r.started.IsZero() {
		result.Duration = ended.Sub(r.started)
		ended = r.started // of the installation
	}
	if !r.asked.IsZero() {
		result.Installing = ended.Sub(r.asked)
	}
	for _, f := range r.files() {
		result.Packages = append(result.Packages, job.Package{Name: f.Name, Version: f.Version, Source: f.Source, Cached: f.Cached})
	}
	for _, module := range slices.Sorted(maps.Keys(r.reported.Missing)) {
		reason := r.reported.Missing[module]
		if result.Error == nil || !strings.Contains(result.Error.Message, reason) { // else it has been told
			result.Notes = append(result.Notes, fmt.Sprintf("nothing was installed for `import %s`: %s", module, reason))
		}
	}
}

// tell tells of downloads.
func (r *run) tell(stage string, done, total int64) {
	r.emit(job.Event{Kind: job.Stage, Text: stage, Done: done, Total: total})
}

// result is the outcome of a run whose worker has ended.
func (r *run) result(outcome wire.Outcome, exit sandbox.Exit) job.Result {
	result := outcome.Into(exit)
	switch {
	case exit.Status != job.Failed:
	case r.fatal.Deep:
		result.Error = &job.GuestError{Name: "RecursionError", Message: "the program went too deep: functions that call one another, or values within values (to print, compare or free them), filled the stack of Python's C code, which ends Python; take it in steps, by a loop"}
	case r.fatal.Message != "":
		result.Status = job.Crashed
		result.Error = &job.GuestError{Name: "FatalError", Message: "Python itself broke: " + r.fatal.Message}
	}
	return result
}

// broken is the error of a worker that ended before its program started.
func (r *run) broken(outcome wire.Outcome, exit sandbox.Exit) error {
	why := r.fatal.Message
	if outcome.Err != nil {
		why = outcome.Err.Error()
	}
	return fmt.Errorf("the Python worker ended before the program started (exit status %d %s): %s %s", exit.Code, exit.Reason, why, exit.Stderr)
}

// request is what the worker gets for the program.
func (r *run) request() request {
	limits := r.e.o.Limits
	return request{
		Code: r.program.Code, Name: r.program.Name, Args: r.program.Args, Packages: r.program.Packages, Files: r.program.Files, Folder: r.program.Folder, Path: r.program.Path, Echo: r.program.Echo,
		Env: permission.Variables(r.e.o.Env), Limit: max(limits.Result-256, 64), Displays: limits.Displays, Gateway: r.worker.grant.BaseURL(),
		Constraints: constraints(r.program, r.worker.rt.gateway.Distributed()), Refused: r.program.Manifest.Refused,
		Frozen: r.program.Manifest.Frozen, FetchOnly: r.program.FetchOnly,
	}
}

// send gives the worker a request.
func (r *run) send(request any) {
	if err := r.worker.write(request); err != nil { // it has ended, and Wait says why
		r.e.o.Log.Debug("a Python worker did not take its request", "error", err)
	}
}

// take takes a frame. Those of our worker come in one order and end when the
// program starts; what comes out of order is the guest's.
func (r *run) take(ctx context.Context, frame wire.Frame) error {
	switch {
	case frame.Type == fatalFrame:
		r.fatal = fatal{}
		_ = json.Unmarshal(frame.JSON, &r.fatal) // its text is for people
		return nil
	case !r.started.IsZero():
		return fmt.Errorf("%w: %q after the program started", wire.ErrProtocol, frame.Type)
	case frame.Type == wire.ReadyFrame && !r.worker.Ready:
		r.worker.SetReady()
		r.worker.SetDeadline(r.e.o.Limits.InstallTimeout, "package installation")
		return nil
	case frame.Type == resolveFrame && r.wanted == nil:
		return r.resolve(frame)
	case frame.Type == installedFrame && r.wanted != nil && r.reported.Files == nil:
		return r.keep(ctx, frame)
	case frame.Type == startedFrame:
		r.start()
		r.worker.SetDeadline(r.program.Timeout, "the program")
		r.worker.LimitCPU("the program", func(reason string) { r.worker.Kill(job.TimedOut, reason) })
		go wire.Feed(r.worker.Stdin(), r.stdin)
		return nil
	}
	return fmt.Errorf("%w: %q out of order", wire.ErrProtocol, frame.Type)
}

// resolve answers what a worker asks for with the plan for it, if there is one.
func (r *run) resolve(frame wire.Frame) error {
	r.wanted, r.asked = &requirements{}, time.Now()
	if err := json.Unmarshal(frame.JSON, r.wanted); err != nil {
		return fmt.Errorf("%w: %w", wire.ErrProtocol, err)
	}
	r.wanted.terms = termsOf(r.program.Manifest)
	plan, err := r.e.findPlan(r.worker, *r.wanted)
	r.unread = err
	plan = plan.without(r.installed)
	if plan != nil {
		if err := r.worker.grant.Allow(plan.files()); err != nil {
			r.e.o.Log.Warn("an install plan is not followed", "error", err)
			plan = nil
		}
	}
	r.planned = plan != nil
	switch {
	case r.planned && r.program.FetchOnly: // the files themselves, and no images of them
		r.lacking = plan.Files
	case r.planned:
		r.lacking = r.lend(plan)
	default:
		r.tell("installing "+r.wanted.String(), 0, 0)
	}
	return r.worker.write(plan.answer())
}

// keep checks what a worker installed, and keeps it as the plan for what it asked for.
func (r *run) keep(ctx context.Context, frame wire.Frame) error {
	var reported plan
	err := json.Unmarshal(frame.JSON, &reported)
	if err == nil {
		err = reported.check(r.worker.grant.Served())
	}
	if err != nil { // what a guest of an earlier cell forged is told of nowhere
		return fmt.Errorf("%w: %w", wire.ErrProtocol, err)
	}
	r.reported = reported
	if failed := r.installFailed(); failed != nil && len(r.reported.Missing) > 0 && r.installed == nil {
		r.failed = failed
		r.worker.Kill(job.Failed, "its packages can't be installed")
		return r.failed
	}
	if r.planned || len(r.installed) > 0 { // others begin with nothing installed
		return nil
	}
	r.lacking = r.reported.Files
	if err := r.e.storePlan(ctx, r.worker, *r.wanted, r.reported); err != nil {
		r.e.o.Log.Warn("an install plan is not kept", "error", err)
	}
	return nil
}

// installFailed is why packages may lack by this machine's fault; nil where they lack
// for another reason.
func (r *run) installFailed() error {
	why := r.worker.grant.Broken()
	if why == nil {
		why = r.unread
	}
	if why == nil || r.wanted == nil {
		return nil
	}
	return fmt.Errorf("install %s: %w", r.wanted, why)
}

// start is the moment from which the guest's code runs, and what comes is the guest's.
func (r *run) start() {
	r.before = len(r.worker.grant.Served())
	r.started = time.Now()
	r.worker.Reader.SetLimit(r.e.o.Limits.Result)
	r.worker.Reader.AllowDisplays(r.e.o.Limits.Displays)
}

// files are those that were installed, before the program and by it.
func (r *run) files() []gateway.File {
	files := r.reported.files()
	if !r.started.IsZero() {
		files = append(files, r.worker.grant.Served()[r.before:]...)
	}
	return slices.DeleteFunc(files, func(f gateway.File) bool { return r.installed[f.Name] == f.SHA256 })
}
