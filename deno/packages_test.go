//go:build !windows

package deno_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/deno/binary"
	"rillbox/supervisor/job"
)

// ownCache is a cache of the test's own; Deno itself comes from the shared one.
func ownCache(t *testing.T, dir string, offline bool) func(*deno.Options) {
	t.Helper()
	binary, err := binary.Locate(t.Context(), binary.LocateOptions{Cache: cachetest.Open(t)})
	cachetest.NeedNetwork(t, err)
	c, err := cache.Open(dir, cache.Options{Log: cachetest.Logger(t), Offline: offline})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return func(o *deno.Options) { o.Cache, o.DenoPath = c, binary }
}

// useNPM points the machine's npm configuration at the fixture.
func useNPM(t *testing.T, r *registry) {
	t.Setenv("NPM_CONFIG_REGISTRY", r.URL+"/npm/")
	t.Setenv("NO_PROXY", "127.0.0.1")
	t.Setenv("no_proxy", "127.0.0.1")
}

// The environment that may not be read is empty for packages, however they come
// by Node's process.
func TestPackagesSeeNoEnvironment(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	looks := "process.env.HOME === undefined && !(\"HOME\" in process.env)"
	for name, text := range map[string]string{
		"global":    `module.exports = ` + looks,
		"bare":      `const process = require("process"); module.exports = ` + looks,
		"specifier": "const process = require(`node:process`); module.exports = " + looks,
		"indirect":  `const name = "node:process", process = require(name); module.exports = ` + looks,
	} {
		r.npm(t, name, "1.0.0", map[string]string{"package.json": `{"name":"` + name + `","version":"1.0.0"}`, "index.js": text})
		e := newEngine(t, "", ownCache(t, t.TempDir(), false))
		got := run(t, e, job.Program{Code: `import seen from "` + name + `"; export default seen`})
		if string(got.Value) != "true" {
			t.Errorf("%s: %s %+v", name, got.Value, got.Error)
		}
	}
}

func TestNPMPackageFetchedOnceThenOffline(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "left", "1.2.0", map[string]string{
		"package.json": `{"name":"left","version":"1.2.0","main":"i.js","scripts":{"install":"echo ran > ran","postinstall":"exit 1"},"dependencies":{"deep":"^2"}}`,
		"i.js":         `exports.pad = (s) => require("deep") + s;`,
		"sub.js":       `module.exports = "sub";`,
	})
	r.npm(t, "deep", "2.0.1", map[string]string{"package.json": `{"name":"deep","version":"2.0.1"}`, "index.js": `module.exports = "*";`})
	program := job.Program{Code: `import left from "left"; import sub from "left/sub.js"; export default left.pad("x") + sub;`}
	dir := t.TempDir()

	var stages []string
	e := newEngine(t, "", ownCache(t, dir, false))
	p := program
	p.Language, p.Timeout = job.TypeScript, time.Minute
	got, err := e.Run(context.Background(), p, job.Streams{Emit: func(ev job.Event) {
		if ev.Kind == job.Stage {
			stages = append(stages, ev.Text)
		}
	}})

	if err != nil {
		t.Fatal(err)
	}
	want := []job.Package{{Name: "left", Version: "1.2.0", Source: "npm"}}
	if string(got.Value) != `"*xsub"` || !slices.Equal(got.Packages, want) || len(got.Stderr.Head) > 0 {
		t.Errorf("have %s %v stderr=%q error=%+v", got.Value, got.Packages, got.Stderr, got.Error)
	}
	if !slices.Contains(stages, "fetching left 1.2.0") || !slices.Contains(stages, "fetching deep 2.0.1") {
		t.Errorf("the stages do not tell what is fetched: %q", stages)
	}
	if none := run(t, e, job.Program{Code: "1"}); got.Installing <= 0 || none.Installing != 0 {
		t.Errorf("packages took %v, none %v", got.Installing, none.Installing)
	}
	if len(got.Notes) > 0 {
		t.Errorf("the notes tell what the packages do: %q", got.Notes)
	}

	asked := r.requests()
	again := run(t, e, program)
	want[0].Cached = true
	if string(again.Value) != `"*xsub"` || !slices.Equal(again.Packages, want) || r.requests() != asked {
		t.Errorf("second run: %s %v, %d requests", again.Value, again.Packages, r.requests()-asked)
	}

	r.Close()
	offline := newEngine(t, "", ownCache(t, dir, true))
	if got := run(t, offline, program); string(got.Value) != `"*xsub"` || !slices.Equal(got.Packages, want) {
		t.Errorf("offline: %s %v %+v", got.Value, got.Packages, got.Error)
	}
	// Another set of the same packages was never planned, and is here all the same.
	if got := run(t, offline, job.Program{Code: `import d from "deep"; export default d`}); got.Status != job.Failed && string(got.Value) != `"*"` {
		t.Errorf("offline, another set: %s %+v", got.Value, got.Error)
	}
	start := time.Now()
	missing := run(t, offline, job.Program{Code: `import "not-here"`})
	if missing.Error == nil || missing.Error.Message != "npm:not-here is not in the cache, and the network is not reachable" || time.Since(start) > 5*time.Second {
		t.Errorf("offline, missing: %+v after %v", missing.Error, time.Since(start))
	}
}

