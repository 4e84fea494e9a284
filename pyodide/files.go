//go:build !windows

package pyodide

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"rillbox/deno"
)

// sources are what runs in a child.
//
//go:embed guest/*.ts guest/rillbox/*.py
var sources embed.FS

// sourcesDigest changes with what runs in a child.
var sourcesDigest = deno.DigestFiles(sources, deno.WireSource)

// workerFiles lays out in the cache what runs in a child and returns its directory:
// the modules that children begin with as .js files, each with all that it imports
// (a child has nowhere to keep transpiled TypeScript), and the Python package rillbox.
func (e *Engine) workerFiles(ctx context.Context) (string, error) {
	dir, _, err := e.o.Cache.Tree(ctx, "worker", sourcesDigest, func(_ context.Context, dir string) error {
		from := map[string]fs.FS{"pyodide": sources, "deno": deno.WireSource}
		err := deno.Bundle(dir, from, "pyodide/guest/worker.ts", "pyodide/guest/session.ts", "pyodide/guest/snapshot.ts", "pyodide/guest/image.ts")
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
