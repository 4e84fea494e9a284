//go:build !windows

// Package pyodide is the engine for Python: CPython compiled to WebAssembly
// (Pyodide), in a Deno process of its own for every run.
//
// A program goes to a worker: a child that has loaded Python from a memory
// snapshot and waits for its request, started for this run or taken from the
// warm pool. Before the program starts, the worker finds out what it needs
// beside Python and asks us for an install plan; all that it fetches comes
// through the package gateway, which is its only network unless the operator
// grants more.
//
// Pyodide is no boundary, since Python reaches any JavaScript of its process:
// the worker has exactly the permissions that the guest may have, and besides
// them reads of Python's own files, the gateway's address, and the wire. A
// worker runs one program and ends with it. What it says after the program has
// started is a claim; what it installed before is checked against what the
// gateway served.
//
// The folder guest has what runs in a child: its JavaScript side, and its Python
// side, the package rillbox.
package pyodide

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"rillbox/cache/egress"
	"rillbox/deno"
	"rillbox/deno/binary"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// Options are the choices that an Engine has; Cache is required, and without Limits the
// defaults hold. Warm workers are started from the first run on, while there is
// demand; each takes about 90 MB.
type Options struct {
	deno.Options
	// Path is the operator's own Pyodide ($RILLBOX_PYODIDE); empty means the cache's.
	Path string
	// IndexURL is the package index; empty means pip's configuration, and
	// without one what micropip asks by itself.
	IndexURL string
	// Mirror is where the files of Pyodide's CDN are: a URL, or a directory (a path or a
	// file: URL), with which no network is used for them. Empty means DefaultCDN.
	Mirror string
	// LeaveImages has Close leave the images of packages that are missing to a
	// process of their own, for who ends right after a run. Else they are made
	// while the engine lives.
	LeaveImages bool

	builds bool // it is for builds of packages, which can't have any built themselves
}

// Engine runs Python programs. It is safe for concurrent use.
type Engine struct {
	o     Options
	walls permission.Walls
	// cdn is the URL of Pyodide's CDN or its mirror; mirrored is the mirror where that is a
	// directory.
	cdn, mirrored string

	stop context.CancelFunc
	ctx  context.Context // ends with Close
	pool *sandbox.Pool[*worker]
	jobs sync.WaitGroup // what goes on behind the scenes

	images  images
	builder func() (*Engine, error) // of sources; makes it when it is first wanted
	built   *Engine                 // by builder

	mu        sync.Mutex
	runtime   *runtime
	preparing *preparation

	renewing sync.Mutex // held while a snapshot that can't be loaded is replaced
	renewed  bool
}

var _ job.Toolchain = (*Engine)(nil)

// New makes an engine. Nothing is fetched or started before it is used.
func New(o Options) (*Engine, error) {
	if o.Cache == nil {
		return nil, errors.New("the Python engine needs a cache")
	}
	if o.Limits == (job.Limits{}) {
		o.Limits = job.DefaultLimits()
	}
	cdn, mirrored, err := readMirror(o.Mirror)
	if err != nil {
		return nil, err
	}
	walls, err := o.Open()
	if err != nil {
		return nil, err
	}
	_, unseen, err := grantedPaths(o.Permissions)
	if err != nil {
		return nil, err
	}
	if unseen {
		o.Log.Warn("Python opens files of the machine only where a permission names their path, as --allow-read=/data does; without a path they can be read by way of JavaScript alone")
	}
	e := &Engine{o: o, cdn: cdn, mirrored: mirrored, walls: walls, images: images{known: map[string]bool{}}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.pool = sandbox.NewPool(o.Warm, e.startAhead)
	e.builder = sync.OnceValues(e.newBuilder)
	return e, nil
}

// Close ends the workers, the gateway and what is being prepared.
func (e *Engine) Close() {
	e.stop()
	e.pool.Close()
	e.jobs.Wait()
	if e.o.LeaveImages {
		if _, err := e.leaveImages(); err != nil {
			e.o.Log.Warn("the images of Python packages are left to the next run", "error", err)
		}
	}
	e.mu.Lock()
	rt := e.runtime
	e.runtime = nil
	e.mu.Unlock()
	if rt != nil {
		rt.gateway.Close() // it waits for builds, too
	}
	if e.built != nil {
		e.built.Close()
	}
}

// Prepare fetches Deno and Pyodide and makes the snapshot.
func (e *Engine) Prepare(ctx context.Context, emit func(job.Event), _ ...job.Language) error {
	_, err := e.ready(ctx, emit)
	return err
}

// Install fetches packages into the cache, with what they need, and says what
// they resolved to. None of their code runs.
func (e *Engine) Install(ctx context.Context, p job.Program, emit func(job.Event)) ([]job.Package, error) {
	packages := p.Packages
	result, err := e.Run(ctx, p, job.Streams{Emit: emit})
	switch {
	case err != nil:
		return nil, err
	case result.Status != job.Completed && result.Error != nil:
		return nil, fmt.Errorf("install %q for Python: %s", packages, result.Error.Message)
	case result.Status != job.Completed:
		return nil, fmt.Errorf("install %q for Python: the installation ended as %s", packages, result.Status)
	}
	return result.Packages, nil
}

// Describe says what the engine is.
func (e *Engine) Describe() job.Description {
	return job.Description{
		Languages: Languages,
		Versions: map[string]string{
			"python": PythonVersion, "pyodide": Version, "micropip": MicropipVersion,
			"deno": binary.Version, "v8": binary.V8Version,
		},
		Ready:       e.isReady(),
		Warm:        e.pool.Len(),
		Permissions: e.o.Permissions.Args(),
		Wall:        e.walls.Around(e.o.Permissions),
	}
}

// Run runs one program in a worker of its own.
func (e *Engine) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	return e.runUnder(ctx, e.o.Narrowed(p.Policy), p, streams)
}

// runUnder runs one program under a policy.
func (e *Engine) runUnder(ctx context.Context, policy egress.Policy, p job.Program, streams job.Streams) (job.Result, error) {
	permissions, err := e.o.Permissions.Narrow(p.Most, p.Permissions)
	if err != nil {
		return job.Result{}, job.Refuse("%v", err)
	}
	if p, err = withCommand(p); err != nil {
		return job.Result{}, err
	}
	rt, err := e.ready(ctx, streams.Emit)
	if ctx.Err() != nil {
		return job.CancelledBefore(""), nil
	}
	if err != nil {
		return job.Result{}, err
	}
	options := childOptions{module: programModule, permissions: permissions, policy: policy, workspace: p.Workspace, readOnly: p.ReadOnly, combined: p.Combined}
	result, err := e.runOn(ctx, rt, options, p, streams)
	if errors.Is(err, errNotLoaded) {
		if fresh, ok := e.renew(ctx, rt, streams.Emit); ok {
			return e.runOn(ctx, fresh, options, p, streams)
		}
	}
	return result, err
}

// runOn runs one program in a warm worker, if one was made for exactly this, or in a
// new one.
func (e *Engine) runOn(ctx context.Context, rt *runtime, options childOptions, p job.Program, streams job.Streams) (job.Result, error) {
	var w *worker
	warm := false
	if options.purpose() == e.ahead().purpose() {
		var ended func()
		w, warm, ended = e.pool.Take()
		defer ended()
	}
	if !warm {
		var err error
		if w, err = e.startWorker(rt, options); err != nil {
			return job.Result{}, err
		}
	}
	return newRun(e, w, p, streams).do(ctx)
}
