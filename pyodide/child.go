//go:build !windows

package pyodide

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rillbox/deno"
	"rillbox/supervisor"
	"rillbox/supervisor/launcher"
)

// needs are what a child of ours needs itself, beside what a guest may do.
type needs struct {
	read    []seen // files and directories
	gateway bool   // it may reach the package gateway
	// dir is the child's own directory; empty means a new one.
	dir string
	// workspace is a directory that the guest may read and, unless readOnly,
	// write, and the child's current one; empty for none.
	workspace string
	readOnly  bool
	combined  bool // its streams are one
	// guest says that the child takes a guest's program, once it is asked to.
	guest bool
	// background says that nobody waits for the child, ahead that nobody does yet.
	background, ahead bool
}

// seen is a file or directory of ours that a child reads, and the name that it has
// in a root of the child's own.
type seen struct{ path, name string }

// The names of what is ours in a child's root.
const (
	pyodideName  = "/rillbox/pyodide"
	snapshotName = "/rillbox/snapshot"
	workerName   = "/rillbox/worker"
)

// reads are what every child that loads Python from the snapshot reads.
func (rt *runtime) reads() []seen {
	return []seen{{rt.pyodide.Dir, pyodideName}, {rt.snapshot, snapshotName}, {rt.worker, workerName}}
}

// gatewayPort is where a child with a network of its own finds the package gateway.
const gatewayPort = 8080

// started is a child with what it was told of where things are.
type started struct {
	*supervisor.Child
	names   map[string]string // by paths of ours
	gateway string            // host:port; empty when it may not reach it
}

// name is the child's name for a path of ours, or for one below it.
func (s started) name(path string) string {
	nearest, name := "", path
	for from, to := range s.names {
		if rest, below := strings.CutPrefix(path, from); below && (rest == "" || rest[0] == '/') && len(from) > len(nearest) {
			nearest, name = from, to+rest
		}
	}
	return name
}

// startChild starts Deno on a module of the worker's with exactly these permissions
// and what it needs, the wire included. Of the arguments, those that are paths of
// what it reads, and the workspace's, become the child's names for them. A guest's
// child gets the paths that are granted after them.
func (e *Engine) startChild(rt *runtime, granted deno.Permissions, own needs, module string, args ...string) (child started, err error) {
	around, err := granted.Surround(e.walls, append(supervisor.RunDirs(), e.o.Cache.Dir())...)
	if err != nil {
		return started{}, err
	}
	defer around.Close()
	var paths []string
	if own.guest {
		if paths, err = grantedPaths(granted); err != nil {
			return started{}, &supervisor.ProgramError{Text: err.Error()}
		}
	}
	dir := own.dir
	if dir == "" {
		if dir, err = supervisor.NewRunDir(); err != nil {
			return started{}, err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, os.RemoveAll(dir))
			}
		}()
	}
	if err := deno.MakeDenoDir(filepath.Join(dir, "deno")); err != nil {
		return started{}, fmt.Errorf("make a Python worker's directory: %w", err)
	}
	home := around.See(dir, "/rillbox/program", launcher.Read|launcher.Write)
	child.names = map[string]string{}
	var reads []string
	for _, s := range own.read {
		child.names[s.path] = around.See(s.path, s.name, launcher.Read)
		reads = append(reads, child.names[s.path])
	}
	cwd := home
	if own.workspace != "" {
		cwd = around.Workspace(own.workspace, own.readOnly)
		child.names[own.workspace] = cwd
		granted = granted.With("allow-read", cwd)
		if !own.readOnly {
			granted = granted.With("allow-write", cwd)
		}
	}
	if err := deno.CheckPaths(append([]string{e.o.Cache.Dir(), cwd}, reads...)...); err != nil {
		return started{}, err
	}
	permissions := granted.With("allow-read", reads...).With("allow-write", wirePath).IgnoreProxies(e.o.Env)
	if !around.OwnRoot() { // there the cache has no name
		permissions = permissions.With("deny-write", e.o.Cache.Dir())
	}
	if own.gateway && around.OwnNetwork() {
		around.Listen(gatewayPort)
		child.gateway = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), gatewayPort).String()
	} else if own.gateway {
		child.gateway = rt.gateway.Addr()
		address, err := netip.ParseAddrPort(child.gateway)
		if err != nil {
			return started{}, errors.New("start a Python worker: the package gateway has no port")
		}
		around.Connect(address.Port())
	}
	if own.gateway {
		permissions = permissions.With("allow-net", child.gateway)
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
	argv = append(append(argv, permissions.Args()...), child.name(filepath.Join(rt.worker, module)))
	for _, arg := range args {
		argv = append(argv, child.name(arg))
	}
	argv = append(argv, paths...)
	child.Child, err = supervisor.Start(supervisor.Command{
		Path:       around.See(rt.deno.Path, "/rillbox/deno", launcher.Read|launcher.Execute),
		Args:       argv,
		Env:        slices.Concat(e.environment(own.guest), around.Environment(), []string{"HOME=" + home, "DENO_DIR=" + filepath.Join(home, "deno")}),
		Dir:        dir,
		WorkDir:    own.workspace,
		Cwd:        cwd,
		Runtime:    startMemory,
		Wall:       around.Wall(),
		Background: own.background,
		Ahead:      own.ahead,
		JoinLater:  own.guest,
		Combined:   own.combined,
	}, limits)
	if err != nil {
		return started{}, fmt.Errorf("start a Python worker: %w", err)
	}
	listeners, err := child.Listeners()
	for _, l := range listeners {
		go rt.gateway.Serve(l)
		e.jobs.Go(func() {
			<-child.Ended()
			_ = l.Close()
		})
	}
	if err != nil {
		child.Kill(supervisor.Crashed, err.Error())
		return started{}, fmt.Errorf("start a Python worker: %w", err)
	}
	return child, nil
}

// environment is what a child gets beside its own directories; a guest's has the
// operator's variables.
func (e *Engine) environment(guest bool) []string {
	env := []string{
		"NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "DENO_NO_PACKAGE_JSON=1", "LANG=C.UTF-8",
		// glibc keeps what is freed below this many bytes; by default up to 64 MiB,
		// the 27 MB among them that V8 takes to compile Python's interpreter.
		"MALLOC_TRIM_THRESHOLD_=1048576",
	}
	if guest {
		for name, value := range deno.Variables(e.o.Env) {
			env = append(env, name+"="+value)
		}
	}
	return env
}
