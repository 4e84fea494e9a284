//go:build !windows

package wasm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rillbox/deno/modules"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
)

const (
	wasmPage = 64 << 10
	// startMemory is what a child may use before it is ready, in bytes: the largest runtimes,
	// compilers, take half of it.
	startMemory = 1 << 30
	// codeMemory is left of a program's memory for what V8 compiles while it runs, so that a
	// full WebAssembly memory ends in the language's own error before we end the child.
	codeMemory = 64 << 20
	minHeap    = 64 << 20    // that every runtime can start with, in bytes
	wirePath   = "/dev/fd/3" // where a child opens its frames
)

// childOptions say what a child is started with.
type childOptions struct {
	module      string // of the guest's files, without its extension
	flags       []string
	heap        int64 // bytes of WebAssembly's memory that its runtime has at its start
	permissions permission.Permissions
	// workspace is a directory that the guest may read and, unless readOnly, write; empty
	// means one of its own, which goes with the child. bare means that it has none at all.
	workspace      string
	readOnly, bare bool
	combined       bool // its streams are one
	session        bool
	ahead          bool // nobody waits for it yet
}

// purpose is all that a child is made for as one comparable value: one made for another
// purpose is not for these options. Who waits for it is no part of that.
func (o childOptions) purpose() string {
	return fmt.Sprintf("%q", []any{
		o.module, o.flags, o.permissions.Args(), o.workspace, fmt.Sprint(o.readOnly), fmt.Sprint(o.bare), fmt.Sprint(o.combined), fmt.Sprint(o.session),
	})
}

// start is the argument of a guest's module; see guest/language.ts.
type start struct {
	Parts     map[string]string `json:"parts"`
	Workspace string            `json:"workspace"`
	ReadOnly  bool              `json:"readOnly"`
	Granted   []string          `json:"granted"`
	Session   bool              `json:"session"`
}

// startChild starts Deno on a module with exactly the guest's permissions and what the
// module itself needs.
func (e *Engine) startChild(rt runtime, o childOptions) (child *sandbox.Child, err error) {
	around, err := o.permissions.Surround(e.walls, append(sandbox.RunDirs(), e.o.Cache.Dir())...)
	if err != nil {
		return nil, err
	}
	defer around.Close()
	dir, err := sandbox.NewRunDir()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	own := filepath.Join(dir, "own")
	if err := errors.Join(os.MkdirAll(filepath.Join(own, "deno"), 0o700), os.Mkdir(filepath.Join(dir, "workspace"), 0o700)); err != nil {
		return nil, fmt.Errorf("make the directory of a child: %w", err)
	}
	if err := modules.MakeDenoDir(filepath.Join(own, "deno")); err != nil {
		return nil, fmt.Errorf("make the directory of a child: %w", err)
	}
	guest := around.See(rt.guest, "/rillbox/guest", launcher.Read)
	argument, reads := start{Parts: map[string]string{}, ReadOnly: o.readOnly, Session: o.session}, []string{guest}
	for i, name := range sortedNames(rt.parts) {
		argument.Parts[name] = around.See(rt.parts[name], fmt.Sprintf("/rillbox/part-%d", i), launcher.Read)
		reads = append(reads, argument.Parts[name])
	}
	home := around.See(dir, "/rillbox/program", launcher.Read|launcher.Write)
	cwd, permissions := home, o.permissions
	switch {
	case o.bare:
	case o.workspace != "":
		cwd = around.Workspace(o.workspace, o.readOnly)
		permissions = permissions.WithWorkspace(cwd, o.readOnly)
	default:
		cwd = filepath.Join(home, "workspace")
		permissions = permissions.WithWorkspace(cwd, false)
	}
	argument.Workspace = cwd
	if argument.Granted, err = grantedPaths(o.permissions); err != nil {
		return nil, job.Refuse("%v", err)
	}
	if err := permission.CheckPaths(append([]string{e.o.Cache.Dir(), cwd}, reads...)...); err != nil {
		return nil, err
	}
	ownName := filepath.Join(home, "own")
	permissions = permissions.With("allow-read", reads...).With("allow-write", wirePath).With("deny-write", ownName).IgnoreProxies(e.o.Env)
	if !around.OwnRoot() { // there the cache has no name
		permissions = permissions.With("deny-write", e.o.Cache.Dir())
	}
	text, err := json.Marshal(argument)
	if err != nil {
		return nil, err
	}
	flags := []string{
		"run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--node-modules-dir=none", "--no-remote", "--no-npm", "--no-code-cache",
		"--v8-flags=" + strings.Join(append(e.memoryFlags(o.heap), o.flags...), ","),
	}
	env := []string{
		"NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "DENO_NO_PACKAGE_JSON=1", "LANG=C.UTF-8", "MALLOC_TRIM_THRESHOLD_=1048576",
		"HOME=" + ownName, "DENO_DIR=" + filepath.Join(ownName, "deno"),
	}
	command := sandbox.Command{
		Path:      around.See(rt.deno, permission.BinaryName, launcher.Read|launcher.Execute),
		Args:      slices.Concat(flags, permissions.Args(), []string{filepath.Join(guest, o.module+".js"), string(text)}),
		Env:       slices.Concat(env, permission.Environ(e.o.Env), around.Environment()),
		Dir:       dir,
		OwnDir:    own,
		WorkDir:   o.workspace,
		Cwd:       cwd,
		Runtime:   startMemory,
		Combined:  o.combined,
		Ahead:     o.ahead,
		JoinLater: true,
	}
	command.Wall = around.Wall()
	if child, err = sandbox.Start(command, e.o.Limits); err != nil {
		return nil, fmt.Errorf("start a child: %w", err)
	}
	return child, nil
}

// memoryFlags bound V8's and WebAssembly's memory.
func (e *Engine) memoryFlags(heap int64) []string {
	memory := e.o.Limits.Memory
	return []string{
		fmt.Sprintf("--wasm-max-mem-pages=%d", max(heap+memory-min(memory/4, codeMemory), minHeap)/wasmPage),
		fmt.Sprintf("--max-old-space-size=%d", max(memory>>20, 64)),
	}
}

func sortedNames(parts map[string]string) (names []string) {
	for name := range parts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
