//go:build !windows

package deno

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"rillbox/cache"
	"rillbox/deno/binary"
	"rillbox/deno/modules"
	"rillbox/deno/permission"
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

// codeDatabase is Deno's database of code.
const codeDatabase = "v8_code_cache_v2"

// usualModules are those of Node's that programs use most and that Deno compiles
// when they are loaded; workers that are started ahead get them.
var usualModules = []string{
	"node:assert", "node:buffer", "node:child_process", "node:crypto", "node:events", "node:fs", "node:fs/promises", "node:module", "node:os",
	"node:path", "node:process", "node:readline", "node:stream", "node:stream/consumers", "node:stream/promises", "node:timers/promises",
	"node:url", "node:util", "node:worker_threads", "node:zlib",
}

// codeCaches are where code caches are, and which is being made.
type codeCaches struct {
	mu   sync.Mutex
	dirs map[string]string // by key; empty where it can't be made
	busy bool              // one is being made
	jobs sync.WaitGroup
}

// maxDirs is how many directories are known without being looked up.
const maxDirs = 1000

// codeCache gives the directory with the code cache of modules, those of packages from
// the plan. Where there is none yet, it gives none and begins to make it.
func (e *Engine) codeCache(ctx context.Context, names []string, p modules.Plan) string {
	if len(names) == 0 {
		return ""
	}
	if len(p.Lock) == 0 { // Node's own, for which one will do
		names = usualModules
	}
	c, key := &e.codeCaches, e.codeCacheKey(names, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if dir, known := c.dirs[key]; known {
		return dir
	}
	dir, err := e.options.Cache.GetTree(compiledKind, key)
	if err == nil {
		c.keep(key, dir)
	} else if !c.busy {
		c.busy = true
		ctx = context.WithoutCancel(ctx)
		c.jobs.Go(func() {
			dir, err := e.makeCodeCache(ctx, names, p)
			if err != nil {
				e.options.Log.Debug("modules can't be compiled ahead", "modules", names, "error", err)
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
func (c *codeCaches) keep(key, dir string) {
	if c.dirs == nil || len(c.dirs) >= maxDirs {
		c.dirs = map[string]string{}
	}
	c.dirs[key] = dir
}

// codeCacheKey describes all that decides what is in a code cache.
func (e *Engine) codeCacheKey(names []string, p modules.Plan) string {
	loader := fmt.Sprintf("%s %s %s %s", binary.Version, e.walls.Level.Offered(), permission.RunName, e.guest)
	text := fmt.Appendf(nil, "%q %q %q %s", loader, p.Dir, names, p.Lock)
	return fmt.Sprintf("deno/%x", sha256.Sum256(text))
}

// makeCodeCache gives the directory with the code cache, which it makes if there is none.
func (e *Engine) makeCodeCache(ctx context.Context, names []string, p modules.Plan) (string, error) {
	dir, _, err := e.options.Cache.Tree(ctx, compiledKind, e.codeCacheKey(names, p), func(ctx context.Context, dir string) error {
		denoDir, err := sandbox.NewRunDir() // also removed if we are killed
		if err != nil {
			return err
		}
		defer os.RemoveAll(denoDir)
		if err := e.loadModules(ctx, names, p, denoDir); err != nil {
			return err
		}
		for _, name := range append([]string{codeDatabase, filepath.Join("gen", "http"), filepath.Join("gen", "https")}, modules.Databases...) {
			err := cache.CopyTree(filepath.Join(dir, name), filepath.Join(denoDir, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("keep compiled modules: %w", err)
			}
		}
		return nil
	})
	return dir, err
}
