//go:build !windows

package deno

import (
	"context"
	"maps"
	"slices"
	"strings"

	"rillbox/deno/modules"
	"rillbox/supervisor/job"
)

// packages are those of a session's cells so far.
type packages struct {
	// exact gives the exact form ("npm:lodash@4.17.21") of what cells asked for
	// ("npm:lodash@4"); what is not there is to be planned.
	exact map[string]string
	// latest are the exact forms, one for each name: what a later cell gets that
	// names the package alone.
	latest []modules.Specifier
}

// cellPackages are those of one cell.
type cellPackages struct {
	imports map[string]string // what is added to the import map
	planned []job.Package
	notes   []string
}

// plan finds out what a cell's imports and requests mean, and gives the session
// what it has not yet.
func (s *session) plan(ctx context.Context, imports, requests []string, emit func(job.Event)) (cellPackages, error) {
	asked := slices.Clone(requests)
	named := func(other modules.Specifier) bool {
		return slices.ContainsFunc(requests, func(text string) bool {
			request, err := modules.ParseSpecifier(strings.TrimSpace(text))
			return err == nil && request.Name == other.Name
		})
	}
	for _, known := range s.packages.latest {
		if !named(known) {
			asked = append(asked, known.String())
		}
	}
	r, err := modules.Resolve(imports, asked)
	if err != nil {
		return cellPackages{}, &modules.PackageError{Text: err.Error()}
	}
	roots := slices.DeleteFunc(slices.Clone(r.Roots), func(root modules.Specifier) bool { return s.packages.exact[root.String()] != "" })
	var w cellPackages
	if len(roots) > 0 {
		p, err := s.engine.planner.Plan(ctx, s.engine.deno, s.permissions, s.policy, roots, modules.Terms{}, emit)
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
func (p *packages) add(made modules.Plan, roots []modules.Specifier) {
	for _, root := range roots {
		exact := root
		if !root.IsURL() {
			exact.Version = made.Locked.Version(root)
			p.latest = slices.DeleteFunc(p.latest, func(other modules.Specifier) bool { return other.Name == exact.Name })
			p.latest = append(p.latest, modules.Specifier{Scheme: exact.Scheme, Name: exact.Name, Version: exact.Version})
		}
		p.exact[root.String()] = exact.String()
		p.exact[root.Root()] = exact.Root()
		p.exact[exact.Root()] = exact.Root()
	}
}

// importMap is what a cell's specifiers stand for, each with an exact version.
func (p *packages) importMap(r modules.Resolution, imports []string) map[string]string {
	all := maps.Clone(r.Imports)
	for _, text := range imports {
		if _, err := modules.ParseSpecifier(text); err == nil && strings.Contains(text, ":") {
			all[text] = text
		}
	}
	for from, to := range all {
		s, err := modules.ParseSpecifier(strings.TrimSuffix(to, "/"))
		if err != nil || s.IsURL() || p.exact[s.Root()] == "" {
			continue
		}
		exact := p.exact[s.Root()] + s.Path
		if strings.HasSuffix(to, "/") {
			exact = strings.Replace(exact, ":", ":/", 1) + "/"
		}
		all[from] = exact
	}
	return all
}
