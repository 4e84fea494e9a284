package modules

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rillbox/cache"
	"rillbox/supervisor/job"
)

// Terms are what a project demands of its packages, beside what imports say.
type Terms struct {
	Lock      job.Lock
	Frozen    bool
	Overrides json.RawMessage
}

// TermsOf are those of a manifest.
func TermsOf(m job.Manifest) Terms { return Terms{m.Lock, m.Frozen, m.Overrides} }

// maxLocked is how many packages of a lock file are used.
const maxLocked = 20_000

var (
	lockedKey       = Pattern(`^(@[a-zA-Z0-9~._-]+/)?[a-zA-Z0-9~_][a-zA-Z0-9~._-]*@[0-9][a-zA-Z0-9.+@/~_-]*$`)
	lockedVersion   = Pattern(`^[0-9][a-zA-Z0-9.+@/~_-]*$`)
	lockedIntegrity = Pattern(`^(sha512|sha384|sha256|sha1)-[A-Za-z0-9+/]+={0,2}$`)
	lockedDigest    = Pattern(`^[0-9a-f]{64}$`)
	lockedText      = Pattern(`^[a-zA-Z0-9!_]{1,40}$`) // a system's name
	dependencyAlias = Pattern(`^(?:@[^/]+/)?[^@/]+@npm:(.+)$`)
)

// locked is what of the project's lock file holds for the roots, with all that these
// need. Deno fetches all that is in one. No address is taken from it: where packages come
// from is this machine's configuration.
func (t Terms) locked(roots []Specifier) (lockFile, error) {
	var all, of lockFile
	if t.Lock.Deno == nil {
		return of, nil
	}
	if err := json.Unmarshal(t.Lock.Deno, &all); err != nil {
		return of, &PackageError{Text: fmt.Sprintf("%s is no lock file of Deno's: %v", t.Lock.File, err)}
	}
	if all.Form != "5" && all.Form != "4" {
		return of, &PackageError{Text: fmt.Sprintf("%s has the form of version %.20q: `rillbox lock FILE` writes version 5, which Deno 2 reads", t.Lock.File, all.Form)}
	}
	of = lockFile{Form: all.Form, Specifiers: map[string]string{}, JSR: map[string]lockedPackage{}, NPM: map[string]lockedPackage{}, Redirects: map[string]string{}, Remote: map[string]string{}}
	named := map[string][]string{} // a package → its keys
	for _, key := range slices.Sorted(maps.Keys(all.NPM)) {
		name, _ := splitKey(key)
		named[name] = append(named[name], key)
	}
	requests := map[string][]string{} // a package with its scheme → the specifiers that ask for it
	for _, text := range slices.Sorted(maps.Keys(all.Specifiers)) {
		if s, err := ParseSpecifier(text); err == nil && !s.IsURL() && lockedVersion().MatchString(all.Specifiers[text]) {
			requests[s.Scheme+":"+s.Name] = append(requests[s.Scheme+":"+s.Name], text)
		}
	}
	var needNPM func(key string, depth int)
	needNPM = func(wanted string, depth int) {
		if m := dependencyAlias().FindStringSubmatch(wanted); m != nil {
			wanted = m[1]
		}
		keys := []string{wanted}
		if _, exact := all.NPM[wanted]; !exact {
			name, version := splitKey(wanted)
			if len(named[name]) > 100 || version == "" && len(named[name]) > 1 { // Deno says which
				return
			}
			keys = slices.DeleteFunc(slices.Clone(named[name]), func(key string) bool {
				_, other := splitKey(key)
				return version != "" && other != version
			})
		}
		for _, key := range keys {
			pkg, there := all.NPM[key]
			if _, known := of.NPM[key]; known || !there || len(of.NPM) == maxLocked || depth > 1000 || !pkg.fits(key) {
				continue
			}
			of.NPM[key] = pkg
			for _, dependency := range slices.Concat(pkg.Dependencies, pkg.OptionalDependencies) {
				needNPM(dependency, depth+1)
			}
		}
	}
	var need func(scheme, name string, depth int)
	need = func(scheme, name string, depth int) {
		for _, text := range requests[scheme+":"+name] {
			if _, known := of.Specifiers[text]; known || depth > 1000 {
				continue
			}
			key := name + "@" + all.Specifiers[text]
			of.Specifiers[text] = all.Specifiers[text]
			if scheme == "npm" {
				needNPM(key, 0)
				continue
			}
			pkg, there := all.JSR[key]
			if !there || !lockedKey().MatchString(key) || !lockedDigest().MatchString(pkg.Integrity) {
				delete(of.Specifiers, text)
				continue
			}
			of.JSR[key] = lockedPackage{Integrity: pkg.Integrity, Dependencies: pkg.Dependencies}
			for _, dependency := range pkg.Dependencies {
				if s, err := ParseSpecifier(dependency); err == nil && !s.IsURL() {
					need(s.Scheme, s.Name, depth+1)
				}
			}
		}
	}
	urls := false
	for _, root := range roots {
		if root.IsURL() {
			urls = true
			continue
		}
		need(root.Scheme, root.Name, 0)
		if keys := named[root.Name]; root.Scheme == "npm" && root.Version == "" && len(requests["npm:"+root.Name]) == 0 && len(keys) == 1 {
			_, version := splitKey(keys[0])
			needNPM(keys[0], 0)
			if _, taken := of.NPM[keys[0]]; taken {
				of.Specifiers["npm:"+root.Name+"@*"] = version
			}
		}
	}
	for text, version := range of.Specifiers { // what they lead to may not fit
		s, _ := ParseSpecifier(text)
		if _, there := of.NPM[s.Name+"@"+version]; s.Scheme == "npm" && !there {
			delete(of.Specifiers, text)
		}
	}
	if urls {
		for address, digest := range all.Remote {
			if isWeb(address) && lockedDigest().MatchString(digest) {
				of.Remote[address] = digest
			}
		}
		for from, to := range all.Redirects {
			if isWeb(from) && isWeb(to) {
				of.Redirects[from] = to
			}
		}
	}
	return of, nil
}

