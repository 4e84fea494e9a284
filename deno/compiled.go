//go:build !windows

package deno

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"rillbox/supervisor"
)

// Deno keeps what V8 compiled of modules, what it found out about them, and the
// JavaScript that it made of TypeScript, in databases and files of its
// directory. No run may write what another one reads. So what modules become is
// found out once by a process that loads them and nothing else, with no
// permission and never a program; it is then kept in the cache, and each run
// gets a copy. (lodash-es, 640 modules: 94 ms of CPU in place of 109; Node's own
// modules that Deno has not compiled ahead, process and stream among them: 50 in
// place of 63.)
//
// Making it takes some 200 ms, beside the first run of a set of modules, which
// does not wait for it. One is made at a time; a set that comes meanwhile is
// left to its next run.

const compiledKind = "compiled"

// compileTime is how long loading the modules may take. What was compiled until
// then is kept.
const compileTime = 3 * time.Second

// Deno's databases: of code, and of what it found out about modules. Where a
// directory has the name of one of the latter, which would be made anew for
// each run (3 ms of CPU), it keeps what should be there in memory.
var (
	codeDatabase  = "v8_code_cache_v2"
	denoDatabases = []string{"dep_analysis_cache_v2", "node_analysis_cache_v2"}
)

// usualModules are those of Node's that programs use most and that Deno compiles
// when they are loaded; workers that are started ahead get them.
var usualModules = []string{
	"node:assert", "node:buffer", "node:child_process", "node:crypto", "node:events", "node:fs", "node:fs/promises", "node:module", "node:os",
	"node:path", "node:process", "node:readline", "node:stream", "node:stream/consumers", "node:stream/promises", "node:timers/promises",
	"node:url", "node:util", "node:worker_threads", "node:zlib",
}

// compiler makes compiled code and knows where it is.
type compiler struct {
	e *Engine

	mu   sync.Mutex
	dirs map[string]string // by key; empty where it can't be made
	busy bool              // one is being made
	jobs sync.WaitGroup
}

// maxDirs is how many directories are known without being looked up.
const maxDirs = 1000

func newCompiler(e *Engine) *compiler { return &compiler{e: e, dirs: map[string]string{}} }

// of gives the directory with the compiled code of modules, those of packages
// from the plan. Where there is none yet, it gives none and begins to make it.
func (c *compiler) of(ctx context.Context, modules []string, p plan) string {
	if len(modules) == 0 {
		return ""
	}
	if len(p.Lock) == 0 { // Node's own, for which one will do
		modules = usualModules
	}
	key := c.key(modules, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if dir, known := c.dirs[key]; known {
		return dir
	}
	dir, err := c.e.options.Cache.GetTree(compiledKind, key)
	if err == nil {
		c.know(key, dir)
	} else if !c.busy {
		c.busy = true
		ctx = context.WithoutCancel(ctx)
		c.jobs.Go(func() {
			dir, err := c.make(ctx, key, modules, p)
			if err != nil {
				c.e.options.Log.Debug("modules can't be compiled ahead", "modules", modules, "error", err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.busy = false
			c.know(key, dir)
		})
	}
	return dir
}

// know keeps where it is in mind. The caller holds mu.
func (c *compiler) know(key, dir string) {
	if len(c.dirs) >= maxDirs {
		clear(c.dirs)
	}
	c.dirs[key] = dir
}

// wait is of for callers that wait until it is made.
func (c *compiler) wait(ctx context.Context, modules []string, p plan) (string, error) {
	return c.make(ctx, c.key(modules, p), modules, p)
}

// key describes all that decides what is compiled, and under which names.
func (c *compiler) key(modules []string, p plan) string {
	text, err := json.Marshal([]any{Version, c.e.walls.Level.Offered(), programName, c.e.guest, p.dir, modules, p.Lock})
	if err != nil {
		panic(err) // it is made of strings
	}
	sum := sha256.Sum256(text)
	return "deno/" + hex.EncodeToString(sum[:])
}

func (c *compiler) make(ctx context.Context, key string, modules []string, p plan) (string, error) {
	dir, _, err := c.e.options.Cache.Tree(ctx, compiledKind, key, func(ctx context.Context, dir string) error {
		return c.compile(ctx, dir, modules, p)
	})
	return dir, err
}

// compile fills dir with what becomes of the modules.
func (c *compiler) compile(ctx context.Context, dir string, modules []string, p plan) error {
	denoDir, err := supervisor.NewRunDir() // also removed if we are killed
	if err != nil {
		return err
	}
	defer os.RemoveAll(denoDir)
	list, err := json.Marshal(modules)
	if err != nil {
		return err
	}
	load := launch{entry: "compile.js", permissions: c.e.options.Permissions.Imports(), install: p, keep: denoDir, args: []string{string(list)}}
	if _, err := c.run(ctx, load); err != nil { // how it ends is the modules' affair
		return err
	}
	freeze := launch{entry: "freeze.js", workspace: denoDir, args: []string{"."}}
	exit, err := c.run(ctx, freeze)
	if err != nil {
		return err
	}
	if exit.Status != supervisor.Completed {
		return fmt.Errorf("freeze Deno's databases: exit status %d %s: %s", exit.Code, exit.Reason, exit.Stderr)
	}
	for _, name := range append([]string{codeDatabase, filepath.Join("gen", "http"), filepath.Join("gen", "https")}, denoDatabases...) {
		err := copyInto(filepath.Join(dir, name), filepath.Join(denoDir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("keep compiled modules: %w", err)
		}
	}
	return nil
}

// run runs one of our own modules to its end.
func (c *compiler) run(ctx context.Context, l launch) (supervisor.Exit, error) {
	w, err := c.e.startWorker(ctx, l)
	if err != nil {
		return supervisor.Exit{}, err
	}
	_ = w.child.Stdin().Close()
	w.child.SetDeadline(compileTime, "compiling modules")
	w.child.Attach(ctx, func(supervisor.Event) {})
	w.frames.Drain()
	return w.child.Wait(), ctx.Err()
}

// fillDenoDir puts compiled code into a run's DENO_DIR, and makes Deno keep what
// else it finds out in memory.
func fillDenoDir(denoDir, compiled string) error {
	if compiled != "" {
		if err := os.CopyFS(denoDir, os.DirFS(compiled)); err != nil {
			return err
		}
	}
	return MakeDenoDir(denoDir)
}

// MakeDenoDir makes a directory for DENO_DIR in which Deno keeps in memory what
// it finds out about modules, save where it has databases of that already.
func MakeDenoDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range denoDatabases {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
