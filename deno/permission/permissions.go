// Package permission is what a program may do: Deno's permission flags, in the form
// that Deno makes of them, what a run narrows of them, and the surroundings that
// they become for the kernel's wall.
//
// It promises that nothing is wider after narrowing, and that a granted path is the
// file that it named at the start, whatever becomes of the name.
package permission

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-shellwords"

	"rillbox/cache/egress"
)

// Permissions are Deno permission flags: what a guest may do beyond computing.
// The zero value grants nothing.
type Permissions struct {
	all    bool
	grants map[string]grant // by flag name without dashes, e.g. "allow-read"
	// opened are the paths and programs that the operator granted, by their names in
	// the flags; set by Open.
	opened map[string]granted
}

// grant is one flag: bare (all of its kind) or a list of values. Copies share the
// values, which are never changed.
type grant struct {
	bare   bool
	values []string
}

// with gives the grant with more values.
func (g grant) with(values ...string) grant {
	g.values = slices.Clip(g.values)
	for _, value := range values {
		if !slices.Contains(g.values, value) {
			g.values = append(g.values, value)
		}
	}
	return g
}

// valueKind says what a flag's values name.
type valueKind int

const (
	pathValue valueKind = iota
	hostValue
	envValue
	sysValue
	runValue
)

// permissionFlags are the permission flags of Deno 2.9.6 (`deno run --help`).
var permissionFlags = map[string]valueKind{
	"allow-read": pathValue, "deny-read": pathValue, "ignore-read": pathValue,
	"allow-write": pathValue, "deny-write": pathValue,
	"allow-ffi": pathValue, "deny-ffi": pathValue,
	"allow-net": hostValue, "deny-net": hostValue,
	"allow-import": hostValue, "deny-import": hostValue,
	"allow-env": envValue, "deny-env": envValue, "ignore-env": envValue,
	"allow-sys": sysValue, "deny-sys": sysValue,
	"allow-run": runValue, "deny-run": runValue,
}

var shortFlags = map[rune]string{
	'A': "allow-all", 'R': "allow-read", 'W': "allow-write", 'N': "allow-net",
	'E': "allow-env", 'S': "allow-sys", 'I': "allow-import",
}

// refusedFlags are words that look like permission flags and are not, with the
// reason.
var refusedFlags = map[string]string{
	"--no-prompt":      "it is always set",
	"--allow-hrtime":   "Deno 2 has no such permission: high resolution time is always allowed",
	"--deny-hrtime":    "Deno 2 has no such permission: high resolution time is always allowed",
	"--allow-scripts":  "lifecycle scripts of npm packages never run",
	"-P":               "permission sets come from a configuration file, which is not read",
	"--permission-set": "permission sets come from a configuration file, which is not read",
}

// ParseShell parses flags as they stand on a command line: words are split and
// unquoted as a shell does, variables and backticks are not expanded. Empty is
// allowed and grants nothing.
func ParseShell(line string) (Permissions, error) {
	parser := shellwords.NewParser()
	parser.ParseEnv, parser.ParseBacktick = false, false
	words, err := parser.Parse(line)
	if err != nil {
		return Permissions{}, fmt.Errorf("split %q into permission flags: %w", line, err)
	}
	if parser.Position >= 0 { // stopped at a shell operator
		return Permissions{}, fmt.Errorf("split %q into permission flags: a shell operator stands at byte %d; quote it", line, parser.Position)
	}
	return Parse(words)
}

// Parse parses permission flags, one a word. A word that is not a permission
// flag of Deno is an error that names it. Relative paths are made absolute from
// the current directory.
func Parse(words []string) (Permissions, error) {
	p := Permissions{grants: map[string]grant{}}
	for _, word := range words {
		if err := p.add(word); err != nil {
			return Permissions{}, fmt.Errorf("permission flag %q: %w", word, err)
		}
	}
	return p, nil
}

