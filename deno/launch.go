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
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rillbox/deno/modules"
	"rillbox/deno/permission"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
)

// fileURL is a path as a URL, in the form that Deno gives it.
func fileURL(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// In a run's directory the program has one of its own, which it may read, and our files
// have one beside it.
const (
	programDir = "program"
	ownDir     = ".rillbox"
)

// launch is what a child is started with.
type launch struct {
	entry       string // one of guestEntries, as a .js file; empty means that of runs
	permissions permission.Permissions
	workspace   string            // its working directory; empty means one of its own
	readOnly    bool              // the workspace
	imports     map[string]string // an import map
	names       modules.Names     // what is added to it
	commonjs    bool              // .js files are CommonJS unless they look otherwise
	install     modules.Plan
	codeCache   string   // the directory of one; empty if there is none
	keep        string   // its DENO_DIR, where that is not to go with its directory
	files       []string // the program's, by their paths; only where it has a workspace
	file, url   string   // the program's, and the URL that it came from, if it did
	copies      []string // of these, those that stand for files of the workspace
	args        []string
	combined    bool              // its streams are one
	check       string            // the program's file, whose types are only checked
	checked     map[string][]byte // for that, all of its files
	jsx         map[string]string // and how its JSX is made
}

// purpose is all that a child is made for as one comparable value: one made for
// another purpose is not for this launch. A code cache only saves time.
func (l launch) purpose() string {
	return fmt.Sprintf("%q", []any{
		l.entry, l.permissions.Args(), l.workspace, fmt.Sprint(l.readOnly), l.imports, l.names, fmt.Sprint(l.commonjs),
		l.install.Lock, l.install.Registries, l.install.Dir, l.keep, l.files, l.file, l.url, l.copies, l.args, fmt.Sprint(l.combined), l.check, l.checked, l.jsx,
	})
}

// start starts a child in a directory of its own. prepare writes its files there and
// completes the command; guest is the child's name for our modules.
func (e *Engine) start(p permission.Permissions, prepare func(c *sandbox.Command, guest string, around *permission.Surroundings) error) (child *sandbox.Child, err error) {
	dir, err := sandbox.NewRunDir()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	around, err := p.Surround(e.walls, append(sandbox.RunDirs(), e.options.Cache.Dir())...)
	if err != nil {
		return nil, err
	}
	defer around.Close()
	c := sandbox.Command{Dir: dir, Path: around.See(e.deno, permission.BinaryName, launcher.Read|launcher.Execute)}
	if err := prepare(&c, around.See(e.guest, permission.GuestName, launcher.Read), around); err != nil {
		return nil, err
	}
	c.Env, c.Wall = append(c.Env, around.Environment()...), around.Wall()
	return sandbox.Start(c, e.options.Limits)
}

// command writes a child's files into its directory, save the program, and completes
// its command. name is the child's for the program's directory.
func (e *Engine) command(ctx context.Context, l launch, c *sandbox.Command, guest string, around *permission.Surroundings) (name string, err error) {
	dir := c.Dir
	// What is written is written to paths, what the child is told are names.
	ownPath := filepath.Join(dir, ownDir)
	denoPath := cmp.Or(l.keep, ownPath)
	run := around.See(dir, permission.RunName, launcher.Read|launcher.Write)
	own := filepath.Join(run, ownDir)
	name = filepath.Join(run, programDir)
	denoDir := own
	if l.keep != "" {
		denoDir = around.See(l.keep, own, launcher.Read|launcher.Write)
	}
	cwd := run
	if l.workspace != "" {
		cwd = around.Workspace(l.workspace, l.readOnly)
		l.permissions = l.permissions.WithWorkspace(cwd, l.readOnly)
		l.imports = besideProgram(l, name, cwd)
	}
	scopes := l.addNames(name, cwd)
	if err := permission.CheckPaths(name, own, cwd, e.options.Cache.Dir()); err != nil {
		return "", err
	}
	if err := errors.Join(os.MkdirAll(ownPath, 0o700), os.MkdirAll(denoPath, 0o700), os.Mkdir(filepath.Join(dir, programDir), 0o700)); err != nil {
		return "", fmt.Errorf("make the run's directory: %w", err)
	}
	files := map[string][]byte{}
	args := []string{"run", "--no-prompt", "--no-config"}
	if l.check != "" {
		args = []string{"check"}
	}
	args = append(args, "--quiet", "--node-modules-dir=none", "--cached-only",
		"--v8-flags=--max-old-space-size="+strconv.FormatInt(max(e.options.Limits.Memory>>20, 16), 10))
	if l.keep == "" {
		if l.codeCache == "" {
			args = append(args, "--no-code-cache")
		} else if err = os.CopyFS(denoPath, os.DirFS(l.codeCache)); err != nil {
			return "", fmt.Errorf("copy the run's code cache: %w", err)
		}
		if err = modules.MakeDenoDir(denoPath); err != nil {
			return "", fmt.Errorf("make the run's directory: %w", err)
		}
	}
	if l.commonjs {
		args = append(args, "--unstable-detect-cjs")
	}
	l.addURL(scopes, name)
	if len(l.imports) > 0 || len(scopes) > 0 {
		text, err := json.Marshal(map[string]any{"imports": l.imports, "scopes": scopes})
		if err != nil {
			return "", fmt.Errorf("write the import map: %w", err)
		}
		files["import_map.json"] = text
		args = append(args, "--import-map="+filepath.Join(own, "import_map.json"))
	}
	env := e.environment(denoDir)
	if len(l.install.Lock) > 0 {
		files["lock.json"] = l.install.Lock
		args = append(args, "--lock="+filepath.Join(own, "lock.json"))
		npmrc := ""
		env, npmrc = withRegistries(env, own, l.install.Registries)
		if npmrc != "" {
			files[".npmrc"] = []byte(npmrc)
		}
		if err := l.install.Complete(); err != nil {
			return "", err
		}
		readable, err := modules.ShowModules(around, l.install.Dir, denoPath, denoDir)
		if err != nil {
			return "", fmt.Errorf("make the run's directory: %w", err)
		}
		l.permissions = l.permissions.With("allow-read", readable...)
	} else {
		args = append(args, "--no-lock")
	}
	if err := writeFiles(ownPath, files); err != nil {
		return "", err
	}
	if l.check != "" {
		text, err := json.Marshal(map[string]map[string]string{"compilerOptions": l.jsx})
		if err == nil {
			err = errors.Join(writeFiles(ownPath, map[string][]byte{checkConfig: text}), writeFiles(filepath.Join(dir, programDir), l.checked))
		}
		if err != nil {
			return "", err
		}
		args = append(args, l.permissions.Imports().Args()...)
		args = append(args, "--config="+filepath.Join(own, checkConfig), filepath.Join(name, l.check))
	} else {
		args = append(args, e.flags(l.permissions, around, own, name)...)
		args = append(args, filepath.Join(guest, cmp.Or(l.entry, "bootstrap.js")))
	}
	c.Args, c.Env, c.OwnDir, c.WorkDir, c.Cwd, c.Combined = append(args, l.args...), env, ownPath, l.workspace, cwd, l.combined
	c.JoinLater = l.entry == "" && l.check == "" // only the bootstrap module waits until it is asked to run others' code
	return name, nil
}

// writeFiles writes files, by their paths below a directory.
func writeFiles(dir string, files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			return fmt.Errorf("write the run's files: %w", err)
		}
	}
	return nil
}

