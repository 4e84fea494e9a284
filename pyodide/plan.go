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
	"strings"

	"rillbox/cache"
	"rillbox/pyodide/gateway"
)

const planKind = "plan"

// plan is an install plan: which files a program's requirements resolved to, in the
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
	Dir string `json:"dir"`
	// Image is the path of its image, as its worker reads it; empty without one.
	Image string `json:"image,omitempty"`
}

// requirements are what a worker asks for before its program starts.
type requirements struct {
	Packages []string `json:"requirements"`
	Imports  []string `json:"imports"`
	// terms describes what the program's project demands; not the worker's.
	terms string
}

// String lists them, each once.
func (r requirements) String() string {
	names := slices.Concat(r.Packages, r.Imports)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

func (r requirements) termsKey() []string {
	if r.terms == "" {
		return nil
	}
	return []string{"terms", r.terms}
}

// planKey describes all that decides what requirements resolve to.
func (w *worker) planKey(r requirements) string {
	return fmt.Sprintf("%s%s/%s/%s/%s", planPrefix, Version, w.rt.origin, policyKey(w.policy), r.digest())
}

// planPrefix begins a plan's key.
const planPrefix = "python/pyodide-"

func (r requirements) digest() string {
	return digest(slices.Concat(r.Packages, []string{"imports"}, r.Imports, r.termsKey())...)
}

// findPlan gives the plan for requirements, nil when there is none or when it can't be
// read: then the error says why. A plan with
// imports that nothing was found for holds only while the network is gone.
func (e *Engine) findPlan(w *worker, r requirements) (*plan, error) {
	p, err := e.readPlan(w, w.planKey(r))
	if err == nil && (p == nil || len(p.Missing) > 0) && !w.policy.AllowsRegistries() { // which an imported one does not tell
		imported, err := e.readPlan(w, importedKey(w.policy, r.digest()))
		if err == nil && imported != nil {
			return imported, nil
		}
	}
	return p, err
}

func (e *Engine) readPlan(w *worker, key string) (*plan, error) {
	path, err := e.o.Cache.Get(planKind, key)
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
	for _, file := range p.Files {
		if file.Source != gateway.Built {
			continue
		}
		if _, err := w.rt.gateway.Cached(file.File); errors.Is(err, cache.ErrMiss) {
			return nil, nil // it is built anew
		}
	}
	if len(p.Missing) > 0 && !e.o.Cache.Offline() && !w.policy.NoFetch {
		return nil, nil
	}
	return &p, nil
}

// check takes a plan that a worker reports: each file must be one that the gateway
// served to it.
func (p *plan) check(served []gateway.File) error {
	files := []planFile{}
	for _, file := range p.Files {
		i := slices.IndexFunc(served, func(f gateway.File) bool {
			return f.Filename == file.Filename && f.SHA256 == file.SHA256
		})
		if i < 0 {
			return fmt.Errorf("the worker installed %.200q with sha256 %.100q, which the gateway did not serve", file.Filename, file.SHA256)
		}
		if file.Dir != "site" && file.Dir != "dynlib" {
			return fmt.Errorf("the worker installed %.200q into %.40q", file.Filename, file.Dir)
		}
		files = append(files, planFile{File: served[i], Dir: file.Dir})
	}
	p.Files = files
	return nil
}

// storePlan keeps the plan that a worker made, for others of its policy.
func (e *Engine) storePlan(ctx context.Context, w *worker, r requirements, p plan) error {
	if e.cacheOnly(w.policy) {
		return nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode an install plan: %w", err)
	}
	_, err = e.o.Cache.Put(ctx, planKind, w.planKey(r), bytes.NewReader(text))
	return err
}

// without is the plan for a worker that has files installed already, by project:
// nil when it has another version of one.
func (p *plan) without(installed map[string]string) *plan {
	if p == nil || len(installed) == 0 {
		return p
	}
	rest := plan{Missing: p.Missing}
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

// answer is the plan as a worker follows it, with URLs of the gateway's.
func (p *plan) answer() any {
	if p != nil {
		p = &plan{append([]planFile{}, p.Files...), p.Missing}
		for i := range p.Files {
			file := &p.Files[i]
			file.URL = "file/" + file.SHA256 + "/" + url.PathEscape(file.Filename)
		}
	}
	return map[string]*plan{"plan": p}
}
