//go:build !windows

// Package deno runs JavaScript and TypeScript, and holds what every engine that
// stands on Deno needs: the binary, permission flags and the wire.
//
// What flows through it: a supervisor.Program is parsed for what it imports;
// what is missing of that is fetched by a Deno process that never sees the
// program (the install plan says what it became); then one fresh Deno process
// imports the program from a bootstrap module, with the operator's permission
// flags and nothing else, in a directory and an environment of its own, and
// tells over the wire what became of it.
//
// It promises that a guest gets no permission that the operator did not grant,
// save to read its own program's file; that it never writes to what another run
// reads; and that what ran once runs again without the network.
package deno

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rillbox/cache"
	"rillbox/supervisor"
)

// Options say how an Engine is made.
type Options struct {
	Cache *cache.Cache
	// Permissions are what the operator grants to programs.
	Permissions Permissions
	// AllowImport are the hosts that URL imports may reach; empty means Deno's
	// default list.
	AllowImport []string
	// DenoPath is an operator's own binary; empty means the pinned one.
	DenoPath string
	// Env names the variables of our environment that programs get.
	Env []string
	// Policy is what may be fetched and used. Where it sets no minimum release
	// age, Deno's own holds: 24 hours for npm and JSR.
	Policy cache.Policy
	// WithoutSecondWall starts children without the kernel's wall.
	WithoutSecondWall bool
	Limits            supervisor.Limits
	Log               *slog.Logger
}

// Engine runs JavaScript and TypeScript. It implements supervisor.Toolchain and
// is safe for concurrent use.
type Engine struct {
	options Options
	planner planner

	locating chan struct{} // holds one token: whoever has it may locate Deno
	binary   *Binary
}