// isWeb says that a text is the address of a module.
func isWeb(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && len(text) < 2000
}

// fits says that a package of a lock file is one that Deno could have written.
func (p lockedPackage) fits(key string) bool {
	for _, dependency := range slices.Concat(p.Dependencies, p.OptionalDependencies, p.OptionalPeers) {
		if strings.ContainsAny(dependency, "\x00\r\n\"\\:") && !dependencyAlias().MatchString(dependency) || len(dependency) > 1000 {
			return false
		}
	}
	for _, system := range slices.Concat(p.OS, p.CPU) {
		if !lockedText().MatchString(system) {
			return false
		}
	}
	return lockedKey().MatchString(key) && len(key) < 2000 && lockedIntegrity().MatchString(p.Integrity)
}

// text is a lock file as Deno reads it; nil if it has nothing.
func (l lockFile) text() []byte {
	if len(l.NPM)+len(l.JSR)+len(l.Remote) == 0 {
		return nil
	}
	text, _ := json.Marshal(l) // texts and lists of such can be written
	return text
}

// mismatch says that a package is not what a lock file has.
func mismatch(file, pkg, wanted, got string) error {
	return &PackageError{Text: fmt.Sprintf("%s is not what %s has: its digest there is %s, and what the registry has is %s; if it is known to be good, `rillbox lock --upgrade FILE` takes it", pkg, file, wanted, got)}
}

// checkFetched compares packages that earlier fetches brought with the lock file: Deno
// does with those that it fetches.
func (l lockFile) checkFetched(file string, stage *cache.DenoStage, found []part) error {
	for _, pkg := range found {
		if pkg.name == "" || len(l.NPM) == 0 {
			continue
		}
		key := pkg.name + "@" + pkg.version
		wanted := l.integrity(key)
		if got, known := stage.Integrity(pkg.path); known && wanted != "" && got != wanted {
			return mismatch(file, key, wanted, got)
		}
	}
	return nil
}

