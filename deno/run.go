//go:build !windows

package deno

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rillbox/deno/modules"
	"rillbox/supervisor/job"
	"rillbox/supervisor/wire"
)

// Run runs one program in one fresh Deno process.
func (e *Engine) Run(ctx context.Context, p job.Program, streams job.Streams) (r job.Result, err error) {
	emit := streams.Emit
	permissions, err := e.options.Permissions.Narrow(p.Most, p.Permissions)
	if err != nil {
		return job.Result{}, job.Refuse("%v", err)
	}
	scan, scanned := e.scanners.Of(ctx)
	defer scanned()
	var m modules.Module
	var command modules.Specifier
	var wrong error
	inspected := make(chan struct{})
	go func() { // as long as finding Deno takes
		defer close(inspected)
		if p.Command != "" {
			if command, wrong = modules.ParseCommand(p.Command); wrong != nil {
				wrong = job.Refuse("%v", wrong)
			}
			m.Name, m.Imports = p.Command, []string{command.Root()}
		} else {
			m, wrong = modules.Inspect(p, scan)
		}
	}()
	err = e.locate(ctx, emit)
	<-inspected
	if ctx.Err() != nil {
		return job.CancelledBefore(""), nil
	}
	if wrong != nil {
		return job.Result{}, wrong
	}
	wanted, unresolved := modules.Resolve(m.Imports, p.Packages)
	if len(m.Refused) > 0 {
		unresolved = errors.New(strings.Join(m.Refused, "\n"))
	}
	if unresolved != nil {
		return packageFailure(unresolved), nil
	}
	if err != nil {
		return job.Result{}, err
	}
	var install modules.Plan
	var installing time.Duration
	if len(wanted.Roots) > 0 {
		began := time.Now()
		install, err = e.planner.Plan(ctx, e.deno, permissions, e.options.Narrowed(p.Policy), wanted.Roots, modules.TermsOf(p.Manifest), emit)
		installing = time.Since(began)
		if err != nil {
			return unplanned(err, installing)
		}
	}
	if p.Command != "" {
		if m.Installed, m.Commonjs, err = install.Command(command); err != nil {
			return unplanned(err, installing)
		}
	}
	if p.FetchOnly {
		lock, err := install.LockFile(p.Manifest.Lock)
		return job.Result{Status: job.Completed, Packages: install.Packages, Installing: installing, Notes: notFetched(m), Lock: lock}, err
	}
	var files []string
	if p.Workspace != "" && p.Command == "" {
		files = append(slices.Sorted(maps.Keys(m.Files)), m.File)
	}
	file := ""
	if p.URL != "" {
		file = m.File
	}
	l := launch{
		permissions: permissions,
		workspace:   p.Workspace,
		readOnly:    p.ReadOnly,
		imports:     wanted.Imports,
		names:       m.Names,
		commonjs:    p.Manifest.CommonJS && m.MixesCommonJS,
		install:     install,
		codeCache:   e.codeCache(ctx, wanted.Modules, install),
		files:       files,
		file:        file,
		url:         p.URL,
		copies:      m.Copies,
		args:        p.Args,
		combined:    p.Combined,
	}
	if p.Check {
		wrong, err := e.check(ctx, p, m, l)
		if err != nil {
			return job.Result{}, err
		}
		if wrong != nil {
			wrong.Packages, wrong.Installing = install.Packages, installing
			return *wrong, nil
		}
	}
	w, ended, err := e.takeWorker(ctx, l)
	defer ended()
	if err != nil {
		return job.Result{}, err
	}
	system := m.UsesSystem() || len(wanted.Roots) > 0 && !install.NoSystem
	r, err = w.run(ctx, p, m, system, e.options.Limits, streams)
	if err != nil {
		return job.Result{}, err
	}
	addSyntaxHints(&r, p, m, scan)
	r.Packages, r.Installing = install.Packages, installing
	r.Notes = append(r.Notes, notLocked(install, p.Manifest.Lock)...)
	r.Notes = append(r.Notes, notFetched(m)...)
	return r, nil
}

// notLocked tells of packages that the project's lock file does not have.
func notLocked(install modules.Plan, lock job.Lock) (notes []string) {
	if len(install.Unlocked) > 0 {
		notes = append(notes, fmt.Sprintf("%s does not have %s: `rillbox lock FILE` adds it", lock.File, strings.Join(install.Unlocked, ", ")))
	}
	return notes
}

// notFetched tells of imports that were not found.
func notFetched(m modules.Module) (notes []string) {
	if m.TooHard {
		notes = append(notes, "the program is nested too deep, or takes too long to parse: what it imports was not fetched; name it in packages")
	}
	if m.Unfollowed != nil {
		notes = append(notes, fmt.Sprintf("what the modules beside the program import was not fetched (%v): name it in packages", m.Unfollowed))
	}
	return notes
}

// unplanned is the result of a program whose packages could not be planned; the error
// is ours.
func unplanned(err error, installing time.Duration) (r job.Result, _ error) {
	var missing *modules.PackageError
	var ended modules.EndedError
	switch {
	case errors.As(err, &missing):
		r = packageFailure(missing)
	case errors.As(err, &ended):
		r = wire.Outcome{}.Into(ended.Exit)
	default:
		return r, err
	}
	r.Installing = installing
	return r, nil
}

// packageFailure is the result of a program whose packages can't be had.
func packageFailure(err error) job.Result {
	return job.Result{
		Status:   job.Failed,
		ExitCode: 1,
		Error:    &job.GuestError{Name: "PackageError", Message: err.Error()},
	}
}