func TestAnEndlessAnswerIsTheRegistrysFault(t *testing.T) {
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for part := bytes.Repeat([]byte(" "), 1<<20); ; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	t.Cleanup(registry.Close)
	t.Setenv("NPM_CONFIG_REGISTRY", registry.URL)
	e := newEngine(t, "", ownCache(t, t.TempDir(), false))
	r := run(t, e, job.Program{Code: `import "endless"`})
	want := fmt.Sprintf("npm:endless can't be fetched from %s: it sent more than the 512 MiB that may come at once", strings.TrimPrefix(registry.URL, "http://"))
	if r.Error == nil || r.Error.Name != "PackageError" || r.Error.Message != want {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
}

// TestWhatUnpacksWithoutEndIsRefused, and nothing of it is kept.
func TestWhatUnpacksWithoutEndIsRefused(t *testing.T) {
	registry := newRegistry(t)
	registry.npm(t, "bomb", "1.0.0", map[string]string{
		"package.json": `{"name": "bomb", "version": "1.0.0", "main": "index.js"}`,
		"index.js":     "module.exports = 1;", "zeros": strings.Repeat("\x00", 64<<20),
	})
	registry.npm(t, "small", "1.0.0", map[string]string{
		"package.json": `{"name": "small", "version": "1.0.0", "main": "index.js"}`, "index.js": "module.exports = 1;",
	})
	t.Setenv("NPM_CONFIG_REGISTRY", registry.URL+"/npm")
	dir := t.TempDir()
	e := newEngine(t, "", ownCache(t, dir, false))
	e.LimitUnpacked(32 << 20)
	r := run(t, e, job.Program{Code: `import "npm:bomb"`})
	if want := "npm:bomb can't be installed: with what it needs it unpacks to more than the 32 MiB that an installation may have"; r.Error == nil || r.Error.Name != "PackageError" || r.Error.Message != want {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
	if r := run(t, e, job.Program{Code: `import one from "npm:small"; export default one`}); string(r.Value) != "1" {
		t.Errorf("another one: %s %+v", r.Status, r.Error)
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "zeros" {
			t.Errorf("it is kept as %s", path)
		}
		return nil
	})
}

// TestWaitingForAnotherServersInstallationHasAnEnd: that one holds the lock of the
// plan for as long as its registry hangs.
func TestWaitingForAnotherServersInstallationHasAnEnd(t *testing.T) {
	asked, stuck := make(chan bool, 10), make(chan bool)
	registry := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- true
		<-stuck
	}))
	t.Cleanup(registry.Close)
	t.Cleanup(func() { close(stuck) })
	t.Setenv("NPM_CONFIG_REGISTRY", registry.URL)
	dir := t.TempDir()
	p := job.Program{Language: job.JavaScript, Code: `import "left"`, Timeout: time.Minute}
	ctx, cancel := context.WithCancel(t.Context())
	first := newEngine(t, "", ownCache(t, dir, false))
	var ended sync.WaitGroup
	ended.Go(func() { _, _ = first.Run(ctx, p, job.Streams{Emit: func(job.Event) {}}) })
	defer ended.Wait()
	defer cancel()
	<-asked
	second := newEngine(t, "", ownCache(t, dir, false), func(o *deno.Options) { o.Limits.InstallTimeout = 200 * time.Millisecond })
	r, err := second.Run(t.Context(), p, job.Streams{Emit: func(job.Event) {}})
	if err != nil || r.Status != job.TimedOut || r.Error == nil || !strings.Contains(r.Error.Message, "package installation took longer than 200ms") {
		t.Errorf("%s %+v %v", r.Status, r.Error, err)
	}
}

