package deno

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rillbox/cache"
	"rillbox/supervisor"
)

// plan is an install plan: which versions a set of specifiers resolved to, and
// the files that they are. It is kept in the cache as a directory, the view, so
// that a rerun asks no registry, and sees what its plan names and nothing else:
// whatever path or specifier a program makes up, packages that others fetched are
// not there.
type plan struct {
	// Lock is Deno's lock file.
	Lock json.RawMessage `json:"lock"`
	// Registries maps an npm scope ("@scope", "" for packages without one) to
	// the registry that its packages came from.
	Registries map[string]string `json:"registries"`
	// Packages are what the specifiers resolved to.
	Packages []supervisor.Package `json:"packages"`
	// Modules are each package's directory and each module's file, below the view.
	Modules []string `json:"modules"`
	// NoProcess says that none of the modules names Node's process module.
	NoProcess bool `json:"no_process,omitempty"`

	dir string // the view
}

const (
	planKind = "modules"
	planFile = "plan.json"
	// planRest is how long a plan is used without the cache being asked for it.
	planRest = time.Hour
	// maxPlans is how many are so.
	maxPlans = 1000
)

// planner makes and keeps plans.
type planner struct {
	mu    sync.Mutex
	known map[string]knownPlan // by key; the cache has verified them
}

type knownPlan struct {
	plan
	since time.Time
}

// plan gives the plan for the specifiers, after fetching what is missing or
// corrupt.
func (pl *planner) plan(ctx context.Context, f fetcher, roots []specifier, emit func(supervisor.Event)) (plan, error) {
	key := planKey(f, roots)
	pl.mu.Lock()
	known, ok := pl.known[key]
	pl.mu.Unlock()
	if ok && time.Since(known.since) < planRest && known.there() {
		return known.plan, nil
	}
	// All of it counts: waiting for another process that makes the same plan, too.
	tooLong := fmt.Errorf("package installation took longer than %v", f.limits.InstallTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, f.limits.InstallTimeout, tooLong)
	defer cancel()
	var p plan
	dir, hit, err := f.cache.Tree(ctx, planKind, key, func(ctx context.Context, dir string) (err error) {
		p, err = makePlan(ctx, f, dir, roots, emit)
		return err
	})
	if err != nil && context.Cause(ctx) == tooLong {
		return plan{}, endedError{supervisor.Exit{Status: supervisor.TimedOut, Reason: tooLong.Error()}}
	}
	if err != nil {
		return plan{}, f.explainUnverified(err, key, roots)
	}
	if hit {
		text, err := os.ReadFile(filepath.Join(dir, planFile))
		if err == nil {
			err = json.Unmarshal(text, &p)
		}
		if err != nil {
			return plan{}, fmt.Errorf("read an install plan: %w", err)
		}
	}
	p.dir = dir
	fetched := slices.Clone(p.Packages)
	for i := range p.Packages {
		p.Packages[i].Cached = true
	}
	pl.mu.Lock()
	if pl.known == nil || len(pl.known) >= maxPlans {
		pl.known = map[string]knownPlan{}
	}
	pl.known[key] = knownPlan{p, time.Now()}
	pl.mu.Unlock()
	if !hit {
		p.Packages = fetched
	}
	return p, nil
}

// there says that nobody has removed the plan's view, which the cache never does
// while it is in use.
func (p plan) there() bool {
	_, err := os.Stat(filepath.Join(p.dir, planFile))
	return err == nil
}

// explainUnverified tells why there is no network-free way to packages that are
// in the cache: an earlier version fetched them, and did not keep what tells that
// they are still what the registry signed.
func (f fetcher) explainUnverified(err error, key string, roots []specifier) error {
	var missing *PackageError
	if !errors.As(err, &missing) || !errors.Is(err, cache.ErrOffline) && !f.policy.NoFetch || !f.cache.Has("plan", key) {
		return err
	}
	names := make([]string, len(roots))
	for i, root := range roots {
		names[i] = root.String()
	}
	return &PackageError{fmt.Sprintf("%s: an earlier version of Rillbox left it in the cache without what it takes to verify it; fetch it again, once, where the network can be used", strings.Join(names, ", ")), err}
}

