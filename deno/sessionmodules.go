//go:build !windows

package deno

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rillbox/cache"
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
	dir      string
	there    map[string]bool            // paths in dir
	versions map[string]map[string]bool // by the manifest that may name them
}

func newSessionModules(dir string) (*sessionModules, error) {
	for _, name := range []string{"npm", "remote"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, fmt.Errorf("make the session's directory: %w", err)
		}
	}
	return &sessionModules{dir: dir, there: map[string]bool{}, versions: map[string]map[string]bool{}}, nil
}

// add lets the session find the modules of a plan.
func (m *sessionModules) add(p plan) error {
	manifests := map[string]string{} // in dir → in the plan's view
	for _, from := range p.Modules {
		to := from
		if rest, ok := strings.CutPrefix(from, "npm/"); ok {
			name, version := npmPackage(rest)
			to = path.Join(sessionRegistryDir, name, version)
			manifest := path.Join(path.Dir(to), "registry.json")
			manifests[manifest] = path.Join(path.Dir(from), "registry.json")
			add(m.versions, manifest, version)
		}
		if m.there[to] {
			continue
		}
		if err := copyInto(filepath.Join(m.dir, to), filepath.Join(p.dir, from)); err != nil {
			return fmt.Errorf("give a session what it may use: %w", err)
		}
		m.there[to] = true
	}
	for _, manifest := range p.manifests() {
		manifests[manifest.path] = manifest.path
		if manifest.lists != "" {
			add(m.versions, manifest.path, manifest.lists)
		}
	}
	for to, from := range manifests {
		if err := m.narrow(to, filepath.Join(p.dir, from), m.versions[to]); err != nil {
			return fmt.Errorf("give a session what it may use: %w", err)
		}
	}
	return nil
}

// add notes that a manifest may name a version; what follows a "_" tells a copy
// for other peers apart.
func add(versions map[string]map[string]bool, manifest, version string) {
	if versions[manifest] == nil {
		versions[manifest] = map[string]bool{}
	}
	version, _, _ = strings.Cut(version, "_")
	versions[manifest][version] = true
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

// narrow writes a manifest of a view's with those versions only; nil takes it
// as it is.
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
		if text, err = narrowManifest(text, before, versions); err != nil {
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

// narrowManifest leaves those versions in a manifest of npm's or JSR's, as Deno
// keeps it: a JSON object, perhaps with a comment of Deno's after it. before is
// what became of the manifest the last time, empty if there was none.
func narrowManifest(text, before []byte, versions map[string]bool) ([]byte, error) {
	manifest, rest, err := readManifest(text)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(manifest["versions"], &all); err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(version string, _ json.RawMessage) bool { return !versions[version] })
	if len(before) > 0 {
		earlier, _, err := readManifest(before)
		if err == nil {
			err = json.Unmarshal(earlier["versions"], &all) // what was there stays
		}
		if err != nil {
			return nil, err
		}
	}
	if manifest["versions"], err = json.Marshal(all); err != nil {
		return nil, err
	}
	delete(manifest, "latest") // of JSR's; Deno looks for the highest
	if given, npm := manifest["dist-tags"]; npm {
		var tags map[string]string
		if err := json.Unmarshal(given, &tags); err != nil {
			return nil, err
		}
		maps.DeleteFunc(tags, func(_, version string) bool { return all[version] == nil })
		if tags == nil {
			tags = map[string]string{}
		}
		if tags["latest"] == "" && len(all) > 0 { // Deno wants to see one
			tags["latest"] = slices.Sorted(maps.Keys(all))[0]
		}
		if manifest["dist-tags"], err = json.Marshal(tags); err != nil {
			return nil, err
		}
	}
	narrowed, err := json.Marshal(manifest)
	return append(narrowed, rest...), err
}

func readManifest(text []byte) (manifest map[string]json.RawMessage, rest []byte, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&manifest); err != nil {
		return nil, nil, err
	}
	if manifest == nil {
		return nil, nil, errors.New("it is no object")
	}
	return manifest, text[decoder.InputOffset():], nil
}

// copyInto makes a file or a directory at to that holds what is at from.
func copyInto(to, from string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		return cache.CopyFile(target, name)
	})
}