func TestOneDownloadForAllThatAskAtOnce(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "left", "1.0.0", map[string]string{"package.json": `{"name":"left","version":"1.0.0"}`, "index.js": `module.exports = "left";`})
	dir := t.TempDir()
	var group sync.WaitGroup
	for range 3 {
		e := newEngine(t, "", ownCache(t, dir, false)) // as another server would have it
		for range 2 {
			group.Go(func() {
				if got := run(t, e, job.Program{Code: `export { default } from "left"`}); string(got.Value) != `"left"` {
					t.Errorf("have %s %+v", got.Value, got.Error)
				}
			})
		}
	}
	group.Wait()
	for path, times := range r.asked {
		if times != 1 {
			t.Errorf("%s was asked for %d times", path, times)
		}
	}
}

func TestUnreachableNetworkIsSaidWithinFiveSeconds(t *testing.T) {
	t.Setenv("NO_PROXY", "192.0.2.1")
	t.Setenv("no_proxy", "192.0.2.1")
	t.Setenv("NPM_CONFIG_REGISTRY", "http://192.0.2.1:81/") // TEST-NET-1: nobody is there
	e := newEngine(t, "", ownCache(t, t.TempDir(), false))
	start := time.Now()
	r := run(t, e, job.Program{Code: `import "left"`})
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if r.Error == nil || !strings.Contains(r.Error.Message, "npm:left is not in the cache, and the network is not reachable") {
		t.Errorf("have %+v", r.Error)
	}
}

func TestCorruptPackageIsFetchedAgain(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "left", "1.0.0", map[string]string{"package.json": `{"name":"left","version":"1.0.0"}`, "index.js": `module.exports = "good";`})
	r.files["/mod.ts"] = []byte(`export default "good";`)
	program := job.Program{Code: `import left from "left"; import mod from "` + r.URL + `/mod.ts"; export default [left, mod];`}
	for _, corruption := range []struct {
		name string
		do   func(t *testing.T, file string)
	}{
		{"changed", func(t *testing.T, file string) {
			if err := os.WriteFile(file, []byte(`module.exports = "evil";export default "evil"`), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"emptied", func(t *testing.T, file string) {
			if err := os.Truncate(file, 0); err != nil {
				t.Fatal(err)
			}
		}},
		{"gone", func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(corruption.name, func(t *testing.T) {
			dir := t.TempDir()
			imports := func(o *deno.Options) { o.AllowImport = []string{r.host()} }
			if got := run(t, newEngine(t, "", ownCache(t, dir, false), imports), program); string(got.Value) != `["good","good"]` {
				t.Fatalf("have %s %+v", got.Value, got.Error)
			}
			files := glob(t, filepath.Join(dir, "deno/npm/*/npm/left/1.0.0/index.js"), filepath.Join(dir, "deno/npm/*/left/1.0.0/index.js"), filepath.Join(dir, "deno/remote/http/*/*"))
			if len(files) != 2 {
				t.Fatalf("the package's files are not where they are looked for: %q", files)
			}
			for _, file := range files {
				corruption.do(t, file)
			}
			if got := run(t, newEngine(t, "", ownCache(t, dir, false), imports), program); string(got.Value) != `["good","good"]` {
				t.Errorf("have %s %+v", got.Value, got.Error)
			}
		})
	}
}

func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var found []string
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, files...)
	}
	return found
}

