// Package modules finds out what a program imports, and has it ready: imports are
// scanned apart from us, specifiers resolved, a plan made and its packages fetched by
// a Deno process that never sees the program, through a proxy of ours.
//
// It promises that a plan holds what a registry signed and the policy allows, and
// that what was planned once is there without the network.
package modules

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rillbox/cache"
	"rillbox/cache/egress"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// Plan is an install plan: the versions that a set of specifiers resolved to, and
// their files. It is kept in the cache as a directory, so that a rerun asks no
// registry, and sees what its plan names and nothing else: whatever path or
// specifier a program makes up, packages that others fetched are not there.
type Plan struct {
	// Lock is Deno's lock file.
	Lock json.RawMessage `json:"lock"`
	// Registries maps an npm scope ("@scope", "" for packages without one) to
	// the registry that its packages came from.
	Registries map[string]string `json:"registries"`
	// Packages are what the specifiers resolved to.
	Packages []job.Package `json:"packages"`
	// Modules are each package's directory and each module's file, below the plan's.
	Modules []string `json:"modules"`
	// NoSystem says that none of the modules names one of Node's that looks at the
	// machine: process, os and fs.
	NoSystem bool `json:"no_system,omitempty"`

	Locked lockFile `json:"-"` // Lock, parsed
	// Unlocked are the packages that the project's lock file does not have.
	Unlocked []string  `json:"-"`
	Dir      string    `json:"-"` // like Deno's, with npm and remote
	since    time.Time // when the cache was asked for it
}

const (
	planKind = "modules"
	planFile = "plan.json"
	// planRest is how long a plan is used without the cache being asked for it.
	planRest = time.Hour
	// maxPlans is how many are so.
	maxPlans = 1000
)

// Planner makes and keeps plans.
type Planner struct {
	Cache   *cache.Cache
	Version string // Deno's
	Walls   permission.Walls
	Policy  egress.Policy
	Limits  job.Limits
	// AllowImport are the hosts that the operator named for URL imports.
	AllowImport []string
	// Unpacked is how many bytes an installation's packages may have on the disk.
	Unpacked int64
	Log      *slog.Logger

	mu    sync.Mutex
	known map[string]Plan // by key; the cache has verified them
}

// Plan gives the plan for the specifiers, if a policy, the operator's or one within it,
// allows all that is in it, after fetching what is missing or corrupt with the Deno at a
// path. Plans are shared by policies of the same age, and judged each time.
func (pl *Planner) Plan(ctx context.Context, deno string, permissions permission.Permissions, policy egress.Policy, roots []Specifier, terms Terms, emit func(job.Event)) (Plan, error) {
	if err := checkRoots(policy, permissions, roots); err != nil {
		return Plan{}, err
	}
	f := NewFetcher(pl, deno, permissions, policy, roots, emit)
	f.terms = terms
	var err error
	if f.locked, err = terms.locked(roots); err != nil {
		return Plan{}, err
	}
	p, err := pl.find(ctx, f)
	if err != nil {
		return Plan{}, err
	}
	if p.Unlocked, err = terms.check(f.locked, p.Locked); err != nil {
		return Plan{}, err
	}
	if err := p.check(policy); err != nil {
		return Plan{}, refusal(err)
	}
	return p, nil
}

// find gives the plan, which is made by f if the cache does not have it.
func (pl *Planner) find(ctx context.Context, f *fetcher) (Plan, error) {
	key := f.Key()
	if f.Policy.NoFetch && !pl.Policy.NoFetch && !pl.Cache.HasTree(planKind, key) && pl.imported(key) == "" {
		key += "\nfrom the cache" // not for those who fetch
	}
	pl.mu.Lock()
	known, ok := pl.known[key]
	pl.mu.Unlock()
	if ok && time.Since(known.since) < planRest && known.Complete() == nil {
		return known, nil
	}
	// All of it counts: waiting for another process that makes the same plan, too.
	tooLong := fmt.Errorf("package installation took longer than %v", pl.Limits.InstallTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, pl.Limits.InstallTimeout, tooLong)
	defer cancel()
	dir, hit, err := pl.imported(key), true, error(nil)
	if dir == "" {
		dir, hit, err = pl.Cache.Tree(ctx, planKind, key, f.make)
	}
	if err != nil && context.Cause(ctx) == tooLong {
		return Plan{}, EndedError{sandbox.Exit{Status: job.TimedOut, Reason: tooLong.Error()}}
	}
	if err != nil {
		return Plan{}, f.explainUnverified(err, key)
	}
	p, err := readPlan(dir)
	if err != nil {
		return Plan{}, err
	}
	made := slices.Clone(p.Packages)
	for i := range p.Packages {
		p.Packages[i].Cached = true
	}
	pl.mu.Lock()
	if pl.known == nil || len(pl.known) >= maxPlans {
		pl.known = map[string]Plan{}
	}
	pl.known[key] = p
	pl.mu.Unlock()
	if !hit {
		p.Packages = made
	}
	return p, nil
}

