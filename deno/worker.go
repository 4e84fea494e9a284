//go:build !windows

package deno

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"rillbox/supervisor"
)

// worker is a child whose bootstrap module asks for a program, or is about to;
// it takes one.
type worker struct {
	child  *supervisor.Child
	dir    string
	name   string // the child's name for dir
	frames *FrameReader
	ready  bool // it has asked
}

// startTime is how long Deno may take until it asks for its program.
const startTime = 30 * time.Second

// frameRoom is what a result frame has beside the value or the error.
const frameRoom = 64 << 10

// A worker that was started ahead has the operator's permissions and no
// packages, and knows where its program's file will be, but not what it is.
var aheadFiles = []string{"main.js", "main.mjs", "main.cjs", "main.jsx", "main.ts", "main.mts", "main.cts", "main.tsx"}

// takeWorker gives a worker that fits, one that was started ahead if there is
// one. ended must be called when the run has ended, whatever the error.
func (e *Engine) takeWorker(ctx context.Context, l launch) (w *worker, ended func(), err error) {
	ended = func() {}
	if slices.Contains(aheadFiles, l.files[0]) {
		l.files = aheadFiles
	}
	if l.purpose() == e.ahead(ctx).purpose() {
		var ok bool
		if w, ok, ended = e.pool.Take(); ok {
			return w, ended, nil
		}
	}
	w, err = e.startWorker(ctx, l)
	return w, ended, err
}

// ahead is what the pool's workers are started with.
func (e *Engine) ahead(ctx context.Context) launch {
	return launch{permissions: e.options.Permissions, codeCache: e.codeCaches.of(ctx, usualModules, plan{}), files: aheadFiles}
}

// startAhead starts a worker for the pool and waits until it is ready.
func (e *Engine) startAhead(ctx context.Context) (*worker, error) {
	if _, err := e.locate(ctx, func(supervisor.Event) {}); err != nil {
		return nil, err
	}
	w, err := e.startWorker(ctx, e.ahead(ctx))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { w.child.Kill(supervisor.Cancelled, "it is not ready in time") })()
	frame, err := w.frames.Next()
	if err == nil && frame.Type != ReadyFrame {
		err = fmt.Errorf("its first frame is %q", frame.Type)
	}
	if err != nil {
		exit := w.discard()
		e.options.Log.Debug("a warm worker for JavaScript did not start", "error", err, "stderr", exit.Stderr.String())
		return nil, err
	}
	w.getReady()
	return w, nil
}

func (e *Engine) startWorker(ctx context.Context, l launch) (*worker, error) {
	dir, err := supervisor.NewRunDir()
	if err != nil {
		return nil, err
	}
	command, err := e.command(ctx, dir, l)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	child, err := command.start(e.options.Limits)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &worker{child: child, dir: dir, name: command.name, frames: NewFrameReader(child.Frames(), e.options.Limits.Result+frameRoom)}, nil
}

// getReady takes the worker at its word that it asks for its program.
func (w *worker) getReady() {
	w.child.MarkBaseline()
	w.ready = true
}

// run runs the program to its end; process says that it may load Node's process
// module.
func (w *worker) run(ctx context.Context, p supervisor.Program, m module, process bool, limits supervisor.Limits, emit func(supervisor.Event)) (supervisor.Result, error) {
	file := filepath.Join(w.dir, m.file)
	if err := os.WriteFile(file, []byte(m.code), 0o600); err != nil {
		w.Discard()
		return supervisor.Result{}, fmt.Errorf("write the program's file: %w", err)
	}
	var started time.Time
	begin := func() {
		started = time.Now()
		w.frames.AllowDisplays(limits.Displays)
		w.child.SetDeadline(p.Timeout, "the program")
		w.child.LimitCPU("the program", func(reason string) { w.child.Kill(supervisor.TimedOut, reason) })
		w.feed(map[string]any{
			"source":   map[string]any{"url": fileURL(filepath.Join(w.name, m.file)), "name": m.name, "prelude": m.prelude},
			"commonjs": m.commonjs,
			"node":     process,
			"limit":    limits.Result,
			"displays": limits.Displays,
		}, p.Stdin)
	}
	emit, release := HoldReport(emit)
	w.child.Attach(ctx, emit)
	if w.ready {
		begin()
	} else {
		w.child.SetDeadline(startTime, "the start of Deno")
	}
	outcome := ReadOutcome(w.frames, func(Frame) error {
		if w.ready {
			return fmt.Errorf("%w: a second ready frame", ErrProtocol)
		}
		w.getReady()
		begin()
		return nil
	})
	outcome.Quiet = !started.IsZero() // Deno.exit is the program's
	result := outcome.Into(w.child.Wait())
	release(result)
	if !started.IsZero() {
		result.Duration = time.Since(started)
	}
	return result, nil
}

// feed gives the worker its request and then, in the background, the guest's
// standard input.
func (w *worker) feed(request any, stdin io.Reader) {
	to := w.child.Stdin()
	if err := WriteRequest(to, request); err != nil {
		stdin = nil // where the child has ended, Wait says why
	}
	go Feed(to, stdin)
}

// Ended is closed when the worker's process has ended.
func (w *worker) Ended() <-chan struct{} { return w.child.Ended() }

// Discard ends a worker that nobody needs, and waits for its end.
func (w *worker) Discard() { w.discard() }

func (w *worker) discard() supervisor.Exit {
	w.child.Kill(supervisor.Cancelled, "it is not needed")
	w.child.Attach(context.Background(), func(supervisor.Event) {})
	w.frames.Drain()
	return w.child.Wait()
}

// compileTime is how long loading modules may take for a code cache. What was
// compiled until then is kept.
const compileTime = 3 * time.Second

// loadModules fills a DENO_DIR with what Deno makes of modules; see codeCaches.
func (e *Engine) loadModules(ctx context.Context, modules []string, p plan, denoDir string) error {
	list, err := json.Marshal(modules)
	if err != nil {
		return err
	}
	load := launch{entry: "compile.js", permissions: e.options.Permissions.Imports(), install: p, keep: denoDir, args: []string{string(list)}}
	if _, err := e.runOwn(ctx, load); err != nil { // how it ends is the modules' affair
		return err
	}
	exit, err := e.runOwn(ctx, launch{entry: "freeze.js", workspace: denoDir, args: []string{"."}})
	if err == nil && exit.Status != supervisor.Completed {
		err = fmt.Errorf("freeze Deno's databases: exit status %d %s: %s", exit.Code, exit.Reason, exit.Stderr)
	}
	return err
}

// runOwn runs one of our own modules to its end.
func (e *Engine) runOwn(ctx context.Context, l launch) (supervisor.Exit, error) {
	w, err := e.startWorker(ctx, l)
	if err != nil {
		return supervisor.Exit{}, err
	}
	_ = w.child.Stdin().Close()
	w.child.SetDeadline(compileTime, "compiling modules")
	w.child.Attach(ctx, func(supervisor.Event) {})
	w.frames.Drain()
	return w.child.Wait(), ctx.Err()
}
