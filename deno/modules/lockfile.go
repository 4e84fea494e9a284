package modules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rillbox/supervisor/job"
)

// lockFile is Deno's lock file, as far as we read it. The keys of NPM and JSR
// are names with versions.
type lockFile struct {
	Form       string                   `json:"version"` // of the file: "5"
	Specifiers map[string]string        `json:"specifiers,omitempty"`
	JSR        map[string]lockedPackage `json:"jsr,omitempty"`
	NPM        map[string]lockedPackage `json:"npm,omitempty"`
	Redirects  map[string]string        `json:"redirects,omitempty"`
	Remote     map[string]string        `json:"remote,omitempty"`
}

type lockedPackage struct {
	Integrity            string   `json:"integrity,omitempty"`
	Dependencies         []string `json:"dependencies,omitempty"`
	OptionalDependencies []string `json:"optionalDependencies,omitempty"`
	OptionalPeers        []string `json:"optionalPeers,omitempty"`
	OS                   []string `json:"os,omitempty"`
	CPU                  []string `json:"cpu,omitempty"`
	Deprecated           bool     `json:"deprecated,omitempty"`
	Scripts              bool     `json:"scripts,omitempty"`
	Bin                  bool     `json:"bin,omitempty"`
}

func readLock(text []byte) (lockFile, error) {
	var l lockFile
	if err := json.Unmarshal(text, &l); err != nil {
		return l, fmt.Errorf("read the lock file that Deno wrote: %w", err)
	}
	return l, nil
}

// splitKey splits a lock file's key. What follows the version says which peers the
// package has, and is left out: "@scope/name@1.0.0_peer@2".
func splitKey(key string) (name, version string) {
	name = key
	if at := strings.Index(key[min(1, len(key)):], "@"); at >= 0 {
		name, version = key[:at+1], key[at+2:]
	}
	version, _, _ = strings.Cut(version, "_")
	return name, version
}

// integrity is what the registry signed of an npm package, the archive of which
// is the same for whatever peers it has.
func (l lockFile) integrity(key string) string {
	for other, pkg := range l.NPM {
		if other == key || strings.HasPrefix(other, key+"_") {
			return pkg.Integrity
		}
	}
	return ""
}

// needed are the npm packages, with their versions, that every system needs. Those
// that some can do without are for other systems, or are needed by such.
func (l lockFile) needed() map[string]bool {
	needed := map[string]bool{}
	var need func(wanted string)
	need = func(wanted string) {
		for key, pkg := range l.NPM {
			name, version := splitKey(key)
			plain := name + "@" + version
			if (key == wanted || plain == wanted || name == wanted) && !needed[plain] {
				needed[plain] = true
				for _, dependency := range pkg.Dependencies {
					need(dependency)
				}
			}
		}
	}
	for specifier, version := range l.Specifiers {
		if request, npm := strings.CutPrefix(specifier, "npm:"); npm {
			name, _ := splitKey(request)
			need(name + "@" + version)
		}
	}
	return needed
}

// packages says what specifiers became. fetched are the addresses, and the npm
// packages with their versions, that were downloaded for it.
func (l lockFile) packages(roots []Specifier, fetched map[string]bool) (packages []job.Package) {
	for _, root := range roots {
		p := job.Package{Name: root.Name, Source: root.Scheme}
		switch {
		case root.IsURL():
			p.Source, p.Cached = "url", !fetched[root.Name]
		case root.Scheme == "jsr":
			p.Version, p.Cached = l.Version(root), true
			for address := range fetched {
				p.Cached = p.Cached && !strings.Contains(address, "/"+p.Name+"/"+p.Version)
			}
		default:
			p.Version = l.Version(root)
			p.Cached = !fetched[p.Name+"@"+p.Version]
		}
		if !slices.Contains(packages, p) {
			packages = append(packages, p)
		}
	}
	return packages
}

// Version is the version that was found for a package's specifier.
func (l lockFile) Version(request Specifier) string {
	request.Path, request.Version = "", cmp.Or(request.Version, "*")
	version, ok := l.Specifiers[request.String()]
	if !ok { // Deno writes ranges in a form of its own (^1 as 1)
		request.Version = strings.TrimPrefix(request.Version, "^")
		version, ok = l.Specifiers[request.String()]
	}
	if !ok {
		request.Version = ""
		names := slices.Sorted(maps.Keys(l.Specifiers))
		i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, request.String()+"@") })
		if i >= 0 {
			version = l.Specifiers[names[i]]
		}
	}
	version, _, _ = strings.Cut(version, "_") // what follows are its peers
	return version
}
