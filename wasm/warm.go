//go:build !windows

package wasm

import (
	"context"
	"slices"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
	"rillbox/supervisor/wire"
)

// mostWarm is how many languages have children that are started ahead: those that were
// used last.
const mostWarm = 3

// warm are the children of one language that wait for a program.
type warm struct {
	language job.Language
	pool     *sandbox.Pool[*wire.Worker]
}

// ahead is what children of a language are started with ahead of their programs.
func (e *Engine) ahead(l language) childOptions {
	return childOptions{module: l.guest, flags: l.flags, heap: l.heap, permissions: e.o.Permissions, session: l.calls, ahead: true}
}

// take gives a child that fits, one that was started ahead if there is one. ended must be
// called when its run has ended, whatever the error.
func (e *Engine) take(rt runtime, l language, o childOptions) (w *wire.Worker, ended func(), err error) {
	ended = func() {}
	if e.o.Warm > 0 && !l.large && o.purpose() == e.ahead(l).purpose() {
		if pool := e.poolOf(l); pool != nil {
			ok := false
			if w, ok, ended = pool.Take(); ok {
				return w, ended, nil
			}
		}
	}
	w, err = e.startWorker(rt, o)
	return w, ended, err
}

// poolOf gives a language's pool, as the one that was used last; nil after Close.
func (e *Engine) poolOf(l language) *sandbox.Pool[*wire.Worker] {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	i := slices.IndexFunc(e.warm, func(w warm) bool { return w.language == l.Name })
	if i < 0 {
		i = len(e.warm)
		e.warm = append(e.warm, warm{l.Name, sandbox.NewPool(e.o.Warm, func(ctx context.Context) (*wire.Worker, error) { return e.startAhead(ctx, l) })})
	}
	last := e.warm[i]
	e.warm = append(slices.Delete(e.warm, i, i+1), last)
	for len(e.warm) > mostWarm {
		old := e.warm[0].pool
		e.warm = e.warm[1:]
		e.jobs.Go(old.Close)
	}
	return last.pool
}

// startAhead starts a child for a pool, and waits until it is ready.
func (e *Engine) startAhead(ctx context.Context, l language) (*wire.Worker, error) {
	rt, err := e.runtime(ctx, l, func(job.Event) {})
	if err != nil {
		return nil, err
	}
	w, err := e.startWorker(rt, e.ahead(l))
	if err != nil {
		return nil, err
	}
	if err := w.AwaitReady(ctx, startTime, "the start of "+l.Title); err != nil {
		e.o.Log.Debug("a warm child did not start", "language", l.Name, "error", err)
		return nil, err
	}
	return w, nil
}
