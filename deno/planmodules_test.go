//go:build !windows

package deno

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/cache/egress"
	"rillbox/deno/binary"
	"rillbox/deno/modules"
	"rillbox/supervisor/job"
)

// A cache that an earlier version wrote has plans, and nothing that tells that
// the modules are what was signed.
func TestPlansOfEarlierVersions(t *testing.T) {
	dir := t.TempDir()
	for _, row := range []struct {
		offline bool
		policy  egress.Policy
	}{{offline: true}, {policy: egress.Policy{NoFetch: true}}} {
		c, err := cache.Open(dir, cache.Options{Offline: row.offline})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		binary, err := binary.Locate(t.Context(), binary.LocateOptions{Cache: cachetest.Open(t)})
		cachetest.NeedNetwork(t, err)
		e, err := New(Options{Cache: c, DenoPath: binary, Limits: job.DefaultLimits(), Policy: row.policy})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		roots := []modules.Specifier{{Scheme: "npm", Name: "old"}}
		planted := filepath.Join(c.DenoDir(), "npm/registry.example/old/1.0.0")
		if err := errors.Join(os.MkdirAll(planted, 0o700), os.WriteFile(filepath.Join(planted, "package.json"), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
		key := modules.NewFetcher(e.planner, binary, e.options.Permissions, e.options.Policy, roots, nil).Key()
		key = regexp.MustCompile(" form [0-9]+").ReplaceAllString(key, "") // as it was then
		if _, err := c.Put(t.Context(), "plan", key, strings.NewReader(`{"lock":{},"digests":{}}`)); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"old": "npm:old: an earlier version of Rillbox left it in the cache", "new": "npm:new is not in the cache"} {
			_, err = e.planner.Plan(t.Context(), binary, e.options.Permissions, e.options.Policy, []modules.Specifier{{Scheme: "npm", Name: name}}, modules.Terms{}, func(job.Event) {})
			var missing *modules.PackageError
			if !errors.As(err, &missing) || !strings.Contains(err.Error(), want) || egress.IsOffline(err) != row.offline {
				t.Errorf("%+v, %s: %v", row, name, err)
			}
		}
	}
}

// A session's modules are its own: who changes one's mode changes that alone.
func TestSessionModulesAreCopies(t *testing.T) {
	view := t.TempDir()
	for path, text := range map[string]string{
		"npm/registry.example/left/1.0.0/index.js": "left",
		"npm/registry.example/left/registry.json":  `{"name":"left","versions":{"1.0.0":{}}}`,
		"npm/jsr.example/@jsr/a__b/1.0.0/index.js": "b",
		"npm/jsr.example/@jsr/a__b/registry.json":  `{"name":"@jsr/a__b","versions":{"1.0.0":{}}}`,
		"remote/https/host.example/0123":           "module",
	} {
		full := filepath.Join(view, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o700), os.WriteFile(full, []byte(text), 0o400)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := newSessionModules(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := modules.Plan{Lock: []byte(`{}`), Dir: view, Modules: []string{"npm/jsr.example/@jsr/a__b/1.0.0", "npm/registry.example/left/1.0.0", "remote/https/host.example/0123"}}
	if err := m.add(p); err != nil {
		t.Fatal(err)
	}
	var cached []fs.FileInfo
	walk := func(dir string, each func(path string, info fs.FileInfo)) {
		if err := filepath.Walk(dir, func(path string, info fs.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				each(path, info)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	walk(view, func(_ string, info fs.FileInfo) { cached = append(cached, info) })
	found := 0
	walk(m.dir, func(path string, info fs.FileInfo) {
		found++
		for _, other := range cached {
			if os.SameFile(info, other) {
				t.Errorf("%s is the cache's", path)
			}
		}
	})
	if found != len(cached) {
		t.Errorf("the session has %d files of %d", found, len(cached))
	}
}
