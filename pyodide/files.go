//go:build !windows

package pyodide

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"rillbox/deno"
	"rillbox/supervisor/wire"
)

// sources are what runs in a child.
//
//go:embed guest/build.py guest/child.ts guest/core.ts guest/image.ts guest/memory.ts
//go:embed guest/mount.ts guest/pyodide.ts guest/session.ts guest/snapshot.ts guest/sockets.ts guest/tls.ts
//go:embed guest/wheel.ts guest/worker.ts guest/rillbox/__init__.py guest/rillbox/boot.py guest/rillbox/display.py
//go:embed guest/rillbox/errors.py guest/rillbox/eventloop.py guest/rillbox/figures.py
//go:embed guest/rillbox/attempts.py guest/rillbox/images.py guest/rillbox/installer.py guest/rillbox/libraries.py
//go:embed guest/rillbox/beside.py guest/rillbox/command.py guest/rillbox/computed.py guest/rillbox/names.py
//go:embed guest/rillbox/network.py guest/rillbox/packages.py guest/rillbox/runner.py guest/rillbox/threads.py
//go:embed guest/rillbox/ipython.py guest/rillbox/magics.py guest/rillbox/processes.py
//go:embed guest/rillbox/session.py guest/rillbox/streams.py guest/rillbox/tls.py guest/rillbox/values.py
//go:embed guest/rillbox/warm.py
var sources embed.FS

// buildProgram is the program that builds a package.
//
//go:embed guest/build.py
var buildProgram string

// sourcesDigest changes with what runs in a child. It is made when it is first wanted.
var sourcesDigest = sync.OnceValue(func() string { return wire.DigestFiles(sources, deno.HostSource, wire.WireSource) })

// workerFiles lays out in the cache what runs in a child and returns its directory:
// the modules that children begin with as .js files, each with all that it imports
// (a child has nowhere to keep transpiled TypeScript), and the Python package rillbox.
func (e *Engine) workerFiles(ctx context.Context) (string, error) {
	dir, _, err := e.o.Cache.Tree(ctx, "worker", sourcesDigest(), func(_ context.Context, dir string) error {
		from := map[string]fs.FS{"pyodide": sources, "deno": deno.HostSource, "supervisor/wire": wire.WireSource}
		err := wire.Bundle(dir, from, "pyodide/guest/worker.ts", "pyodide/guest/session.ts", "pyodide/guest/snapshot.ts", "pyodide/guest/image.ts")
		if err != nil {
			return err
		}
		python, err := fs.Sub(sources, "guest/rillbox")
		if err != nil {
			return err
		}
		return os.CopyFS(filepath.Join(dir, "rillbox"), python)
	})
	if err != nil {
		return "", fmt.Errorf("lay out the Python worker's files: %w", err)
	}
	return dir, nil
}