// check compares a plan with the lock file. unlocked are what that does not have, an error
// where it has to have all.
func (t Terms) check(locked, planned lockFile) (unlocked []string, err error) {
	if t.Lock.File == "" && !t.Frozen {
		return nil, nil
	}
	for key := range planned.NPM {
		name, version := splitKey(key)
		plain := name + "@" + version
		switch wanted, got := locked.integrity(plain), planned.integrity(plain); wanted {
		case got:
		case "":
			unlocked = append(unlocked, "npm:"+plain)
		default:
			return nil, mismatch(t.Lock.File, plain, wanted, got)
		}
	}
	for key, pkg := range planned.JSR {
		if wanted, there := locked.JSR[key]; !there {
			unlocked = append(unlocked, "jsr:"+key)
		} else if wanted.Integrity != pkg.Integrity {
			return nil, mismatch(t.Lock.File, "jsr:"+key, wanted.Integrity, pkg.Integrity)
		}
	}
	for address, digest := range planned.Remote {
		if wanted, there := locked.Remote[address]; !there {
			unlocked = append(unlocked, address)
		} else if wanted != digest {
			return nil, mismatch(t.Lock.File, address, wanted, digest)
		}
	}
	slices.Sort(unlocked)
	unlocked = slices.Compact(unlocked)
	if t.Frozen && len(unlocked) > 0 {
		return nil, &PackageError{Text: fmt.Sprintf("%s: --frozen wants all packages of the program in a lock file, and %s does not have %s: run `rillbox lock FILE`", unlocked[0], cmp.Or(t.Lock.File, "none"), strings.Join(unlocked, ", "))}
	}
	return unlocked, nil
}

// writeConfig writes a configuration for Deno that has the overrides and nothing else; a
// workspace of its own, so that none is looked for above it.
func (t Terms) writeConfig(dir string) error {
	text, err := json.Marshal(map[string]any{"overrides": t.Overrides})
	if err == nil {
		err = errors.Join(
			os.WriteFile(filepath.Join(dir, "package.json"), text, 0o600),
			os.WriteFile(filepath.Join(dir, "deno.json"), []byte(`{"workspace":[]}`), 0o600),
		)
	}
	if err != nil {
		return fmt.Errorf("write a configuration for Deno: %w", err)
	}
	return nil
}

// LockFile is a lock file for the project: what is in the one of Deno's that it has, and
// the plan's.
func (p Plan) LockFile(before job.Lock) ([]byte, error) {
	sections := map[string]json.RawMessage{}
	if before.Deno != nil && !before.Foreign {
		if err := json.Unmarshal(before.Deno, &sections); err != nil {
			return nil, fmt.Errorf("read the lock file: %w", err)
		}
	}
	added := map[string]json.RawMessage{}
	if len(p.Lock) > 0 {
		if err := json.Unmarshal(p.Lock, &added); err != nil {
			return nil, fmt.Errorf("read the lock file that Deno wrote: %w", err)
		}
	}
	var out struct {
		Version    json.RawMessage            `json:"version"`
		Specifiers map[string]json.RawMessage `json:"specifiers,omitempty"`
		JSR        map[string]json.RawMessage `json:"jsr,omitempty"`
		NPM        map[string]json.RawMessage `json:"npm,omitempty"`
		Redirects  map[string]json.RawMessage `json:"redirects,omitempty"`
		Remote     map[string]json.RawMessage `json:"remote,omitempty"`
		Workspace  json.RawMessage            `json:"workspace,omitempty"`
	}
	out.Version, out.Workspace = json.RawMessage(`"5"`), sections["workspace"]
	for name, section := range map[string]*map[string]json.RawMessage{
		"specifiers": &out.Specifiers, "jsr": &out.JSR, "npm": &out.NPM, "redirects": &out.Redirects, "remote": &out.Remote,
	} {
		for _, from := range []json.RawMessage{sections[name], added[name]} {
			if from == nil {
				continue
			}
			if err := json.Unmarshal(from, section); err != nil {
				return nil, fmt.Errorf("read the lock file: %q: %w", name, err)
			}
		}
	}
	text, err := json.MarshalIndent(out, "", "  ")
	return append(text, '\n'), err
}
