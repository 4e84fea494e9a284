//go:build !windows

package wasm

import (
	"compress/gzip"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rillbox/deno"
	"rillbox/deno/permission"
	"rillbox/supervisor/wire"
)

// sources are what runs in a child.
//
//go:embed guest
var sources embed.FS

// guestFiles gives the directory in the cache with the modules that children begin with,
// each with all that it imports.
func (e *Engine) guestFiles(ctx context.Context) (string, error) {
	dir, _, err := e.o.Cache.Tree(ctx, "guest", "wasm "+sourcesDigest(), func(_ context.Context, dir string) error {
		var entries []string
		for _, l := range rows {
			if l.guest != "" {
				entries = append(entries, path.Join("wasm/guest/languages", l.guest+".ts"))
			}
			if l.compiler != "" {
				entries = append(entries, path.Join("wasm/guest/compile", l.compiler+".ts"))
			}
		}
		slices.Sort(entries)
		if err := unpackLibraries(filepath.Join(dir, librariesDir)); err != nil {
			return err
		}
		return wire.Bundle(dir, map[string]fs.FS{"wasm": sources, "deno": deno.HostSource, "supervisor/wire": wire.WireSource}, slices.Compact(entries)...)
	})
	if err != nil {
		return "", fmt.Errorf("lay out the files of children: %w", err)
	}
	return dir, nil
}

// librariesDir is where the C libraries of ours are among the guest's files.
const librariesDir = "runtime"

// unpackLibraries makes a directory with the archives that scripts/cxx-runtime builds.
func unpackLibraries(dir string) error {
	packed, err := fs.Glob(sources, "guest/compile/*.a.gz")
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, name := range packed {
		file, err := sources.Open(name)
		if err != nil {
			return err
		}
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			return err
		}
		content, err := io.ReadAll(unpacked)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(path.Base(name), ".gz")), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// sourcesDigest changes with what runs in a child. It is made when it is first wanted: most
// starts of the program never do, and it takes milliseconds.
var sourcesDigest = sync.OnceValue(func() string { return wire.DigestFiles(sources, deno.HostSource, wire.WireSource) })

// workspaceName is where programs have their workspace.
const workspaceName = "/workspace"

// ownPaths are where programs have files of their language's or in memory, which granted
// ones would hide.
var ownPaths = []string{workspaceName, "/tmp", "/home", "/dev", "/etc", "/usr", "/bin", "/lib", "/proc", "/var"}

// grantedPaths are the paths of the machine's that permissions name, which programs have at
// the same paths; what is within another one comes with that. Of a grant of everything a
// program has nothing but its workspace.
func grantedPaths(p permission.Permissions) (paths []string, err error) {
	paths = []string{} // a list also for JSON
	_, reads := p.Allowed("read")
	_, writes := p.Allowed("write")
	for _, given := range slices.Concat(reads, writes) {
		given = filepath.Clean(given)
		for _, own := range ownPaths {
			if permission.Within(own, given) || given == own {
				return nil, fmt.Errorf("%s can't be given to programs: they have files of their own in %s; grant a path within, or move the files", given, own)
			}
		}
		paths = append(paths, given)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return slices.DeleteFunc(paths, func(inner string) bool {
		return slices.ContainsFunc(paths, func(outer string) bool { return outer != inner && permission.Within(inner, outer) })
	}), nil
}