// besideProgram adds to an import map that what the program names relative to
// itself is in the workspace: its own files alone are not.
func besideProgram(l launch, dir, workspace string) map[string]string {
	imports := maps.Clone(l.imports)
	if imports == nil {
		imports = map[string]string{}
	}
	imports[fileURL(dir)+"/"] = fileURL(workspace) + "/"
	for _, file := range l.files {
		own := fileURL(filepath.Join(dir, file))
		imports[own] = own
	}
	for _, file := range l.copies {
		imports[fileURL(filepath.Join(workspace, file))] = fileURL(filepath.Join(dir, file))
	}
	return imports
}

// addNames adds the names of the project to the import map: its files are in dir, the
// program's, or else in the workspace. Those that hold in a part of it are scopes.
func (l *launch) addNames(dir, workspace string) (scopes map[string]map[string]string) {
	within := func(place, where string) string {
		address := fileURL(filepath.Join(where, place))
		if strings.HasSuffix(place, "/") {
			address += "/"
		}
		return address
	}
	entries := func(to, from map[string]string) map[string]string {
		to = maps.Clone(to)
		if to == nil {
			to = map[string]string{}
		}
		for name, target := range from {
			if place, is := strings.CutPrefix(target, "./"); is {
				if l.workspace == "" || slices.Contains(l.files, place) {
					target = within(place, dir)
				} else {
					target = within(place, workspace)
				}
			}
			to[name] = target
		}
		return to
	}
	l.imports = entries(l.imports, l.names.Imports)
	scopes = map[string]map[string]string{}
	for at, names := range l.names.Scopes {
		place, is := strings.CutPrefix(at, "./")
		if !is {
			scopes[at] = entries(nil, names)
			continue
		}
		scopes[within(place, dir)] = entries(nil, names)
		if l.workspace != "" {
			scopes[within(place, workspace)] = entries(nil, names)
		}
	}
	return scopes
}

