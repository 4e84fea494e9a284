package modules

import (
	"fmt"
	"slices"
	"strings"
)

// maxImports is how many modules a program may name: all that are packages go
// onto one command line.
const maxImports = 1000

// Resolution is what a program's imports and package requests mean.
type Resolution struct {
	Imports map[string]string // the import map
	Roots   []Specifier       // what must be in Deno's cache, each once, sorted
	Modules []string          // what is imported by a literal, as Deno takes it
}

// Resolve maps bare specifiers to packages, except those of Node's built-in modules,
// which Deno knows. A package request gives the version of bare imports of its name.
func Resolve(imports, packages []string) (Resolution, error) {
	r := Resolution{Imports: map[string]string{}}
	if n := len(imports) + len(packages); n > maxImports {
		return r, fmt.Errorf("the program imports %d modules: the most is %d", n, maxImports)
	}
	asked := map[string]Specifier{}
	for _, text := range packages {
		s, err := ParseSpecifier(strings.TrimSpace(text))
		if err != nil {
			return r, err
		}
		r.addRoot(s)
		r.Modules = append(r.Modules, s.String())
		if !s.IsURL() && !slices.Contains(builtins, s.Name) {
			asked[s.Name] = s
			r.mapPackage(s)
		}
	}
	for _, text := range imports {
		scheme, _, has := strings.Cut(text, ":")
		switch {
		case slices.Contains(builtins, strings.TrimPrefix(text, "node:")):
			r.Modules = append(r.Modules, "node:"+strings.TrimPrefix(text, "node:"))
			continue
		case text == "", strings.ContainsAny(text[:1], "./#"):
			continue // Deno decides, by its permissions
		case has && !slices.Contains([]string{"npm", "jsr", "http", "https"}, scheme):
			continue // data:, blob:, file:, as above
		}
		s, err := ParseSpecifier(text)
		if err != nil {
			return r, fmt.Errorf("import %q: %w", text, err)
		}
		if !has {
			s = r.resolveBare(text, s, asked)
		}
		r.addRoot(s)
		r.Modules = append(r.Modules, s.String())
	}
	slices.Sort(r.Modules)
	r.Modules = slices.Compact(r.Modules)
	slices.SortFunc(r.Roots, func(a, b Specifier) int { return strings.Compare(a.String(), b.String()) })
	return r, nil
}

// resolveBare resolves a specifier without a scheme.
func (r *Resolution) resolveBare(text string, s Specifier, asked map[string]Specifier) Specifier {
	if want, ok := asked[s.Name]; ok && s.Version == "" {
		want.Path = s.Path
		s = want
	}
	r.Imports[text] = s.String()
	if s.Version == "" || text == s.Name {
		r.mapPackage(s)
	}
	return s
}

// mapPackage maps a package's bare name and all below it.
func (r *Resolution) mapPackage(s Specifier) {
	r.Imports[s.Name] = s.Root()
	r.Imports[s.Name+"/"] = below(s)
}

// below is what stands for all below a package, in an import map.
func below(s Specifier) string { return strings.Replace(s.Root(), ":", ":/", 1) + "/" }

// addRoot adds what has to be fetched. The files of an npm package come
// together; the modules of jsr: and of URLs come one by one.
func (r *Resolution) addRoot(s Specifier) {
	if s.Scheme == "npm" {
		s.Path = ""
	}
	if !slices.Contains(r.Roots, s) {
		r.Roots = append(r.Roots, s)
	}
}
