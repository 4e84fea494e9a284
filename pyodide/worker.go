//go:build !windows

package pyodide

import (
	"context"
	"fmt"
	"path/filepath"

	"rillbox/deno"
	"rillbox/supervisor"
)

const (
	wasmPage = 64 << 10
	minHeap  = 64 << 20 // of Python, to start
	// startMemory is what a worker may use before it is ready; it takes some
	// 200 MB, and loading Python without a snapshot some 300.
	startMemory = 512 << 20
	// codeMemory is left of a program's memory for what V8 compiles while it
	// runs, so that a full heap ends in Python's MemoryError before we end it.
	codeMemory = 64 << 20
	wirePath   = "/dev/fd/3" // where a child opens its frames
	// startLimit bounds the frames of a worker before its program starts; the
	// largest is the list of what was installed.
	startLimit = 4 << 20
)

// Frames of the worker's own; see worker.ts.
const (
	resolveFrame   = "resolve"
	installedFrame = "installed"
	startedFrame   = "started"
	fatalFrame     = "fatal"
)

// worker is a child that has loaded Python, or is about to, and takes one request.
type worker struct {
	child  *supervisor.Child
	frames *deno.FrameReader
	ready  bool // it has said that it takes a request
}

// startWorker starts a worker; it is ready when its first frame says so.
func (e *Engine) startWorker(rt *runtime, permissions deno.Permissions) (*worker, error) {
	own := needs{read: []string{rt.pyodide.Dir, rt.snapshot, rt.worker}, connect: rt.gateway.Addr()}
	child, err := e.startChild(rt, permissions, own, filepath.Join(rt.worker, "worker.js"), rt.pyodide.Dir, rt.snapshot)
	if err != nil {
		return nil, err
	}
	frames := deno.NewFrameReader(child.Frames(), startLimit, resolveFrame, installedFrame, startedFrame, fatalFrame)
	return &worker{child: child, frames: frames}, nil
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

// discard ends a worker that nobody needs, and waits for its end.
func (w *worker) discard() supervisor.Exit {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.child.Attach(ctx, func(supervisor.Event) {})
	w.child.Kill(supervisor.Cancelled, "it is not needed")
	w.frames.Drain()
	return w.child.Wait()
}