func TestJSRAndURLImports(t *testing.T) {
	r := newRegistry(t)
	t.Setenv("JSR_URL", r.URL+"/")
	t.Setenv("NO_PROXY", "127.0.0.1")
	t.Setenv("no_proxy", "127.0.0.1")
	r.jsr(t, "@some/thing", "1.2.3", `export function thing(): string { return "thing" }`)
	r.files["/mod.ts"] = []byte(`import { b } from "./b.ts"; export const a: number = b + 1;`)
	r.files["/b.ts"] = []byte(`export const b: number = 1;`)
	dir := t.TempDir()
	allow := func(o *deno.Options) { o.AllowImport = []string{r.host()} }
	program := job.Program{Code: `import { thing } from "jsr:@some/thing@^1"; import { a } from "` + r.URL + `/mod.ts"; export default [thing(), a];`}
	want := []job.Package{{Name: r.URL + "/mod.ts", Source: "url"}, {Name: "@some/thing", Version: "1.2.3", Source: "jsr"}}
	got := run(t, newEngine(t, "", ownCache(t, dir, false), allow), program)
	if string(got.Value) != `["thing",2]` || !slices.Equal(got.Packages, want) {
		t.Errorf("have %s %v %+v", got.Value, got.Packages, got.Error)
	}
	t.Run("a host that is not allowed", func(t *testing.T) {
		other := newRegistry(t) // the one that JSR_URL names is always allowed
		got := run(t, newEngine(t, "", ownCache(t, t.TempDir(), false)), job.Program{Code: `import "` + other.URL + `/mod.ts"`})
		if got.Error == nil || got.Error.Name != "PackageError" || !strings.Contains(got.Error.Message, other.host()) || !strings.Contains(got.Error.Message, "--allow-import") {
			t.Errorf("have %s %+v", got.Status, got.Error)
		}
	})
	t.Run("a URL that is not there", func(t *testing.T) {
		got := run(t, newEngine(t, "", ownCache(t, dir, false), allow), job.Program{Code: `import "` + r.URL + `/none.ts"`})
		if got.Error == nil || !strings.Contains(got.Error.Message, r.URL+"/none.ts does not exist") {
			t.Errorf("have %s %+v", got.Status, got.Error)
		}
	})
	t.Run("a JSR package or version that is not there", func(t *testing.T) {
		for specifier, want := range map[string]string{"jsr:@some/none": "@some/none", "jsr:@some/thing@9": `"9"`} {
			got := run(t, newEngine(t, "", ownCache(t, t.TempDir(), false), allow), job.Program{Code: `import "` + specifier + `"`})
			if got.Error == nil || got.Error.Name != "PackageError" || !strings.Contains(got.Error.Message, want) || strings.Contains(got.Error.Message, "not reachable") {
				t.Errorf("%s: have %s %+v", specifier, got.Status, got.Error)
			}
		}
	})
	r.Close()
	offline := run(t, newEngine(t, "", ownCache(t, dir, true), allow), program)
	if string(offline.Value) != `["thing",2]` {
		t.Errorf("offline: have %s %+v", offline.Value, offline.Error)
	}
}

// TestPackagesOfOtherSystems: those that a package has for other systems, and what
// these need, are not fetched and not missed.
func TestPackagesOfOtherSystems(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "native", "1.0.0", map[string]string{
		"package.json": `{"name":"native","version":"1.0.0","optionalDependencies":{"native-far":"1.0.0"},"dependencies":{"near":"1"}}`,
		"index.js":     `module.exports = require("near");`,
	})
	r.npm(t, "native-far", "1.0.0", map[string]string{"package.json": `{"name":"native-far","version":"1.0.0","os":["sunos"],"dependencies":{"farther":"1"}}`})
	r.npm(t, "farther", "1.0.0", map[string]string{"package.json": `{"name":"farther","version":"1.0.0"}`})
	r.npm(t, "near", "1.0.0", map[string]string{"package.json": `{"name":"near","version":"1.0.0"}`, "index.js": `module.exports = "near";`})
	dir := t.TempDir()
	if got := run(t, newEngine(t, "", ownCache(t, dir, false)), job.Program{Code: `import "native-far/package.json" with { type: "json" }`}); got.Error != nil {
		t.Fatal(got.Error) // another program has it
	}
	program := job.Program{Code: `import native from "native"; export default native`}
	for _, offline := range []bool{false, true} {
		e := newEngine(t, "", ownCache(t, dir, offline))
		if got := run(t, e, program); string(got.Value) != `"near"` {
			t.Errorf("offline %v: %s %+v", offline, got.Value, got.Error)
		}
		if got := openSession(t, e, job.TypeScript).cell(`import native from "native"; native`); string(got.Value) != `"near"` {
			t.Errorf("offline %v, a cell: %s %+v", offline, got.Value, got.Error)
		}
	}
}