func readPlan(dir string) (Plan, error) {
	p := Plan{Dir: dir, since: time.Now()}
	text, err := os.ReadFile(filepath.Join(dir, planFile))
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return p, fmt.Errorf("read an install plan: %w", err)
	}
	p.Locked, err = readLock(p.Lock)
	return p, err
}

// Complete is an error where somebody has removed the plan's files, which the cache
// never does while they are in use.
func (p Plan) Complete() error {
	if _, err := os.Stat(filepath.Join(p.Dir, planFile)); err != nil {
		return errors.New("the packages were removed from the cache: run again, and they are fetched again")
	}
	return nil
}

// explainUnverified tells why packages that are in the cache can't be used without
// the network: an earlier version fetched them, and did not keep what tells that
// they are still what the registry signed.
func (f *fetcher) explainUnverified(err error, key string) error {
	var missing *PackageError
	key = strings.Replace(key, f.form(), "deno "+f.Version, 1) // as it was then
	if !errors.As(err, &missing) || !errors.Is(err, egress.ErrOffline) && !f.Policy.NoFetch || !f.Cache.Has("plan", key) {
		return err
	}
	return &PackageError{fmt.Sprintf("%s: an earlier version of Rillbox left it in the cache without what it takes to verify it; fetch it again, once, where the network can be used", strings.Join(texts(f.roots), ", ")), err}
}

// form is what plans are made by; the number is that of Plan's own form.
func (pl *Planner) form() string { return "deno " + pl.Version + " form 5" }

// Key describes all that decides what specifiers resolve to.
func (f *fetcher) Key() string {
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
	key := fmt.Sprintf("%s\nregistries %x\nage %v\n%s\n%s", f.form(), registry.Sum(nil), f.Policy.MinReleaseAge,
		strings.Join(f.imports, "\n"), strings.Join(texts(f.roots), "\n"))
	if lock := f.locked.text(); lock != nil || f.terms.Overrides != nil {
		key += fmt.Sprintf("\nlock %x overrides %x", sha256.Sum256(lock), sha256.Sum256(f.terms.Overrides))
	}
	return key
}

// make fetches the modules, and fills dir with them and with the plan.
func (f *fetcher) make(ctx context.Context, dir string) error {
	for {
		p, changed, err := f.fetch(ctx, dir)
		switch {
		case err != nil:
			return err
		case len(changed) == 0:
			return p.write()
		}
		f.Log.Warn("fetched modules were changed and will be fetched again", "paths", changed)
	}
}

