//go:build !windows

package wasm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rillbox/deno"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
)

// translation is what a compiler makes of a program in a language that becomes JavaScript;
// see guest/compile/translate.ts. The JavaScript engine runs it.
type translation struct {
	Language job.Language      `json:"language"`
	Code     string            `json:"code"`
	Files    map[string]string `json:"files"` // modules, by their paths
}

// script is the engine of what was translated. Its programs may read the variables that
// they get, as those in all languages here.
func (e *Engine) script() (*deno.Engine, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.scripts == nil {
		o := e.o.Options
		if names := slices.Sorted(maps.Keys(permission.Variables(o.Env))); len(names) > 0 {
			o.Permissions = o.Permissions.With("allow-env", names...)
		}
		scripts, err := deno.New(o)
		if err != nil {
			return nil, err
		}
		e.scripts = scripts
	}
	return e.scripts, nil
}

// translate makes a program of JavaScript of one in another language.
func (e *Engine) translate(ctx context.Context, l language, p job.Program, streams job.Streams) (job.Program, *job.Result, error) {
	rt, err := e.runtime(ctx, l, streams.Emit)
	if ctx.Err() != nil {
		cancelled := job.CancelledBefore("")
		return p, &cancelled, nil
	}
	if err != nil {
		return p, nil, err
	}
	r := e.request(l, p)
	made, failed, err := e.compile(ctx, rt, l, p, request{Code: r.Code, File: r.File, Files: r.Files}, streams)
	if failed != nil || err != nil {
		return p, failed, err
	}
	var t translation
	if err := json.Unmarshal(made.module, &t); err != nil {
		return p, nil, fmt.Errorf("read what %s became: %w", l.Title, err)
	}
	p.Language, p.Code = job.JavaScript, t.Code
	p.Name = path.Base(r.File) + ".js"
	if p.Path != "" {
		p.Path += ".js"
	}
	p.Files = maps.Clone(p.Files)
	for name, code := range t.Files {
		beside, err := filepath.Rel(path.Dir(r.File), name)
		if err != nil || strings.HasPrefix(beside, "..") {
			return p, nil, job.Refuse("%s can't be imported: what a program in %s imports is in its own folder, or below", path.Base(name), l.Title)
		}
		if p.Files == nil {
			p.Files = map[string][]byte{}
		}
		p.Files[beside] = []byte(code)
	}
	return p, nil, nil
}

// runTranslated runs a program as the JavaScript that it becomes.
func (e *Engine) runTranslated(ctx context.Context, l language, p job.Program, streams job.Streams) (job.Result, error) {
	scripts, err := e.script()
	if err != nil {
		return job.Result{}, err
	}
	p, failed, err := e.translate(ctx, l, p, streams)
	switch {
	case err != nil:
		return job.Result{}, err
	case failed != nil:
		return *failed, nil
	}
	return scripts.Run(ctx, p, streams)
}

// openTranslated starts a session of JavaScript, whose cells are translated.
func (e *Engine) openTranslated(ctx context.Context, l language, o job.SessionOptions, emit func(job.Event)) (job.Session, error) {
	scripts, err := e.script()
	if err != nil {
		return nil, err
	}
	o.Language = job.JavaScript
	s, err := scripts.OpenSession(ctx, o, emit)
	if err != nil {
		return nil, err
	}
	return &translatedSession{Session: s, e: e, l: l, workspace: o.Workspace}, nil
}

type translatedSession struct {
	job.Session
	e         *Engine
	l         language
	workspace string
}

func (s *translatedSession) Run(ctx context.Context, cell job.Program, streams job.Streams) (job.Result, error) {
	cell.Workspace = s.workspace
	cell, failed, err := s.e.translate(ctx, s.l, cell, streams)
	switch {
	case err != nil:
		return job.Result{}, err
	case failed != nil:
		failed.State = job.StateKept
		return *failed, nil
	}
	cell.Path, cell.Workspace = "", ""
	return s.Session.Run(ctx, cell, streams)
}

// Unfinished is not known: a compiler is not asked for each line.
func (*translatedSession) Unfinished(context.Context, string) (bool, error) { return false, nil }
