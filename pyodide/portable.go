//go:build !windows

package pyodide

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rillbox/cache"
	"rillbox/cache/egress"
	"rillbox/pyodide/gateway"
)

// Portable are the cache's kinds of what programs need that were fetched, and not made
// here: snapshots and images are made anew from these.
var Portable = []string{runtimeKind, planKind, gateway.WheelKind}

// importedKey is the key of an imported plan for requirements with a digest. It is used
// whatever index this machine is configured for, where that has no plan of its own.
func importedKey(policy egress.Policy, requirements string) string {
	return fmt.Sprintf("%s%s/%s/%v/%s", planPrefix, Version, importedOrigin, policy.MinReleaseAge, requirements)
}

// PortableKey is the key of an entry in an archive: a plan's does without what tells the
// index, which is made of passwords too.
func (e *Engine) PortableKey(kind, key string) string {
	rest, isPlan := strings.CutPrefix(key, planPrefix)
	if parts := strings.Split(rest, "/"); kind == planKind && isPlan && len(parts) == 4 {
		parts[1] = importedOrigin
		return planPrefix + strings.Join(parts, "/")
	}
	return key
}

// importedOrigin stands for the index and the CDN in the keys of imported plans.
const importedOrigin = "imported"

// Admit judges an entry of an archive of the cache's: store stores it, and is nil for one
// that is left out, of which note says why. The error is cache.ErrNotPortable for what is
// none of the engine's.
func (e *Engine) Admit(a *cache.Archive, p cache.Portable) (store func(context.Context) error, note string, err error) {
	switch {
	case p.Kind == gateway.WheelKind && !p.Tree:
		return e.admitWheel(a, p)
	case p.Kind == planKind && !p.Tree && strings.HasPrefix(p.Key, planPrefix):
		return e.admitPlan(a, p)
	case p.Kind == runtimeKind && p.Tree:
		return e.admitRuntime(a, p)
	}
	return nil, "", cache.ErrNotPortable
}

// admitWheel takes what has the digest that it is kept by: it is used only where an index,
// a plan or the lock file names that.
func (e *Engine) admitWheel(a *cache.Archive, p cache.Portable) (func(context.Context) error, string, error) {
	digest := p.Files[0].SHA256
	if p.Key != digest {
		return nil, "", fmt.Errorf("it has the sha256 %s", digest)
	}
	return func(ctx context.Context) error {
		_, _, err := e.o.Cache.GetOrDownload(ctx, p.Kind, p.Key, func(to string) error { return cache.CopyFile(to, a.Path(digest)) })
		return err
	}, "", nil
}

// admitRuntime takes Pyodide and micropip if they have the pinned bytes.
func (e *Engine) admitRuntime(a *cache.Archive, p cache.Portable) (func(context.Context) error, string, error) {
	pinned := map[string][]string{micropipWheel: micropipHashes}
	name, version, _ := strings.Cut(p.Key, "/")
	switch name {
	case "pyodide":
		for file, hashes := range core {
			pinned[file] = hashes
		}
	case "micropip":
	default:
		return nil, "", cache.ErrNotPortable
	}
	if p.Key != pyodideKey && p.Key != micropipKey {
		return nil, fmt.Sprintf("%s %.40q is left out: this version of Rillbox needs another", name, version), nil
	}
	for _, f := range p.Files {
		if !slices.Contains(pinned[f.Path], f.SHA256) {
			return nil, "", fmt.Errorf("its %.100q is not the pinned file", f.Path)
		}
	}
	if len(p.Files) != len(pinned) {
		return nil, "", errors.New("it is not complete")
	}
	return func(ctx context.Context) error {
		_, _, err := e.o.Cache.Tree(ctx, p.Kind, p.Key, func(_ context.Context, dir string) error { return a.Fill(p, dir) })
		return err
	}, "", nil
}

// maxImportedPlan is how large a plan may be, in bytes.
const maxImportedPlan = 4 << 20

// admitPlan takes a plan of files that are well named. Those of Pyodide's own distribution
// must be as its lock file says.
func (e *Engine) admitPlan(a *cache.Archive, p cache.Portable) (func(context.Context) error, string, error) {
	parts := strings.Split(strings.TrimPrefix(p.Key, planPrefix), "/")
	if len(parts) != 4 || p.Files[0].Size > maxImportedPlan {
		return nil, "", errors.New("it is malformed")
	}
	if parts[0] != Version {
		return nil, fmt.Sprintf("packages for Pyodide %.40q are left out: this version of Rillbox has %s", parts[0], Version), nil
	}
	if age := e.o.Policy.MinReleaseAge; age > 0 && parts[2] != policyKey(e.o.Policy) && parts[2] != age.String() {
		return nil, fmt.Sprintf("packages of Python are left out: they were chosen under other settings, and min_release_age asks for %v here", e.o.Policy.MinReleaseAge), nil
	}
	text, err := os.ReadFile(a.Path(p.Files[0].SHA256))
	if err != nil {
		return nil, "", err
	}
	var given plan
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, "", fmt.Errorf("it can't be read: %w", err)
	}
	taken := plan{Missing: given.Missing}
	var locked map[string]string
	for _, f := range given.Files {
		if f.Dir != "site" && f.Dir != "dynlib" {
			return nil, "", fmt.Errorf("it has %.200q unpacked into %.40q", f.Filename, f.Dir)
		}
		if err := f.Check(); err != nil {
			return nil, "", err
		}
		if f.Source == "pyodide" && locked == nil {
			if locked, err = e.lockedFiles(a); err != nil {
				return nil, "", err
			}
		}
		if f.Source == "pyodide" && locked[f.Filename] != f.SHA256 {
			return nil, "", fmt.Errorf("the lock file of Pyodide does not name %s with sha256 %s", f.Filename, f.SHA256)
		}
		f.Image = ""
		taken.Files = append(taken.Files, f)
	}
	if text, err = json.Marshal(taken); err != nil {
		return nil, "", err
	}
	return func(ctx context.Context) error {
		_, err := e.o.Cache.Put(ctx, planKind, importedKey(e.o.Policy, parts[3]), bytes.NewReader(text))
		return err
	}, "", nil
}

// lockedFiles are those of Pyodide's lock file, the archive's or this machine's.
func (e *Engine) lockedFiles(a *cache.Archive) (map[string]string, error) {
	const name = "pyodide-lock.json"
	path := a.Path(core[name][0]) // it is the pinned one
	if e.o.Path != "" {
		path = filepath.Join(e.o.Path, name)
	} else if path == "" {
		dir, err := e.o.Cache.GetTree(runtimeKind, pyodideKey)
		if errors.Is(err, cache.ErrMiss) {
			return nil, errors.New("nothing tells what Pyodide's packages are to be: export with the runtimes, or run `rillbox setup python` here first")
		}
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, name)
	}
	lock, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return gateway.LockedFiles(lock)
}
