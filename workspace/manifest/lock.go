package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"rillbox/supervisor/job"
)

// maxLock is how many bytes a lock file may have.
const maxLock = 16 << 20

// denoLock reads the nearest lock file for JavaScript and TypeScript. Of those in one
// folder, Deno's comes first.
func (r *reader) denoLock() error {
	if r.noLock {
		return nil
	}
	for i, folder := range r.folders() {
		at := path.Join(folder, "deno.lock")
		if i == 0 && r.lockAt != "" {
			at = r.lockAt
		}
		text, err := r.file(at, maxLock)
		if err != nil {
			return err
		}
		if text != nil {
			if !json.Valid(text) {
				return fmt.Errorf("%s is no JSON", r.called(at))
			}
			r.m.Lock.File, r.m.Lock.Deno = r.called(at), text
			return nil
		}
		at = path.Join(folder, "package-lock.json")
		if text, err = r.file(at, maxLock); err != nil {
			return err
		}
		if text != nil {
			return r.packageLock(at, text)
		}
		for _, other := range []string{"yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"} {
			if _, err := r.read.ReadFile(path.Join(folder, other), 1); err == nil {
				r.note("%s is not honoured: deno.lock and package-lock.json are", r.called(path.Join(folder, other)))
			}
		}
	}
	return nil
}

// Bounds of package-lock.json: each dependency is looked for at each level of its path.
const (
	maxEdges = 200_000
	maxPlace = 1000 // bytes of a package's path
)

// npmLocked is a package of package-lock.json.
type npmLocked struct {
	Name                 string            `json:"name"`
	Version              string            `json:"version"`
	Integrity            string            `json:"integrity"`
	Link                 bool              `json:"link"`
	OS                   []string          `json:"os"`
	CPU                  []string          `json:"cpu"`
	Dependencies         map[string]string `json:"dependencies"`
	DevDependencies      map[string]string `json:"devDependencies"`
	OptionalDependencies map[string]string `json:"optionalDependencies"`
	PeerDependencies     map[string]string `json:"peerDependencies"`
}

// denoLocked is a package of Deno's lock file.
type denoLocked struct {
	Integrity            string   `json:"integrity"`
	Dependencies         []string `json:"dependencies,omitempty"`
	OptionalDependencies []string `json:"optionalDependencies,omitempty"`
	OS                   []string `json:"os,omitempty"`
	CPU                  []string `json:"cpu,omitempty"`
}

// packageLock reads npm's lock file as one of Deno's: a package for each version, with the
// versions that its dependencies have in the tree of node_modules.
func (r *reader) packageLock(at string, text []byte) error {
	var lock struct {
		Form     int                  `json:"lockfileVersion"`
		Packages map[string]npmLocked `json:"packages"`
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return fmt.Errorf("%s is no lock file of npm's", r.called(at))
	}
	if lock.Packages == nil {
		r.note("%s is not honoured: it has the form of version %d, and 2 and 3 are read; npm install writes it anew", r.called(at), lock.Form)
		return nil
	}
	edges := 0
	for place, pkg := range lock.Packages {
		edges += len(pkg.Dependencies) + len(pkg.DevDependencies) + len(pkg.OptionalDependencies) + len(pkg.PeerDependencies)
		if edges > maxEdges || len(place) > maxPlace {
			return fmt.Errorf("%s has more than %d dependencies, or a package at a path of more than %d bytes, and is not read", r.called(at), maxEdges, maxPlace)
		}
	}
	// find gives the package that a name is at a place of the tree.
	find := func(place, name string) (pkg npmLocked, ok bool) {
		for {
			pkg, ok = lock.Packages[strings.TrimPrefix(place+"/node_modules/"+name, "/")]
			if ok || place == "" {
				return pkg, ok && !pkg.Link && pkg.Version != ""
			}
			if cut := strings.LastIndex(place, "/node_modules/"); cut >= 0 {
				place = place[:cut]
			} else {
				place = ""
			}
		}
	}
	npm, specifiers := map[string]denoLocked{}, map[string]string{}
	for _, place := range slices.Sorted(maps.Keys(lock.Packages)) {
		pkg := lock.Packages[place]
		cut := strings.LastIndex(place, "node_modules/")
		if cut < 0 { // the project, or a package of its workspace
			for _, dependencies := range []map[string]string{pkg.Dependencies, pkg.DevDependencies, pkg.OptionalDependencies, pkg.PeerDependencies} {
				for name, version := range dependencies {
					target, reason := dependency(name, version)
					found, ok := find(place, name)
					if reason == "" && ok {
						specifiers[target] = found.Version
					}
				}
			}
			continue
		}
		if pkg.Link || pkg.Version == "" {
			continue
		}
		name := pkg.Name // of what an alias stands for
		if name == "" {
			name = place[cut+len("node_modules/"):]
		}
		key := name + "@" + pkg.Version
		if _, twice := npm[key]; twice {
			continue
		}
		locked := denoLocked{Integrity: pkg.Integrity, OS: pkg.OS, CPU: pkg.CPU}
		list := func(dependencies map[string]string) (list []string) {
			for _, name := range slices.Sorted(maps.Keys(dependencies)) {
				if found, ok := find(place, name); ok && found.Name != "" && found.Name != name {
					list = append(list, name+"@npm:"+found.Name+"@"+found.Version)
				} else if ok {
					list = append(list, name+"@"+found.Version)
				}
			}
			return list
		}
		locked.Dependencies, locked.OptionalDependencies = list(pkg.Dependencies), list(pkg.OptionalDependencies)
		for _, peer := range list(pkg.PeerDependencies) {
			if !slices.Contains(locked.Dependencies, peer) {
				locked.Dependencies = append(locked.Dependencies, peer)
			}
		}
		npm[key] = locked
	}
	converted, err := json.Marshal(map[string]any{"version": "5", "specifiers": specifiers, "npm": npm})
	r.m.Lock = job.Lock{File: r.called(at), Deno: converted, Foreign: true}
	return err
}
