//go:build !windows

package pyodide

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"rillbox/supervisor"
)

// pool keeps workers started ahead of time. Each is used once. It starts none
// before the first is asked for, and nobody waits for it.
type pool struct {
	ctx   context.Context
	start func(context.Context) (*worker, error)
	want  int
	log   *slog.Logger

	mu       sync.Mutex
	idle     []*worker
	starting int
	closed   bool
	jobs     sync.WaitGroup
}

// refillPause is how long a run has the machine to itself before its worker's
// successor is started.
const refillPause = 250 * time.Millisecond

func newPool(ctx context.Context, want int, log *slog.Logger, start func(context.Context) (*worker, error)) *pool {
	return &pool{ctx: ctx, want: want, log: log, start: start}
}

// take gives an idle worker, or nil when there is none. ended must be called
// when the run has ended, worker or not.
func (p *pool) take() (w *worker, ended func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w == nil && len(p.idle) > 0 {
		w, p.idle = p.idle[0], p.idle[1:]
		select {
		case <-w.child.Ended(): // it died while it waited
			dead := w
			w = nil
			p.jobs.Go(func() { dead.discard() })
		default:
		}
	}
	if p.want == 0 || p.closed {
		return w, func() {}
	}
	done := make(chan struct{})
	p.jobs.Go(func() {
		select {
		case <-done:
		case <-time.After(refillPause):
		case <-p.ctx.Done():
		}
		p.refill()
	})
	return w, sync.OnceFunc(func() { close(done) })
}

// refill starts what is missing.
func (p *pool) refill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && len(p.idle)+p.starting < p.want {
		p.starting++
		p.jobs.Go(p.add)
	}
}

// add starts one worker and puts it among the idle ones when it is ready.
func (p *pool) add() {
	w, err := p.start(p.ctx)
	if err == nil {
		stop := context.AfterFunc(p.ctx, func() { w.child.Kill(supervisor.Cancelled, "the server ends") })
		err = w.awaitReady()
		stop()
		if err != nil {
			exit := w.discard()
			p.log.Debug("a warm Python worker did not start", "error", err, "stderr", exit.Stderr.String())
		}
	}
	p.mu.Lock()
	p.starting--
	keep := err == nil && !p.closed
	if keep {
		p.idle = append(p.idle, w)
	}
	p.mu.Unlock()
	if err == nil && !keep {
		w.discard()
	}
}

// close ends the idle workers and waits until they are gone.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, w := range idle {
		w.discard()
	}
	p.jobs.Wait()
}
