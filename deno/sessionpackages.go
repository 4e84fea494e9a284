//go:build !windows

package deno

import (
	"context"
	"maps"
	"slices"
	"strings"

	"rillbox/supervisor"
)

// packages are those of a session's cells so far.
type packages struct {
	// exact gives the exact form ("npm:lodash@4.17.21") of what cells asked for
	// ("npm:lodash@4"); what is not there is to be planned.
	exact map[string]string
	// latest are the exact forms, one for each name: what a later cell gets that
	// names the package alone.
	latest []specifier
}

// cellPackages are those of one cell.
type cellPackages struct {
	imports map[string]string // what is added to the import map
	planned []supervisor.Package
	notes   []string
}

// plan finds out what a cell's imports and requests mean, and gives the session
// what it has not yet.
func (s *session) plan(ctx context.Context, imports, requests []string, emit func(supervisor.Event)) (cellPackages, error) {
	asked := slices.Clone(requests)
	named := func(other specifier) bool {
		return slices.ContainsFunc(requests, func(text string) bool {
			request, err := parseSpecifier(strings.TrimSpace(text))
			return err == nil && request.name == other.name
		})
	}
	for _, known := range s.packages.latest {
		if !named(known) {
			asked = append(asked, known.String())
		}
	}
	r, err := resolve(imports, asked)
	if err != nil {
		return cellPackages{}, &PackageError{Text: err.Error()}
	}
	roots := slices.DeleteFunc(slices.Clone(r.roots), func(root specifier) bool { return s.packages.exact[root.String()] != "" })
	var w cellPackages
	if len(roots) > 0 {
		p, err := s.engine.planner.plan(ctx, s.engine.binary.Path, s.permissions, roots, emit)
		if err != nil {
			return cellPackages{}, err
		}
		if err := s.modules.add(p); err != nil {
			return cellPackages{}, err
		}
		s.packages.add(p, roots)
		w.planned = p.Packages
	}
	w.imports = s.packages.importMap(r, imports)
	return w, nil
}

// add takes note of what was planned for the roots.
func (p *packages) add(made plan, roots []specifier) {
	for _, root := range roots {
		exact := root
		if !root.isURL() {
			exact.version = made.lock.version(root)
			p.latest = slices.DeleteFunc(p.latest, func(other specifier) bool { return other.name == exact.name })
			p.latest = append(p.latest, specifier{scheme: exact.scheme, name: exact.name, version: exact.version})
		}
		p.exact[root.String()] = exact.String()
		p.exact[root.root()] = exact.root()
		p.exact[exact.root()] = exact.root()
	}
}

// importMap is what a cell's specifiers stand for, each with an exact version.
func (p *packages) importMap(r resolution, imports []string) map[string]string {
	all := maps.Clone(r.imports)
	for _, text := range imports {
		if _, err := parseSpecifier(text); err == nil && strings.Contains(text, ":") {
			all[text] = text
		}
	}
	for from, to := range all {
		s, err := parseSpecifier(strings.TrimSuffix(to, "/"))
		if err != nil || s.isURL() || p.exact[s.root()] == "" {
			continue
		}
		exact := p.exact[s.root()] + s.path
		if strings.HasSuffix(to, "/") {
			exact = strings.Replace(exact, ":", ":/", 1) + "/"
		}
		all[from] = exact
	}
	return all
}