// fetch fetches the modules into a stage, and makes the plan in dir from it.
// changed are those that were in the cache and are not what they were: they have
// been forgotten, and the next try will fetch them.
func (f *fetcher) fetch(ctx context.Context, dir string) (p *Plan, changed []string, err error) {
	if f.work, err = sandbox.NewRunDir(); err != nil { // also removed if we are killed
		return nil, nil, err
	}
	defer os.RemoveAll(f.work)
	f.stage = filepath.Join(dir, "stage") // in the cache, from where it can be moved
	defer os.RemoveAll(f.stage)
	if err := MakeDenoDir(f.stage); err != nil {
		return nil, nil, fmt.Errorf("make a directory for Deno: %w", err)
	}
	stage, err := f.Cache.StageDeno(f.stage)
	if err != nil {
		return nil, nil, err
	}
	lock := filepath.Join(f.work, "lock.json")
	if text := f.locked.text(); text != nil {
		if err := os.WriteFile(lock, text, 0o600); err != nil {
			return nil, nil, fmt.Errorf("write a lock file: %w", err)
		}
	}
	config := "--no-config"
	if f.terms.Overrides != nil {
		config = "--config=" + filepath.Join(f.work, "deno.json")
		if err := f.terms.writeConfig(f.work); err != nil {
			return nil, nil, err
		}
	}
	flags := append([]string{config, "--node-modules-dir=none", "--lock=" + lock}, f.imports...)
	if age := f.Policy.MinReleaseAge; age > 0 {
		flags = append(flags, fmt.Sprintf("--min-dep-age=%d", minutes(age)))
	}
	if _, err := f.run(ctx, append([]string{"cache"}, flags...), f.roots...); err != nil {
		return nil, nil, err
	}
	p = &Plan{Dir: dir, Registries: map[string]string{}}
	if p.Lock, err = os.ReadFile(lock); err != nil {
		return nil, nil, fmt.Errorf("read the lock file that Deno wrote: %w", err)
	}
	if p.Locked, err = readLock(p.Lock); err != nil {
		return nil, nil, err
	}
	if f.terms.Overrides != nil { // they are of the configuration that it was made with
		p.Lock = p.Locked.text()
	}
	p.Packages = p.Locked.packages(f.roots, f.fetched)
	found, err := f.list(ctx, flags, stage, p.Registries)
	if err != nil {
		return nil, nil, err
	}
	if err := f.locked.checkFetched(f.terms.Lock.File, stage, found); err != nil {
		return nil, nil, err
	}
	if changed, err = p.take(stage, found); err != nil {
		return nil, nil, fmt.Errorf("take what was fetched: %w", err)
	}
	if len(changed) > 0 {
		if err := errors.Join(stage.Forget(ctx, changed), os.RemoveAll(filepath.Join(dir, "npm")), os.RemoveAll(filepath.Join(dir, "remote"))); err != nil {
			return nil, nil, fmt.Errorf("forget what was changed: %w", err)
		}
		return nil, changed, nil
	}
	for _, pkg := range found {
		if pkg.name == "" {
			continue
		}
		if err := checkAge(f.Policy, pkg.name, pkg.version, filepath.Join(dir, filepath.FromSlash(pkg.path))); err != nil {
			return nil, nil, err
		}
	}
	if err := stage.Keep(ctx); err != nil {
		return nil, nil, fmt.Errorf("keep what was fetched: %w", err)
	}
	return p, nil, nil
}

// take takes the plan's files from the stage: what Deno named, and beside it what
// else its runs and ours read. changed are those that are not what they were.
func (p *Plan) take(stage *cache.DenoStage, found []part) (changed []string, err error) {
	type wanted struct {
		integrity        string // what was signed of it
		module, optional bool
	}
	all := map[string]wanted{} // by path
	needed := p.Locked.needed()
	for _, pkg := range found {
		w := wanted{module: true}
		if pkg.name != "" {
			key := pkg.name + "@" + pkg.version
			w.integrity, w.optional = p.Locked.integrity(key), !needed[key]
		}
		all[pkg.path] = w
		p.Modules = append(p.Modules, pkg.path)
	}
	for path := range p.Manifests() {
		if _, found := all[path]; !found {
			all[path] = wanted{optional: true}
		}
	}
	for from := range p.Locked.Redirects {
		if u, err := url.Parse(from); err == nil && u.Host != "" {
			if path := cachedURL(u); !all[path].module {
				all[path] = wanted{module: true, optional: true}
			}
		}
	}
	p.Modules = nil
	for path, w := range all {
		err := stage.Take(path, w.integrity, filepath.Join(p.Dir, filepath.FromSlash(path)))
		switch {
		case errors.Is(err, cache.ErrChanged):
			changed = append(changed, path)
		case errors.Is(err, fs.ErrNotExist) && w.optional:
		case err != nil:
			return nil, err
		case w.module:
			p.Modules = append(p.Modules, path)
		}
	}
	slices.Sort(p.Modules)
	slices.Sort(changed)
	return changed, nil
}

