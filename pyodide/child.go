//go:build !windows

package pyodide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rillbox/cache/egress"
	"rillbox/deno/modules"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
)

const (
	wasmPage = 64 << 10
	minHeap  = 64 << 20 // that Python can start with, in bytes
	// startMemory is what a child may use before it is ready; it takes some
	// 130 MB, and loading Python without a snapshot some 300.
	startMemory = 512 << 20
	// codeMemory is left of a program's memory for what V8 compiles while it
	// runs, so that a full heap ends in Python's MemoryError before we end it.
	codeMemory = 64 << 20
	wirePath   = "/dev/fd/3" // where a child opens its frames
	// gatewayPort is where a child with a network of its own finds the package gateway.
	gatewayPort = 8080
)

// file is a file or directory of ours that a child reads, and the name that it has
// in a root of the child's own.
type file struct{ path, name string }

// python is what every child reads that loads Python from the snapshot.
func (rt *runtime) python() []file {
	return []file{{rt.pyodide.Dir, "/rillbox/pyodide"}, {rt.snapshot, "/rillbox/snapshot"}}
}

// childOptions say what a child is started with.
type childOptions struct {
	module string   // of guest, as a .js file
	files  []file   // its first arguments
	words  []string // the next ones
	// loan is the directory of the cache's images that a guest's child may read; empty
	// for a child that never has a guest. A guest's may also reach the package gateway.
	// Its last arguments are the child's names for the loan and the workspace, and
	// what is granted.
	loan        string
	permissions permission.Permissions // of the guest
	policy      egress.Policy          // of the packages that it may use
	// workspace is a directory that the guest may read and, unless readOnly,
	// write, and the child's current one; empty for none.
	workspace string
	readOnly  bool
	combined  bool // its streams are one
	// background says that nobody waits for the child, ahead that nobody does yet.
	background, ahead bool
}

// purpose is all that a child is made for as one comparable value: one made for
// another purpose is not for these options. Who waits for it is no part of that.
func (o childOptions) purpose() string {
	return fmt.Sprintf("%q", []any{
		o.module, o.files, o.words, o.loan, o.permissions.Args(), o.policy.Key(), fmt.Sprint(o.policy.NoFetch), o.workspace, fmt.Sprint(o.readOnly), fmt.Sprint(o.combined),
	})
}

// child is a process of ours, with what it was told of where things are.
type child struct {
	*sandbox.Child
	loan    string // its name for that directory
	gateway string // host:port; empty when it may not reach it
}