// New makes an engine; nothing is fetched or started before it is needed.
func New(o Options) (*Engine, error) {
	for _, host := range o.AllowImport {
		if host == "" || strings.ContainsAny(host, ", \n") {
			return nil, fmt.Errorf("host %q for URL imports: want a host, with a port if need be", host)
		}
	}
	if err := o.Policy.Validate(); err != nil {
		return nil, err
	}
	if len(o.AllowImport) > 0 {
		o.Permissions = o.Permissions.With("allow-import", o.AllowImport...)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Permissions.All() {
		o.Log.Warn("JavaScript and TypeScript programs have all permissions: they can do to this machine what this user can")
	}
	return &Engine{options: o, locating: make(chan struct{}, 1)}, nil
}

// Describe says what the engine is.
func (e *Engine) Describe() supervisor.Description {
	return supervisor.Description{
		Languages:   []supervisor.Language{supervisor.JavaScript, supervisor.TypeScript},
		Versions:    map[string]string{"deno": Version, "v8": V8Version, "typescript": TypeScriptVersion},
		Ready:       Available(e.locateOptions(nil)),
		Permissions: e.options.Permissions.Args(),
	}
}

// Close has nothing to end: no child outlives its run.
func (e *Engine) Close() {}

// Prepare fetches Deno.
func (e *Engine) Prepare(ctx context.Context, emit func(supervisor.Event)) error {
	_, err := e.locate(ctx, emit)
	return err
}

// Install fetches packages into the cache.
func (e *Engine) Install(ctx context.Context, packages []string, emit func(supervisor.Event)) ([]supervisor.Package, error) {
	wanted, err := resolve(nil, packages)
	if err != nil {
		return nil, &PackageError{Text: err.Error()}
	}
	if len(wanted.roots) == 0 {
		return nil, nil
	}
	binary, err := e.locate(ctx, emit)
	if err != nil {
		return nil, err
	}
	p, err := e.plan(ctx, binary, e.options.Permissions, wanted.roots, emit)
	if err != nil {
		return nil, err
	}
	return p.Packages, nil
}

func (e *Engine) locateOptions(emit func(supervisor.Event)) LocateOptions {
	o := LocateOptions{Cache: e.options.Cache, Path: e.options.DenoPath}
	if emit != nil {
		o.Progress = func(stage string, done, total int64) {
			emit(supervisor.Event{Kind: supervisor.Stage, Text: stage, Done: done, Total: total})
		}
	}
	return o
}

// locate finds Deno, once.
func (e *Engine) locate(ctx context.Context, emit func(supervisor.Event)) (Binary, error) {
	select {
	case e.locating <- struct{}{}:
		defer func() { <-e.locating }()
	case <-ctx.Done():
		return Binary{}, ctx.Err()
	}
	if e.binary == nil {
		binary, err := Locate(ctx, e.locateOptions(emit))
		if err != nil {
			return Binary{}, err
		}
		e.binary = &binary
	}
	return *e.binary, nil
}

func (e *Engine) fetcher(binary Binary, p Permissions) fetcher {
	f := fetcher{cache: e.options.Cache, binary: binary, allowed: p, policy: e.options.Policy, limits: e.options.Limits, log: e.options.Log}
	_, hosts := p.Allowed("import")
	f.named = namedHosts(slices.Concat(e.options.AllowImport, hosts))
	if p.All() {
		f.imports = append(f.imports, "--allow-import")
	}
	for _, arg := range p.Args() {
		if strings.HasPrefix(arg, "--allow-import") || strings.HasPrefix(arg, "--deny-import") {
			f.imports = append(f.imports, arg)
		}
	}
	return f
}

// Run runs one program in one fresh Deno process.
func (e *Engine) Run(ctx context.Context, p supervisor.Program, emit func(supervisor.Event)) (supervisor.Result, error) {
	permissions, err := e.options.Permissions.Narrow(p.Permissions)
	if err != nil {
		return supervisor.Result{}, &supervisor.ProgramError{Text: err.Error()}
	}
	var m module
	var wrong error
	inspected := make(chan struct{})
	go func() { // as long as finding Deno takes
		defer close(inspected)
		m, wrong = inspect(p, scanning(ctx))
	}()
	binary, err := e.locate(ctx, emit)
	<-inspected
	if ctx.Err() != nil {
		return supervisor.Result{Status: supervisor.Cancelled, ExitCode: 130, Error: &supervisor.GuestError{
			Name: "Cancelled", Message: "the run was cancelled before its program started",
		}}, nil
	}
	if wrong != nil {
		return supervisor.Result{}, wrong
	}
	wanted, unresolved := resolve(m.imports, p.Packages)
	if unresolved != nil {
		return packageFailure(unresolved), nil
	}
	if err != nil {
		return supervisor.Result{}, err
	}
	var install plan
	if len(wanted.roots) > 0 {
		install, err = e.plan(ctx, binary, permissions, wanted.roots, emit)
		var missing *PackageError
		var ended endedError
		switch {
		case errors.As(err, &missing):
			return packageFailure(missing), nil
		case errors.As(err, &ended):
			return Outcome{}.Into(ended.exit), nil
		case err != nil:
			return supervisor.Result{}, err
		}
	}
	r, err := e.runChild(ctx, p, run{binary, permissions, m, wanted, install}, emit)
	if err != nil {
		return supervisor.Result{}, err
	}
	r.Packages = install.Packages
	r.Notes = wanted.notes
	if m.tooHard {
		r.Notes = append(r.Notes, "the program is nested too deep, or takes too long to parse: what it imports was not fetched; name it in packages")
	}
	return r, nil
}

// scanning parses programs of a run that ends with ctx.
func scanning(ctx context.Context) scanFunc {
	return func(code, extension string) (scanned, error) { return scanApart(ctx, code, extension) }
}

// packageFailure is the result of a program whose packages can't be had.
func packageFailure(err error) supervisor.Result {
	return supervisor.Result{
		Status:   supervisor.Failed,
		ExitCode: 1,
		Error:    &supervisor.GuestError{Name: "PackageError", Message: err.Error()},
	}
}

// run is all that was found out before the child starts.
type run struct {
	binary      Binary
	permissions Permissions
	module      module
	wanted      resolution
	install     plan
}

// startTime is how long Deno may take until it asks for its program.
const startTime = 30 * time.Second

func (e *Engine) runChild(ctx context.Context, p supervisor.Program, r run, emit func(supervisor.Event)) (supervisor.Result, error) {
	dir, err := supervisor.NewRunDir()
	if err != nil {
		return supervisor.Result{}, err
	}
	command, err := e.command(ctx, dir, p, r)
	if err != nil {
		return supervisor.Result{}, errors.Join(err, os.RemoveAll(dir))
	}
	child, err := supervisor.Start(command, e.options.Limits)
	if err != nil {
		return supervisor.Result{}, errors.Join(err, os.RemoveAll(dir))
	}
	child.SetDeadline(startTime, "the start of Deno")
	child.Attach(ctx, emit)

	request := map[string]any{
		"source": map[string]any{
			"url":     fileURL(filepath.Join(dir, r.module.file)),
			"name":    r.module.name,
			"prelude": r.module.prelude,
		},
		"commonjs": r.module.commonjs,
		"node":     len(r.wanted.roots) > 0 || r.module.usesProcess(),
		"limit":    e.options.Limits.Result,
	}
	var started time.Time
	outcome := ReadOutcome(NewFrameReader(child.Frames(), e.options.Limits.Result+frameRoom), func(Frame) error {
		if !started.IsZero() {
			return fmt.Errorf("%w: a second ready frame", ErrProtocol)
		}
		child.MarkBaseline()
		started = time.Now()
		child.SetDeadline(p.Timeout, "the program")
		go feed(child, request, p.Stdin)
		return nil
	})
	exit := child.Wait()
	result := outcome.Into(exit)
	if !started.IsZero() {
		result.Duration = time.Since(started)
	}
	refine(&result, p, r.module, scanning(ctx))
	return result, nil
}

// frameRoom is what a result frame has beside the value or the error.
const frameRoom = 64 << 10

// feed gives the child its request and then the guest's standard input. It ends
// with the input, or when the child has ended and the input gives more.
func feed(child *supervisor.Child, request any, stdin io.Reader) {
	to := child.Stdin()
	if err := WriteRequest(to, request); err == nil && stdin != nil {
		_, _ = io.Copy(to, stdin) // an error means that nobody reads any more
	}
	_ = to.Close()
}

// fileURL is a path as a URL, in the form that Deno gives it.
func fileURL(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// Our own files of a run stand in a directory beside the program.
const ownDir = ".rillbox"

//go:embed bootstrap.ts
var bootstrapSource string

//go:embed traceback.ts
var tracebackSource string

//go:embed value.ts
var valueSource string

//go:embed env.ts
var envSource string

// command writes the run's files into dir and says how to start Deno there.
func (e *Engine) command(ctx context.Context, dir string, p supervisor.Program, r run) (supervisor.Command, error) {
	own := filepath.Join(dir, ownDir)
	denoDir := filepath.Join(own, "deno")
	main := filepath.Join(dir, r.module.file)
	if err := CheckPaths(main, own, e.options.Cache.Dir()); err != nil {
		return supervisor.Command{}, err
	}
	importMap, err := r.wanted.importMap()
	if err != nil {
		return supervisor.Command{}, fmt.Errorf("write the import map: %w", err)
	}
	files := map[string][]byte{
		main:                                  []byte(r.module.code),
		filepath.Join(own, "bootstrap.ts"):    []byte(bootstrapSource),
		filepath.Join(own, "traceback.ts"):    []byte(tracebackSource),
		filepath.Join(own, "value.ts"):        []byte(valueSource),
		filepath.Join(own, "env.ts"):          []byte(envSource),
		filepath.Join(own, WireName):          []byte(WireSource),
		filepath.Join(own, "import_map.json"): importMap,
	}
	args := []string{
		"run", "--quiet", "--no-config", "--node-modules-dir=none", "--no-prompt", "--cached-only", "--no-code-cache",
		"--import-map=" + filepath.Join(own, "import_map.json"),
		"--v8-flags=--max-old-space-size=" + strconv.FormatInt(max(e.options.Limits.Memory>>20, 16), 10),
	}
	env := e.environment(denoDir)
	if len(r.install.Lock) > 0 {
		lock := filepath.Join(own, "lock.json")
		files[lock] = r.install.Lock
		args = append(args, "--lock="+lock)
		npmrc := ""
		env, npmrc = withRegistries(env, own, r.install.Registries)
		if npmrc != "" {
			files[filepath.Join(own, ".npmrc")] = []byte(npmrc)
		}
	} else {
		args = append(args, "--no-lock")
	}
	if err := os.MkdirAll(denoDir, 0o700); err != nil {
		return supervisor.Command{}, fmt.Errorf("make the run's directory: %w", err)
	}
	// Deno writes what it compiled here, where no other run sees it. The modules
	// themselves are the cache's.
	modules := e.options.Cache.DenoDir()
	if e.options.Policy.Restricts() {
		if modules, err = e.view(ctx, r.install); err != nil {
			return supervisor.Command{}, err
		}
	}
	for _, name := range []string{"npm", "remote"} {
		if err := os.Symlink(filepath.Join(modules, name), filepath.Join(denoDir, name)); err != nil {
			return supervisor.Command{}, fmt.Errorf("make the run's directory: %w", err)
		}
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return supervisor.Command{}, fmt.Errorf("write the run's files: %w", err)
		}
	}
	wall, err := r.permissions.SecondWall(e.options.WithoutSecondWall, e.options.Log,
		[]string{r.binary.Path, modules}, []string{dir}, e.options.Cache.Dir())
	if err != nil {
		return supervisor.Command{}, err
	}
	args = append(args, e.flags(r.permissions, main, own)...)
	args = append(args, filepath.Join(own, "bootstrap.ts"))
	return supervisor.Command{
		Path:   r.binary.Path,
		Args:   append(args, p.Args...),
		Env:    env,
		Dir:    dir,
		OwnDir: own,
		Wall:   wall,
	}, nil
}

// flags are a run's permission flags: those granted, and what the engine itself
// needs or forbids.
func (e *Engine) flags(p Permissions, main, own string) []string {
	p = p.With("allow-read", main).With("allow-write", "/dev/fd/3").With("deny-write", e.options.Cache.Dir(), own).IgnoreProxies(e.options.Env)
	return p.Args()
}

// environment is a run's whole environment.
func (e *Engine) environment(denoDir string) []string {
	env := []string{"DENO_DIR=" + denoDir, "NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "DENO_NO_PACKAGE_JSON=1"}
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
