//go:build !windows

// Package wasm is the engine for the languages whose runtimes are WebAssembly, or
// JavaScript: each program in a Deno process of its own, as Python's.
//
// A language is a row (languages.go): its names, the npm packages that it is made of, each
// pinned by its hash, and the module of guest/languages that runs its programs. What it is
// made of is fetched when its first program comes, and nothing of a language that nobody
// uses. A compiler runs in a child of its own, which has no workspace; what it made is kept
// in the cache by all that went into it.
//
// A language's runtime is no boundary: the child has exactly the permissions that the guest
// may have, and besides them reads of the language's own files, and the wire.
package wasm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"rillbox/deno"
	"rillbox/deno/binary"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
)

// Options are the choices that an Engine has.
type Options struct{ deno.Options }

// Engine runs programs. It is safe for concurrent use.
type Engine struct {
	o     Options
	walls permission.Walls

	mu    sync.Mutex
	known map[job.Language]runtime
	warm  []warm // the last used last
	// closed says that no child is started ahead any more.
	closed bool
	// scripts runs what becomes JavaScript; nil until there is some.
	scripts *deno.Engine
	jobs    sync.WaitGroup
}

// runtime is all that programs of one language need on this machine.
type runtime struct {
	deno, guest string
	parts       map[string]string // name → directory
}

var (
	_ job.Toolchain     = (*Engine)(nil)
	_ job.SessionOpener = (*Engine)(nil)
)

// New makes an engine. Nothing is fetched or started before it is used.
func New(o Options) (*Engine, error) {
	if o.Cache == nil {
		return nil, errors.New("the engine needs a cache")
	}
	walls, err := o.Open()
	if err != nil {
		return nil, err
	}
	if _, err := grantedPaths(o.Permissions); err != nil {
		return nil, err
	}
	return &Engine{o: o, walls: walls, known: map[job.Language]runtime{}}, nil
}

// Close ends the children that wait for programs; others don't outlive their runs.
func (e *Engine) Close() {
	e.mu.Lock()
	pools, scripts := e.warm, e.scripts
	e.warm, e.closed = nil, true
	e.mu.Unlock()
	for _, w := range pools {
		w.pool.Close()
	}
	e.jobs.Wait()
	if scripts != nil {
		scripts.Close()
	}
}

// Prepare fetches Deno, and what the languages that are named are made of.
func (e *Engine) Prepare(ctx context.Context, emit func(job.Event), languages ...job.Language) error {
	if _, err := e.locate(ctx, emit); err != nil {
		return err
	}
	for _, name := range languages {
		if i := slices.IndexFunc(rows, func(l language) bool { return l.Name == name }); i >= 0 {
			if rows[i].toolchain {
				if _, err := e.toolchain(ctx, emit, true); err != nil {
					return fmt.Errorf("set %s up: %w", rows[i].Title, err)
				}
			}
			if _, err := e.runtime(ctx, rows[i], emit); err != nil {
				return err
			}
		}
	}
	return nil
}

// Install fetches packages of npm's for languages that become JavaScript; for others there
// are none.
func (e *Engine) Install(ctx context.Context, p job.Program, emit func(job.Event)) ([]job.Package, error) {
	l := rowOf(p.Language)
	switch {
	case len(p.Packages) == 0:
		return nil, nil
	case !l.translates:
		return nil, errNoPackages(l, p.Packages)
	}
	scripts, err := e.script()
	if err != nil {
		return nil, err
	}
	p.Language = job.JavaScript
	return scripts.Install(ctx, p, emit)
}

func errNoPackages(l language, packages []string) error {
	return job.Refuse("%s has no packages here (%s): what its standard library lacks, write as a file beside the program",
		l.Title, job.Listed(packages, "and"))
}

// Describe says what the engine is.
func (e *Engine) Describe() job.Description {
	versions := map[string]string{"deno": binary.Version}
	var missing []job.Language
	for _, l := range rows {
		versions[string(l.Name)] = l.version
		if slices.ContainsFunc(l.parts, func(name string) bool { return !e.o.Cache.HasTree(partKind, parts[name].key(name)) }) {
			missing = append(missing, l.Name)
		}
		if l.toolchain {
			if !e.o.Cache.HasTree(toolchainKind, goKey) {
				missing = append(missing, l.Name)
			}
			if dir := e.knownPart(l, goPart); dir != "" {
				versions[string(l.Name)] = goVersion(dir)
			}
		}
	}
	return job.Description{
		Languages:   Languages,
		Versions:    versions,
		Missing:     missing,
		Warm:        e.countWarm(),
		Ready:       binary.Available(binary.LocateOptions{Cache: e.o.Cache, Path: e.o.DenoPath}),
		Permissions: e.o.Permissions.Args(),
		Wall:        e.walls.Around(e.o.Permissions),
	}
}

// knownPart is the directory of a part of a language that a program was run in, else empty.
func (e *Engine) knownPart(l language, name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known[l.Name].parts[name]
}

func (e *Engine) countWarm() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.warm {
		n += w.pool.Len()
	}
	return n
}

// runtime gives all that programs of a language need, fetched if need be.
func (e *Engine) runtime(ctx context.Context, l language, emit func(job.Event)) (rt runtime, err error) {
	e.mu.Lock()
	rt, known := e.known[l.Name]
	e.mu.Unlock()
	if known {
		return rt, nil
	}
	if rt.deno, err = e.locate(ctx, emit); err != nil {
		return rt, err
	}
	if rt.guest, err = e.guestFiles(ctx); err != nil {
		return rt, err
	}
	rt.parts = map[string]string{}
	for _, name := range l.parts {
		if rt.parts[name], err = e.part(ctx, name, telling(emit)); err != nil {
			return rt, fmt.Errorf("fetch what %s is made of: %w", l.Title, err)
		}
	}
	if l.compiler != "" {
		rt.parts["runtime"] = filepath.Join(rt.guest, librariesDir)
	}
	if l.toolchain {
		if rt.parts[goPart], err = e.toolchain(ctx, emit, false); err != nil {
			return rt, err
		}
	}
	if len(l.makes) > 0 {
		if rt.parts["made"], err = e.made(ctx, rt, l, emit); err != nil {
			return rt, fmt.Errorf("prepare the compiler of %s: %w", l.Title, err)
		}
	}
	e.mu.Lock()
	e.known[l.Name] = rt
	e.mu.Unlock()
	return rt, nil
}

// locate finds Deno.
func (e *Engine) locate(ctx context.Context, emit func(job.Event)) (string, error) {
	return binary.Locate(ctx, binary.LocateOptions{Cache: e.o.Cache, Path: e.o.DenoPath, Progress: telling(emit)})
}

func telling(emit func(job.Event)) func(stage string, done, total int64) {
	return func(stage string, done, total int64) {
		emit(job.Event{Kind: job.Stage, Text: stage, Done: done, Total: total})
	}
}
