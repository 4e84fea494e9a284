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

// translation is what a compiler to JavaScript makes; see guest/compile/translate.ts.
type translation struct {
	Code  string            `json:"code"`
	Files map[string]string `json:"files"`
}

// newScripts makes the engine for what was translated, with the permissions of this one;
// programs may read the variables that they get, as those in all languages here.
func (e *Engine) newScripts() (*deno.Engine, error) {
	o := e.o.Options
	o.Warm = 0
	if names := slices.Sorted(maps.Keys(permission.Variables(o.Env))); len(names) > 0 {
		o.Permissions = o.Permissions.With("allow-env", names...)
	}
	scripts, err := deno.New(o)
	if err == nil {
		e.closing.Store(scripts)
	}
	return scripts, err
}

// translated is the program in JavaScript.
func translated(made compiled, p job.Program) (job.Program, error) {
	var t translation
	if err := json.Unmarshal(made.module, &t); err != nil {
		return p, fmt.Errorf("read what the compiler made: %w", err)
	}
	name := p.Name
	if name == "" {
		name = "main"
	}
	p.Language, p.Code, p.Name = job.JavaScript, t.Code, name+".js"
	if p.Path != "" {
		p.Path += ".js"
	}
	if p.Files = maps.Clone(p.Files); p.Files == nil {
		p.Files = map[string][]byte{}
	}
	for file, code := range t.Files {
		file, err := filepath.Rel(path.Join(workspaceName, path.Dir(p.Path)), file)
		if err != nil || !filepath.IsLocal(file) {
			return p, job.Refuse("%s is not beside the program", strings.TrimSuffix(file, ".js"))
		}
		p.Files[file] = []byte(code)
	}
	return p, nil
}

// runTranslated has the engine for JavaScript run what a program was translated to.
func (e *Engine) runTranslated(ctx context.Context, made compiled, p job.Program, streams job.Streams) (job.Result, error) {
	p, err := translated(made, p)
	if err != nil {
		return job.Result{}, err
	}
	scripts, err := e.scripts()
	if err != nil {
		return job.Result{}, err
	}
	result, err := scripts.Run(ctx, p, streams)
	result.Installing += made.took
	return result, err
}

// translatedSession is a session of JavaScript, whose cells are translated.
type translatedSession struct {
	job.Session
	e *Engine
	l language
}

func (s *translatedSession) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	if _, err := s.e.check(s.l, p); err != nil {
		return job.Result{}, err
	}
	rt, err := s.e.runtime(ctx, s.l, streams.Emit)
	if err != nil {
		return job.Result{}, err
	}
	p.Language = s.l.Name
	made, failed, err := s.e.compile(ctx, rt, s.l, p, s.e.request(s.l, p), streams)
	if failed != nil || err != nil {
		if failed == nil {
			failed = &job.Result{}
		}
		return *failed, err
	}
	if p, err = translated(made, p); err != nil {
		return job.Result{}, err
	}
	return s.Session.Run(ctx, p, streams)
}
