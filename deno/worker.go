//go:build !windows

package deno

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"rillbox/deno/modules"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
	"rillbox/supervisor/wire"
)

// worker is a child whose bootstrap module asks for a program, or is about to;
// it takes one.
type worker struct {
	wire.Worker
	dir  string // the program's
	name string // the child's name for dir
}

// startTime is how long Deno may take until it asks for its program.
const startTime = 30 * time.Second

// frameRoom is what a result frame has beside the value or the error.
const frameRoom = 64 << 10

// takeWorker gives a worker that fits, one that was started ahead if there is
// one. ended must be called when the run has ended, whatever the error.
func (e *Engine) takeWorker(ctx context.Context, l launch) (w *worker, ended func(), err error) {
	ended = func() {}
	if l.purpose() == e.ahead(ctx).purpose() {
		var ok bool
		if w, ok, ended = e.pool.Take(); ok {
			return w, ended, nil
		}
	}
	w, err = e.startWorker(ctx, l)
	return w, ended, err
}

// ahead is what the pool's workers are started with: the operator's permissions, and no
// packages.
func (e *Engine) ahead(ctx context.Context) launch {
	return launch{permissions: e.options.Permissions, codeCache: e.codeCache(ctx, usualModules, modules.Plan{})}
}

// startAhead starts a worker for the pool and waits until it is ready.
func (e *Engine) startAhead(ctx context.Context) (*worker, error) {
	if err := e.locate(ctx, func(job.Event) {}); err != nil {
		return nil, err
	}
	w, err := e.startWorker(ctx, e.ahead(ctx))
	if err != nil {
		return nil, err
	}
	if err := w.AwaitReady(ctx, startTime, "the start of Deno"); err != nil {
		e.options.Log.Debug("a warm worker for JavaScript did not start", "error", err)
		return nil, err
	}
	return w, nil
}

func (e *Engine) startWorker(ctx context.Context, l launch) (*worker, error) {
	w := &worker{}
	child, err := e.start(l.permissions, func(c *sandbox.Command, guest string, around *permission.Surroundings) (err error) {
		w.dir = filepath.Join(c.Dir, programDir)
		w.name, err = e.command(ctx, l, c, guest, around)
		return err
	})
	if err != nil {
		return nil, err
	}
	w.Worker = wire.Worker{Child: child, Reader: wire.NewFrameReader(child.Frames(), e.options.Limits.Result+frameRoom)}
	return w, nil
}

// run runs the program to its end; system says that it may load modules of Node's that
// look at the machine.
func (w *worker) run(ctx context.Context, p job.Program, m modules.Module, system bool, limits job.Limits, streams job.Streams) (job.Result, error) {
	files := maps.Clone(m.Files)
	if files == nil {
		files = map[string][]byte{}
	}
	path := filepath.Join(w.name, m.File)
	if m.Installed != "" {
		path = filepath.Join(filepath.Dir(w.name), ownDir, m.Installed)
	} else {
		files[m.File] = []byte(m.Code)
	}
	folders := map[string]bool{}
	for name := range files {
		for dir := filepath.Dir(name); dir != "." && !folders[dir]; dir = filepath.Dir(dir) {
			folders[dir] = true
		}
	}
	w.Place(len(files) + len(folders))
	if err := writeFiles(w.dir, files); err != nil {
		w.Discard()
		return job.Result{}, err
	}
	folder := ""
	if p.Folder != "" {
		folder = p.Folder + "/"
	}
	source := map[string]any{"url": fileURL(path), "directory": fileURL(w.name) + "/", "folder": folder, "name": m.Name, "prelude": m.Prelude}
	switch {
	case p.Path != "":
		source["main"] = fileURL(filepath.Join(p.Workspace, p.Path))
	case p.URL != "":
		source["main"] = p.URL
	}
	names := map[string]string{}
	for name, target := range m.Names.Imports {
		if place, is := strings.CutPrefix(target, "./"); is && m.Commonjs {
			names[name] = filepath.Join(p.Workspace, place)
			if _, here := files[place]; here {
				names[name] = filepath.Join(w.name, place)
			}
		}
	}
	var started time.Time
	begin := func() {
		started = time.Now()
		w.Reader.AllowDisplays(limits.Displays)
		w.SetDeadline(p.Timeout, "the program")
		w.LimitCPU("the program", func(reason string) { w.Kill(job.TimedOut, reason) })
		w.feed(map[string]any{
			"source":   source,
			"commonjs": m.Commonjs,
			"command":  m.Installed != "",
			"names":    names,
			"system":   system,
			"limit":    limits.Result,
			"displays": limits.Displays,
		}, streams.Stdin)
	}
	emit, release := wire.HoldReport(streams.Emit)
	w.Attach(ctx, emit)
	if w.Ready {
		begin()
	} else {
		w.SetDeadline(startTime, "the start of Deno")
	}
	outcome := wire.ReadOutcome(w.Reader, nil, func(wire.Frame) error {
		if w.Ready {
			return fmt.Errorf("%w: a second ready frame", wire.ErrProtocol)
		}
		w.SetReady()
		begin()
		return nil
	})
	outcome.Quiet = !started.IsZero() // Deno.exit is the program's
	result := outcome.Into(w.Wait())
	release(result)
	if !started.IsZero() {
		result.Duration = time.Since(started)
	}
	return result, nil
}

// feed gives the worker its request and then, in the background, the guest's
// standard input.
func (w *worker) feed(request any, stdin io.Reader) {
	to := w.Stdin()
	if err := wire.WriteRequest(to, request); err != nil {
		stdin = nil // where the child has ended, Wait says why
	}
	go wire.Feed(to, stdin)
}

// compileTime is how long loading modules may take for a code cache. What was
// compiled until then is kept.
var compileTime = 3 * time.Second // tests have more

// loadModules fills a DENO_DIR with what Deno makes of modules.
func (e *Engine) loadModules(ctx context.Context, modules []string, p modules.Plan, denoDir string) error {
	list, err := json.Marshal(map[string]any{"modules": modules, "system": !p.NoSystem})
	if err != nil {
		return err
	}
	load := launch{entry: "compile.js", permissions: e.options.Permissions.Imports(), install: p, keep: denoDir, args: []string{string(list)}}
	if _, err := e.runOwn(ctx, load); err != nil { // how it ends is the modules' affair
		return err
	}
	exit, err := e.runOwn(ctx, launch{entry: "freeze.js", workspace: denoDir, args: []string{"."}})
	if err == nil && exit.Status != job.Completed {
		err = fmt.Errorf("freeze Deno's databases: exit status %d %s: %s", exit.Code, exit.Reason, exit.Stderr)
	}
	return err
}

// runOwn runs one of our own modules to its end.
func (e *Engine) runOwn(ctx context.Context, l launch) (sandbox.Exit, error) {
	w, err := e.startWorker(ctx, l)
	if err != nil {
		return sandbox.Exit{}, err
	}
	_ = w.Stdin().Close()
	w.SetDeadline(compileTime, "compiling modules")
	w.Attach(ctx, func(job.Event) {})
	w.Reader.Drain()
	return w.Wait(), ctx.Err()
}
