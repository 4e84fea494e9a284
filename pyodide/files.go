//go:build !windows

package pyodide

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"rillbox/deno"
)

// sources are what runs in a child; tests are left out where they are used.
//
//go:embed guest/*.ts guest/rillbox/*.py
var sources embed.FS

// workerFiles lays the worker's files out in the cache and returns their
// directory: worker.js, session.js, snapshot.js and image.js, each with all that
// it imports (a child has nowhere to keep transpiled TypeScript), and the Python
// package rillbox.
func (e *Engine) workerFiles(ctx context.Context) (string, error) {
	dir, _, err := e.o.Cache.Tree(ctx, "worker", sourcesDigest, func(_ context.Context, dir string) error {
		src := filepath.Join(dir, "src")
		if err := os.CopyFS(filepath.Join(src, "pyodide"), sources); err != nil {
			return err
		}
		wire := filepath.Join(src, "deno", deno.WireName)
		if err := os.MkdirAll(filepath.Dir(wire), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(wire, []byte(deno.WireSource), 0o644); err != nil {
			return err
		}
		guest := filepath.Join(src, "pyodide", "guest")
		if err := bundle(dir, guest); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(guest, "rillbox"), filepath.Join(dir, "rillbox")); err != nil {
			return err
		}
		return os.RemoveAll(src)
	})
	if err != nil {
		return "", fmt.Errorf("lay out the Python worker's files: %w", err)
	}
	return dir, nil
}

func bundle(dir, guest string) error {
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{
			filepath.Join(guest, "worker.ts"), filepath.Join(guest, "session.ts"),
			filepath.Join(guest, "snapshot.ts"), filepath.Join(guest, "image.ts"),
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
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.ts") {
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