// planKey describes all that decides what specifiers resolve to.
func planKey(f fetcher, roots []specifier) string {
	registry := sha256.New()
	env, _ := fetchEnv("")
	for _, setting := range env {
		name, _, _ := strings.Cut(setting, "=")
		if name == "JSR_URL" || strings.HasPrefix(strings.ToLower(name), "npm_config_") {
			fmt.Fprintln(registry, setting)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		if text, err := os.ReadFile(filepath.Join(home, ".npmrc")); err == nil {
			registry.Write(text)
		}
	}
	names := make([]string, len(roots))
	for i, root := range roots {
		names[i] = root.String()
	}
	return fmt.Sprintf("deno %s\nregistries %x\nage %v\n%s\n%s", Version, registry.Sum(nil), f.policy.MinReleaseAge,
		strings.Join(f.imports, "\n"), strings.Join(names, "\n"))
}

// makePlan fetches the modules, and fills dir with them and with the plan.
func makePlan(ctx context.Context, f fetcher, dir string, roots []specifier, emit func(supervisor.Event)) (plan, error) {
	work, err := supervisor.NewRunDir() // also removed if we are killed
	if err != nil {
		return plan{}, err
	}
	defer os.RemoveAll(work)
	lock := filepath.Join(work, "lock.json")
	fetched := map[string]bool{}
	for {
		if err := os.RemoveAll(lock); err != nil {
			return plan{}, fmt.Errorf("make an install plan: %w", err)
		}
		p, changed, err := f.fetch(ctx, dir, lock, roots, fetched, emit)
		if err != nil {
			return plan{}, err
		}
		if len(changed) == 0 {
			return p, p.write(dir)
		}
		f.log.Warn("fetched modules were changed and will be fetched again", "paths", changed)
	}
}

// fetch fetches the modules into a stage, and makes the plan in dir from it.
// changed are those that were in the cache and are not what they were: they have
// been forgotten, and the next try will fetch them.
func (f fetcher) fetch(ctx context.Context, dir, lock string, roots []specifier, fetched map[string]bool, emit func(supervisor.Event)) (p plan, changed []string, err error) {
	f.stage = filepath.Join(dir, "stage") // in the cache, from where it can be moved
	defer os.RemoveAll(f.stage)
	if err := MakeDenoDir(f.stage); err != nil {
		return plan{}, nil, fmt.Errorf("make a directory for Deno: %w", err)
	}
	stage, err := f.cache.StageDeno(f.stage)
	if err != nil {
		return plan{}, nil, err
	}
	flags := append([]string{"--no-config", "--node-modules-dir=none", "--lock=" + lock}, f.imports...)
	if age := f.policy.MinReleaseAge; age > 0 {
		flags = append(flags, fmt.Sprintf("--min-dep-age=%d", minutes(age)))
	}
	names := make([]string, len(roots))
	for i, root := range roots {
		names[i] = root.String()
	}
	f.npmOnly = !slices.ContainsFunc(roots, func(s specifier) bool { return s.scheme != "npm" })
	line := func(address string) {
		stage, what := downloadStage(address)
		fetched[what] = true
		emit(supervisor.Event{Kind: supervisor.Stage, Text: stage})
	}
	if _, err := f.run(ctx, filepath.Dir(lock), line, slices.Concat([]string{"cache"}, flags, names)...); err != nil {
		return plan{}, nil, err
	}
	p.Registries = map[string]string{}
	if p.Lock, err = os.ReadFile(lock); err != nil {
		return plan{}, nil, fmt.Errorf("read the lock file that Deno wrote: %w", err)
	}
	if p.Packages, err = lockedPackages(p.Lock, roots, fetched); err != nil {
		return plan{}, nil, err
	}
	found, err := f.list(ctx, filepath.Dir(lock), flags, roots, stage, &p)
	if err != nil {
		return plan{}, nil, err
	}
	if changed, err = p.take(stage, dir, found); err != nil {
		return plan{}, nil, fmt.Errorf("take what was fetched: %w", err)
	}
	if len(changed) > 0 {
		if err := errors.Join(stage.Forget(ctx, changed), os.RemoveAll(filepath.Join(dir, "npm")), os.RemoveAll(filepath.Join(dir, "remote"))); err != nil {
			return plan{}, nil, fmt.Errorf("forget what was changed: %w", err)
		}
		return plan{}, changed, nil
	}
	for _, pkg := range found {
		if pkg.name == "" {
			continue
		}
		if err := checkAge(f.policy, pkg.name, pkg.version, filepath.Join(dir, filepath.FromSlash(pkg.path)), time.Now()); err != nil {
			return plan{}, nil, err
		}
	}
	if err := stage.Keep(ctx); err != nil {
		return plan{}, nil, fmt.Errorf("keep what was fetched: %w", err)
	}
	return p, nil, nil
}

// take makes the view from the stage: what Deno named, and beside it what else
// its runs and ours read. changed are the parts that are not what they were.
func (p *plan) take(stage *cache.DenoStage, dir string, found []part) (changed []string, err error) {
	lock, err := readLock(p.Lock)
	if err != nil {
		return nil, err
	}
	modules := map[string]string{} // by path, what was signed of it
	needed, others := lock.needed(), map[string]bool{}
	for _, pkg := range found {
		modules[pkg.path] = ""
		if pkg.name != "" {
			modules[pkg.path] = lock.integrity(pkg.name + "@" + pkg.version)
			others[pkg.path] = !needed[pkg.name+"@"+pkg.version]
		}
	}
	all := maps.Clone(modules) // and what there need not be
	for _, m := range p.manifests() {
		all[m.path] = ""
	}
	for path := range modules {
		if manifest, npm := registryManifest(path); npm {
			all[manifest] = ""
		}
	}
	redirects := map[string]bool{}
	for from := range lock.Redirects {
		if u, err := url.Parse(from); err == nil && u.Host != "" {
			redirects[cachedURL(u)] = true
			all[cachedURL(u)] = ""
		}
	}
	for path, integrity := range all {
		_, module := modules[path]
		err := stage.Take(path, integrity, filepath.Join(dir, filepath.FromSlash(path)))
		switch {
		case errors.Is(err, cache.ErrChanged):
			changed = append(changed, path)
		case errors.Is(err, fs.ErrNotExist) && (!module || others[path]):
		case err != nil:
			return nil, err
		case module || redirects[path]:
			p.Modules = append(p.Modules, path)
		}
	}
	slices.Sort(p.Modules)
	slices.Sort(changed)
	return changed, nil
}

// registryManifest is where Deno keeps what a registry says of the package whose
// directory this is.
func registryManifest(module string) (manifest string, npm bool) {
	return path.Join(path.Dir(module), "registry.json"), strings.HasPrefix(module, "npm/")
}

// write narrows what registries say to what was planned, looks the modules
// through, and writes the plan down beside them.
func (p *plan) write(dir string) error {
	versions := map[string]map[string]bool{}
	p.NoProcess = true
	for _, module := range p.Modules {
		if manifest, npm := registryManifest(module); npm {
			add(versions, manifest, path.Base(module))
		}
		if !p.NoProcess {
			continue
		}
		found, err := namesProcess(filepath.Join(dir, filepath.FromSlash(module)))
		if err != nil {
			return fmt.Errorf("look through what was fetched: %w", err)
		}
		p.NoProcess = !found
	}
	for _, m := range p.manifests() {
		if m.lists != "" {
			add(versions, m.path, m.lists)
		}
	}
	for manifest, planned := range versions {
		full := filepath.Join(dir, filepath.FromSlash(manifest))
		text, err := os.ReadFile(full)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			text, err = narrowManifest(text, nil, planned)
		}
		if err == nil { // not into the file, which is the cache's too
			err = errors.Join(os.Remove(full), os.WriteFile(full, text, 0o600))
		}
		if err != nil {
			return fmt.Errorf("read what a registry says, %s: %w", manifest, err)
		}
	}
	for _, name := range []string{"npm", "remote"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return fmt.Errorf("write an install plan: %w", err)
		}
	}
	text, err := json.Marshal(p)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, planFile), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write an install plan: %w", err)
	}
	return nil
}

