package pyodide

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"rillbox/cache"
)

// The Pyodide that Rillbox is built for, and what it contains.
const (
	Version         = "314.0.7"
	PythonVersion   = "3.14.2"
	MicropipVersion = "0.11.1"
)

// PathEnv names the environment variable that points at an operator's own
// Pyodide: a directory with the files of a release.
const PathEnv = "RILLBOX_PYODIDE"

// DefaultCDN is where Pyodide publishes a release's packages.
const DefaultCDN = "https://cdn.jsdelivr.net/pyodide/v" + Version + "/full/"

// releasesURL is where upstream publishes <version>/pyodide-core-<version>.tar.bz2.
const releasesURL = "https://github.com/pyodide/pyodide/releases/download"

// core are the files of the release that running needs.
var core = cache.Pinned{
	"pyodide.mjs":       "6f1d60f7bf529beb300f0f47983c921d3982363640ba20af0e38efdddbc66109",
	"pyodide.asm.mjs":   "f7cdc8ece80678ceb712f8e65ebe6d3a83203a180c399865f49612a051693635",
	"pyodide.asm.wasm":  "cc36e3cab04fdfc9a63ff13eb52eae2b911bf46c025cc7b281f394bd3de1d5e6",
	"python_stdlib.zip": "fa1957e5777068fc4f7437f96d860ae2fbe9c19732ba06c84e004ec16dd7dd7a",
	"pyodide-lock.json": "5dc2fc119108bc148c7457dc86e7675b5c87e1cafd420b9c34c1eaef7b36c010",
}

// coreTarball is the sha512 of the npm package pyodide.
const coreTarball = "d18bd7c4485f11da4b7dbfd790cd8114078c44eab488c517d9bcf31fda4eb6dc8c716930abe1db139bb2b860fcd8b37bcb6abe48dbe2ffa579244b0e943d91d4"

const (
	maxCore  = 64 << 20 // the largest archive so far is 6.5 MB
	maxWheel = 4 << 20  // micropip's is 0.1 MB
)

// Distribution is a Pyodide on this machine.
type Distribution struct {
	// Dir holds pyodide.mjs, pyodide.asm.mjs, pyodide.asm.wasm,
	// python_stdlib.zip and pyodide-lock.json.
	Dir string
	// Micropip is the path of micropip's wheel, in Dir unless the operator's
	// directory has none.
	Micropip string
	Version  string // "314.0.7"
	// Operator says that the directory was given, and so was not hashed.
	Operator bool
}

// LocateOptions say where Pyodide may come from.
type LocateOptions struct {
	Cache *cache.Cache
	// Path is the operator's own directory ($RILLBOX_PYODIDE); empty means the
	// cache, filled from the network if need be.
	Path string
	// CDN is the base URL of Pyodide's packages; empty means DefaultCDN.
	CDN string
	// Progress, which may be nil, hears of downloads: bytes done, of total
	// (0 when unknown). It may be called from several goroutines.
	Progress func(stage string, done, total int64)

	releases string // base URL of upstream's releases, for tests
	pinned   pinned // for tests
}

// pinned are the bytes that are accepted.
type pinned struct {
	core    cache.Pinned
	tarball string
	wheels  []string
}

// LocateDistribution finds Pyodide: the operator's own, else the cache's, else
// it is fetched from upstream's releases or from the npm registry of this
// machine's configuration, and micropip as locateMicropip says. Whatever the
// source, the files are the pinned ones or refused. Without a network the error
// wraps cache.ErrOffline.
func LocateDistribution(ctx context.Context, o LocateOptions) (Distribution, error) {
	o = o.withDefaults()
	if o.Path != "" {
		return operators(ctx, o)
	}
	dir, _, err := o.Cache.Tree(ctx, "runtime", "pyodide/"+Version, o.fetch)
	if err != nil {
		return Distribution{}, err
	}
	return inDir(dir), nil
}

// availableDistribution says whether LocateDistribution would find Pyodide
// without fetching it, and gives what is known of an operator's own.
func availableDistribution(o LocateOptions) (Distribution, bool) {
	if o.Path == "" {
		return Distribution{}, o.Cache.HasTree("runtime", "pyodide/"+Version)
	}
	d, err := operatorsDir(o.Path)
	if err == nil && d.Micropip == "" {
		var dir string
		dir, err = o.Cache.GetTree("runtime", "micropip/"+MicropipVersion)
		d.Micropip = filepath.Join(dir, micropipWheel)
	}
	return d, err == nil
}

