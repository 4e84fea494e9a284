package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// staged is a stage in which Deno has put files, by path; those that are there
// already it leaves.
func staged(t *testing.T, c *Cache, files map[string]string) (*DenoStage, string) {
	t.Helper()
	dir, err := c.tempDir("stage-")
	must(t, err)
	s, err := c.StageDeno(dir)
	must(t, err)
	for path, text := range files {
		full := filepath.Join(dir, path)
		if exists(full) || exists(filepath.Dir(full)) && strings.HasSuffix(path, "/index.js") {
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(full), 0o700))
		must(t, os.WriteFile(full, []byte(text), 0o600))
	}
	return s, t.TempDir()
}

func TestDenoStage(t *testing.T) {
	const (
		left   = "npm/registry.example/left/1.0.0"
		listed = "npm/registry.example/left/registry.json"
		module = "remote/https/host.example/0123"
	)
	files := map[string]string{left + "/index.js": "good", listed: "{}", module: "good"}
	c := open(t, t.TempDir(), Options{})
	s, to := staged(t, c, files)
	must(t, s.Take(left, "sha512-a", filepath.Join(to, left)))
	must(t, s.Take(module, "", filepath.Join(to, module)))
	must(t, s.Keep(t.Context()))
	if err := s.Take("npm/registry.example/none/1.0.0", "", filepath.Join(to, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}

	text := func(path string) string {
		got, err := os.ReadFile(path)
		must(t, err)
		return string(got)
	}
	s, to = staged(t, c, nil)
	for _, path := range []string{left, listed, module} {
		must(t, s.Take(path, map[string]string{left: "sha512-a"}[path], filepath.Join(to, path)))
	}
	if text(filepath.Join(to, left, "index.js")) != "good" || text(filepath.Join(to, module)) != "good" {
		t.Error("what was kept is not there")
	}
	if err := s.Take(left, "sha512-b", filepath.Join(to, "other")); !errors.Is(err, ErrChanged) || exists(filepath.Join(to, "other")) {
		t.Errorf("what the registry signed otherwise: %v", err)
	}

	// What was changed is not what is taken, and comes anew when it is forgotten.
	overwrite(t, filepath.Join(c.DenoDir(), left, "index.js"), "evil")
	s, to = staged(t, c, files)
	if err := s.Take(left, "sha512-a", filepath.Join(to, left)); !errors.Is(err, ErrChanged) {
		t.Errorf("what was changed: %v", err)
	}
	must(t, s.Forget(t.Context(), []string{left}))
	s, to = staged(t, c, files)
	must(t, s.Take(left, "sha512-a", filepath.Join(to, left)))
	must(t, s.Keep(t.Context()))
	if text(filepath.Join(to, left, "index.js")) != "good" || text(filepath.Join(c.DenoDir(), left, "index.js")) != "good" {
		t.Error("what was changed is still there")
	}

	// What nobody fetched through a stage has no name there.
	planted := "npm/registry.example/planted/1.0.0"
	must(t, os.MkdirAll(filepath.Join(c.DenoDir(), planted), 0o700))
	s, to = staged(t, c, nil)
	if err := s.Take(planted, "", filepath.Join(to, planted)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was planted: %v", err)
	}
}

func TestVerifyCoversDenosModules(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, Options{})
	files := map[string]string{}
	for _, name := range []string{"good", "bad", "@scope/bad"} {
		files["npm/registry.example/"+name+"/1.0.0/index.js"] = "good"
		files["npm/registry.example/"+name+"/registry.json"] = "{}"
	}
	files["remote/https/host.example/0123"] = "good"
	files["remote/https/host.example/4567"] = "good"
	s, _ := staged(t, c, files)
	must(t, s.Keep(t.Context()))
	if report, err := c.Verify(t.Context()); err != nil || report.Checked != 9 || len(report.Corrupt) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	bad := []string{"npm/registry.example/bad/1.0.0/index.js", "npm/registry.example/@scope/bad/registry.json", "remote/https/host.example/4567"}
	for _, path := range bad {
		overwrite(t, filepath.Join(c.DenoDir(), path), "evil")
	}
	// What can't be read stops nothing.
	must(t, os.MkdirAll(filepath.Join(dir, "index", "k", id("a directory")), 0o700))
	must(t, os.MkdirAll(filepath.Join(dir, "trees", "t"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "trees", "t", id("a file")), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "trees", "stray"), nil, 0o600))
	must(t, os.MkdirAll(filepath.Join(c.DenoDir(), "npm/registry.example/old/1.0.0"), 0o700))

	report, err := c.Verify(t.Context())
	if err != nil || report.Checked != 11 || len(report.Corrupt) != 5 || len(report.Left) != 0 || report.Unknown != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	for _, path := range []string{"npm/registry.example/bad/1.0.0: changed", "npm/registry.example/@scope/bad/registry.json: changed", "remote/https/host.example/4567: changed", "directory", "not a directory"} {
		if !slices.ContainsFunc(report.Corrupt, func(line string) bool { return strings.Contains(line, path) }) {
			t.Errorf("%q is not told: %q", path, report.Corrupt)
		}
	}
	if report, err = c.Verify(t.Context()); err != nil || report.Checked != 6 || len(report.Corrupt) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
}

