package modules

import (
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

// find gives what a specifier stands for in a module. found is false for one that stands
// for itself; reason says why it stands for nothing.
func (n names) find(file, specifier string) (m meaning, found bool, reason string) {
	if isRelative(specifier) || strings.HasPrefix(specifier, "/") {
		return m, false, ""
	}
	scopes := slices.SortedFunc(maps.Keys(n.scopes), func(a, b string) int { return len(b) - len(a) })
	for _, scope := range append(scopes, "") {
		imports := n.imports
		if scope != "" {
			imports = n.scopes[scope]
			if scope = n.place(scope); scope == "" || scope != "./"+file && !strings.HasSuffix(scope, "/") || scope != "./" && !strings.HasPrefix("./"+file, scope) {
				continue
			}
		}
		if target, ok := mapped(imports, specifier); ok {
			m = meaning{target, scope}
			if isRelative(target) {
				if m.target = n.place(target); m.target == "" {
					return m, true, "the project has it stand for " + target + ", which is outside of the program's directory: it can be imported in a workspace that has both"
				}
			}
			return m, true, ""
		}
	}
	s, err := ParseSpecifier(specifier)
	if err == nil && s.Scheme == "npm" && s.Version == "" && strings.HasPrefix(specifier, "npm:") { // its version is the project's
		if target, ok := mapped(n.imports, s.Name+s.Path); ok && strings.HasPrefix(target, "npm:"+s.Name+"@") {
			return meaning{target, ""}, true, ""
		}
	}
	return m, false, n.refusal(specifier)
}

// refusal says why a specifier that stands for nothing can't be looked for in a registry.
func (n names) refusal(specifier string) string {
	for name, reason := range n.refused {
		if rest, is := strings.CutPrefix(specifier, name); is && !slices.Contains(builtins, specifier) &&
			(rest == "" || rest[0] == '/' || strings.HasSuffix(name, "/")) {
			return reason
		}
	}
	return ""
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
// beginning that has an entry.
func mapped(imports map[string]string, specifier string) (target string, ok bool) {
	if target, ok := imports[specifier]; ok && !strings.Contains(specifier, "*") {
		return target, true
	}
	longest := -1
	for key, value := range imports {
		before, after, pattern := strings.Cut(key, "*")
		rest, fits := strings.CutPrefix(specifier, before)
		if pattern {
			rest, fits = strings.CutSuffix(rest, after)
			fits = fits && len(specifier) >= len(key) && strings.HasPrefix(specifier, before)
			value = strings.Replace(value, "*", rest, 1)
		} else if strings.HasSuffix(key, "/") {
			value += rest
		} else if fits && strings.HasPrefix(rest, "/") && (strings.HasPrefix(value, "npm:") || strings.HasPrefix(value, "jsr:")) {
			value += rest
		} else {
			fits = false
		}
		if fits && len(before) > longest {
			target, ok, longest = value, true, len(before)
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
	for _, found := range aString().FindAllStringSubmatch(code, -1) {
		if m, ok, reason := n.find(file, found[1]); ok && reason == "" && isRelative(m.target) {
			files = append(files, meant("", m.target)...)
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
