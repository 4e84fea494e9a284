// Package binary finds the Deno that children run: the operator's own, the cache's, or
// one that is fetched. It is of the pinned version, and of the pinned bytes unless the
// operator named it.
package binary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"rillbox/cache"
	"rillbox/cache/egress"
)

// The Deno that Rillbox is built for, and what it contains.
const (
	Version           = "2.9.6"
	V8Version         = "15.0.245.2-rusty"
	TypeScriptVersion = "6.0.3"
)

// PathEnv names the environment variable that points at an operator's own Deno.
const PathEnv = "RILLBOX_DENO"

// LocateOptions say where Deno may come from.
type LocateOptions struct {
	Cache *cache.Cache
	// Path is the operator's own binary ($RILLBOX_DENO); empty means the cache,
	// filled from the network if need be.
	Path string
	// Progress, which may be nil, hears of a download: bytes done, of total
	// (0 when unknown). It is not called when nothing is downloaded.
	Progress func(stage string, done, total int64)

	// releases is the base URL of upstream's releases, for tests.
	releases string
	build    *build // for tests
}

// releasesURL is where upstream publishes <version>/deno-<target>.zip.
const releasesURL = "https://github.com/denoland/deno/releases/download"

// build is one of upstream's binaries.
type build struct {
	target  string // as upstream's releases call it
	npm     string // as npm's packages call it
	tarball string // sha512 of the npm package, where it is known
	sha256  string // of the binary itself: what decides
}

// builds are the binaries of version 2.9.6. That of linux/amd64 is the same
// file in npm's package and in the wheel of the Python package index; the
// other hashes were taken from those wheels, as not every npm mirror has the
// other packages.
var builds = map[string]build{
	"linux/amd64": {
		target: "x86_64-unknown-linux-gnu", npm: "@deno/linux-x64-glibc",
		tarball: "de67784ca2c2bb3b0b0e67cea02e4a37b34065ac525643209bae2f83a7e80f4d090400c2a584b6ff942a5dfce09cfe59433de22cff6f05026d120735d7a380a1",
		sha256:  "bceb5b6a6239b0b010418406d8c77a508f67cf4337d94288f1c19fe71304aab0",
	},
	"linux/arm64": {
		target: "aarch64-unknown-linux-gnu", npm: "@deno/linux-arm64-glibc",
		sha256: "d08d392418df53f4e6e88a08909c0e1bccbf9adcead7232df72b6ad6075ec416",
	},
	"darwin/amd64": {
		target: "x86_64-apple-darwin", npm: "@deno/darwin-x64",
		sha256: "ec9fbd8e8f5f6ca5ceb0ebe4a564636f2c698bf60e3187460ded400cc0147fd5",
	},
	"darwin/arm64": {
		target: "aarch64-apple-darwin", npm: "@deno/darwin-arm64",
		sha256: "b3ac3bd206e48c26026cadd80c1367e96c149f9c66130952382a642b09fa8a71",
	},
}

// maxArchive bounds a download; the largest so far is 42 MB.
const maxArchive = 128 << 20

// Locate gives the path of Deno: the operator's own, else the cache's, else it is
// fetched from upstream's releases or from the npm registry of this machine's
// configuration. Whatever the source, the binary is the pinned one or refused.
// Without a network the error wraps egress.ErrOffline.
func Locate(ctx context.Context, o LocateOptions) (string, error) {
	if o.Path != "" {
		return operators(ctx, o.Path)
	}
	b, err := o.platform()
	if err != nil {
		return "", err
	}
	dir, _, err := o.Cache.Tree(ctx, runtimeKind, b.key(), func(ctx context.Context, dir string) error {
		return b.fetch(ctx, o, dir)
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "deno"), nil
}

func (o LocateOptions) platform() (build, error) {
	if o.build != nil {
		return *o.build, nil
	}
	b, ok := builds[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return build{}, fmt.Errorf("no Deno is published for %s/%s: set %s to a Deno %s of your own", runtime.GOOS, runtime.GOARCH, PathEnv, Version)
	}
	return b, nil
}

func (b build) key() string { return keyPrefix + Version + "/" + b.target }

// keyPrefix begins the cache's keys of Deno.
const keyPrefix = "deno/"

// runtimeKind is the cache's kind of runtimes.
const runtimeKind = "runtime"

// Admit judges an archive's entry: Deno is taken if it has the pinned bytes, whoever made
// the archive. note says why another one is left out. The error is cache.ErrNotPortable
// for what is no Deno.
func Admit(p cache.Portable) (note string, err error) {
	rest, isDeno := strings.CutPrefix(p.Key, keyPrefix)
	if p.Kind != runtimeKind || !isDeno || !p.Tree {
		return "", cache.ErrNotPortable
	}
	version, target, _ := strings.Cut(rest, "/")
	if version != Version {
		return fmt.Sprintf("Deno %.40q is left out: this version of Rillbox needs %s", version, Version), nil
	}
	ours, err := LocateOptions{}.platform()
	if err != nil || target != ours.target {
		return fmt.Sprintf("Deno for %.60q is left out: this machine is %s/%s; `rillbox setup` fetches its own", target, runtime.GOOS, runtime.GOARCH), nil
	}
	if len(p.Files) != 1 || p.Files[0].Path != "deno" || p.Files[0].SHA256 != ours.sha256 || !p.Files[0].Executable {
		return "", errors.New("it is not the pinned Deno")
	}
	return "", nil
}

// operators checks the operator's own binary: it must run, and be the version
// that the sandbox was tested with.
func operators(ctx context.Context, path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", PathEnv, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = []string{"NO_COLOR=1"}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s=%s can't be run as Deno (%w): point it at a Deno %s, or unset it", PathEnv, path, err, Version)
	}
	words := strings.Fields(string(out))
	if len(words) < 2 || words[0] != "deno" {
		return "", fmt.Errorf("%s=%s is not Deno: its --version prints %.60q; point it at a Deno %s, or unset it", PathEnv, path, out, Version)
	}
	if words[1] != Version {
		return "", fmt.Errorf("%s=%s is Deno %s, but the sandbox is made for Deno %s: point it at that version, or unset it", PathEnv, path, words[1], Version)
	}
	return path, nil
}

// fetch puts the binary, and nothing else, into dir.
func (b build) fetch(ctx context.Context, o LocateOptions, dir string) error {
	release := egress.Source{
		URL:     fmt.Sprintf("%s/v%s/deno-%s.zip", cmp.Or(o.releases, releasesURL), Version, b.target),
		Archive: "zip", MaxBytes: maxArchive,
	}
	err := o.Cache.Fetch(ctx, cache.Pinned{
		Name:  "Deno " + Version,
		Files: map[string][]string{"deno": {b.sha256}},
		From: []cache.Origin{
			o.Cache.Archive("Deno's releases", "", release),
			o.Cache.NPM(b.npm, Version, egress.Source{SHA512: b.tarball, MaxBytes: maxArchive}),
		},
	}, dir, o.Progress)
	if err != nil {
		return err
	}
	return os.Chmod(filepath.Join(dir, "deno"), 0o700)
}

// Available says that Deno is on this machine, without verifying it.
func Available(o LocateOptions) bool {
	if o.Path != "" {
		info, err := os.Stat(o.Path)
		return err == nil && info.Mode().IsRegular()
	}
	b, err := o.platform()
	return err == nil && o.Cache.HasTree(runtimeKind, b.key())
}