// startChild starts Deno on a module with exactly the guest's permissions and what
// the module itself needs, the wire included.
func (e *Engine) startChild(rt *runtime, o childOptions) (c child, err error) {
	around, err := o.permissions.Surround(e.walls, append(sandbox.RunDirs(), e.o.Cache.Dir())...)
	if err != nil {
		return c, err
	}
	defer around.Close()
	dir, err := sandbox.NewRunDir()
	if err != nil {
		return c, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := modules.MakeDenoDir(filepath.Join(dir, "deno")); err != nil {
		return c, fmt.Errorf("make a Python worker's directory: %w", err)
	}

	var reads []string
	see := func(f file) string {
		name := around.See(f.path, f.name, launcher.Read)
		reads = append(reads, name)
		return name
	}
	args := []string{filepath.Join(see(file{rt.worker, "/rillbox/worker"}), o.module)}
	for _, f := range o.files {
		args = append(args, see(f))
	}
	args = append(args, o.words...)
	home := around.See(dir, "/rillbox/program", launcher.Read|launcher.Write)
	workspace, cwd, permissions := "", home, o.permissions
	if o.workspace != "" {
		workspace = around.Workspace(o.workspace, o.readOnly)
		cwd, permissions = workspace, permissions.WithWorkspace(workspace, o.readOnly)
	}
	env := []string{
		"NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "DENO_NO_PACKAGE_JSON=1", "LANG=C.UTF-8",
		// glibc keeps what is freed below this many bytes; by default up to 64 MiB,
		// the 27 MB among them that V8 takes to compile Python's interpreter.
		"MALLOC_TRIM_THRESHOLD_=1048576",
		"HOME=" + home, "DENO_DIR=" + filepath.Join(home, "deno"),
	}
	if o.loan != "" {
		granted, _, err := grantedPaths(o.permissions)
		if err != nil {
			return c, job.Refuse("%v", err)
		}
		c.loan = see(file{o.loan, "/rillbox/loan"})
		args = append(append(args, c.loan, workspace), granted...)
		env = append(env, permission.Environ(e.o.Env)...)
		if around.OwnNetwork() {
			around.Listen(gatewayPort)
			c.gateway = fmt.Sprintf("127.0.0.1:%d", gatewayPort)
		} else {
			c.gateway = rt.gateway.Addr()
			address, err := netip.ParseAddrPort(c.gateway)
			if err != nil {
				return c, errors.New("start a Python worker: the package gateway has no port")
			}
			around.Connect(address.Port())
		}
		permissions = permissions.With("allow-net", c.gateway)
	}
	if err := permission.CheckPaths(append([]string{e.o.Cache.Dir(), cwd}, reads...)...); err != nil {
		return c, err
	}
	permissions = permissions.With("allow-read", reads...).With("allow-write", wirePath).IgnoreProxies(e.o.Env)
	if !around.OwnRoot() { // there the cache has no name
		permissions = permissions.With("deny-write", e.o.Cache.Dir())
	}
	flags := []string{
		"run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--node-modules-dir=none", "--no-remote", "--no-npm", "--no-code-cache",
		"--v8-flags=" + strings.Join(e.v8Flags(rt, o.ahead), ","),
	}
	c.Child, err = sandbox.Start(sandbox.Command{
		Path:       around.See(rt.deno, "/rillbox/deno", launcher.Read|launcher.Execute),
		Args:       slices.Concat(flags, permissions.Args(), args),
		Env:        append(env, around.Environment()...),
		Dir:        dir,
		WorkDir:    o.workspace,
		Cwd:        cwd,
		Runtime:    startMemory,
		Wall:       around.Wall(),
		Background: o.background,
		Ahead:      o.ahead,
		JoinLater:  o.loan != "",
		Combined:   o.combined,
	}, e.o.Limits)
	if err != nil {
		return c, fmt.Errorf("start a Python worker: %w", err)
	}
	listeners, err := c.Listeners()
	for _, l := range listeners {
		go rt.gateway.Serve(l)
		e.jobs.Go(func() {
			<-c.Ended()
			_ = l.Close()
		})
	}
	if err != nil {
		c.Kill(job.Crashed, err.Error())
		return c, fmt.Errorf("start a Python worker: %w", err)
	}
	return c, nil
}

// v8Flags bound V8's and Python's memory, and spare time.
func (e *Engine) v8Flags(rt *runtime, ahead bool) []string {
	memory := e.o.Limits.Memory
	flags := []string{
		fmt.Sprintf("--wasm-max-mem-pages=%d", max(rt.heap+memory-min(memory/4, codeMemory), minHeap)/wasmPage),
		fmt.Sprintf("--max-old-space-size=%d", max(memory>>20, 64)),
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
	if ahead {
		// In MiB. What Pyodide makes while it is loaded lives on: V8 is to look for
		// garbage once, before the worker is ready, and to keep little room for
		// more. That takes 30 ms of CPU that nobody waits for. By itself V8 has 14 MB
		// more, and looks while the program runs (4 ms).
		flags = append(flags, "--initial-old-space-size=18", "--max-semi-space-size=2")
	}
	return flags
}

// produce has a child that never has a guest run to its end, within a time, and
// copies what it writes to w. purpose is what it is for, as its error says.
func (e *Engine) produce(ctx context.Context, rt *runtime, o childOptions, within time.Duration, purpose string, w io.Writer) error {
	c, err := e.startChild(rt, o)
	if err != nil {
		return err
	}
	c.Attach(ctx, func(job.Event) {})
	c.SetDeadline(within, purpose)
	_ = c.Stdin().Close()
	if _, err = io.Copy(w, c.Frames()); err != nil {
		c.Kill(job.Cancelled, "what it wrote can't be kept")
	}
	exit := c.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if exit.Status != job.Completed {
		return errors.Join(fmt.Errorf("it ended as %s (exit status %d, %s): %s", exit.Status, exit.Code, exit.Reason, exit.Stderr), err)
	}
	return err
}
