//go:build !windows

package deno

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"rillbox/deno/modules"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/wire"
)

// checkConfig is the name of a check's configuration.
const checkConfig = "deno.json"

// check has Deno check the types of a program, in a child that runs none of it; l is what
// the program is to be started with. The result is nil where they are right.
func (e *Engine) check(ctx context.Context, p job.Program, m modules.Module, l launch) (*job.Result, error) {
	if around := e.walls.Around(l.permissions); around == "none" || around == launcher.Deno.String() {
		return nil, job.Refuse("types are checked behind the kernel's wall only, since a check reads whatever file a program imports: this program has none (rillbox doctor tells why)")
	}
	l.permissions, l.codeCache, l.args, l.combined = l.permissions.Imports(), "", nil, false
	l.check, l.checked, l.jsx = m.File, m.Checked, m.CheckJSX
	l.files = slices.Sorted(maps.Keys(m.Checked))
	w, err := e.startWorker(ctx, l)
	if err != nil {
		return nil, err
	}
	_ = w.Stdin().Close()
	w.SetDeadline(p.Timeout, "the check of its types")
	w.Attach(ctx, func(job.Event) {})
	w.Reader.Drain()
	exit := w.Wait()
	if exit.Status == job.Completed {
		return nil, nil
	}
	r := wire.Outcome{Quiet: true}.Into(exit)
	r.Stdout, r.Stderr = job.Captured{}, job.Captured{}
	if exit.Status == job.Failed && exit.Reason == "" {
		text := withOwnPaths(exit.Stderr.String(), fileURL(w.name)+"/", p.Folder)
		r.Error = &job.GuestError{Name: "TypeCheckError", Message: text}
	}
	return &r, nil
}

var (
	// Where a package's files are, as deno/guest/traceback.ts has it.
	installedAt = regexp.MustCompile(`file://[^\s)"']*?/npm/[^\s)"']+?/((?:@[^/\s]+/)?[^/\s]+)/(\d+\.\d+\.\d+[^/\s]*)/`)
	// What Deno says after the diagnostics.
	checkEnd = regexp.MustCompile(`(?s)\n*(?:error: )?Type checking failed\..*|\n*Stack backtrace:.*`)
)

// withOwnPaths is what Deno says of types, with the program's files as they are called
// there.
func withOwnPaths(text, directory, folder string) string {
	text = checkEnd.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "")
	if folder != "" {
		folder += "/"
	}
	text = installedAt.ReplaceAllString(text, "npm:$1@$2/")
	return strings.TrimPrefix(strings.ReplaceAll(text, directory, folder), "error: ")
}