func inDir(dir string) Distribution {
	return Distribution{Dir: dir, Micropip: filepath.Join(dir, micropipWheel), Version: Version}
}

func (o LocateOptions) withDefaults() LocateOptions {
	if o.CDN == "" {
		o.CDN = DefaultCDN
	}
	if o.releases == "" {
		o.releases = releasesURL
	}
	if o.pinned.core == nil {
		o.pinned = pinned{core: core, tarball: coreTarball, wheels: micropipHashes}
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	return o
}

// operators takes the operator's directory, and micropip from elsewhere if that
// directory has none: upstream's core archive does without.
func operators(ctx context.Context, o LocateOptions) (Distribution, error) {
	d, err := operatorsDir(o.Path)
	if err != nil || d.Micropip != "" {
		return d, err
	}
	dir, _, err := o.Cache.Tree(ctx, "runtime", "micropip/"+MicropipVersion, o.fetchMicropip)
	if err != nil {
		return Distribution{}, fmt.Errorf("%s=%s has no %s: %w", PathEnv, o.Path, micropipWheel, err)
	}
	d.Micropip = filepath.Join(dir, micropipWheel)
	return d, nil
}

func operatorsDir(path string) (Distribution, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return Distribution{}, fmt.Errorf("%s: %w", PathEnv, err)
	}
	for name := range core {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return Distribution{}, fmt.Errorf("%s=%s is not a Pyodide release (%w): point it at one of version %s, or unset it", PathEnv, dir, err, Version)
		}
	}
	// Its lock file does not tell; the version is a string of the program.
	text, err := os.ReadFile(filepath.Join(dir, "pyodide.mjs"))
	if err != nil {
		return Distribution{}, fmt.Errorf("%s=%s: %w", PathEnv, dir, err)
	}
	if !bytes.Contains(text, []byte(`"`+Version+`"`)) {
		return Distribution{}, fmt.Errorf("%s=%s is another version than Pyodide %s, which Rillbox is made for: point it at that version, or unset it", PathEnv, dir, Version)
	}
	d := Distribution{Dir: dir, Version: Version, Operator: true}
	if wheel := filepath.Join(dir, micropipWheel); exists(wheel) {
		d.Micropip = wheel
	}
	return d, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// fetch puts the release's files and micropip's wheel into dir. Without a
// network it is Pyodide that is said to be missing.
func (o LocateOptions) fetch(ctx context.Context, dir string) error {
	var micropipErr error
	var both sync.WaitGroup
	both.Go(func() { micropipErr = o.fetchMicropip(ctx, dir) })
	err := o.fetchCore(ctx, dir)
	both.Wait()
	if err != nil {
		return err
	}
	return micropipErr
}

// fetchCore puts the release's files into dir.
func (o LocateOptions) fetchCore(ctx context.Context, dir string) error {
	what := "Pyodide " + Version
	take := func(from, to string) error { return o.pinned.core.Take(from, to) }
	return o.Cache.FetchAny(ctx, what, dir, o.stage(what),
		cache.Alternative{Name: "Pyodide's releases", Fetch: func(ctx context.Context, to string, progress func(done, total int64)) error {
			src := cache.Source{
				URL:     fmt.Sprintf("%s/%s/pyodide-core-%s.tar.bz2", strings.TrimRight(o.releases, "/"), Version, Version),
				Archive: "tar.bz2", MaxBytes: maxCore,
			}
			if err := o.Cache.Download(ctx, src, to+".tmp", progress); err != nil {
				return err
			}
			return take(filepath.Join(to+".tmp", "pyodide"), to)
		}},
		cache.Alternative{Name: "npm", Fetch: func(ctx context.Context, to string, progress func(done, total int64)) error {
			src := cache.Source{SHA512: o.pinned.tarball, MaxBytes: maxCore}
			if err := o.Cache.DownloadNPM(ctx, "pyodide", Version, src, to+".tmp", progress); err != nil {
				return err
			}
			return take(filepath.Join(to+".tmp", "package"), to)
		}},
	)
}

func (o LocateOptions) stage(what string) func(done, total int64) {
	return func(done, total int64) { o.Progress("fetching "+what, done, total) }
}
