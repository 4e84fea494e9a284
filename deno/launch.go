//go:build !windows

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
	"strconv"

	"rillbox/supervisor"
	"rillbox/supervisor/launcher"
)

// fileURL is a path as a URL, in the form that Deno gives it.
func fileURL(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// Our own files of a run stand in a directory beside the program.
const ownDir = ".rillbox"

// launch is what a child is started with.
type launch struct {
	entry       string // one of guestEntries, as a .js file; empty means that of runs
	ours        bool   // it loads nothing of others
	permissions Permissions
	workspace   string            // its working directory; empty means one of its own
	imports     map[string]string // an import map
	install     plan
	compiled    string   // a directory with compiled code; empty if there is none
	keep        string   // its DENO_DIR, where that is not to go with its directory
	files       []string // the names that its program's file may have
	args        []string
}

// command writes the child's files into dir, save the program, and says how to
// start Deno there.
func (e *Engine) command(ctx context.Context, dir string, l launch) (supervisor.Command, error) {
	own := filepath.Join(dir, ownDir)
	denoDir := cmp.Or(l.keep, own)
	programs := make([]string, len(l.files))
	for i, name := range l.files {
		programs[i] = filepath.Join(dir, name)
	}
	if err := CheckPaths(append(programs, own, l.workspace, e.options.Cache.Dir())...); err != nil {
		return supervisor.Command{}, err
	}
	if err := errors.Join(os.MkdirAll(own, 0o700), os.MkdirAll(denoDir, 0o700)); err != nil {
		return supervisor.Command{}, fmt.Errorf("make the run's directory: %w", err)
	}
	files := map[string][]byte{}
	args := []string{
		"run", "--quiet", "--no-config", "--node-modules-dir=none", "--no-prompt", "--cached-only",
		"--v8-flags=--max-old-space-size=" + strconv.FormatInt(max(e.options.Limits.Memory>>20, 16), 10),
	}
	if l.keep == "" {
		if err := fillDenoDir(denoDir, l.compiled); err != nil {
			return supervisor.Command{}, fmt.Errorf("make the run's directory: %w", err)
		}
		if l.compiled == "" {
			args = append(args, "--no-code-cache")
		}
	}
	if len(l.imports) > 0 {
		text, err := json.Marshal(map[string]any{"imports": l.imports})
		if err != nil {
			return supervisor.Command{}, fmt.Errorf("write the import map: %w", err)
		}
		path := filepath.Join(own, "import_map.json")
		files[path] = text
		args = append(args, "--import-map="+path)
	}
	env := e.environment(denoDir)
	readOnly := []string{e.binary.Path, e.guest}
	if len(l.install.Lock) > 0 {
		lock := filepath.Join(own, "lock.json")
		files[lock] = l.install.Lock
		args = append(args, "--lock="+lock)
		npmrc := ""
		env, npmrc = withRegistries(env, own, l.install.Registries)
		if npmrc != "" {
			files[filepath.Join(own, ".npmrc")] = []byte(npmrc)
		}
		modules, err := e.linkModules(ctx, denoDir, l.install)
		if err != nil {
			return supervisor.Command{}, err
		}
		readOnly = append(readOnly, modules)
	} else {
		args = append(args, "--no-lock")
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return supervisor.Command{}, fmt.Errorf("write the run's files: %w", err)
		}
	}
	var wall *launcher.Wall
	if !l.ours {
		var err error
		wall, err = l.permissions.SecondWall(e.options.WithoutSecondWall, e.options.Log, readOnly, []string{dir, denoDir}, e.options.Cache.Dir())
		if err != nil {
			return supervisor.Command{}, err
		}
	}
	args = append(args, e.flags(l.permissions, programs, own)...)
	args = append(args, filepath.Join(e.guest, cmp.Or(l.entry, "bootstrap.js")))
	return supervisor.Command{
		Path:    e.binary.Path,
		Args:    append(args, l.args...),
		Env:     env,
		Dir:     dir,
		OwnDir:  own,
		WorkDir: l.workspace,
		Wall:    wall,
		// Only the bootstrap module waits until it is asked to run others' code.
		JoinLater: l.entry == "",
	}, nil
}

// linkModules lets the modules of the plan be found in a run's DENO_DIR, and
// gives the directory that they are in: the cache's own, or where the policy
// restricts what may be used, one with the plan's modules and no others. What
// Deno compiles is written into the run's directory, where no other run sees it.
func (e *Engine) linkModules(ctx context.Context, denoDir string, p plan) (modules string, err error) {
	modules = e.options.Cache.DenoDir()
	if e.options.Policy.Restricts() {
		if modules, err = e.view(ctx, p); err != nil {
			return "", err
		}
	}
	if err := link(denoDir, modules); err != nil {
		return "", fmt.Errorf("make the run's directory: %w", err)
	}
	return modules, nil
}

// link lets a DENO_DIR have the modules of another directory.
func link(denoDir, modules string) error {
	for _, name := range []string{"npm", "remote"} {
		if err := os.Symlink(filepath.Join(modules, name), filepath.Join(denoDir, name)); err != nil {
			return err
		}
	}
	return nil
}

// flags are a run's permission flags: those granted, and what the engine itself
// needs or forbids.
func (e *Engine) flags(p Permissions, programs []string, own string) []string {
	p = p.With("allow-read", programs...).With("allow-write", "/dev/fd/3").With("deny-write", e.options.Cache.Dir(), own).IgnoreProxies(e.options.Env)
	return p.Args()
}

// environment is a run's whole environment.
func (e *Engine) environment(denoDir string) []string {
	env := []string{"DENO_DIR=" + denoDir, "NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "DENO_NO_PACKAGE_JSON=1", "DENO_DISABLE_NODE_SHIM=1"}
	for _, name := range []string{"JSR_URL"} { // where it is, decides under which name jsr: modules are cached
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range e.options.Env {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// withRegistries tells Deno where the packages of the plan came from, which is
// part of their names in its cache.
func withRegistries(env []string, home string, registries map[string]string) (with []string, npmrc string) {
	for _, scope := range slices.Sorted(maps.Keys(registries)) {
		address := registries[scope]
		switch {
		case scope == "":
			env = append(env, "NPM_CONFIG_REGISTRY="+address)
		case address != registries[""]:
			npmrc += scope + ":registry=" + address + "\n"
		}
	}
	if npmrc != "" {
		env = append(env, "HOME="+home)
	}
	return env, npmrc
}