func (p *Permissions) add(word string) error {
	flag, list, valued := strings.Cut(word, "=")
	if reason, refused := refusedFlags[flag]; refused {
		return fmt.Errorf("not accepted: %s", reason)
	}
	if long, ok := strings.CutPrefix(flag, "--"); ok {
		return p.addFlag(long, list, valued)
	}
	letters, ok := strings.CutPrefix(flag, "-")
	if !ok || letters == "" {
		return errNotPermission
	}
	for i, letter := range letters { // a value belongs to the last
		last := i == len(letters)-1
		if err := p.addFlag(shortFlags[letter], list, valued && last); err != nil {
			return err
		}
	}
	return nil
}

var errNotPermission = errors.New("not a permission flag of Deno; the flags are --allow-all (-A) and --allow-*, --deny-* and --ignore-* for read, write, net, env, sys, run, ffi and import")

func (p *Permissions) addFlag(name, list string, valued bool) error {
	if name == "allow-all" {
		if valued {
			return errors.New("takes no value")
		}
		p.all = true
		return nil
	}
	if _, known := permissionFlags[name]; !known {
		return errNotPermission
	}
	g, had := p.grants[name]
	// As in Deno, a flag with values outweighs the same flag without.
	g.bare = !valued && (!had || g.bare)
	if valued {
		if strings.ContainsAny(list, "\x00\n\r") {
			return errors.New("a value contains a line break or a NUL")
		}
		for value := range strings.SplitSeq(list, ",") { // Deno has no escape for a comma
			if value == "" {
				return errors.New("a value is empty")
			}
			values, err := clean(name, value)
			if err != nil {
				return err
			}
			g = g.with(values...)
		}
	}
	p.grants[name] = g
	return nil
}

func isAllow(name string) bool { return strings.HasPrefix(name, "allow-") }

// sysNames are the names that --allow-sys takes.
var sysNames = strings.Fields(`cpus getPriority getegid gid homedir hostname loadavg
	networkInterfaces osRelease osUptime setPriority statfs systemMemoryInfo uid userInfo username`)

// clean gives a flag's value the form that is passed on and compared. What Deno
// refuses is an error in Deno's words: every run would fail with it.
func clean(flag, value string) ([]string, error) {
	if !utf8.ValidString(value) {
		return nil, fmt.Errorf("the value %q is not UTF-8, and Deno would take another one for it", value)
	}
	switch kind := permissionFlags[flag]; {
	case kind == hostValue:
		return cleanHosts(flag, value)
	case kind == pathValue, kind == runValue && strings.Contains(value, "/"):
		abs, err := filepath.Abs(value)
		if err != nil {
			return nil, fmt.Errorf("make %q absolute: %w", value, err)
		}
		return []string{abs}, nil
	case kind == envValue && strings.Contains(value, "=") && flag != "ignore-env":
		return nil, fmt.Errorf("invalid env var name: '%s'", value)
	case kind == sysValue && !slices.Contains(sysNames, value):
		return nil, fmt.Errorf("unknown sys descriptor: '%s'; known are %s", value, strings.Join(sysNames, ", "))
	case kind == sysValue && value == "username":
		return []string{"userInfo"}, nil
	}
	return []string{value}, nil
}

// All says that everything is allowed, save what is denied.
func (p Permissions) All() bool { return p.all }

// Args gives the flags for Deno's command line, in a fixed order.
func (p Permissions) Args() []string {
	var args []string
	if p.all {
		args = append(args, "--allow-all")
	}
	for _, name := range slices.Sorted(maps.Keys(p.grants)) {
		if p.all && isAllow(name) {
			continue // Deno refuses both
		}
		if g := p.grants[name]; g.bare {
			args = append(args, "--"+name)
		} else {
			args = append(args, "--"+name+"="+strings.Join(g.values, ","))
		}
	}
	return args
}

// CheckPaths refuses paths of ours that can't be told to Deno: its flags split
// values at commas and have no escape, so that the part before one would be
// granted instead.
func CheckPaths(paths ...string) error {
	for _, path := range paths {
		if strings.Contains(path, ",") {
			return fmt.Errorf("the path %q has a comma, which Deno's permission flags can't hold: move it (TMPDIR, RILLBOX_CACHE_DIR and RILLBOX_PYODIDE say where things are)", path)
		}
	}
	return nil
}

