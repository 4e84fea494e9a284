package deno

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
// which files of Deno's directory they are. It is kept in the cache, so that a
// rerun asks no registry.
type plan struct {
	// Lock is Deno's lock file.
	Lock json.RawMessage `json:"lock"`
	// Registries maps an npm scope ("@scope", "" for packages without one) to
	// the registry that its packages came from.
	Registries map[string]string `json:"registries"`
	// Packages are what the specifiers resolved to.
	Packages []supervisor.Package `json:"packages"`
	// Digests maps each package's directory and each module's file, below
	// Deno's directory, to the digest of what it held when it was fetched.
	Digests map[string]string `json:"digests"`
	// NoProcess says that none of the modules names Node's process module.
	NoProcess bool `json:"no_process,omitempty"`
}

const planKind = "plan"

// planner makes, keeps and verifies plans.
type planner struct {
	verified sync.Map // path → digest, of what this process has verified
}

// plan gives the plan for the specifiers, after fetching what is missing or
// corrupt. All the modules are then in Deno's directory.
func (pl *planner) plan(ctx context.Context, f fetcher, roots []specifier, emit func(supervisor.Event)) (plan, error) {
	if err := f.allowed.checkImports(roots); err != nil {
		return plan{}, err
	}
	key := planKey(f, roots)
	if p, err := pl.cached(f, key); err == nil {
		return p, nil
	}
	unlock, err := f.cache.Lock(ctx, "deno-modules") // Deno's directory has one writer
	if err != nil {
		return plan{}, err
	}
	defer unlock()
	p, err := pl.cached(f, key)
	if err == nil {
		return p, nil
	}
	var corrupt *corruptError
	if errors.As(err, &corrupt) {
		f.log.Warn("fetched modules are corrupt and will be fetched again", "paths", corrupt.paths)
		if err := pl.discard(f.cache, corrupt.paths); err != nil {
			return plan{}, err
		}
	}
	p, err = pl.make(ctx, f, roots, emit)
	if err != nil {
		return plan{}, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return plan{}, fmt.Errorf("encode an install plan: %w", err)
	}
	if _, err := f.cache.Put(ctx, planKind, key, bytes.NewReader(text)); err != nil {
		return plan{}, err
	}
	return p, nil
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

// corruptError names what is not as it was fetched.
type corruptError struct{ paths []string }

func (e *corruptError) Error() string {
	return "corrupt or missing in the cache: " + strings.Join(e.paths, ", ")
}

// cached gives a plan from the cache whose files are all as they were fetched.
func (pl *planner) cached(f fetcher, key string) (plan, error) {
	path, err := f.cache.Get(planKind, key)
	if err != nil {
		return plan{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return plan{}, fmt.Errorf("read an install plan: %w", err)
	}
	var p plan
	if err := json.Unmarshal(text, &p); err != nil {
		return plan{}, fmt.Errorf("decode an install plan: %w", err)
	}
	for path := range p.Digests {
		if !filepath.IsLocal(filepath.FromSlash(path)) {
			return plan{}, fmt.Errorf("decode an install plan: %q is not below Deno's directory", path)
		}
	}
	var corrupt corruptError
	for path, want := range p.Digests {
		if !pl.verify(f.cache, path, want) {
			corrupt.paths = append(corrupt.paths, path)
		}
	}
	if len(corrupt.paths) > 0 {
		slices.Sort(corrupt.paths)
		return plan{}, &corrupt
	}
	for i := range p.Packages {
		p.Packages[i].Cached = true
	}
	return p, nil
}

// verify compares a path with its digest, once in a process unless it is gone.
func (pl *planner) verify(c *cache.Cache, path, want string) bool {
	full := filepath.Join(c.DenoDir(), filepath.FromSlash(path))
	if _, err := os.Lstat(full); err != nil {
		return false
	}
	if have, ok := pl.verified.Load(full); ok && have == want {
		return true
	}
	have, err := digest(full)
	if err != nil || have != want {
		return false
	}
	pl.verified.Store(full, want)
	return true
}

// discard removes what is corrupt, so that Deno fetches it again.
func (pl *planner) discard(c *cache.Cache, paths []string) error {
	for _, path := range paths {
		full := filepath.Join(c.DenoDir(), filepath.FromSlash(path))
		if err := os.RemoveAll(full); err != nil {
			return fmt.Errorf("remove a corrupt module from the cache: %w", err)
		}
		pl.verified.Delete(full)
	}
	return nil
}

// make fetches the modules and writes down what they are.
func (pl *planner) make(ctx context.Context, f fetcher, roots []specifier, emit func(supervisor.Event)) (plan, error) {
	dir, err := supervisor.NewRunDir() // also removed if we are killed
	if err != nil {
		return plan{}, err
	}
	defer os.RemoveAll(dir)
	lock := filepath.Join(dir, "lock.json")
	flags := append([]string{"--no-config", "--node-modules-dir=none", "--lock=" + lock}, f.imports...)
	if age := f.policy.MinReleaseAge; age > 0 {
		flags = append(flags, fmt.Sprintf("--min-dep-age=%d", minutes(age)))
	}
	names := make([]string, len(roots))
	for i, root := range roots {
		names[i] = root.String()
	}
	f.npmOnly = !slices.ContainsFunc(roots, func(s specifier) bool { return s.scheme != "npm" })
	fetched := map[string]bool{}
	line := func(address string) {
		stage, what := downloadStage(address)
		fetched[what] = true
		emit(supervisor.Event{Kind: supervisor.Stage, Text: stage})
	}
	if _, err := f.run(ctx, dir, line, slices.Concat([]string{"cache"}, flags, names)...); err != nil {
		return plan{}, err
	}
	p := plan{Registries: map[string]string{}, Digests: map[string]string{}}
	if p.Lock, err = os.ReadFile(lock); err != nil {
		return plan{}, fmt.Errorf("read the lock file that Deno wrote: %w", err)
	}
	if p.Packages, err = lockedPackages(p.Lock, roots, fetched); err != nil {
		return plan{}, err
	}
	if err := pl.list(ctx, f, dir, flags, roots, &p); err != nil {
		return plan{}, err
	}
	p.NoProcess = true
	for path := range p.Digests {
		full := filepath.Join(f.cache.DenoDir(), filepath.FromSlash(path))
		if p.Digests[path], err = digest(full); err != nil {
			return plan{}, fmt.Errorf("digest what was fetched: %w", err)
		}
		pl.verified.Store(full, p.Digests[path])
		if p.NoProcess {
			found, err := namesProcess(full)
			if err != nil {
				return plan{}, fmt.Errorf("look through what was fetched: %w", err)
			}
			p.NoProcess = !found
		}
	}
	return p, nil
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

// list asks Deno where the modules are.
func (pl *planner) list(ctx context.Context, f fetcher, dir string, flags []string, roots []specifier, p *plan) error {
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
			return err
		}
		var info struct {
			Modules []struct {
				Local string `json:"local"`
			} `json:"modules"`
			Packages map[string]struct {
				Name     string `json:"name"`
				Version  string `json:"version"`
				Local    string `json:"localPath"`
				Registry string `json:"registryUrl"`
			} `json:"npmPackages"`
		}
		if err := json.Unmarshal(text, &info); err != nil {
			return fmt.Errorf("read what Deno says of %s: %w", root, err)
		}
		for _, module := range info.Modules {
			p.addFile(f.cache.DenoDir(), module.Local)
		}
		for _, pkg := range info.Packages {
			p.addFile(f.cache.DenoDir(), pkg.Local)
			if err := checkAge(f.policy, pkg.Name, pkg.Version, pkg.Local, time.Now()); err != nil {
				return err
			}
			scope, _, scoped := strings.Cut(pkg.Name, "/")
			if !scoped {
				scope = ""
			}
			p.Registries[scope] = pkg.Registry
		}
	}
	return nil
}

func (p *plan) addFile(base, full string) {
	if full == "" {
		return
	}
	if rel, err := filepath.Rel(base, full); err == nil && filepath.IsLocal(rel) {
		p.Digests[filepath.ToSlash(rel)] = ""
	}
}

// digest hashes a file, or a directory with all names, kinds and contents.
func digest(root string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v ", rel, entry.Type())
		if !entry.Type().IsRegular() {
			return nil
		}
		fmt.Fprintf(h, "%d ", info.Size())
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(h, file)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
