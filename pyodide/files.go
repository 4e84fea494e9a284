//go:build !windows

package pyodide

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"

	"rillbox/deno"
)

// sources are the worker's own files.
//
//go:embed worker.ts session.ts snapshot.ts child.ts pyodide.ts core.ts memory.ts hostfs.ts
//go:embed image.ts mount.ts wheel.ts rillbox/images.py
//go:embed rillbox/__init__.py rillbox/boot.py rillbox/display.py rillbox/errors.py
//go:embed rillbox/eventloop.py rillbox/figures.py rillbox/installer.py rillbox/libraries.py
//go:embed rillbox/names.py rillbox/packages.py rillbox/runner.py rillbox/session.py
//go:embed rillbox/streams.py rillbox/values.py rillbox/warm.py
var sources embed.FS

// workerFiles lays the worker's files out in the cache and returns their
// directory: worker.js, session.js, snapshot.js and image.js, each with all that
// it imports (a child has nowhere to keep transpiled TypeScript), and the Python
// package rillbox.
func (e *Engine) workerFiles(ctx context.Context) (string, error) {
	dir, _, err := e.o.Cache.Tree(ctx, "worker", sourcesDigest, func(_ context.Context, dir string) error {
		if err := os.CopyFS(filepath.Join(dir, "src", "pyodide"), sources); err != nil {
			return err
		}
		wire := filepath.Join(dir, "src", "deno", deno.WireName)
		if err := os.MkdirAll(filepath.Dir(wire), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(wire, []byte(deno.WireSource), 0o644); err != nil {
			return err
		}
		if err := bundle(dir); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(dir, "src", "pyodide", "rillbox"), filepath.Join(dir, "rillbox")); err != nil {
			return err
		}
		return os.RemoveAll(filepath.Join(dir, "src"))
	})
	if err != nil {
		return "", fmt.Errorf("lay out the Python worker's files: %w", err)
	}
	return dir, nil
}

func bundle(dir string) error {
	entry := filepath.Join(dir, "src", "pyodide")
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{
			filepath.Join(entry, "worker.ts"), filepath.Join(entry, "session.ts"),
			filepath.Join(entry, "snapshot.ts"), filepath.Join(entry, "image.ts"),
		},
		Outdir:      dir,
		Bundle:      true,
		Write:       true,
		Format:      api.FormatESModule,
		Target:      api.ESNext,
		TsconfigRaw: "{}",
		LogLevel:    api.LogLevelSilent,
	})
	if len(result.Errors) > 0 {
		return fmt.Errorf("bundle the worker: %s", result.Errors[0].Text)
	}
	return nil
}

// sourcesDigest changes with any of the worker's files.
var sourcesDigest = func() string {
	parts := []string{deno.WireSource}
	err := fs.WalkDir(sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := sources.ReadFile(path)
		parts = append(parts, path, string(text))
		return err
	})
	if err != nil {
		panic(err) // embedded files can always be read
	}
	return digest(parts...)
}()
