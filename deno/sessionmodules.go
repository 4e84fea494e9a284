//go:build !windows

package deno

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"rillbox/cache"
	"rillbox/deno/modules"
)

// A session's process starts before it is known which packages its cells will
// want, so no lock file can say which versions Deno has to take. What it finds
// instead is a directory of modules of the session's own, to which each cell's
// plan is added: copies of the verified files in the cache, and manifests that
// name the planned versions and no others, so that whatever range Deno resolves
// becomes what was planned. What other programs have fetched is not there. They
// are no hard links: who could change one's mode would change that of the cache's.

// sessionRegistry is the address that all npm packages of a session seem to come
// from, and sessionRegistryDir the directory that Deno has for it: where they
// really came from is not known when the process starts.
const (
	sessionRegistry    = "https://registry.rillbox.invalid/"
	sessionRegistryDir = "npm/registry.rillbox.invalid"
)

// sessionModules is the directory of one session's modules.
type sessionModules struct {
	dir   string
	there map[string]bool // paths in dir
}

func newSessionModules(dir string) (*sessionModules, error) {
	for _, name := range []string{"npm", "remote"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, fmt.Errorf("make the session's directory: %w", err)
		}
	}
	return &sessionModules{dir: dir, there: map[string]bool{}}, nil
}

// add lets the session find the modules of a plan.
func (m *sessionModules) add(p modules.Plan) error {
	for _, from := range p.Modules {
		to := sessionPath(from)
		if m.there[to] {
			continue
		}
		if err := cache.CopyTree(filepath.Join(m.dir, to), filepath.Join(p.Dir, from)); err != nil {
			return fmt.Errorf("give a session what it may use: %w", err)
		}
		m.there[to] = true
	}
	for from, versions := range p.Manifests() {
		if err := m.narrow(sessionPath(from), filepath.Join(p.Dir, from), versions); err != nil {
			return fmt.Errorf("give a session what it may use: %w", err)
		}
	}
	return nil
}

// sessionPath is where a session has what a plan has at a path.
func sessionPath(from string) string {
	rest, npm := strings.CutPrefix(from, "npm/")
	if !npm {
		return from
	}
	name, version := npmPackage(rest)
	return path.Join(sessionRegistryDir, name, version)
}

// npmPackage splits the directory of a package below Deno's directory for npm
// into its name and its version; what comes before is the registry.
func npmPackage(dir string) (name, version string) {
	dir, version = path.Dir(dir), path.Base(dir)
	name = path.Base(dir)
	if scope := path.Base(path.Dir(dir)); strings.HasPrefix(scope, "@") {
		name = scope + "/" + name
	}
	return name, version
}

// narrow writes a plan's manifest with those versions and those of earlier plans only;
// nil takes it as it is.
func (m *sessionModules) narrow(to, from string, versions map[string]bool) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	full := filepath.Join(m.dir, to)
	if versions != nil {
		before, err := os.ReadFile(full) // of an earlier plan
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if text, err = modules.NarrowManifest(text, before, versions, nil); err != nil {
			return fmt.Errorf("read %s: %w", from, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(full+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(full+".new", full) // Deno may be reading it
}
