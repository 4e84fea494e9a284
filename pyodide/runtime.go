//go:build !windows

package pyodide

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"rillbox/cache/egress"
	"rillbox/deno/binary"
	"rillbox/pyodide/gateway"
	"rillbox/supervisor/job"
)

// runtime is all that workers need, on this machine and verified.
type runtime struct {
	deno     string
	pyodide  Distribution
	worker   string // the directory of the worker's own files
	snapshot string // the file
	key      string // of the snapshot: Pyodide, Deno and our sources
	heap     int64  // bytes of the snapshot
	gateway  *gateway.Gateway
	origin   string // tells plans of this index and CDN from those of others
}

// preparation makes a runtime while any number of runs wait for it.
type preparation struct {
	done    chan struct{}
	runtime *runtime
	err     error

	mu       sync.Mutex
	watchers map[*func(job.Event)]bool
}

// watch calls emit with what is being done until stop is called.
func (p *preparation) watch(emit func(job.Event)) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers[&emit] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watchers, &emit)
	}
}

func (p *preparation) tell(stage string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for emit := range p.watchers {
		(*emit)(job.Event{Kind: job.Stage, Text: stage, Done: done, Total: total})
	}
}

// ready waits for the runtime. It is made once, and goes on being made when
// those who wait for it go away.
func (e *Engine) ready(ctx context.Context, emit func(job.Event)) (*runtime, error) {
	e.mu.Lock()
	if e.runtime != nil || e.ctx.Err() != nil {
		defer e.mu.Unlock()
		return e.runtime, context.Cause(e.ctx)
	}
	p := e.preparing
	if p == nil {
		p = &preparation{done: make(chan struct{}), watchers: map[*func(job.Event)]bool{}}
		e.preparing = p
		e.jobs.Go(func() { e.prepare(p) })
	}
	e.mu.Unlock()
	defer p.watch(emit)()
	select {
	case <-p.done:
		return p.runtime, p.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (e *Engine) prepare(p *preparation) {
	p.runtime, p.err = e.makeRuntime(e.ctx, p.tell)
	if p.err != nil {
		p.err = fmt.Errorf("prepare Python: %w", p.err)
	}
	e.mu.Lock()
	e.preparing = nil // after a failure the next run tries again
	e.runtime = p.runtime
	e.mu.Unlock()
	close(p.done)
}

func (e *Engine) makeRuntime(ctx context.Context, tell func(stage string, done, total int64)) (*runtime, error) {
	rt := &runtime{}
	var denoErr error
	var located sync.WaitGroup
	located.Go(func() {
		rt.deno, denoErr = binary.Locate(ctx, binary.LocateOptions{Cache: e.o.Cache, Path: e.o.DenoPath, Progress: tell})
	})
	var err error
	rt.pyodide, err = LocateDistribution(ctx, e.locateOptions(tell))
	located.Wait()
	if err = errors.Join(denoErr, err); err != nil {
		return nil, err
	}
	if rt.worker, err = e.workerFiles(ctx); err != nil {
		return nil, err
	}
	if rt.key, err = snapshotKey(rt.pyodide); err != nil {
		return nil, err
	}
	if err = e.takeSnapshot(ctx, rt, rt.key, func() { tell("preparing Python", 0, 0) }); err != nil {
		return nil, err
	}
	if err = e.openGateway(rt); err != nil {
		return nil, err
	}
	return rt, nil
}

func (e *Engine) locateOptions(tell func(stage string, done, total int64)) LocateOptions {
	return LocateOptions{Cache: e.o.Cache, Path: e.o.Path, Mirror: e.o.Mirror, Progress: tell}
}

func (e *Engine) openGateway(rt *runtime) error {
	lock, err := os.ReadFile(filepath.Join(rt.pyodide.Dir, "pyodide-lock.json"))
	if err != nil {
		return fmt.Errorf("read Pyodide's lock file: %w", err)
	}
	indexes, err := e.indexes(rt)
	if err != nil {
		return err
	}
	o := gateway.Options{Cache: e.o.Cache, IndexURLs: indexes, CDN: e.cdn, Mirrored: e.mirrored, Lock: lock, Policy: e.o.Policy, Log: e.o.Log}
	if !e.o.builds {
		o.Build = func(ctx context.Context, policy egress.Policy, archive gateway.File, fetch func() (string, error), tell func(string, int64, int64)) (string, bool, error) {
			return e.buildWheel(ctx, rt, policy, archive, fetch, tell)
		}
	}
	rt.gateway, err = gateway.New(o)
	if err != nil {
		return err
	}
	rt.origin = digest(append([]string{cmp.Or(e.mirrored, e.cdn)}, indexes...)...)
	return nil
}

// policyKey tells plans, which a policy decides, from those made under another.
func policyKey(p egress.Policy) string {
	if p.Key() == (egress.Policy{MinReleaseAge: p.MinReleaseAge}).Key() {
		return digest(p.MinReleaseAge.String(), "deny") // as ever
	}
	return digest(p.Key())
}

// cacheOnly says that a policy within the operator's does not fetch, though that does. What
// is made then may be of what happens to be in the cache, and is for no other policy.
func (e *Engine) cacheOnly(p egress.Policy) bool { return p.NoFetch && !e.o.Policy.NoFetch }

// indexes are the package indexes of the options, of pip's configuration, or
// of micropip itself.
func (e *Engine) indexes(rt *runtime) ([]string, error) {
	if e.o.IndexURL != "" {
		return []string{e.o.IndexURL}, nil
	}
	indexes, err := gateway.PipIndexURLs()
	if err != nil || len(indexes) > 0 {
		return indexes, err
	}
	index, err := gateway.DefaultIndexURL(rt.pyodide.Micropip)
	return []string{index}, err
}

// isReady says whether all that a run needs is on this machine, without reading
// it: what is found to be corrupt when it is used is made again.
func (e *Engine) isReady() bool {
	e.mu.Lock()
	made := e.runtime != nil
	e.mu.Unlock()
	if made {
		return true
	}
	distribution, there := availableDistribution(e.locateOptions(nil))
	if !there || !binary.Available(binary.LocateOptions{Cache: e.o.Cache, Path: e.o.DenoPath}) {
		return false
	}
	key, err := snapshotKey(distribution)
	return err == nil && e.o.Cache.Has(snapshotKind, key)
}

// digest tells lists of strings apart.
func digest(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
