package modules

import (
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"rillbox/supervisor/job"
)

// names are what a project's manifest has names stand for. The zero value is that of no
// manifest.
type names struct {
	imports map[string]string
	scopes  map[string]map[string]string
	refused map[string]string
	base    string // the program's directory, from where its files are
}

// namesOf are those of a program. What its request names has the version that it asks for.
func namesOf(p job.Program) names {
	n := names{p.Manifest.Imports, p.Manifest.Scopes, p.Manifest.Refused, "."}
	if p.Path != "" {
		n.base = path.Dir(p.Path)
	}
	for _, text := range p.Packages {
		s, err := ParseSpecifier(strings.TrimSpace(text))
		if err != nil || s.IsURL() {
			continue
		}
		asked := func(name string, target string) bool {
			return (name == s.Name || strings.HasPrefix(name, s.Name+"/")) && !isRelative(target)
		}
		n.imports = without(n.imports, asked)
		n.refused = without(n.refused, func(name, _ string) bool { return name == s.Name })
		for at, scope := range n.scopes {
			n.scopes = maps.Clone(n.scopes)
			n.scopes[at] = without(scope, asked)
		}
	}
	return n
}

func without(m map[string]string, drop func(string, string) bool) map[string]string {
	m = maps.Clone(m)
	maps.DeleteFunc(m, drop)
	return m
}

// meaning is what a specifier stands for.
type meaning struct {
	target string // a specifier, or a path from where the program's files are: "./x"
	scope  string // where it does, a path from there or a URL; empty means everywhere
}

// scope is an import map that holds in some modules.
type scope struct {
	at      string // a path from where the program's files are, or a URL; empty means everywhere
	imports map[string]string
	// patterns are the keys that have a "*".
	patterns []string
}

func newScope(at string, imports map[string]string) scope {
	s := scope{at: at, imports: imports}
	for name := range imports {
		if strings.Contains(name, "*") {
			s.patterns = append(s.patterns, name)
		}
	}
	return s
}

// scopesOf are those that hold in a module, the first that has a specifier decides.
func (n names) scopesOf(file string) (scopes []scope) {
	for _, at := range slices.SortedFunc(maps.Keys(n.scopes), func(a, b string) int { return len(b) - len(a) }) {
		place := n.place(at)
		if place == "./" || place == "./"+file || strings.HasSuffix(place, "/") && strings.HasPrefix("./"+file, place) {
			scopes = append(scopes, newScope(place, n.scopes[at]))
		}
	}
	return append(scopes, newScope("", n.imports))
}

// find gives what a specifier stands for in a module that has these scopes. found is false
// for one that stands for itself; reason says why it stands for nothing.
func (n names) find(scopes []scope, specifier string) (m meaning, found bool, reason string) {
	if isRelative(specifier) || strings.HasPrefix(specifier, "/") {
		return m, false, ""
	}
	for _, scope := range scopes {
		target, ok := scope.mapped(specifier)
		if !ok {
			continue
		}
		m = meaning{target, scope.at}
		if isRelative(target) {
			if m.target = n.place(target); m.target == "" {
				return m, true, "the project has it stand for " + target + ", which is outside of the program's directory: it can be imported in a workspace that has both"
			}
		}
		return m, true, ""
	}
	s, err := ParseSpecifier(specifier)
	if err == nil && s.Scheme == "npm" && s.Version == "" && strings.HasPrefix(specifier, "npm:") { // its version is the project's
		if target, ok := (scope{imports: n.imports}).mapped(s.Name + s.Path); ok && strings.HasPrefix(target, "npm:"+s.Name+"@") {
			return meaning{target, ""}, true, ""
		}
	}
	if slices.Contains(builtins, specifier) {
		return m, false, ""
	}
	for part := range beginnings(specifier) { // why it can't be looked for in a registry
		if reason := n.refused[part]; reason != "" {
			return m, false, reason
		}
	}
	return m, false, ""
}

