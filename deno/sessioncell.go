//go:build !windows

package deno

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"rillbox/deno/modules"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
	"rillbox/supervisor/wire"
)

// sessionCell is one run of a cell in a session.
type sessionCell struct {
	*session
	program    job.Program
	input      io.Reader
	emit       func(job.Event)
	scan       modules.ScanFunc
	name       string         // shown in tracebacks
	code       string         // without a byte order mark, and with its #! line as a comment
	script     modules.Script // of code
	extension  string
	typescript bool
	loads      []string // the packages that must be loaded before the cell begins
	named      bool     // files of the workspace import by names
	packages   cellPackages
	installing time.Duration
	tooHard    bool
	began      bool // its code has been given to the child
	shown      wire.Displays
}

// Run runs one cell.
func (s *session) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	select {
	case <-s.ended:
		return job.Result{}, errors.New("the session has ended")
	default:
	}
	s.cells++
	scan, ended := s.engine.scanners.Of(ctx)
	defer ended()
	emit, release := wire.HoldReport(streams.Emit)
	c := &sessionCell{session: s, program: p, input: streams.Stdin, emit: emit, scan: scan}
	err := c.inspect(ctx)
	if ctx.Err() != nil {
		return job.CancelledBefore(job.StateKept), nil
	}
	if err != nil {
		r, ours := unplanned(err, c.installing)
		if errors.As(err, new(modules.EndedError)) {
			r.State = job.StateKept
		}
		return r, ours
	}
	r := c.run(ctx)
	release(r)
	if r.Error != nil && r.Error.Name == "SyntaxError" && c.extension == ".js" && ctx.Err() == nil {
		explainTypeScript(r.Error, p.Code, scan)
	}
	return r, nil
}

// inspect finds out what the cell imports, and fetches it.
func (c *sessionCell) inspect(ctx context.Context) error {
	p := c.program
	extensions, err := modules.Extensions(c.language, p.Name)
	if err != nil {
		return err
	}
	c.extension = extensions[0]
	c.code = strings.TrimPrefix(p.Code, "\ufeff")
	for _, text := range p.Packages {
		if !slices.Contains(c.asked, text) {
			c.asked = append(c.asked, text)
		}
	}
	if strings.HasPrefix(c.code, "#!") {
		c.code = "//" + c.code[2:]
	}
	var found modules.Scanned
	var m modules.Module
	if isWorthScanning(c.code, c.extension) {
		asked := modules.ScanRequest{Code: c.code, Extensions: extensions, Cell: true, JSX: cmp.Or(c.jsx, p.Manifest.JSX.Source)}
		p.Code, p.Packages, p.Workspace = c.code, c.asked, c.workspace
		if m, found, err = modules.InspectCell(p, asked, c.scan); err != nil {
			return err
		}
		c.extension, c.tooHard, c.jsx, c.script = found.Extension, found.TooHard, cmp.Or(found.JSX, c.jsx), found.Script
	}
	c.script.Code = cmp.Or(c.script.Code, c.code)
	c.typescript = strings.HasPrefix(strings.TrimLeft(c.extension, ".cm"), "ts")
	if c.name = p.Name; !modules.PlainName().MatchString(c.name) {
		c.name = fmt.Sprintf("cell%d%s", c.cells, c.extension)
	}
	if len(m.Refused) > 0 {
		return &modules.PackageError{Text: strings.Join(m.Refused, "\n")}
	}
	began := time.Now()
	c.packages, err = c.plan(ctx, m, c.program, c.emit)
	c.installing = time.Since(began)
	if err != nil {
		return err
	}
	c.packages.notes = append(c.packages.notes, unhonoured(p.Manifest, c.extension)...)
	if m.Unfollowed != nil {
		c.packages.notes = append(c.packages.notes, notFetched(modules.Module{Unfollowed: m.Unfollowed})...)
	}
	if found.Requires || len(m.Files) > 0 { // for what the cell itself imports, Deno asks
		for _, text := range m.Imports {
			if to := c.packages.imports[text]; strings.HasPrefix(to, "npm:") {
				c.loads = append(c.loads, to)
			}
		}
	}
	c.named = c.packages.named && (len(m.Files) > 0 || len(m.Names.Imports) > 0)
	return nil
}

// unhonoured tells what of a manifest does not hold in cells.
func unhonoured(m job.Manifest, extension string) (notes []string) {
	if m.Overrides != nil {
		notes = append(notes, `"overrides" are not honoured in cells`)
	}
	if m.JSX.Factory != "" && strings.HasSuffix(extension, "x") {
		notes = append(notes, `"jsxFactory" is not honoured in cells`)
	}
	return notes
}

// isWorthScanning reports whether a parse may tell what a cell imports, or that it
// can't be evaluated as it is; see isPlain.
func isWorthScanning(code, extension string) bool {
	return strings.HasSuffix(extension, "x") || modules.NeedsRewriting(code) || strings.Contains(code, "require") || strings.Contains(code, `\u`) || modules.MayBeJSX(code)
}

