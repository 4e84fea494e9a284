package sandbox

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// waiter is a worker without a process; the pool asks no more of one.
type waiter struct {
	ended     chan struct{}
	discarded bool
}

func (w *waiter) Ended() <-chan struct{} { return w.ended }
func (w *waiter) Discard()               { w.discarded = true }

func newWaiters(most int) *Pool[*waiter] {
	return NewPool(most, func(context.Context) (*waiter, error) {
		time.Sleep(300 * time.Millisecond)
		return &waiter{ended: make(chan struct{})}, nil
	})
}

// use takes a worker for a run of that length, and says whether there was one.
func use(p *Pool[*waiter], run time.Duration) (*waiter, bool) {
	w, ok, ended := p.Take()
	time.Sleep(run)
	ended()
	return w, ok
}

func TestPoolFollowsDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWaiters(2)
		defer p.Close()
		if _, ok := use(p, time.Millisecond); ok {
			t.Fatal("there was a worker before the first run")
		}
		if n := len(p.Idle()); n != 1 {
			t.Fatalf("%d workers after the first run, want 1", n)
		}
		seen := map[*waiter]bool{}
		for range 10 { // one at a time: one worker is enough
			w, ok := use(p, time.Millisecond)
			if !ok || seen[w] {
				t.Fatalf("taken %v, already used %v", ok, seen[w])
			}
			seen[w] = true
			if n := len(p.Idle()); n != 1 {
				t.Fatalf("%d workers wait, want 1", n)
			}
		}
		for range 5 { // five at once: as many as there may be
			_, _, ended := p.Take()
			defer ended()
		}
		if n := len(p.Idle()); n != 2 {
			t.Fatalf("%d workers after five runs at once, want 2", n)
		}
		idle := p.Idle()
		for range 11 { // one at a time again: the other one goes after ten minutes
			time.Sleep(time.Minute)
			use(p, time.Millisecond)
		}
		if n := len(p.Idle()); n != 1 || !idle[0].discarded {
			t.Fatalf("%d workers wait, the older one has ended: %v", n, idle[0].discarded)
		}
		last := p.Idle()[0]
		time.Sleep(idleTime)
		synctest.Wait()
		if n := len(p.Idle()); n != 0 || !last.discarded {
			t.Fatalf("%d workers after ten idle minutes", n)
		}
		use(p, time.Millisecond)
		if n := len(p.Idle()); n != 1 {
			t.Fatalf("%d workers after the next run, want 1", n)
		}
	})
}

func TestPoolRefillWaitsForTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWaiters(1)
		defer p.Close()
		for _, test := range []struct{ run, want time.Duration }{
			{10 * time.Millisecond, 310 * time.Millisecond},
			{time.Minute, refillPause + 300*time.Millisecond},
		} {
			p.Warm()
			p.Idle()
			_, _, ended := p.Take()
			begin := time.Now()
			time.AfterFunc(test.run, ended)
			if n, took := len(p.Idle()), time.Since(begin); n != 1 || took != test.want {
				t.Errorf("a run of %v: %d workers after %v, want one after %v", test.run, n, took, test.want)
			}
		}
	})
}

func TestPoolPassesOverTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWaiters(1)
		defer p.Close()
		p.Warm()
		dead := p.Idle()[0]
		close(dead.ended)
		if w, ok := use(p, 0); ok {
			t.Errorf("took %v, which has ended", w)
		}
		if now := p.Idle(); len(now) != 1 || now[0] == dead || !dead.discarded {
			t.Errorf("the dead worker was not replaced: %v", now)
		}
	})
}

func TestPoolOfNone(t *testing.T) {
	p := newWaiters(0)
	defer p.Close()
	p.Warm()
	if _, ok := use(p, 0); ok || len(p.Idle()) != 0 {
		t.Error("a pool of none has a worker")
	}
}

func TestPoolCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWaiters(1)
		p.Warm()
		idle := p.Idle()[0]
		p.Close()
		if !idle.discarded {
			t.Error("the idle worker outlived Close")
		}
		if _, ok := use(p, 0); ok || len(p.Idle()) != 0 {
			t.Error("a closed pool has a worker")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var late *waiter
		p := NewPool(1, func(ctx context.Context) (*waiter, error) {
			<-ctx.Done()
			late = &waiter{}
			return late, nil
		})
		p.Warm()
		p.Close()
		if !late.discarded {
			t.Error("the worker that was being started outlived Close")
		}
	})
}
