package deno

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rillbox/cache"
	"rillbox/cache/egress"
	"rillbox/supervisor"
)

// plan gives the plan for what a program asks for, if the operator's policy
// allows all that is in it.
func (e *Engine) plan(ctx context.Context, binary Binary, permissions Permissions, roots []specifier, emit func(supervisor.Event)) (plan, error) {
	if err := checkRoots(e.options.Policy, permissions, roots); err != nil {
		return plan{}, err
	}
	p, err := e.planner.plan(ctx, e.fetcher(binary, permissions), roots, emit)
	if err != nil {
		return plan{}, err
	}
	if err := p.check(e.options.Policy); err != nil {
		return plan{}, refusal(err)
	}
	return p, nil
}

func refusal(err error) error { return &PackageError{Text: err.Error()} }

// checkRoots refuses what can be refused before anything is fetched. Deno checks
// what URLs import in turn, but takes those on its command line as allowed.
func checkRoots(policy cache.Policy, permissions Permissions, roots []specifier) error {
	for _, root := range roots {
		if !root.isURL() {
			if err := policy.CheckPackage(cache.Kind(root.scheme), root.name, ""); err != nil {
				return refusal(err)
			}
			continue
		}
		u, err := url.Parse(root.name)
		if err != nil {
			return refusal(fmt.Errorf("%q is not a URL that can be imported", root.name))
		}
		if err := policy.CheckURL(u); err != nil {
			return refusal(err)
		}
		if host := egress.HostPort(u); !permissions.ImportsFrom(host) {
			return notImportable(host)
		}
	}
	return nil
}

func notImportable(host string) error {
	return &PackageError{Text: fmt.Sprintf("imports from %s are not allowed here: ask the operator to add it to --allow-import", host)}
}

func checkURL(policy cache.Policy, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("%q is not a URL that can be imported", address)
	}
	return policy.CheckURL(u)
}

// lockFile is Deno's lock file, as far as we read it. The keys of NPM and JSR
// are names with versions.
type lockFile struct {
	Specifiers map[string]string        `json:"specifiers"`
	NPM        map[string]lockedPackage `json:"npm"`
	JSR        map[string]lockedPackage `json:"jsr"`
	Redirects  map[string]string        `json:"redirects"`
	Remote     map[string]string        `json:"remote"`
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
			plain := withoutPeers(key)
			if (key == wanted || plain == wanted || lockedName(key) == wanted) && !needed[plain] {
				needed[plain] = true
				for _, dependency := range pkg.Dependencies {
					need(dependency)
				}
			}
		}
	}
	for specifier, version := range l.Specifiers {
		if request, npm := strings.CutPrefix(specifier, "npm:"); npm {
			need(lockedName(request) + "@" + version)
		}
	}
	return needed
}

// withoutPeers takes what follows a version off a lock file's key.
func withoutPeers(key string) string {
	name := lockedName(key)
	version, _, _ := strings.Cut(strings.TrimPrefix(key, name), "_")
	return name + version
}

type lockedPackage struct {
	Integrity            string   `json:"integrity"`
	Dependencies         []string `json:"dependencies"`
	OptionalDependencies []string `json:"optionalDependencies"`
}

func readLock(text []byte) (lockFile, error) {
	var l lockFile
	if err := json.Unmarshal(text, &l); err != nil {
		return l, fmt.Errorf("read the lock file that Deno wrote: %w", err)
	}
	return l, nil
}

// check refuses a plan that holds anything that the policy denies, however it
// came to be needed.
func (p plan) check(policy cache.Policy) error {
	if !policy.Restricts() {
		return nil
	}
	lock, err := readLock(p.Lock)
	if err != nil {
		return err
	}
	jsr := ""
	if u, err := url.Parse(jsrURL()); err == nil {
		jsr = u.Hostname()
	}
	for _, key := range slices.Sorted(maps.Keys(lock.NPM)) {
		name := lockedName(key)
		if err := policy.CheckPackage(cache.NPM, name, p.registryHost(name)); err != nil {
			return neededBy(err, name, lock.NPM)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(lock.JSR)) {
		name := lockedName(key)
		if err := policy.CheckPackage(cache.JSR, name, jsr); err != nil {
			return neededBy(err, name, lock.JSR)
		}
	}
	for _, address := range slices.Sorted(maps.Keys(lock.Remote)) {
		if err := checkURL(policy, address); err != nil {
			return err
		}
	}
	for _, from := range slices.Sorted(maps.Keys(lock.Redirects)) {
		if err := errors.Join(checkRedirect(policy, from), checkRedirect(policy, lock.Redirects[from])); err != nil {
			return err
		}
	}
	return nil
}

// jsrURL is the registry of jsr: packages.
func jsrURL() string { return cmp.Or(os.Getenv("JSR_URL"), "https://jsr.io/") }

// checkRedirect checks one end of a redirect; those of jsr: are no URLs.
func checkRedirect(policy cache.Policy, address string) error {
	if !strings.HasPrefix(address, "https:") && !strings.HasPrefix(address, "http:") {
		return nil
	}
	return checkURL(policy, address)
}

// lockedName takes the version off a lock file's key: "@scope/name@1.0.0_peer@2".
func lockedName(key string) string {
	if at := strings.Index(key[min(1, len(key)):], "@"); at >= 0 {
		return key[:at+1]
	}
	return key
}

// registryHost is the host of the registry that an npm package came from.
func (p plan) registryHost(name string) string {
	scope, _, scoped := strings.Cut(name, "/")
	address, known := p.Registries[scope]
	if !scoped || !known {
		address = p.Registries[""]
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// neededBy adds to an error who depends on the package, if one of the others does.
func neededBy(err error, name string, packages map[string]lockedPackage) error {
	for _, key := range slices.Sorted(maps.Keys(packages)) {
		needs := slices.Concat(packages[key].Dependencies, packages[key].OptionalDependencies)
		if slices.ContainsFunc(needs, func(need string) bool {
			need = strings.TrimPrefix(strings.TrimPrefix(need, "npm:"), "jsr:")
			return lockedName(need) == name
		}) {
			return fmt.Errorf("%w (%s needs it)", err, lockedName(key))
		}
	}
	return err
}

// minutes is an age as Deno takes it, not shorter than it is.
func minutes(age time.Duration) int { return int((age + time.Minute - 1) / time.Minute) }

// checkAge refuses an npm package, unpacked in dir, whose registry does not tell
// that the version is old enough. Deno asked the same, and takes versions whose
// age is not told.
func checkAge(policy cache.Policy, name, version, dir string, now time.Time) error {
	if policy.MinReleaseAge <= 0 {
		return nil
	}
	var about struct {
		Time map[string]string `json:"time"`
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "registry.json"))
	if err == nil {
		err = json.Unmarshal(text, &about)
	}
	if err != nil {
		return fmt.Errorf("read what the registry says of %s: %w", name, err)
	}
	released, err := time.Parse(time.RFC3339, about.Time[version])
	switch {
	case err != nil:
		return refusal(fmt.Errorf("the operator asks for a minimum release age, and the registry does not tell when %s %s was released", name, version))
	case released.Add(policy.MinReleaseAge).After(now):
		return refusal(fmt.Errorf("%s %s is younger than the minimum release age that the operator asks for (%v)", name, version, policy.MinReleaseAge))
	}
	return nil
}
