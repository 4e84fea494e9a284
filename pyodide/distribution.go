package pyodide

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"rillbox/cache"
	"rillbox/cache/egress"
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

// releaseURL is where upstream publishes the files of core.
const releaseURL = "https://github.com/pyodide/pyodide/releases/download/" + Version + "/pyodide-core-" + Version + ".tar.bz2"

// core are the files of the release that running needs, with their sha256.
var core = map[string][]string{
	"pyodide.mjs":       {"6f1d60f7bf529beb300f0f47983c921d3982363640ba20af0e38efdddbc66109"},
	"pyodide.asm.mjs":   {"f7cdc8ece80678ceb712f8e65ebe6d3a83203a180c399865f49612a051693635"},
	"pyodide.asm.wasm":  {"cc36e3cab04fdfc9a63ff13eb52eae2b911bf46c025cc7b281f394bd3de1d5e6"},
	"python_stdlib.zip": {"fa1957e5777068fc4f7437f96d860ae2fbe9c19732ba06c84e004ec16dd7dd7a"},
	"pyodide-lock.json": {"5dc2fc119108bc148c7457dc86e7675b5c87e1cafd420b9c34c1eaef7b36c010"},
}

// The cache's keys of Pyodide and, where the operator's has none, of micropip.
const (
	runtimeKind = "runtime"
	pyodideKey  = "pyodide/" + Version
	micropipKey = "micropip/" + MicropipVersion
)

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
	// Operator says that the directory was given, and so was not hashed.
	Operator bool
}

// LocateOptions say where Pyodide may come from.
type LocateOptions struct {
	Cache *cache.Cache
	// Path is the operator's own directory ($RILLBOX_PYODIDE); empty means the
	// cache, filled from the network if need be.
	Path string
	// Mirror is Options.Mirror.
	Mirror string
	// Progress, which may be nil, hears of downloads: bytes done, of total
	// (0 when unknown). It may be called from several goroutines.
	Progress func(stage string, done, total int64)
}

// LocateDistribution finds Pyodide: the operator's own, else the cache's, else
// it is fetched from the mirror, upstream's releases or the npm registry of this
// machine's configuration, and micropip as fetchMicropip says. Whatever the
// source, the files are the pinned ones or refused. Without a network the error
// wraps egress.ErrOffline.
func LocateDistribution(ctx context.Context, o LocateOptions) (Distribution, error) {
	if o.Path == "" {
		dir, _, err := o.Cache.Tree(ctx, runtimeKind, pyodideKey, o.fetch)
		return Distribution{Dir: dir, Micropip: filepath.Join(dir, micropipWheel)}, err
	}
	d, err := operators(o.Path)
	if err != nil || d.Micropip != "" {
		return d, err
	}
	// Upstream's core archive does without.
	dir, _, err := o.Cache.Tree(ctx, runtimeKind, micropipKey, o.fetchMicropip)
	if err != nil {
		return Distribution{}, fmt.Errorf("%s=%s has no %s: %w", PathEnv, o.Path, micropipWheel, err)
	}
	d.Micropip = filepath.Join(dir, micropipWheel)
	return d, nil
}

// availableDistribution says whether LocateDistribution would find Pyodide
// without fetching it, and gives what is known of an operator's own.
func availableDistribution(o LocateOptions) (Distribution, bool) {
	if o.Path == "" {
		return Distribution{}, o.Cache.HasTree(runtimeKind, pyodideKey)
	}
	d, err := operators(o.Path)
	if err == nil && d.Micropip == "" {
		var dir string
		dir, err = o.Cache.GetTree(runtimeKind, micropipKey)
		d.Micropip = filepath.Join(dir, micropipWheel)
	}
	return d, err == nil
}

// operators checks the operator's directory, which may be without micropip.
func operators(path string) (Distribution, error) {
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
	d := Distribution{Dir: dir, Micropip: filepath.Join(dir, micropipWheel), Operator: true}
	if _, err := os.Stat(d.Micropip); err != nil {
		d.Micropip = ""
	}
	return d, nil
}

// fetch puts the release's files and micropip's wheel into dir. Without a
// network it is Pyodide that is said to be missing.
func (o LocateOptions) fetch(ctx context.Context, dir string) error {
	var micropipErr error
	var both sync.WaitGroup
	both.Go(func() { micropipErr = o.fetchMicropip(ctx, dir) })
	err := o.fetchCore(ctx, dir)
	both.Wait()
	return cmp.Or(err, micropipErr)
}

// fetchCore puts the release's files into dir.
func (o LocateOptions) fetchCore(ctx context.Context, dir string) error {
	from, err := o.mirror(slices.Sorted(maps.Keys(core))...)
	if err != nil {
		return err
	}
	return o.Cache.Fetch(ctx, cache.Pinned{
		Name:  "Pyodide " + Version,
		Files: core,
		From: append(from,
			o.Cache.Archive("Pyodide's releases", "pyodide", egress.Source{URL: releaseURL, Archive: "tar.bz2", MaxBytes: maxCore}),
			o.Cache.NPM("pyodide", Version, egress.Source{SHA512: coreTarball, MaxBytes: maxCore}),
		),
	}, dir, o.Progress)
}
