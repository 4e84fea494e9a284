//go:build !windows

package pyodide

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rillbox/cache"
	"rillbox/deno"
	"rillbox/supervisor"
)

const (
	wasmPage = 64 << 10
	minHeap  = 64 << 20 // that Python can start with, in bytes
	// startMemory is what a worker may use before it is ready; it takes some
	// 130 MB, and loading Python without a snapshot some 300.
	startMemory = 512 << 20
	// codeMemory is left of a program's memory for what V8 compiles while it
	// runs, so that a full heap ends in Python's MemoryError before we end it.
	codeMemory = 64 << 20
	wirePath   = "/dev/fd/3" // where a child opens its frames
	// startLimit bounds the frames of a worker before its program starts; the
	// largest is the list of what was installed.
	startLimit = 4 << 20
)

// startTime is how long a child may take until it has loaded Python, which takes a
// second on a slow machine.
var startTime = 30 * time.Second // tests have less

// Frames of the worker's own; see worker.ts.
const (
	resolveFrame   = "resolve"
	installedFrame = "installed"
	startedFrame   = "started"
	fatalFrame     = "fatal"
)

// worker is a child that has loaded Python, or is about to, and takes one request.
type worker struct {
	child  started
	frames *deno.FrameReader
	loan   *cache.Loan // what it may read of the cache's packages
	ready  bool        // it has said that it takes a request
}

// startAhead starts a worker for the pool and waits until it is ready.
func (e *Engine) startAhead(ctx context.Context) (*worker, error) {
	rt, err := e.ready(ctx, func(supervisor.Event) {})
	if err != nil {
		return nil, err
	}
	w, err := e.launchWorker(rt, e.o.Permissions, needs{ahead: true})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { w.child.Kill(supervisor.Cancelled, "it is not ready in time") })()
	if err := w.awaitReady(); err != nil {
		exit := w.discard()
		e.o.Log.Debug("a warm Python worker did not start", "error", err, "stderr", exit.Stderr.String())
		return nil, err
	}
	return w, nil
}

// startWorker starts a worker for a program; it is ready when its first frame
// says so. The program's text is not needed yet.
func (e *Engine) startWorker(rt *runtime, permissions deno.Permissions, p supervisor.Program) (*worker, error) {
	return e.launchWorker(rt, permissions, needs{workspace: p.Workspace, readOnly: p.ReadOnly, combined: p.Combined})
}

// launchWorker starts a worker that has what every one needs beside its own needs.
func (e *Engine) launchWorker(rt *runtime, permissions deno.Permissions, own needs) (*worker, error) {
	own.read = rt.reads()
	ahead := ""
	if own.ahead {
		ahead = "ahead"
	}
	child, loan, err := e.startLending(rt, permissions, own, "worker.js", rt.pyodide.Dir, rt.snapshot, ahead, own.workspace)
	if err != nil {
		return nil, err
	}
	frames := deno.NewFrameReader(child.Frames(), startLimit, resolveFrame, installedFrame, startedFrame, fatalFrame)
	return &worker{child: child, frames: frames, loan: loan}, nil
}

// startLending is startChild for a child that is lent images of packages.
func (e *Engine) startLending(rt *runtime, granted deno.Permissions, own needs, module string, args ...string) (started, *cache.Loan, error) {
	loan, err := e.o.Cache.Lend()
	if err != nil {
		return started{}, nil, err
	}
	own.read, own.guest, own.gateway = append(own.read, seen{loan.Dir(), "/rillbox/loan"}), true, true
	child, err := e.startChild(rt, granted, own, module, args...)
	if err != nil {
		return started{}, nil, errors.Join(err, loan.Close())
	}
	e.jobs.Go(func() {
		<-child.Ended()
		_ = loan.Close() // what is left goes with the process
	})
	return child, loan, nil
}

// awaitReady waits until the worker takes a request.
func (w *worker) awaitReady() error {
	frame, err := w.frames.Next()
	if err == nil && frame.Type != deno.ReadyFrame {
		err = fmt.Errorf("its first frame is %q", frame.Type)
	}
	if err != nil {
		return err
	}
	w.getReady()
	return nil
}

// getReady takes the worker at its word that it is ready.
func (w *worker) getReady() {
	w.child.MarkBaseline()
	w.ready = true
}

// Ended is closed when the worker's process has ended.
func (w *worker) Ended() <-chan struct{} { return w.child.Ended() }

// Discard ends a worker that nobody needs, and waits for its end.
func (w *worker) Discard() { w.discard() }

func (w *worker) discard() supervisor.Exit {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.child.Attach(ctx, func(supervisor.Event) {})
	w.child.Kill(supervisor.Cancelled, "it is not needed")
	w.frames.Drain()
	return w.child.Wait()
}