// addURL adds to an import map that what the program names relative to itself is where it
// was fetched from.
func (l *launch) addURL(scopes map[string]map[string]string, dir string) {
	base, err := url.Parse(l.url)
	if err != nil || l.url == "" {
		return
	}
	imports, up := map[string]string{}, &url.URL{Path: "./"}
	for at := dir + "/"; ; at = path.Dir(path.Clean(at)) {
		at = strings.TrimSuffix(at, "/") + "/"
		imports[fileURL(at)] = base.ResolveReference(up).String()
		if at == "/" {
			break
		}
		up.Path += "../"
	}
	scopes[fileURL(filepath.Join(dir, l.file))] = imports
}

// flags are a run's permission flags: those granted, and what the engine itself
// needs or forbids.
func (e *Engine) flags(p permission.Permissions, around *permission.Surroundings, own string, program ...string) []string {
	p = p.With("allow-read", program...).With("allow-write", "/dev/fd/3").With("deny-write", own)
	if !around.OwnRoot() { // there the cache has no name
		p = p.With("deny-write", e.options.Cache.Dir())
	}
	if around.Programs { // node:child_process looks at it; programs never have it
		p = p.With("allow-env", "NODE_V8_COVERAGE")
	}
	return p.IgnoreProxies(e.options.Env).Args()
}

// environment is a run's whole environment.
func (e *Engine) environment(denoDir string) []string {
	env := []string{"DENO_DIR=" + denoDir, "NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "DENO_NO_PACKAGE_JSON=1", "DENO_DISABLE_NODE_SHIM=1"}
	if registry, ok := os.LookupEnv("JSR_URL"); ok { // decides under which name jsr: modules are cached
		env = append(env, "JSR_URL="+registry)
	}
	return append(env, permission.Environ(e.options.Env)...)
}

// withRegistries tells Deno where the packages of the plan came from, which is
// part of their names in its cache.
func withRegistries(env []string, home string, registries map[string]string) (with []string, npmrc string) {
	for _, scope := range slices.Sorted(maps.Keys(registries)) {
		address := registries[scope]
		switch {
		case scope == "":
			env = append(env, "NPM_CONFIG_REGISTRY="+address)
		case address != registries[""] || scope == "@jsr": // for which Deno has one of its own
			npmrc += scope + ":registry=" + address + "\n"
		}
	}
	if npmrc != "" {
		env = append(env, "HOME="+home)
	}
	return env, npmrc
}
