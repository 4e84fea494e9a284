//go:build !windows

package pyodide

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"rillbox/deno"
	"rillbox/supervisor"
	"rillbox/supervisor/launcher"
)

// startChild starts Deno on a module of ours with exactly these permissions.
func (e *Engine) startChild(rt *runtime, permissions deno.Permissions, module string, args ...string) (*supervisor.Child, error) {
	wall := wallFor(rt.deno, permissions)
	if e.o.WithoutSecondWall {
		wall = nil
	}
	if err := permissions.CheckWall(e.o.WithoutSecondWall, e.o.Log); err != nil {
		return nil, err
	}
	dir, err := supervisor.NewRunDir()
	if err != nil {
		return nil, err
	}
	limits := e.o.Limits
	argv := []string{
		"run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--node-modules-dir=none", "--no-remote", "--no-npm",
		fmt.Sprintf("--v8-flags=--wasm-max-mem-pages=%d,--max-old-space-size=%d",
			(rt.heap+limits.Memory)/wasmPage, max(limits.Memory>>20, 64)),
	}
	argv = append(append(argv, permissions.Args()...), module)
	child, err := supervisor.Start(supervisor.Command{
		Path: rt.deno.Path,
		Args: append(argv, args...),
		Env:  append(e.environment(), "HOME="+dir, "DENO_DIR="+filepath.Join(dir, "deno")),
		Dir:  dir,
		Wall: wall,
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

// wallFor lets the kernel allow what Deno's permissions do, and the binary.
func wallFor(binary deno.Binary, permissions deno.Permissions) *launcher.Wall {
	wall := &launcher.Wall{ReadOnly: []string{binary.Path}}
	everything, paths := permissions.Allowed("read")
	wall.ReadOnly = append(wall.ReadOnly, paths...)
	if everything {
		wall.ReadOnly = append(wall.ReadOnly, "/")
	}
	everything, paths = permissions.Allowed("write")
	for _, path := range paths {
		if path != wirePath { // a pipe: nothing that a path rule could hold
			wall.WriteOnly = append(wall.WriteOnly, path)
		}
	}
	if everything {
		wall.WriteOnly = append(wall.WriteOnly, "/")
	}
	for _, kind := range []string{"run", "ffi"} {
		everything, names := permissions.Allowed(kind)
		if everything || len(names) > 0 {
			wall.Processes = true
			wall.ReadOnly = append(wall.ReadOnly, "/") // to find and load programs
		}
	}
	everything, hosts := permissions.Allowed("net")
	wall.AnyNetwork = everything
	for _, host := range hosts {
		_, text, err := net.SplitHostPort(host)
		port, portErr := strconv.ParseUint(text, 10, 16)
		if err != nil || portErr != nil { // any port of the host
			wall.AnyNetwork = true
			continue
		}
		wall.Connect = append(wall.Connect, uint16(port))
	}
	return wall
}
