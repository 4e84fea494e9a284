//go:build !windows

// Package deno is the engine for JavaScript and TypeScript: runs and sessions.
//
// What flows through it: a job.Program is parsed for what it imports;
// what is missing of that is fetched by a Deno process that never sees the
// program (the install plan says what it became); then one fresh Deno process
// imports the program from a bootstrap module, with the operator's permission
// flags and nothing else, in a directory and an environment of its own, and
// tells over the wire what became of it.
//
// It promises that a guest gets no permission that the operator did not grant,
// save to read its own program's file; that it never writes to what another run
// reads; and that what ran once runs again without the network.
package deno

import (
	"context"
	"fmt"
	"log/slog"

	"rillbox/cache"
	"rillbox/cache/egress"
	"rillbox/deno/binary"
	"rillbox/deno/modules"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
)

// Options say how an Engine is made. Other engines that stand on Deno have them too,
// but for AllowImport.
type Options struct {
	Cache *cache.Cache
	// Permissions are what the operator grants to programs.
	Permissions permission.Permissions
	// AllowImport are the hosts that URL imports may reach; empty means Deno's
	// default list.
	AllowImport []string
	// DenoPath is an operator's own binary; empty means the pinned one.
	DenoPath string
	// Env are the variables that programs get; see Variables.
	Env []string
	// Policy is what may be fetched and used. Where it sets no minimum release
	// age, Deno's own holds: 24 hours for npm and JSR.
	Policy egress.Policy
	// Wall is what children are started behind; the zero value is the best wall that
	// the machine offers.
	Wall launcher.Level
	// Workspace is the directory that the operator shares, by its real path; empty
	// for none.
	Workspace string
	// WithoutSecondWall starts children without the kernel's wall.
	WithoutSecondWall bool
	// Warm is how many children of each kind are kept started ahead of time at
	// most, from Prepare on; 0 means none.
	Warm   int
	Limits job.Limits
	Log    *slog.Logger
}

// Engine runs JavaScript and TypeScript. It implements job.Toolchain and
// is safe for concurrent use.
type Engine struct {
	options Options
	walls   permission.Walls
	planner *modules.Planner

	scanners   *modules.Scanners
	codeCaches codeCaches
	pool       *sandbox.Pool[*worker]

	locating chan struct{} // holds one token: whoever has it may locate Deno
	deno     string        // its path
	guest    string        // the directory of our files for children; set before deno
}

// New makes an engine; nothing is fetched or started before it is needed.
func New(o Options) (*Engine, error) {
	imports := make([]string, len(o.AllowImport))
	for i, text := range o.AllowImport {
		h, err := permission.ParseHost(text)
		if err != nil {
			return nil, fmt.Errorf("host %q for URL imports: %w; want a host, with a port if need be", text, err)
		}
		imports[i] = h.String()
	}
	o.AllowImport = imports
	if len(o.AllowImport) > 0 {
		o.Permissions = o.Permissions.With("allow-import", o.AllowImport...)
	}
	walls, err := o.Open()
	if err != nil {
		return nil, err
	}
	if o.Permissions.All() {
		o.Log.Warn("JavaScript and TypeScript programs have all permissions: they can do to this machine what this user can")
	}
	e := &Engine{options: o, walls: walls, scanners: modules.NewScanners(o.Warm, walls), locating: make(chan struct{}, 1)}
	e.planner = &modules.Planner{
		Cache: o.Cache, Version: binary.Version, Walls: walls, Policy: o.Policy, Limits: o.Limits,
		AllowImport: o.AllowImport, Unpacked: modules.MaxUnpacked, Log: o.Log,
	}
	e.pool = sandbox.NewPool(o.Warm, e.startAhead)
	return e, nil
}

// Open checks the options, fills defaults in, opens what the permissions name, and
// says what children are started behind.
func (o *Options) Open() (walls permission.Walls, err error) {
	if err := o.Policy.Validate(); err != nil {
		return permission.Walls{}, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Permissions, err = o.Permissions.Open(); err != nil {
		return permission.Walls{}, err
	}
	walls = permission.Walls{Level: o.Wall, Without: o.WithoutSecondWall, Log: o.Log}
	walls.Shared, err = permission.Share(o.Workspace)
	return walls, err
}

// Narrowed is the policy for a client that has one of its own. A minimum release age of its
// is no shorter than what holds without.
func (o *Options) Narrowed(own job.PackagePolicy) egress.Policy {
	age := own.MinReleaseAge
	if age > 0 && o.Policy.MinReleaseAge == 0 {
		age = max(age, modules.DefaultAge)
	}
	return o.Policy.Narrow(egress.Policy{Allow: own.AllowPackages, Deny: own.DenyPackages, NoFetch: own.CacheOnly, MinReleaseAge: age})
}

// Describe says what the engine is.
func (e *Engine) Describe() job.Description {
	return job.Description{
		Languages:   Languages,
		Versions:    map[string]string{"deno": binary.Version, "v8": binary.V8Version, "typescript": binary.TypeScriptVersion},
		Ready:       binary.Available(e.locateOptions(nil)),
		Warm:        e.pool.Len(),
		Permissions: e.options.Permissions.Args(),
		Wall:        e.walls.Around(e.options.Permissions),
	}
}

// Close ends the children that wait for programs; others don't outlive their runs.
func (e *Engine) Close() {
	e.pool.Close()
	e.scanners.Pool.Close()
	e.codeCaches.jobs.Wait()
}

// Prepare fetches Deno, and starts children that wait for programs.
func (e *Engine) Prepare(ctx context.Context, emit func(job.Event), _ ...job.Language) error {
	if err := e.locate(ctx, emit); err != nil {
		return err
	}
	e.scanners.Pool.Warm()
	if _, err := e.makeCodeCache(ctx, usualModules, modules.Plan{}); err != nil {
		e.options.Log.Warn("Node's modules can't be compiled ahead: programs that use them start slower", "error", err)
	}
	e.pool.Warm()
	return nil
}

// Install fetches packages into the cache.
func (e *Engine) Install(ctx context.Context, p job.Program, emit func(job.Event)) ([]job.Package, error) {
	permissions, err := e.options.Permissions.Narrow(p.Most)
	if err != nil {
		return nil, job.Refuse("%v", err)
	}
	wanted, err := modules.Resolve(nil, p.Packages)
	if err != nil {
		return nil, &modules.PackageError{Text: err.Error()}
	}
	if len(wanted.Roots) == 0 {
		return nil, nil
	}
	if err := e.locate(ctx, emit); err != nil {
		return nil, err
	}
	plan, err := e.planner.Plan(ctx, e.deno, permissions, e.options.Narrowed(p.Policy), wanted.Roots, modules.Terms{}, emit)
	if err != nil {
		return nil, err
	}
	return plan.Packages, nil
}

func (e *Engine) locateOptions(emit func(job.Event)) binary.LocateOptions {
	o := binary.LocateOptions{Cache: e.options.Cache, Path: e.options.DenoPath}
	if emit != nil {
		o.Progress = func(stage string, done, total int64) {
			emit(job.Event{Kind: job.Stage, Text: stage, Done: done, Total: total})
		}
	}
	return o
}

// locate finds Deno and lays our files out, once.
func (e *Engine) locate(ctx context.Context, emit func(job.Event)) error {
	select {
	case e.locating <- struct{}{}:
		defer func() { <-e.locating }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.deno != "" {
		return nil
	}
	located, err := binary.Locate(ctx, e.locateOptions(emit))
	if err != nil {
		return err
	}
	if e.guest, err = e.guestFiles(ctx); err != nil {
		return err
	}
	e.deno = located
	return nil
}
