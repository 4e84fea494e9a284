//go:build !windows

package pyodide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"rillbox/cache"
	"rillbox/cache/egress"
	"rillbox/pyodide/gateway"
	"rillbox/supervisor/job"
	"rillbox/supervisor/wire"
)

// startLimit bounds the frames of a worker before its program starts, in bytes; the
// largest is the list of what was installed.
const startLimit = 4 << 20

// startTime is how long a child may take until it has loaded Python, which takes a
// second on a slow machine.
var startTime = 30 * time.Second // tests have less

// Frames of the workers' own; see guest/worker.ts and guest/session.ts.
const (
	resolveFrame   = "resolve"
	installedFrame = "installed"
	startedFrame   = "started"
	fatalFrame     = "fatal"
	stdinFrame     = "stdin"
	exitedFrame    = "exited"
)

// worker is a child that has loaded Python, or is about to, and takes one request,
// or those of one session.
type worker struct {
	wire.Worker
	rt      *runtime
	policy  egress.Policy  // of all that it installs
	loan    string         // its name for the directory of images
	images  *cache.Loan    // what it may read of the cache's images
	grant   *gateway.Grant // its access to packages
	control *os.File       // tells a session's which cell to interrupt; else nil
	writing sync.Mutex     // held while a request is written
}

// The modules of workers.
const (
	programModule = "worker.js"
	sessionModule = "session.js"
)

// startWorker starts a worker with a module of workers; it is ready when its first
// frame says so.
func (e *Engine) startWorker(rt *runtime, o childOptions) (w *worker, err error) {
	w = &worker{rt: rt, policy: o.policy}
	if w.images, err = e.o.Cache.Lend(); err != nil {
		return nil, err
	}
	o.files, o.loan = rt.python(), w.images.Dir()
	o.words = []string{""}
	if o.ahead {
		o.words[0] = "ahead"
	}
	if o.module == sessionModule {
		w.control, err = os.Create(filepath.Join(o.loan, "control"))
	}
	var c child
	if err == nil {
		c, err = e.startChild(rt, o)
	}
	end := func() error {
		_ = w.control.Close() // an error where there is none
		return w.images.Close()
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	w.Child, w.loan = c.Child, c.loan
	w.Reader = wire.NewFrameReader(w.Frames(), startLimit, resolveFrame, installedFrame, startedFrame, fatalFrame, stdinFrame, exitedFrame)
	w.grant = rt.gateway.Grant(c.gateway, o.policy)
	e.jobs.Go(func() {
		<-w.Ended()
		w.grant.Close()
		_ = end() // what is left goes with the process
	})
	return w, nil
}

// startReady starts a worker and waits until it takes a request.
func (e *Engine) startReady(ctx context.Context, rt *runtime, o childOptions) (*worker, error) {
	w, err := e.startWorker(rt, o)
	if err != nil {
		return nil, err
	}
	if err := w.AwaitReady(ctx, startTime, "the start of Python"); err != nil {
		return nil, fmt.Errorf("start Python: %w", err)
	}
	return w, nil
}

// ahead is what the pool's workers are started with.
func (e *Engine) ahead() childOptions {
	return childOptions{module: programModule, permissions: e.o.Permissions, policy: e.o.Policy, ahead: true}
}

// startAhead starts a worker for the pool.
func (e *Engine) startAhead(ctx context.Context) (*worker, error) {
	rt, err := e.ready(ctx, func(job.Event) {})
	if err != nil {
		return nil, err
	}
	w, err := e.startReady(ctx, rt, e.ahead())
	if err != nil {
		e.o.Log.Debug("a warm Python worker did not start", "error", err)
	}
	return w, err
}

// write gives the worker a request.
func (w *worker) write(request any) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	return wire.WriteRequest(w.Stdin(), request)
}
