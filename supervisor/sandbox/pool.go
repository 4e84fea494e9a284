package sandbox

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Worker is a child that was started before its program was known.
type Worker interface {
	comparable
	// Ended is closed when its process has ended.
	Ended() <-chan struct{}
	// Discard ends it, and waits for its end. The pool calls it for a worker
	// that nobody took.
	Discard()
}

// Pool keeps workers that wait for a program. Each is taken once and never
// comes back. How many are kept follows demand within bounds: one more after
// each Take that found none, one less after each worker that nobody took for
// ten minutes. Nobody waits for a pool. It is safe for concurrent use.
type Pool[W Worker] struct {
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	start func(context.Context) (W, error)
	most  int

	mu       sync.Mutex
	want     int // how many are kept; 0 to most
	idle     []waiting[W]
	starting int
	jobs     sync.WaitGroup
}

// waiting is a worker with what ends its wait.
type waiting[W Worker] struct {
	worker W
	wait   *time.Timer
}

const (
	// idleTime is how long a worker waits to be taken.
	idleTime = 10 * time.Minute
	// refillPause is how long a run has the machine to itself before its
	// worker's successor is started.
	refillPause = 250 * time.Millisecond
)

// NewPool makes a pool of at most so many workers; it is empty until Warm or
// the first Take. start starts a worker and returns when it is ready, or soon
// after its context has ended.
func NewPool[W Worker](most int, start func(context.Context) (W, error)) *Pool[W] {
	p := &Pool[W]{start: start, most: most}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Warm starts a worker if there is none, ahead of the first Take.
func (p *Pool[W]) Warm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want = max(p.want, min(1, p.most))
	p.refill()
}

// Take gives the worker that was ready last; ok is false when there is none.
// ended must be called when the run that it is for has ended, worker or not.
func (p *Pool[W]) Take() (w W, ok bool, ended func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for last := len(p.idle) - 1; last >= 0 && !ok; last-- {
		w, ok = p.remove(last), true
		select {
		case <-w.Ended(): // it died while it waited
			p.jobs.Go(w.Discard)
			var none W
			w, ok = none, false
		default:
		}
	}
	if !ok {
		p.want = min(p.want+1, p.most)
	}
	if p.want == 0 || p.ctx.Err() != nil {
		return w, ok, func() {}
	}
	done := make(chan struct{})
	p.jobs.Go(func() {
		select {
		case <-done:
		case <-time.After(refillPause):
		case <-p.ctx.Done():
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.refill()
	})
	return w, ok, sync.OnceFunc(func() { close(done) })
}

// remove takes the worker at i out of those that wait. The caller holds mu.
func (p *Pool[W]) remove(i int) W {
	w := p.idle[i]
	w.wait.Stop()
	p.idle = slices.Delete(p.idle, i, i+1)
	return w.worker
}

// refill starts what is missing. The caller holds mu.
func (p *Pool[W]) refill() {
	for p.ctx.Err() == nil && len(p.idle)+p.starting < p.want {
		p.starting++
		p.jobs.Go(p.add)
	}
}

// add starts one worker and lets it wait. What fails to start is tried again
// after the next Take.
func (p *Pool[W]) add() {
	w, err := p.start(p.ctx)
	p.mu.Lock()
	p.starting--
	keep := err == nil && p.ctx.Err() == nil
	if keep {
		p.idle = append(p.idle, waiting[W]{w, time.AfterFunc(idleTime, func() { p.release(w) })})
	}
	p.mu.Unlock()
	if err == nil && !keep {
		w.Discard()
	}
}

// release ends a worker that nobody took for too long.
func (p *Pool[W]) release(w W) {
	p.mu.Lock()
	i := slices.IndexFunc(p.idle, func(other waiting[W]) bool { return other.worker == w })
	if i < 0 { // it has just been taken
		p.mu.Unlock()
		return
	}
	p.remove(i)
	p.want--
	p.jobs.Add(1)
	p.mu.Unlock()
	defer p.jobs.Done()
	w.Discard()
}

// Idle gives the workers that wait, once those that are being started do.
func (p *Pool[W]) Idle() []W {
	p.jobs.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	var idle []W
	for _, w := range p.idle {
		idle = append(idle, w.worker)
	}
	return idle
}

// Len is how many workers wait.
func (p *Pool[W]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// Close ends the workers that wait and those that are being started, and waits
// until they are gone.
func (p *Pool[W]) Close() {
	p.stop()
	p.mu.Lock()
	for len(p.idle) > 0 {
		w := p.remove(len(p.idle) - 1)
		p.jobs.Go(w.Discard)
	}
	p.mu.Unlock()
	p.jobs.Wait()
}