// beginnings are a specifier and what is left of it without its last parts, with and
// without the slash at their end: "a/b", "a/", "a".
func beginnings(specifier string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(specifier) {
			return
		}
		for end := len(specifier); ; {
			end = strings.LastIndexByte(specifier[:end], '/')
			if end < 0 || !yield(specifier[:end+1]) || !yield(specifier[:end]) {
				return
			}
		}
	}
}

// place is where something is by its path from the program's directory: a path from where
// the program's files are; empty if it is not among them.
func (n names) place(target string) string {
	if !isRelative(target) {
		return ""
	}
	at := path.Join(n.base, target)
	if at == ".." || strings.HasPrefix(at, "../") {
		return ""
	}
	if strings.HasSuffix(target, "/") && at != "." {
		at += "/"
	}
	if at == "." {
		return "./"
	}
	return "./" + at
}

// mapped looks a specifier up as import maps do: by its whole, then by the longest
// beginning that has an entry. An entry with "*" stands in for what is in its place.
func (s scope) mapped(specifier string) (target string, ok bool) {
	if strings.Contains(specifier, "*") {
		return "", false
	}
	longest := -1
	for part := range beginnings(specifier) {
		value, there := s.imports[part]
		rest := specifier[len(part):]
		isPackage := strings.HasPrefix(value, "npm:") || strings.HasPrefix(value, "jsr:")
		if there && (rest == "" || strings.HasSuffix(part, "/") || isPackage) {
			target, ok, longest = value+rest, true, len(part)
			break
		}
	}
	if longest == len(specifier) {
		return target, ok
	}
	for _, pattern := range s.patterns {
		before, after, _ := strings.Cut(pattern, "*")
		if len(before) > longest && len(specifier) >= len(pattern) && strings.HasPrefix(specifier, before) && strings.HasSuffix(specifier, after) {
			rest := specifier[len(before) : len(specifier)-len(after)]
			target, ok, longest = strings.Replace(s.imports[pattern], "*", rest, 1), true, len(before)
		}
	}
	return target, ok
}

// mentions are the files, by their paths from where the program's are, that a module may
// import by the project's names.
func (n names) mentions(file, code string) (files []string) {
	if len(n.imports) == 0 && len(n.scopes) == 0 {
		return nil
	}
	scopes := n.scopesOf(file)
	for _, found := range aString().FindAllStringSubmatch(code, -1) {
		for _, scope := range scopes {
			if target, ok := scope.mapped(found[1]); ok {
				if target = n.place(target); target != "" {
					files = append(files, meant("", target)...)
				}
				break
			}
		}
	}
	return files
}

// aString finds what may be a string that names a module.
var aString = Pattern("[\"'`]([#@\\w$][^\"'`\\\\\n]{0,1000})[\"'`]")

// Names are entries of an import map: packages, URLs, and files by their paths from where
// the program's files are.
type Names struct {
	Imports map[string]string
	Scopes  map[string]map[string]string
}

// name takes note of what a specifier stands for.
func (m *Module) name(specifier string, meaning meaning) {
	if meaning.scope == "" {
		m.Names.Imports = set(m.Names.Imports, specifier, meaning.target)
		return
	}
	if m.Names.Scopes == nil {
		m.Names.Scopes = map[string]map[string]string{}
	}
	m.Names.Scopes[meaning.scope] = set(m.Names.Scopes[meaning.scope], specifier, meaning.target)
}

// set maps a specifier to its target and, where that is a whole package, what is below it.
func set(imports map[string]string, specifier, target string) map[string]string {
	if imports == nil {
		imports = map[string]string{}
	}
	imports[specifier] = target
	if s, err := ParseSpecifier(target); err == nil && !s.IsURL() && s.Path == "" && !strings.Contains(specifier, ":") {
		imports[specifier+"/"] = below(s)
	}
	return imports
}
