package deno

import (
	"fmt"
	"slices"
	"strings"
)

// maxImports is how many modules a program may name: all that are packages go
// onto one command line.
const maxImports = 1000

// resolution is what a program's imports and package requests mean.
type resolution struct {
	imports map[string]string // the import map
	roots   []specifier       // what must be in Deno's cache, each once, sorted
	modules []string          // what is imported by a literal, as Deno takes it
}

// resolve maps bare specifiers to packages, except those of Node's built-in modules,
// which Deno knows. A package request gives the version of bare imports of its name.
func resolve(imports, packages []string) (resolution, error) {
	r := resolution{imports: map[string]string{}}
	if n := len(imports) + len(packages); n > maxImports {
		return r, fmt.Errorf("the program imports %d modules: the most is %d", n, maxImports)
	}
	asked := map[string]specifier{}
	for _, text := range packages {
		s, err := parseSpecifier(strings.TrimSpace(text))
		if err != nil {
			return r, err
		}
		r.addRoot(s)
		r.modules = append(r.modules, s.String())
		if !s.isURL() && !slices.Contains(builtins, s.name) {
			asked[s.name] = s
			r.mapPackage(s)
		}
	}
	for _, text := range imports {
		scheme, _, has := strings.Cut(text, ":")
		switch {
		case slices.Contains(builtins, strings.TrimPrefix(text, "node:")):
			r.modules = append(r.modules, "node:"+strings.TrimPrefix(text, "node:"))
			continue
		case text == "", strings.ContainsAny(text[:1], "./#"):
			continue // Deno decides, by its permissions
		case has && !slices.Contains([]string{"npm", "jsr", "http", "https"}, scheme):
			continue // data:, blob:, file:, as above
		}
		s, err := parseSpecifier(text)
		if err != nil {
			return r, fmt.Errorf("import %q: %w", text, err)
		}
		if !has {
			s = r.resolveBare(text, s, asked)
		}
		r.addRoot(s)
		r.modules = append(r.modules, s.String())
	}
	slices.Sort(r.modules)
	r.modules = slices.Compact(r.modules)
	slices.SortFunc(r.roots, func(a, b specifier) int { return strings.Compare(a.String(), b.String()) })
	return r, nil
}

// resolveBare resolves a specifier without a scheme.
func (r *resolution) resolveBare(text string, s specifier, asked map[string]specifier) specifier {
	if want, ok := asked[s.name]; ok && s.version == "" {
		want.path = s.path
		s = want
	}
	r.imports[text] = s.String()
	if s.version == "" || text == s.name {
		r.mapPackage(s)
	}
	return s
}

// mapPackage maps a package's bare name and all below it.
func (r *resolution) mapPackage(s specifier) {
	root := s.root()
	r.imports[s.name] = root
	r.imports[s.name+"/"] = strings.Replace(root, ":", ":/", 1) + "/"
}

// addRoot adds what has to be fetched. The files of an npm package come
// together; the modules of jsr: and of URLs come one by one.
func (r *resolution) addRoot(s specifier) {
	if s.scheme == "npm" {
		s.path = ""
	}
	if !slices.Contains(r.roots, s) {
		r.roots = append(r.roots, s)
	}
}