// What is in a view and in Deno's directory is on the disk once, and counts so.
func TestLinkedFilesCountOnce(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	const module = "remote/https/host.example/0123"
	s, _ := staged(t, c, map[string]string{module: strings.Repeat("x", 1000)})
	must(t, s.Take(module, "", filepath.Join(c.live.tmp, "view", module)))
	must(t, s.Keep(t.Context()))
	one, err := os.Stat(filepath.Join(c.DenoDir(), module))
	must(t, err)
	two, err := os.Stat(filepath.Join(c.live.tmp, "view", module))
	must(t, err)
	if !os.SameFile(one, two) {
		t.Error("they are two files")
	}
	if size, _, err := measure(c.DenoDir()); err != nil || size != 500 {
		t.Errorf("one counts %d, %v", size, err)
	}
}

// FuzzRecords gives paths of records to what makes links of them.
func FuzzRecords(f *testing.F) {
	for _, seed := range []string{"npm/x/1.0.0", "../secret", "/etc/passwd", "a/../../secret", "", ".", "a\x00b", "npm//x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		c := open(t, t.TempDir(), Options{})
		must(t, c.changeRecords(t.Context(), func(records map[string]denoRecord) error {
			records[path] = denoRecord{Stamp: stampOf(c.denoPart(path))}
			return nil
		}))
		base := t.TempDir()
		must(t, os.Mkdir(filepath.Join(base, "stage"), 0o700))
		_, _ = c.StageDeno(filepath.Join(base, "stage"))
		if left, _ := os.ReadDir(base); len(left) > 1 {
			t.Errorf("%q made %q", path, left)
		}
	})
}

// TestCopyTreeFollowsNoLink: who made the tree may have put one there.
func TestCopyTreeFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	from, secret := filepath.Join(dir, "from"), filepath.Join(dir, "secret")
	must(t, os.WriteFile(secret, []byte("mine"), 0o600))
	must(t, os.MkdirAll(filepath.Join(from, "a"), 0o700))
	must(t, os.WriteFile(filepath.Join(from, "a", "file"), []byte("text"), 0o600))
	must(t, CopyTree(filepath.Join(dir, "to"), from))
	if text := mustRead(t, filepath.Join(dir, "to", "a", "file")); text != "text" {
		t.Errorf("copied %q", text)
	}
	must(t, os.Symlink(secret, filepath.Join(from, "a", "link")))
	for _, path := range []string{"", "a", "a/link"} {
		if err := CopyTree(filepath.Join(dir, "other", path), filepath.Join(from, path)); err == nil {
			t.Errorf("a link in %q was followed", path)
		}
	}
}
