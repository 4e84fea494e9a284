//go:build !windows

package pyodide

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"rillbox/deno"
	"rillbox/supervisor"
)

// needs are what a child of ours needs itself, beside what a guest may do.
type needs struct {
	read    []string // files and directories
	connect string   // host:port; empty for none
}

// startChild starts Deno on a module of ours with exactly these permissions and
// what it needs, the wire included.
func (e *Engine) startChild(rt *runtime, granted deno.Permissions, own needs, module string, args ...string) (*supervisor.Child, error) {
	if err := deno.CheckPaths(append([]string{e.o.Cache.Dir()}, own.read...)...); err != nil {
		return nil, err
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
	dir, err := supervisor.NewRunDir()
	if err != nil {
		return nil, err
	}
	limits := e.o.Limits
	argv := []string{
		"run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--node-modules-dir=none", "--no-remote", "--no-npm",
		fmt.Sprintf("--v8-flags=--wasm-max-mem-pages=%d,--max-old-space-size=%d",
			(max(rt.heap, minHeap)+limits.Memory-min(limits.Memory/4, codeMemory))/wasmPage, max(limits.Memory>>20, 64)),
	}
	argv = append(append(argv, permissions.Args()...), module)
	child, err := supervisor.Start(supervisor.Command{
		Path:    rt.deno.Path,
		Args:    append(argv, args...),
		Env:     append(e.environment(), "HOME="+dir, "DENO_DIR="+filepath.Join(dir, "deno")),
		Dir:     dir,
		Runtime: startMemory,
		Wall:    wall,
	}, limits)
	if err != nil {
		return nil, fmt.Errorf("start a Python worker: %w", err)
	}
	return child, nil
}

// environment is what a child gets beside its own directories.
func (e *Engine) environment() []string {
	env := []string{"NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "DENO_NO_PACKAGE_JSON=1", "LANG=C.UTF-8"}
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
