//go:build !windows

package deno

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/deno/binary"
	"rillbox/deno/modules"
	"rillbox/supervisor/job"
)

// files are the names of all files below a directory, in order.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			rel, _ := filepath.Rel(dir, path)
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// What modules became is made beside the first run, kept in the cache, and
// copied to each run after it, where nothing is added to it.
func TestCompiledModules(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/typescript")
		_, _ = w.Write([]byte(`import "node:stream"; export const a: number = 1; console.log(a);`))
	}))
	defer server.Close()
	t.Setenv("NO_PROXY", "127.0.0.1")
	binary, err := binary.Locate(t.Context(), binary.LocateOptions{Cache: cachetest.Open(t)})
	cachetest.NeedNetwork(t, err)
	dir := t.TempDir()
	open := func() *Engine {
		store, err := cache.Open(dir, cache.Options{Log: cachetest.Logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		e, err := New(Options{Cache: store, DenoPath: binary, AllowImport: []string{strings.TrimPrefix(server.URL, "http://")}, Limits: job.DefaultLimits()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return e
	}
	program := job.Program{Code: `import { a } from "` + server.URL + `/mod.ts"; localStorage.x = 1; export default a;`}
	e := open()
	if r := completed(t, e, program); string(r.Value) != "1" || r.Stdout.String() != "1\n" {
		t.Fatalf("the first run: %s %q", r.Value, r.Stdout)
	}
	e.codeCaches.jobs.Wait()
	var made string
	for _, dir := range e.codeCaches.dirs {
		made = dir
	}
	have := files(t, made)
	if len(have) != 3 || !strings.HasPrefix(have[1], "gen/http/127.0.0.1") || have[0] != "dep_analysis_cache_v2" || have[2] != codeDatabase {
		t.Fatalf("what was kept: %q in %q", have, made)
	}
	for range 2 {
		e = open() // which verifies what it reads
		ahead, err := e.startWorker(t.Context(), launchOf(t, e, program))
		if err != nil {
			t.Fatal(err)
		}
		if got := files(t, filepath.Join(ahead.dir, "..", ownDir)); !slices.Contains(got, codeDatabase) || !slices.Contains(got, have[1]) {
			t.Errorf("a run gets %q", got)
		}
		ahead.Discard()
		if r := completed(t, e, program); string(r.Value) != "1" {
			t.Errorf("have %s", r.Value)
		}
		if now := files(t, made); !slices.Equal(now, have) {
			t.Errorf("%q became %q", have, now)
		}
	}
}

// launchOf is what Run starts the program's child with.
func launchOf(t *testing.T, e *Engine, p job.Program) launch {
	t.Helper()
	if err := e.locate(t.Context(), func(job.Event) {}); err != nil {
		t.Fatal(err)
	}
	scan, ended := e.scanners.Of(t.Context())
	defer ended()
	m, err := modules.Inspect(job.Program{Language: job.JavaScript, Code: p.Code}, scan)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := modules.Resolve(m.Imports, nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := e.planner.Plan(t.Context(), e.deno, e.options.Permissions, e.options.Policy, wanted.Roots, modules.Terms{}, func(job.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	return launch{install: plan, codeCache: e.codeCache(t.Context(), wanted.Modules, plan), files: []string{m.File}}
}

// Modules that never end, or break while they are loaded, cost no run.
func TestModulesThatCannotBeCompiled(t *testing.T) {
	e := warmEngine(t, 0)
	for _, module := range []string{"data:text/javascript,await new Promise(() => setInterval(() => {}, 9))", "data:text/javascript,Deno.exit(9)", "data:text/javascript,throw 1", "npm:none-of-these"} {
		dir, err := e.makeCodeCache(t.Context(), []string{module, "node:stream"}, modules.Plan{})
		if err != nil || !slices.Contains(files(t, dir), codeDatabase) {
			t.Errorf("%s: %v", module, err)
		}
	}
}
