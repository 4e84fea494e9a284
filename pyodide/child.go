//go:build !windows

package pyodide

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"rillbox/deno"
	"rillbox/supervisor"
)

// needs are what a child of ours needs itself, beside what a guest may do.
type needs struct {
	read    []string // files and directories
	connect string   // host:port; empty for none
	// dir is the child's own directory; empty means a new one.
	dir string
	// workspace is a directory that the guest may read and, unless readOnly,
	// write, and the child's current one; empty for none.
	workspace string
	readOnly  bool
	// guest says that the child takes a guest's program, once it is asked to.
	guest bool
	// background says that nobody waits for the child, ahead that nobody does yet.
	background, ahead bool
}

// startChild starts Deno on a module of ours with exactly these permissions and
// what it needs, the wire included.
func (e *Engine) startChild(rt *runtime, granted deno.Permissions, own needs, module string, args ...string) (*supervisor.Child, error) {
	if err := deno.CheckPaths(append([]string{e.o.Cache.Dir(), own.workspace}, own.read...)...); err != nil {
		return nil, err
	}
	if own.workspace != "" {
		granted = granted.With("allow-read", own.workspace)
		if !own.readOnly {
			granted = granted.With("allow-write", own.workspace)
		}
	}
	wall, err := granted.SecondWall(e.o.WithoutSecondWall, e.o.Log, append([]string{rt.deno.Path}, own.read...), nil, e.o.Cache.Dir())
	if err != nil {
		return nil, err
	}
	permissions := granted.With("allow-read", own.read...).With("allow-write", wirePath).With("deny-write", e.o.Cache.Dir()).IgnoreProxies(e.o.Env)
	if own.connect != "" {
		permissions = permissions.With("allow-net", own.connect)
		if address, err := netip.ParseAddrPort(own.connect); err == nil && wall != nil {
			wall.Connect = append(wall.Connect, address.Port())
		}
	}
	dir := own.dir
	if dir == "" {
		if dir, err = supervisor.NewRunDir(); err != nil {
			return nil, err
		}
	}
	denoDir := filepath.Join(dir, "deno")
	if err := deno.MakeDenoDir(denoDir); err != nil {
		return nil, fmt.Errorf("make a Python worker's directory: %w", err)
	}
	limits := e.o.Limits
	flags := []string{
		fmt.Sprintf("--wasm-max-mem-pages=%d", max(rt.heap+limits.Memory-min(limits.Memory/4, codeMemory), minHeap)/wasmPage),
		fmt.Sprintf("--max-old-space-size=%d", max(limits.Memory>>20, 64)),
		// V8 compiles Python's interpreter for the calls that it has seen. With the
		// first other one it would compile it anew: 5 ms in each run, and a fifth of
		// the time of programs that compute for a second.
		"--no-wasm-deopt",
		// A function is compiled anew, by V8's slow compiler, when it has run so much
		// (by default a quarter). Most of what it compiled in a program's first second
		// was not worth it: imports take 45 ms of CPU less of 225, and a program that
		// computes for a second 80 of 700.
		"--wasm-tiering-budget=50000000",
	}
	if own.ahead {
		// In MiB. What Pyodide makes while it is loaded lives on: V8 is to look for
		// garbage once, before the worker is ready, and to keep little room for
		// more. That takes 30 ms of CPU that nobody waits for. By itself V8 has 14 MB
		// more, and looks while the program runs (4 ms).
		flags = append(flags, "--initial-old-space-size=18", "--max-semi-space-size=2")
	}
	argv := []string{
		"run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--node-modules-dir=none", "--no-remote", "--no-npm", "--no-code-cache",
		"--v8-flags=" + strings.Join(flags, ","),
	}
	argv = append(append(argv, permissions.Args()...), module)
	child, err := supervisor.Start(supervisor.Command{
		Path:       rt.deno.Path,
		Args:       append(argv, args...),
		Env:        append(e.environment(), "HOME="+dir, "DENO_DIR="+denoDir),
		Dir:        dir,
		WorkDir:    own.workspace,
		Runtime:    startMemory,
		Wall:       wall,
		Background: own.background,
		Ahead:      own.ahead,
		JoinLater:  own.guest,
	}, limits)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a Python worker: %w", err), os.RemoveAll(dir))
	}
	return child, nil
}

// environment is what a child gets beside its own directories.
func (e *Engine) environment() []string {
	env := []string{
		"NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "DENO_NO_PACKAGE_JSON=1", "LANG=C.UTF-8",
		// glibc keeps what is freed below this many bytes; by default up to 64 MiB,
		// the 27 MB among them that V8 takes to compile Python's interpreter.
		"MALLOC_TRIM_THRESHOLD_=1048576",
	}
	for name, value := range e.variables() {
		env = append(env, name+"="+value)
	}
	return env
}

// variables are those of our environment that programs get.
func (e *Engine) variables() map[string]string {
	variables := map[string]string{}
	for _, name := range e.o.Env {
		if value, ok := os.LookupEnv(name); ok {
			variables[name] = value
		}
	}
	return variables
}
