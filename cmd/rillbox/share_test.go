//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/deno/permission"
	"rillbox/supervisor"
)

// The directories that may be shared, and those that may not, by their path from
// a place that holds a home, the cache and the temporary files.
func TestWhichDirectoriesMayBeShared(t *testing.T) {
	place, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"home/data", "home/cache/deno", "home/cached", "tmp/work", "etc"} {
		if err := os.MkdirAll(filepath.Join(place, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "home/data", "home/link": "cache", "away": "missing"} {
		if err := os.Symlink(to, filepath.Join(place, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"file", "etc/config.toml"} {
		if err := os.WriteFile(filepath.Join(place, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", filepath.Join(place, "home"))
	t.Setenv("TMPDIR", filepath.Join(place, "tmp"))
	t.Chdir(place)
	for workspace, want := range map[string]string{
		"home/data":      "",
		"home/data:ro":   "",
		"./home//data/":  "",
		"link":           "",
		"home/cached":    "",
		"tmp/work":       "",
		"etc:ro":         "",
		"etc":            "which programs could replace",
		"":               "",
		"missing":        "no such file",
		"away":           "no such file",
		"file":           "not a directory",
		"home/data:rw":   "no such file",
		"/":              "holds your whole home",
		"/:ro":           "holds your whole home",
		"home":           "holds your whole home",
		"home/data/..":   "holds your whole home",
		".":              "holds your whole home",
		"tmp":            "directories of running programs",
		"home/cache":     "overlap",
		"home/cache/..":  "holds your whole home",
		"home/link":      "overlap",
		"home/link/deno": "overlap",
		"home/cache:ro":  "overlap",
	} {
		t.Run(workspace, func(t *testing.T) {
			a := &app{config: newConfig()}
			a.config.CacheDir, a.config.file = filepath.Join(place, "home", "cache"), filepath.Join(place, "etc", "config.toml")
			if err := directory(&a.config.Workspace).Set(workspace); err != nil {
				t.Fatal(err)
			}
			shared, err := a.shared()
			switch {
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("the error is %v, want one about %q", err, want)
			case want == "" && err != nil:
				t.Error(err)
			case want == "" && workspace != "" && (shared.Path != evaluated(t, workspace) || shared.ReadOnly != strings.HasSuffix(workspace, ":ro")):
				t.Errorf("it shares %+v", shared)
			}
		})
	}
}

func evaluated(t *testing.T, workspace string) string {
	t.Helper()
	path, err := realPath(strings.TrimSuffix(workspace, readOnlySuffix))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWorkspaceAsASetting(t *testing.T) {
	for text, want := range map[string]supervisor.Shared{
		"":         {},
		"a":        {Path: "a"},
		"a:ro":     {Path: "a", ReadOnly: true},
		"/a/b:ro":  {Path: "/a/b", ReadOnly: true},
		"a:ro:ro":  {Path: "a:ro", ReadOnly: true},
		"a b/:ro/": {Path: "a b/:ro/"},
	} {
		c, err := load(t, "", []string{"RILLBOX_WORKSPACE=" + text})
		if err != nil || c.Workspace != want {
			t.Errorf("%q is %+v (%v), want %+v", text, c.Workspace, err, want)
		}
		var again supervisor.Shared
		if err := directory(&again).Set(formatShared(c.Workspace)); err != nil || again != want {
			t.Errorf("%q written and read again is %+v (%v)", text, again, err)
		}
	}
	if _, err := load(t, "", []string{"RILLBOX_WORKSPACE=:ro"}); err == nil {
		t.Error("a suffix alone is taken for a workspace")
	}
	if _, err := load(t, "workspace = 3", nil); err == nil {
		t.Error("a number is taken for a workspace")
	}
}

// TestWriteGrantsHoldNothingThatIsExecuted: no program may replace what the next
// start executes, or reads as settings.
func TestWriteGrantsHoldNothingThatIsExecuted(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tools/deno", "settings/config.toml", "out/cache/x", "granted/x"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../out", filepath.Join(dir, "granted", "link")); err != nil {
		t.Fatal(err)
	}
	for granted, refused := range map[string]bool{"tools": true, "settings": true, "granted": true, "out": false, "out/cache": false} {
		a := &app{config: newConfig()}
		a.config.Engine.DenoPath, a.config.file = filepath.Join(dir, "tools/deno"), filepath.Join(dir, "settings/config.toml")
		a.config.CacheDir = filepath.Join(dir, "granted/link/cache")
		if *a.config.Permissions["pyodide"], err = permission.Parse([]string{"--allow-write=" + filepath.Join(dir, granted)}); err != nil {
			t.Fatal(err)
		}
		if err := a.checkWriteGrants(); (err != nil) != refused {
			t.Errorf("%s: %v", granted, err)
		}
	}
}
