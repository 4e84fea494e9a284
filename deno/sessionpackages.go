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
	imports map[string]string            // what is added to the import map
	scopes  map[string]map[string]string // that hold in modules below a path
	named   bool                         // either has names
	planned []job.Package
	notes   []string
}

// plan finds out what the imports and requests of a cell, which m tells of, mean, and
// gives the session what it has not yet.
func (s *session) plan(ctx context.Context, m modules.Module, p job.Program, emit func(job.Event)) (cellPackages, error) {
	asked := slices.Clone(p.Packages)
	named := func(other modules.Specifier) bool {
		return slices.ContainsFunc(p.Packages, func(text string) bool {
			request, err := modules.ParseSpecifier(strings.TrimSpace(text))
			return err == nil && request.Name == other.Name
		})
	}
	for _, known := range s.packages.latest {
		if !named(known) {
			asked = append(asked, known.String())
		}
	}
	r, err := modules.Resolve(m.Imports, asked)
	if err != nil {
		return cellPackages{}, &modules.PackageError{Text: err.Error()}
	}
	roots := slices.DeleteFunc(slices.Clone(r.Roots), func(root modules.Specifier) bool { return s.packages.exact[root.String()] != "" })
	var w cellPackages
	if len(roots) > 0 {
		terms := modules.TermsOf(p.Manifest)
		terms.Overrides = nil // the session's process finds versions by what packages ask for
		made, err := s.engine.planner.Plan(ctx, s.engine.deno, s.permissions, s.policy, roots, terms, emit)
		if err != nil {
			return cellPackages{}, err
		}
		if err := s.modules.add(made); err != nil {
			return cellPackages{}, err
		}
		s.packages.add(made, roots)
		w.planned = made.Packages
		w.notes = notLocked(made, terms.Lock)
	}
	w.imports = s.packages.importMap(r, m)
	for at, names := range m.Names.Scopes {
		if w.scopes == nil {
			w.scopes = map[string]map[string]string{}
		}
		w.scopes[at] = s.packages.exactly(maps.Clone(names))
	}
	w.named = len(r.Imports)+len(m.Names.Imports)+len(m.Names.Scopes) > 0
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
func (p *packages) importMap(r modules.Resolution, m modules.Module) map[string]string {
	all := maps.Clone(r.Imports)
	maps.Copy(all, m.Names.Imports)
	for _, text := range m.Imports {
		if _, named := all[text]; named {
			continue
		}
		if _, err := modules.ParseSpecifier(text); err == nil && strings.Contains(text, ":") {
			all[text] = text
		}
	}
	return p.exactly(all)
}

// exactly gives the packages in an import map their exact versions.
func (p *packages) exactly(all map[string]string) map[string]string {
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