// With grants more: the values are added to the flag ("allow-read") unless it
// already covers everything of its kind. It is for what an engine needs itself.
// Where a flag denies or ignores everything of the kind, which outweighs what is
// allowed, nothing but the engine's own values is then allowed.
func (p Permissions) With(name string, values ...string) Permissions {
	if len(values) == 0 {
		return p
	}
	grants := map[string]grant{}
	maps.Copy(grants, p.grants)
	p.grants = grants
	kind := strings.TrimPrefix(name, "allow-")
	if isAllow(name) && (grants["deny-"+kind].bare || grants["ignore-"+kind].bare) {
		if p.all { // written out, without this one
			p.all = false
			for flag := range permissionFlags {
				if isAllow(flag) {
					grants[flag] = grant{bare: true}
				}
			}
		}
		delete(grants, "deny-"+kind)
		delete(grants, name)
	}
	if g := grants[name]; !g.bare && !(isAllow(name) && p.all) {
		grants[name] = g.with(values...)
	}
	return p
}

// Imports gives the permissions to import from URLs, and no others.
func (p Permissions) Imports() Permissions {
	imports := map[string]grant{}
	for _, name := range []string{"allow-import", "deny-import"} {
		if g, given := p.grants[name]; given {
			imports[name] = g
		}
	}
	if p.all {
		imports["allow-import"] = grant{bare: true}
	}
	return Permissions{grants: imports}
}

// defaultImportHosts are those that Deno 2.9.6 allows URL imports from when
// --allow-import is not given (`deno run --help`).
var defaultImportHosts = []string{
	"deno.land:443", "jsr.io:443", "esm.sh:443", "raw.esm.sh:443", "cdn.jsdelivr.net:443",
	"raw.githubusercontent.com:443", "gist.githubusercontent.com:443",
}

// ImportHosts are the hosts that modules may be imported from: those that were named, or
// Deno's own choice.
func (p Permissions) ImportHosts() (everything bool, hosts []string) {
	if everything, hosts = p.Allowed("import"); everything || len(hosts) > 0 {
		return everything, hosts
	}
	hosts = slices.Clone(defaultImportHosts)
	if u, err := url.Parse(os.Getenv("JSR_URL")); err == nil && u.Host != "" {
		hosts = append(hosts, egress.HostPort(u))
	}
	return false, hosts
}

// ImportsFrom says whether modules may be imported from a host (with its port).
func (p Permissions) ImportsFrom(host string) bool {
	everything, hosts := p.ImportHosts()
	denied := p.grants["deny-import"]
	covers := func(listed string) bool { return HostCovers(listed, host) }
	return (everything || slices.ContainsFunc(hosts, covers)) && !denied.bare && !slices.ContainsFunc(denied.values, covers)
}

// Allowed gives what is allowed of a kind ("read", "net", …): everything, or
// the listed values. Denials are not taken off.
func (p Permissions) Allowed(kind string) (everything bool, values []string) {
	if p.all {
		return true, nil
	}
	g := p.grants["allow-"+kind]
	return g.bare, slices.Clone(g.values)
}

// allowsAny says that something is allowed of a kind.
func (p Permissions) allowsAny(kind string) bool {
	everything, values := p.Allowed(kind)
	return everything || len(values) > 0
}

// ReadWriteOverlap gives a path that may be both read and written ("/" for
// everything). Deno alone can't hold a guest inside such a directory.
func (p Permissions) ReadWriteOverlap() (path string, overlap bool) {
	for _, read := range p.paths("read") {
		for _, written := range p.paths("write") {
			switch {
			case Within(read, written):
				return read, true
			case Within(written, read):
				return written, true
			}
		}
	}
	return "", false
}

// paths are what is allowed of a kind that names paths: "/" stands for everything.
func (p Permissions) paths(kind string) []string {
	everything, paths := p.Allowed(kind)
	if everything {
		return []string{"/"}
	}
	return paths
}

// WithWorkspace adds the permissions that a workspace brings, if there is one.
func (p Permissions) WithWorkspace(workspace string, readOnly bool) Permissions {
	if workspace == "" {
		return p
	}
	p = p.With("allow-read", workspace)
	if !readOnly {
		p = p.With("allow-write", workspace)
	}
	return p
}