var processModule = pattern("[\"'`]node:process[\"'`]|(from|import|require|Module)[\\s(]*[\"'`]process[\"'`]")

// namesProcess says that a module, or one in a directory, names Node's process
// module as modules are named.
func namesProcess(root string) (found bool, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(path, ".map") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && processModule().Match(text) {
			found = true
			err = fs.SkipAll
		}
		return err
	})
	return found, err
}

// downloadStage tells what a download is: for people, and the key of the
// package's version that it shows to be new.
func downloadStage(address string) (stage, what string) {
	u, err := url.Parse(address)
	if err != nil {
		return "fetching " + address, address
	}
	directory, file := path.Split(u.Path)
	if version, archive := strings.CutSuffix(file, ".tgz"); archive {
		name := strings.TrimSuffix(directory, "/-/")
		base := path.Base(name)
		if scope := path.Base(path.Dir(name)); strings.HasPrefix(scope, "@") {
			name = scope + "/" + base
		} else {
			name = base
		}
		version = strings.TrimPrefix(version, base+"-")
		return "fetching " + name + " " + version, name + "@" + version
	}
	if path.Ext(file) == "" {
		return "resolving " + strings.TrimPrefix(u.Path, "/"), address
	}
	return "fetching " + u.Host + u.Path, address
}

