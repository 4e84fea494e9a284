//go:build !windows

package pyodide

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"

	"rillbox/cache"
	"rillbox/pyodide/gateway"
	"rillbox/supervisor"
)

const planKind = "plan"

// plan is an install plan: which files a program's wishes resolved to, in the
// order of their installation. It is kept in the cache, so that a rerun asks no
// index.
type plan struct {
	Files []planFile `json:"files"`
	// Missing maps imports that nothing was found for to the reason.
	Missing map[string]string `json:"missing"`
}

type planFile struct {
	gateway.File
	// Dir is where the file is unpacked: "site", or "dynlib" for shared
	// libraries.
	Dir string
}

// wish is what a worker asks for before its program starts.
type wish struct {
	Requirements []string `json:"requirements"`
	Imports      []string `json:"imports"`
}

// names are what is wished for, each once.
func (w wish) names() []string {
	names := slices.Concat(w.Requirements, w.Imports)
	slices.Sort(names)
	return slices.Compact(names)
}

// installed is what a worker says that it installed.
type installed struct {
	Files []struct {
		File   string `json:"file"`
		SHA256 string `json:"sha256"`
		Dir    string `json:"dir"`
	} `json:"files"`
	Missing map[string]string `json:"missing"`
}

// planKey describes all that decides what a wish resolves to.
func (rt *runtime) planKey(w wish) string {
	return fmt.Sprintf("python/pyodide-%s/%s/%s/%s", Version, rt.origin, rt.policy,
		digest(append(append(slices.Clone(w.Requirements), "imports"), w.Imports...)...))
}

// findPlan gives the plan for a wish, nil when there is none or when it can't be
// read: then the error says why. A plan with
// imports that nothing was found for holds only while the network is gone.
func (e *Engine) findPlan(rt *runtime, w wish) (*plan, error) {
	path, err := e.o.Cache.Get(planKind, rt.planKey(w))
	if errors.Is(err, cache.ErrMiss) {
		return nil, nil
	}
	var p plan
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(path); err == nil {
			err = json.Unmarshal(text, &p)
		}
	}
	if err != nil {
		e.o.Log.Warn("an install plan can't be read and is made again", "error", err)
		return nil, err
	}
	if len(p.Missing) > 0 && !e.o.Cache.Offline() && !e.o.Policy.NoFetch {
		return nil, nil
	}
	return &p, nil
}

// checkPlan makes a plan of what a worker says that it installed: each file
// must be one that the gateway served to it.
func checkPlan(said installed, served []gateway.File) (plan, error) {
	p := plan{Missing: said.Missing, Files: []planFile{}}
	for _, file := range said.Files {
		i := slices.IndexFunc(served, func(f gateway.File) bool {
			return f.Filename == file.File && f.SHA256 == file.SHA256
		})
		if i < 0 {
			return plan{}, fmt.Errorf("the worker installed %.200q with sha256 %.100q, which the gateway did not serve", file.File, file.SHA256)
		}
		if file.Dir != "site" && file.Dir != "dynlib" {
			return plan{}, fmt.Errorf("the worker installed %.200q into %.40q", file.File, file.Dir)
		}
		p.Files = append(p.Files, planFile{served[i], file.Dir})
	}
	return p, nil
}

func (e *Engine) storePlan(ctx context.Context, rt *runtime, w wish, p plan) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode an install plan: %w", err)
	}
	_, err = e.o.Cache.Put(ctx, planKind, rt.planKey(w), bytes.NewReader(text))
	return err
}

// without is the plan for a worker that has files installed already, by project:
// nil when it has another version of one.
func (p *plan) without(installed map[string]string) *plan {
	if p == nil || len(installed) == 0 {
		return p
	}
	rest := plan{Files: []planFile{}, Missing: p.Missing}
	for _, file := range p.Files {
		switch installed[file.Name] {
		case "":
			rest.Files = append(rest.Files, file)
		case file.SHA256:
		default:
			return nil
		}
	}
	return &rest
}

// files are the plan's files as the gateway knows them.
func (p *plan) files() []gateway.File {
	files := make([]gateway.File, len(p.Files))
	for i, file := range p.Files {
		files[i] = file.File
	}
	return files
}

// answer is the plan as a worker follows it; images are the paths of its files'
// images, empty for those without.
func (p *plan) answer(images []string) any {
	type file struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Source  string `json:"source"`
		File    string `json:"file"`
		URL     string `json:"url"`
		SHA256  string `json:"sha256"`
		Dir     string `json:"dir"`
		Image   string `json:"image"`
	}
	type followed struct {
		Files   []file            `json:"files"`
		Missing map[string]string `json:"missing"`
	}
	if p == nil {
		return map[string]any{"plan": nil}
	}
	f := followed{[]file{}, p.Missing}
	for i, one := range p.Files {
		path := "file/" + one.SHA256 + "/" + url.PathEscape(one.Filename)
		f.Files = append(f.Files, file{one.Name, one.Version, one.Source, one.Filename, path, one.SHA256, one.Dir, images[i]})
	}
	return map[string]any{"plan": f}
}

// packages tells of files as a result does.
func packages(files []gateway.File) []supervisor.Package {
	var list []supervisor.Package
	for _, f := range files {
		list = append(list, supervisor.Package{Name: f.Name, Version: f.Version, Source: f.Source, Cached: f.Cached})
	}
	return list
}