// run evaluates the cell, and interrupts it when its time is up or ctx ends.
func (c *sessionCell) run(ctx context.Context) job.Result {
	before, _ := c.child.Usage()
	c.mu.Lock()
	c.session.shown = &c.shown
	c.mu.Unlock()
	c.child.BeginCell(c.emit)
	c.child.Resume()
	started := time.Now()

	clock := wire.NewCellClock(ctx, c.child)
	clock.Limit(c.program.Timeout, "the cell")
	clock.LimitCPU()
	outcome, err := c.evaluate(clock)
	if err != nil && clock.Err() == nil {
		c.awaitEnd(clock, err)
	}
	clock.Stop()
	kept, waits := err == nil, false // else the process has ended
	status, reason := clock.Interruption()
	if status != "" {
		outcome = wire.Outcome{Result: &wire.Frame{}}
		if kept, waits = c.interrupt(); !kept {
			reason += ", and could not be interrupted"
			c.child.Kill(status, reason)
			<-c.ended
			if c.exit.Reason == "" { // what was to interrupt it ended the process
				c.exit.Status, c.exit.Code, c.exit.Reason = status, job.KilledCode, reason
			}
		}
	}
	duration := time.Since(started)
	c.mu.Lock()
	c.session.shown = nil
	outcome.Shown = c.shown
	c.mu.Unlock()

	var result job.Result
	if kept {
		c.child.Pause()
		exit := sandbox.Exit{Status: cmp.Or(status, job.Completed)}
		exit.CPU, exit.PeakMemory = c.child.Usage()
		exit.Stdout, exit.Stderr = c.child.EndCell()
		if status != "" {
			exit.Code, exit.Reason = job.InterruptedCode, reason+": the cell was interrupted, the session's state is kept"
		}
		result = outcome.Into(exit)
		switch {
		case status != "":
			result.State = job.StateKept
		case result.Status == job.Failed:
			result.ExitCode = 1
		}
	} else {
		result = c.lost(outcome, err)
	}
	result.CPU -= before
	result.Duration = duration
	result.Packages, result.Installing = c.packages.planned, c.installing
	result.Notes = append(result.Notes, c.packages.notes...)
	if kept && waits {
		result.Notes = append(result.Notes, "what the interrupted cell waited for may still come; it then goes on beside later cells")
	}
	if c.tooHard {
		result.Notes = append(result.Notes, "the cell is nested too deep, or takes too long to parse: what it imports was not fetched; name it in packages")
	}
	return result
}

// awaitEnd waits until a process that no longer answers has ended, or the cell's time
// is up.
func (c *sessionCell) awaitEnd(ctx context.Context, err error) {
	c.inspector.close() // Deno waits for that before it exits
	select {
	case <-c.ended:
	case <-ctx.Done():
	case <-time.After(sandbox.EndGrace):
		c.child.Kill(job.Crashed, err.Error())
		<-c.ended
	}
}

// lost is the result of a cell whose process has ended.
func (c *sessionCell) lost(outcome wire.Outcome, err error) job.Result {
	exit := c.exit
	c.mu.Lock()
	outcome.Result, outcome.Err = nil, errors.Join(c.wrong, err)
	c.mu.Unlock()
	if exit.Reason == "" {
		outcome.Result, outcome.Err = &wire.Frame{}, nil // the guest ended the process; it may
	}
	if exit.Reason == "" && (!c.began || exit.Code == notBegunCode) {
		exit.Status, exit.Reason = job.Crashed, "the session's process ended, as an earlier cell had it, before this cell began"
	}
	result := outcome.Into(exit)
	result.State = job.StateLost
	if result.Status == job.Completed {
		result.Notes = append(result.Notes, "the process ended before the cell's value came: the cell may not have run to its end")
	}
	return result
}

// askGuest calls an asynchronous method of session.ts's Session, in which code of the
// guest's may run.
func (s *session) askGuest(ctx context.Context, method string, argument, result any) error {
	return s.send(method, argument, true)(ctx, result)
}

// send calls a method, which await says is asynchronous; wait waits for its answer.
func (s *session) send(method string, argument any, await bool) (wait func(ctx context.Context, result any) error) {
	arguments := []any{map[string]string{"value": method}}
	if argument != nil {
		arguments = append(arguments, argument)
	}
	answered := s.inspector.send("Runtime.callFunctionOn", map[string]any{
		"functionDeclaration": "function(method, argument) { return this[method](argument) }\n//# sourceURL=ext:rillbox\n",
		"objectId":            s.object,
		"arguments":           arguments,
		"returnByValue":       true,
		"awaitPromise":        await, // the promise of what is there at once may be collected before V8 asks for it
	})
	return func(ctx context.Context, result any) error {
		var called evaluated
		err := answered(ctx, &called)
		switch {
		case err != nil:
			return err
		case called.Exception != nil:
			return &refusedError{called.Exception.Text + " " + called.Exception.Exception.Description}
		case result == nil || len(called.Result.Value) == 0:
			return nil
		}
		if err := json.Unmarshal(called.Result.Value, result); err != nil {
			return fmt.Errorf("%w: read what %s gave: %w", wire.ErrProtocol, method, err)
		}
		return nil
	}
}