// lockedPackages says what the specifiers became.
func lockedPackages(lock []byte, roots []specifier, fetched map[string]bool) ([]supervisor.Package, error) {
	locked, err := readLock(lock)
	if err != nil {
		return nil, err
	}
	var packages []supervisor.Package
	for _, root := range roots {
		p := supervisor.Package{Name: root.name, Source: root.scheme}
		if root.isURL() {
			p.Source = "url"
			p.Cached = !fetched[root.name]
		} else {
			request := root
			request.path = ""
			if request.version == "" {
				request.version = "*"
			}
			version := lockedVersion(locked.Specifiers, request)
			p.Version, _, _ = strings.Cut(version, "_") // what follows are its peers
			p.Cached = !fetched[p.Name+"@"+p.Version]
			if root.scheme == "jsr" {
				p.Cached = true
				for address := range fetched {
					p.Cached = p.Cached && !strings.Contains(address, "/"+p.Name+"/"+p.Version)
				}
			}
		}
		if !slices.Contains(packages, p) {
			packages = append(packages, p)
		}
	}
	return packages, nil
}

// lockedVersion finds a request's version in a lock file, where Deno writes
// ranges in a form of its own (^1 as 1).
func lockedVersion(specifiers map[string]string, request specifier) string {
	if version, ok := specifiers[request.String()]; ok {
		return version
	}
	request.version = strings.TrimPrefix(request.version, "^")
	if version, ok := specifiers[request.String()]; ok {
		return version
	}
	request.version = ""
	for _, name := range slices.Sorted(maps.Keys(specifiers)) {
		if strings.HasPrefix(name, request.String()+"@") {
			return specifiers[name]
		}
	}
	return ""
}

// part is a module's file or, with its name and version, a package's directory,
// below Deno's directory.
type part struct{ path, name, version string }

// list asks Deno where the modules are.
func (f fetcher) list(ctx context.Context, dir string, flags []string, roots []specifier, stage *cache.DenoStage, p *plan) (found []part, err error) {
	npmListed := false
	for _, root := range roots {
		if root.scheme == "npm" {
			if npmListed {
				continue // one answer has all that are in the lock file
			}
			npmListed = true
		}
		text, err := f.run(ctx, dir, nil, slices.Concat([]string{"info", "--json"}, flags, []string{root.String()})...)
		if err != nil {
			return nil, err
		}
		var info struct {
			Modules []struct {
				Local string `json:"local"`
				Error string `json:"error"`
			} `json:"modules"`
			Packages map[string]struct {
				Name     string `json:"name"`
				Version  string `json:"version"`
				Local    string `json:"localPath"`
				Registry string `json:"registryUrl"`
			} `json:"npmPackages"`
		}
		if err := json.Unmarshal(text, &info); err != nil {
			return nil, fmt.Errorf("read what Deno says of %s: %w", root, err)
		}
		for _, module := range info.Modules {
			if path, ok := stage.Rel(module.Local); ok {
				found = append(found, part{path: path})
			} else if isLocal(module.Error) { // others are of imports that may fail
				return nil, fmt.Errorf("fetch packages: %s", module.Error)
			}
		}
		for _, pkg := range info.Packages {
			if pkg.Local == "" {
				return nil, fmt.Errorf("fetch packages: Deno does not find %s %s, which it has fetched: try again", pkg.Name, pkg.Version)
			}
			if path, ok := stage.Rel(pkg.Local); ok {
				found = append(found, part{path, pkg.Name, pkg.Version})
			}
			scope, _, scoped := strings.Cut(pkg.Name, "/")
			if !scoped {
				scope = ""
			}
			p.Registries[scope] = pkg.Registry
		}
	}
	return found, nil
}
