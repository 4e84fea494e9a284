package gateway

import (
	"net/http"
	"path"
	"strings"
)

// Locked is a version of a project, by its normalised name, that a lock file has.
type Locked struct {
	Name, Version string
	Files         map[string]string // SHA-256 → file name, which may be unknown
}

// demand is what a lock file demands of a grant's files.
type demand struct {
	file   string // for people
	files  map[string]map[string]string
	frozen bool
}

// Demand has the grant show, of projects that a lock file has, the files that it has; with
// frozen also no others. The first lock file holds for as long as the grant: it must be
// given before a guest uses that.
func (gr *Grant) Demand(file string, locked []Locked, frozen bool) {
	if gr.demand != nil {
		return
	}
	d := &demand{file: file, files: map[string]map[string]string{}, frozen: frozen}
	for _, l := range locked {
		if d.files[l.Name] == nil {
			d.files[l.Name] = map[string]string{}
		}
		for sum, name := range l.Files {
			d.files[l.Name][sum] = name
		}
	}
	gr.demand = d
}

// narrow leaves of a project's page what the lock file has.
func (d *demand) narrow(p *projectPage) (*projectPage, error) {
	if d == nil {
		return p, nil
	}
	locked, there := d.files[p.project]
	if !there && d.frozen {
		return nil, d.lacks(p.project)
	}
	if !there {
		return p, nil
	}
	narrowed, other := *p, ""
	only := *p.page
	only.files, only.byName = nil, map[string]int{}
	narrowed.page = &only
	for _, f := range p.files {
		if _, is := locked[f.sha256()]; is {
			narrowed.byName[f.Filename] = len(narrowed.files)
			narrowed.files = append(narrowed.files, f)
			continue
		}
		for sum, name := range locked {
			if name == f.Filename {
				other = "; its digest there is " + sum + ", and what the package index has is " + f.sha256()
			}
		}
	}
	if len(narrowed.files) == 0 {
		return nil, answerf(http.StatusForbidden, "no file of %s on the package index is what %s has%s", p.project, d.file, other)
	}
	return &narrowed, nil
}

// check refuses a file that a frozen lock file does not have.
func (d *demand) check(f File) error {
	if d == nil || !d.frozen {
		return nil
	}
	if _, is := d.files[f.Name][f.Origin().SHA256]; !is {
		return d.lacks(f.Name + " " + f.Version)
	}
	return nil
}

// Origin is the file that an index or a lock file names: the source of what was built of
// one, else the file itself.
func (f File) Origin() File {
	address, sum, is := strings.Cut(f.URL, "#sha256=")
	if f.Source != Built || !is {
		return f
	}
	f.URL, f.SHA256, f.Filename, f.Source, f.Size = address, sum, path.Base(address), "index", 0
	return f
}

func (d *demand) lacks(what string) error {
	return answerf(http.StatusForbidden, "--frozen wants all packages of the program in a lock file, and %s does not have %s: run `rillbox lock FILE`", d.file, what)
}

// Distributed are the versions of Pyodide's own packages, by their normalised names.
func (g *Gateway) Distributed() map[string]string {
	versions := map[string]string{}
	for _, e := range g.locked {
		versions[e.Name] = e.Version
	}
	return versions
}
