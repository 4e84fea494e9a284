//go:build !windows

package deno

import (
	"context"
	"errors"
	"time"

	"rillbox/supervisor"
)

// Run runs one program in one fresh Deno process.
func (e *Engine) Run(ctx context.Context, p supervisor.Program, emit func(supervisor.Event)) (r supervisor.Result, err error) {
	permissions, err := e.options.Permissions.Narrow(p.Permissions)
	if err != nil {
		return supervisor.Result{}, &supervisor.ProgramError{Text: err.Error()}
	}
	scan, scanned := e.scanners.of(ctx)
	defer scanned()
	var m module
	var wrong error
	inspected := make(chan struct{})
	go func() { // as long as finding Deno takes
		defer close(inspected)
		m, wrong = inspect(p, scan)
	}()
	binary, err := e.locate(ctx, emit)
	<-inspected
	if ctx.Err() != nil {
		return CancelledBefore(), nil
	}
	if wrong != nil {
		return supervisor.Result{}, wrong
	}
	wanted, unresolved := resolve(m.imports, p.Packages)
	if unresolved != nil {
		return packageFailure(unresolved), nil
	}
	if err != nil {
		return supervisor.Result{}, err
	}
	var install plan
	var installing time.Duration
	if len(wanted.roots) > 0 {
		began := time.Now()
		install, err = e.planner.plan(ctx, binary.Path, permissions, wanted.roots, emit)
		installing = time.Since(began)
		if err != nil {
			return unplanned(err, installing)
		}
	}
	w, ended, err := e.takeWorker(ctx, launch{
		permissions: permissions,
		workspace:   p.Workspace,
		readOnly:    p.ReadOnly,
		imports:     wanted.imports,
		install:     install,
		codeCache:   e.codeCaches.of(ctx, wanted.modules, install),
		files:       []string{m.file},
		args:        p.Args,
		combined:    p.Combined,
	})
	defer ended()
	if err != nil {
		return supervisor.Result{}, err
	}
	process := m.usesProcess() || len(wanted.roots) > 0 && !install.NoProcess
	r, err = w.run(ctx, p, m, process, e.options.Limits, emit)
	if err != nil {
		return supervisor.Result{}, err
	}
	addSyntaxHints(&r, p, m, scan)
	r.Packages, r.Installing = install.Packages, installing
	if m.tooHard {
		r.Notes = append(r.Notes, "the program is nested too deep, or takes too long to parse: what it imports was not fetched; name it in packages")
	}
	return r, nil
}

// unplanned is the result of a program whose packages could not be planned; the error
// is ours.
func unplanned(err error, installing time.Duration) (r supervisor.Result, _ error) {
	var missing *PackageError
	var ended endedError
	switch {
	case errors.As(err, &missing):
		r = packageFailure(missing)
	case errors.As(err, &ended):
		r = Outcome{}.Into(ended.exit)
	default:
		return r, err
	}
	r.Installing = installing
	return r, nil
}

// packageFailure is the result of a program whose packages can't be had.
func packageFailure(err error) supervisor.Result {
	return supervisor.Result{
		Status:   supervisor.Failed,
		ExitCode: 1,
		Error:    &supervisor.GuestError{Name: "PackageError", Message: err.Error()},
	}
}
