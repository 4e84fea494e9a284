//go:build !windows

package modules

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"rillbox/cache"
	"rillbox/supervisor/sandbox"
)

// Deno keeps what V8 compiled of modules, what it found out about them, and the
// JavaScript that it made of TypeScript, in databases and files of its
// directory. No run may write what another one reads. So what modules become is
// found out once by a process that loads them and nothing else, with no
// permission and never a program; it is then kept in the cache, and each run
// gets a copy, its code cache. (lodash-es, 640 modules: 94 ms of CPU in place of 109; Node's own
// modules that Deno has not compiled ahead, process and stream among them: 50 in
// place of 63.)
//
// Making it takes some 200 ms, beside the first run of a set of modules, which
// does not wait for it. One is made at a time; a set that comes meanwhile is
// left to its next run.

const compiledKind = "compiled"

// Deno's databases: of code, and of what it found out about modules. Making one of
// the latter anew for each run takes 3 ms of CPU; where a directory has its name,
// Deno keeps its content in memory.
var (
	CodeDatabase  = "v8_code_cache_v2"
	denoDatabases = []string{"dep_analysis_cache_v2", "node_analysis_cache_v2"}
)

// UsualModules are those of Node's that programs use most and that Deno compiles
// when they are loaded; workers that are started ahead get them.
var UsualModules = []string{
	"node:assert", "node:buffer", "node:child_process", "node:crypto", "node:events", "node:fs", "node:fs/promises", "node:module", "node:os",
	"node:path", "node:process", "node:readline", "node:stream", "node:stream/consumers", "node:stream/promises", "node:timers/promises",
	"node:url", "node:util", "node:worker_threads", "node:zlib",
}

// CodeCaches makes code caches and knows where they are.
type CodeCaches struct {
	Cache *cache.Cache
	Log   *slog.Logger
	// Load fills a DENO_DIR with what Deno makes of modules, those of packages from
	// the plan.
	Load func(ctx context.Context, modules []string, p Plan, denoDir string) error
	// Loader describes what a code cache depends on beside the modules, such as Deno's
	// version; set before the first is made.
	Loader string

	mu   sync.Mutex
	Dirs map[string]string // by key; empty where it can't be made
	busy bool              // one is being made
	Jobs sync.WaitGroup
}

// maxDirs is how many directories are known without being looked up.
const maxDirs = 1000

// Of gives the directory with the code cache of modules, those of packages from the
// plan. Where there is none yet, it gives none and begins to make it.
func (c *CodeCaches) Of(ctx context.Context, modules []string, p Plan) string {
	if len(modules) == 0 {
		return ""
	}
	if len(p.Lock) == 0 { // Node's own, for which one will do
		modules = UsualModules
	}
	key := c.key(modules, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if dir, known := c.Dirs[key]; known {
		return dir
	}
	dir, err := c.Cache.GetTree(compiledKind, key)
	if err == nil {
		c.keep(key, dir)
	} else if !c.busy {
		c.busy = true
		ctx = context.WithoutCancel(ctx)
		c.Jobs.Go(func() {
			dir, err := c.Make(ctx, modules, p)
			if err != nil {
				c.Log.Debug("modules can't be compiled ahead", "modules", modules, "error", err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.busy = false
			c.keep(key, dir)
		})
	}
	return dir
}

// keep remembers where a code cache is. The caller holds mu.
func (c *CodeCaches) keep(key, dir string) {
	if c.Dirs == nil || len(c.Dirs) >= maxDirs {
		c.Dirs = map[string]string{}
	}
	c.Dirs[key] = dir
}

// key describes all that decides what is in a code cache.
func (c *CodeCaches) key(modules []string, p Plan) string {
	text := fmt.Appendf(nil, "%q %q %q %s", c.Loader, p.Dir, modules, p.Lock)
	return fmt.Sprintf("deno/%x", sha256.Sum256(text))
}

// Make gives the directory with the code cache, which it makes if there is none.
func (c *CodeCaches) Make(ctx context.Context, modules []string, p Plan) (string, error) {
	dir, _, err := c.Cache.Tree(ctx, compiledKind, c.key(modules, p), func(ctx context.Context, dir string) error {
		denoDir, err := sandbox.NewRunDir() // also removed if we are killed
		if err != nil {
			return err
		}
		defer os.RemoveAll(denoDir)
		if err := c.Load(ctx, modules, p, denoDir); err != nil {
			return err
		}
		for _, name := range append([]string{CodeDatabase, filepath.Join("gen", "http"), filepath.Join("gen", "https")}, denoDatabases...) {
			err := cache.CopyTree(filepath.Join(dir, name), filepath.Join(denoDir, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("keep compiled modules: %w", err)
			}
		}
		return nil
	})
	return dir, err
}

// FillDenoDir puts a code cache into a run's DENO_DIR, and makes Deno keep what else
// it finds out in memory.
func FillDenoDir(denoDir, codeCache string) error {
	if codeCache != "" {
		if err := os.CopyFS(denoDir, os.DirFS(codeCache)); err != nil {
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