// TestPeers: what a package needs beside it is fetched, unless it can do without; then it
// is named where it is missing.
func TestPeers(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "peer", "1.2.3", map[string]string{"package.json": `{"name":"peer","version":"1.2.3"}`, "index.js": `module.exports = "peer";`})
	r.npm(t, "needs", "1.0.0", map[string]string{"package.json": `{"name":"needs","version":"1.0.0","peerDependencies":{"peer":"^1"}}`, "index.js": `module.exports = require("peer");`})
	const optional = `"version":"1.0.0","peerDependencies":{"peer":"^1"},"peerDependenciesMeta":{"peer":{"optional":true}}`
	r.npm(t, "may", "1.0.0", map[string]string{"package.json": `{"name":"may",` + optional + `}`, "index.js": `module.exports = require("peer");`})
	r.npm(t, "may-esm", "1.0.0", map[string]string{"package.json": `{"name":"may-esm","type":"module","main":"index.js",` + optional + `}`, "index.js": `export { default } from "peer";`})
	dir := t.TempDir()
	for _, offline := range []bool{false, true} {
		e := newEngine(t, "", ownCache(t, dir, offline))
		for _, row := range []struct{ imports, want string }{
			{`import found from "needs";`, `"peer"`},
			{`import "peer"; import found from "may";`, `"peer"`},
			{`import "peer"; import found from "may-esm";`, `"peer"`},
			{`import found from "may";`, `may@1.0.0 needs the package "peer", which is not fetched with it; name it in packages`},
			{`import found from "may-esm";`, `may-esm@1.0.0 needs the package "peer", which is not fetched with it; name it in packages`},
		} {
			for in, got := range map[string]job.Result{
				"a program": run(t, e, job.Program{Code: row.imports + "export default found"}),
				"a cell":    openSession(t, e, job.TypeScript).cell(row.imports + "found"),
			} {
				if string(got.Value) != row.want && (got.Error == nil || got.Error.Message != row.want) {
					t.Errorf("offline %v, %s, %s: have %s %+v", offline, in, row.imports, got.Value, got.Error)
				}
			}
		}
	}
	s := openSession(t, newEngine(t, "", ownCache(t, dir, true)), job.TypeScript)
	s.cell(`import "may-esm";`)
	if got := s.cell(`import "peer"; import found from "may-esm"; found`); string(got.Value) != `"peer"` {
		t.Errorf("a cell after one that had not both: %s %+v", got.Value, got.Error)
	}
}

// TestAnImportThatMayFail of a fetched module is the module's own affair.
func TestAnImportThatMayFail(t *testing.T) {
	r := newRegistry(t)
	r.files["/mod.ts"] = []byte(`export let failed = 0;
for (const load of [() => import("./none.ts"), () => import("./bad.ts")]) await load().catch(() => failed++);`)
	r.files["/bad.ts"] = []byte(`this is no module(`)
	allow := func(o *deno.Options) { o.AllowImport = []string{r.host()} }
	got := run(t, newEngine(t, "", ownCache(t, t.TempDir(), false), allow), job.Program{Code: `import { failed } from "` + r.URL + `/mod.ts"; export default failed;`})
	if string(got.Value) != "2" {
		t.Errorf("have %s %s %+v", got.Status, got.Value, got.Error)
	}
}