// write narrows what registries say to what was planned, looks the modules
// through, and writes the plan down beside them.
func (p *Plan) write() error {
	for manifest, versions := range p.Manifests() {
		full := filepath.Join(p.Dir, filepath.FromSlash(manifest))
		text, err := os.ReadFile(full)
		if errors.Is(err, fs.ErrNotExist) || versions == nil {
			continue
		}
		if err == nil {
			text, err = NarrowManifest(text, nil, versions, p.has)
		}
		if err == nil { // not into the file, which is the cache's too
			err = errors.Join(os.Remove(full), os.WriteFile(full, text, 0o600))
		}
		if err != nil {
			return fmt.Errorf("read what a registry says, %s: %w", manifest, err)
		}
	}
	p.NoSystem = true
	for _, module := range p.Modules {
		found, err := namesSystem(filepath.Join(p.Dir, filepath.FromSlash(module)))
		if err != nil {
			return fmt.Errorf("look through what was fetched: %w", err)
		}
		p.NoSystem = p.NoSystem && !found
	}
	text, err := json.Marshal(p)
	if err == nil {
		err = errors.Join(
			makeKinds(p.Dir),
			os.WriteFile(filepath.Join(p.Dir, planFile), text, 0o600),
		)
	}
	if err != nil {
		return fmt.Errorf("write an install plan: %w", err)
	}
	return nil
}

// makeKinds makes the directories that children see of a plan's, also where they are empty.
func makeKinds(dir string) error {
	return errors.Join(os.MkdirAll(filepath.Join(dir, "npm"), 0o700), os.MkdirAll(filepath.Join(dir, "remote"), 0o700))
}

var systemModule = Pattern("[\"'`]node:(process|os|fs|fs/promises)[\"'`]|(from|import|require|Module|\\))[\\s(]*[\"'`](process|os|fs|fs/promises)[\"'`]")

// notLoaded are files that no program loads.
var notLoaded = Pattern(`\.(map|md|d\.[cm]?ts|(test|spec)\.[cm]?[jt]sx?)$`)

// namesSystem says that a module, or one in a directory, names such a module of Node's
// as modules are named.
func namesSystem(root string) (found bool, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || notLoaded().MatchString(path) {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && systemModule().Match(text) {
			found = true
			err = fs.SkipAll
		}
		return err
	})
	return found, err
}

// archivePath is the address of an npm package's archive: its name, with and without
// its scope, and then its version.
var archivePath = Pattern(`((?:@[^/]+/)?([^/]*))/-/([^/]+)\.tgz$`)

// downloadStage tells what a download is: for people, and the key of the
// package's version that it shows to be new.
func downloadStage(address string) (stage, what string) {
	u, err := url.Parse(address)
	if err != nil {
		return job.FetchingStage + address, address
	}
	if m := archivePath().FindStringSubmatch(u.Path); m != nil {
		name, version := m[1], strings.TrimPrefix(m[3], m[2]+"-")
		return job.FetchingStage + name + " " + version, name + "@" + version
	}
	if path.Ext(u.Path) == "" {
		return "resolving " + strings.TrimPrefix(u.Path, "/"), address
	}
	return job.FetchingStage + u.Host + u.Path, address
}

// withoutPassword is a URL without its user and password, which Deno's names of files leave
// out too: programs, and who gets an export, see a plan's registries.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// part is a module's file or, with its name and version, a package's directory,
// below Deno's directory.
type part struct{ path, name, version string }

// list asks Deno where the modules are, and notes which registries packages came from.
func (f *fetcher) list(ctx context.Context, flags []string, stage *cache.DenoStage, registries map[string]string) (found []part, err error) {
	npmListed := false
	for _, root := range f.roots {
		if root.Scheme == "npm" && npmListed {
			continue // one answer has all that are in the lock file
		}
		npmListed = npmListed || root.Scheme == "npm"
		text, err := f.run(ctx, append([]string{"info", "--json"}, flags...), root)
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
			registries[scope] = withoutPassword(pkg.Registry)
		}
	}
	return found, nil
}