func TestPackageErrors(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "left", "1.0.0", map[string]string{"package.json": `{"name":"left","version":"1.0.0"}`, "index.js": ``})
	e := newEngine(t, "", ownCache(t, t.TempDir(), false))
	for code, want := range map[string]string{
		`import "none"`:          `the npm package "none" does not exist`,
		`import "npm:left@9"`:    `the npm package "left" has no version that matches "9"`,
		`import "left@^2"`:       `the npm package "left" has no version that matches "^2"`,
		`require("none")`:        `the npm package "none" does not exist`,
		`await import("none/x")`: `the npm package "none" does not exist`,
	} {
		got := run(t, e, job.Program{Language: job.JavaScript, Code: code})
		if got.Status != job.Failed || got.Error == nil || got.Error.Name != "PackageError" || !strings.Contains(got.Error.Message, want) {
			t.Errorf("%s: have %s %+v, want %q", code, got.Status, got.Error, want)
		}
	}
	if _, err := e.Install(t.Context(), job.Program{Packages: []string{"file:///etc/passwd"}}, ignore); err == nil || !strings.Contains(err.Error(), "file of this machine") {
		t.Errorf("installing a file: %v", err)
	}
	packages, err := e.Install(t.Context(), job.Program{Packages: []string{"left@1"}}, ignore)
	if want := []job.Package{{Name: "left", Version: "1.0.0", Source: "npm"}}; err != nil || !slices.Equal(packages, want) {
		t.Errorf("installing: %v, %v", packages, err)
	}
}

func TestRealPackages(t *testing.T) {
	e := newEngine(t, "")
	_, err := e.Install(t.Context(), job.Program{Packages: []string{"lodash@4", "chalk@5", "dayjs@1", "uuid@11", "nanoid@5", "zod@3", "react@19", "react-dom@19", "ms@2", "semver@7", "debug@4", "yaml@2"}}, ignore)
	cachetest.NeedNetwork(t, err)
	for _, test := range []struct {
		language job.Language
		code     string
		packages []string
		want     string
	}{
		{"", `import _ from "lodash"; export default _.chunk([1, 2, 3], 2)`, []string{"lodash@4"}, `[[1,2],[3]]`},
		{"", `import map from "lodash/map.js"; export default map([1], (x: number) => x + 1)`, []string{"lodash@4"}, `[2]`},
		{job.JavaScript, `const _ = require("lodash"); const fp = require("lodash/fp"); module.exports = [_.add(1, 2), typeof fp.map]`, []string{"lodash@4"}, `[3,"function"]`},
		{"", `import chalk from "npm:chalk@5"; export default chalk.level`, nil, `0`},
		{"", `import dayjs from "npm:dayjs@1"; export default dayjs("2020-01-02").format("DD/MM/YYYY")`, nil, `"02/01/2020"`},
		{"", `import { validate, v4 } from "npm:uuid@11"; export default validate(v4())`, nil, `true`},
		{"", `import { nanoid } from "npm:nanoid@5"; export default nanoid().length`, nil, `21`},
		{"", `import { z } from "npm:zod@3"; export default z.object({ a: z.number() }).parse({ a: 1 })`, nil, `{"a":1}`},
		{"", `import { renderToString } from "npm:react-dom@19/server"; export default renderToString(<b id="x">hi</b>)`, nil, `"<b id=\"x\">hi</b>"`},
		{"", `import ms from "npm:ms@2"; import semver from "npm:semver@7"; export default [ms("2d"), semver.gt("2.0.0", "1.9.9")]`, nil, `[172800000,true]`},
		{"", `import debug from "npm:debug@4"; debug("x")("y"); export default "quiet"`, nil, `"quiet"`},
		{"", `import { parse } from "npm:yaml@2"; export default parse("a: [1, 2]")`, nil, `{"a":[1,2]}`},
	} {
		got := run(t, e, job.Program{Language: test.language, Code: test.code, Packages: test.packages})
		if string(got.Value) != test.want || len(got.Stderr.Head) > 0 {
			t.Errorf("%s: have %s, want %s (stderr %q, error %+v)", test.code, got.Value, test.want, got.Stderr, got.Error)
		}
	}
}
