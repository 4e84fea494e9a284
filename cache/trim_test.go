package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// aged makes what is in the cache look as if it were last used days ago, and
// nobody's.
func aged(t *testing.T, c *Cache, path string, days int) {
	t.Helper()
	then := time.Now().AddDate(0, 0, -days)
	must(t, os.Chtimes(path, then, then))
}

// reopened is c as another process would open it: nothing is in use.
func reopened(t *testing.T, c *Cache) *Cache {
	t.Helper()
	must(t, c.live.close())
	var err error
	c.live, err = newLive(c)
	must(t, err)
	return c
}

func TestTrimRemovesWhatWasNotUsedForLongest(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, Options{})
	for i := range 6 {
		_, err := c.Put(t.Context(), "k", fmt.Sprint(i), strings.NewReader(strings.Repeat(fmt.Sprint(i), 1000)))
		must(t, err)
		aged(t, c, c.indexPath("k", fmt.Sprint(i)), 10-i)
	}
	_, _, err := c.Tree(t.Context(), "runtime", "x", func(_ context.Context, dir string) error {
		return os.WriteFile(filepath.Join(dir, "f"), make([]byte, 1000), 0o600)
	})
	must(t, err)
	aged(t, c, filepath.Join(c.treePath("runtime", "x"), "manifest.json"), 20)

	c = reopened(t, c)
	_, err = c.Get("k", "0") // the oldest is used again: now the newest, and in use
	must(t, err)
	freed, err := c.Trim(t.Context(), 3500)
	if err != nil || freed.Entries != 4 || freed.Bytes != 4000 || freed.Kept != 3000 {
		t.Fatalf("%+v, %v", freed, err)
	}
	for i, want := range []bool{true, false, false, false, true, true} {
		if _, err := c.Get("k", fmt.Sprint(i)); (err == nil) != want {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := c.GetTree("runtime", "x"); err == nil {
		t.Error("the tree was not trimmed")
	}
	info, err := c.Info()
	if err != nil || info.Bytes != 3000 || info.Kinds["k"] != (KindInfo{3, 3000}) || len(info.Kinds) != 1 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestABlobOfTwoNamesGoesWithTheLast(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	for i, key := range []string{"a", "b"} {
		_, err := c.Put(t.Context(), "k", key, strings.NewReader("same"))
		must(t, err)
		aged(t, c, c.indexPath("k", key), 5-i)
	}
	c = reopened(t, c)
	path, err := c.Get("k", "b")
	must(t, err)
	freed, err := c.Trim(t.Context(), 0)
	if err != nil || freed.Entries != 1 || freed.Bytes != 0 || freed.Kept != 4 {
		t.Fatalf("%+v, %v", freed, err)
	}
	if mustRead(t, path) != "same" {
		t.Error("the blob in use is gone")
	}
	c = reopened(t, c)
	freed, err = c.Trim(t.Context(), 0)
	if err != nil || freed.Entries != 1 || freed.Bytes != 4 {
		t.Fatalf("%+v, %v", freed, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the blob is still there")
	}
}

func TestTrimRemovesBlobsThatNothingNames(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	path, err := c.Put(t.Context(), "k", "a", strings.NewReader("a"))
	must(t, err)
	must(t, c.Remove("k", "a"))
	must(t, c.Remove("k", "a"))
	_, err = c.Trim(t.Context(), 1<<30)
	must(t, err)
	if _, err := os.Stat(path); err == nil {
		t.Error("the blob is still there")
	}
}

// What can't be read now may be good, so only what was read and is not what was
// written goes.
func TestTrimRemovesTreesThatAreCorruptOnly(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	damage := map[string]func(tree string) error{
		"gone":    func(tree string) error { return os.Remove(filepath.Join(tree, manifestFileName)) },
		"no tree": func(tree string) error { return errors.Join(os.RemoveAll(tree), os.WriteFile(tree, nil, 0o600)) },
		"unreadable": func(tree string) error {
			manifest := filepath.Join(tree, manifestFileName)
			return errors.Join(os.Remove(manifest), os.Symlink(manifest, manifest))
		},
	}
	for key, do := range damage {
		_, _, err := c.Tree(t.Context(), "k", key, func(context.Context, string) error { return nil })
		must(t, err)
		tree := c.treePath("k", key)
		must(t, do(tree))
		_, err = c.Trim(t.Context(), 1<<30)
		_, left := os.Lstat(tree)
		if key == "unreadable" {
			if err == nil || left != nil {
				t.Errorf("%s: Trim gave %v, and the tree %v", key, err, left)
			}
			must(t, os.RemoveAll(tree)) // the others are trimmed again
		} else if err != nil || !errors.Is(left, fs.ErrNotExist) {
			t.Errorf("%s: Trim gave %v, and the tree %v", key, err, left)
		}
	}
}

func TestTrimTakesDenosPackagesThatWereLongUnread(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	packages := map[string]int{ // days unread
		"npm/registry.example/lodash/4.17.21":     9,
		"npm/registry.example/@scope/thing/1.0.0": 8,
		"npm/registry.example/chalk/5.0.0":        0,
		"remote/https/host.example":               7,
		"npm/registry.example/lodash/4.17.20/lib": 10,
	}
	for dir, days := range packages {
		path := filepath.Join(c.DenoDir(), filepath.FromSlash(dir), "package.json")
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, make([]byte, 100), 0o600))
		aged(t, c, path, days)
	}
	info, err := c.Info()
	if err != nil || info.Kinds[denoKind] != (KindInfo{5, 500}) {
		t.Fatalf("%+v, %v", info, err)
	}
	freed, err := c.Trim(t.Context(), 250)
	if err != nil || freed.Entries != 3 || freed.Kept != 200 {
		t.Fatalf("%+v, %v", freed, err)
	}
	freed, err = c.Trim(t.Context(), 0)
	if err != nil || freed.Entries != 1 || freed.InUse != 1 {
		t.Fatalf("%+v, %v", freed, err)
	}
	if _, err := os.Stat(filepath.Join(c.DenoDir(), "npm/registry.example/chalk/5.0.0/package.json")); err != nil {
		t.Error(err)
	}
}

// TestAClockThatJumps: by an hour, nothing is taken for old; far back, nothing is taken
// for new until the clock is there again.
func TestAClockThatJumps(t *testing.T) {
	for _, row := range []struct {
		by      time.Duration
		kept    int  // Deno's packages that were read just now
		touched bool // an entry that is used
		trims   bool
	}{{time.Hour - time.Minute, 1, false, false}, {-time.Hour + time.Minute, 1, false, false}, {48 * time.Hour, 0, true, true}, {-48 * time.Hour, 0, true, true}} {
		c := open(t, t.TempDir(), Options{})
		c.now = func() time.Time { return time.Now().Add(row.by) }
		_, err := c.Put(t.Context(), "k", "a", strings.NewReader("aaaa"))
		must(t, err)
		path := filepath.Join(c.DenoDir(), "npm/registry.example/chalk/5.0.0/package.json")
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, make([]byte, 100), 0o600))

		_, err = c.Get("k", "a")
		must(t, err)
		record, err := os.Stat(c.indexPath("k", "a"))
		must(t, err)
		if touched := time.Since(record.ModTime()).Abs() > time.Hour; touched != row.touched {
			t.Errorf("%v: the use of an entry was recorded: %v", row.by, touched)
		}
		mark := filepath.Join(c.dir, trimMark)
		must(t, os.WriteFile(mark, nil, 0o600))
		before := time.Now().Add(-time.Second)
		must(t, os.Chtimes(mark, before, before))
		c.maxBytes = 1 << 30
		c.trimSometimes()
		c.background.Wait()
		after, err := os.Stat(mark)
		if err != nil || (time.Since(after.ModTime()) < time.Second) != row.trims {
			t.Errorf("%v: it was trimmed last at %v, %v", row.by, after.ModTime(), err)
		}
		freed, err := c.Trim(t.Context(), 0)
		if _, gone := os.Stat(path); err != nil || (gone == nil) != (row.kept == 1) {
			t.Errorf("%v: %+v, %v; the package: %v", row.by, freed, err, gone)
		}
	}
}

func TestTheCacheTrimsItselfWhenItIsOpened(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(dir, Options{})
	must(t, err)
	_, err = c.Put(t.Context(), "k", "a", strings.NewReader("aaaa"))
	must(t, err)
	must(t, c.Close())
	c = open(t, dir, Options{MaxBytes: 3})
	c.background.Wait()
	if info, err := c.Info(); err != nil || info.Bytes != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestClearRemovesAllThatNobodyUses(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, Options{})
	_, err := c.Put(t.Context(), "k", "a", strings.NewReader("a"))
	must(t, err)
	_, _, err = c.Tree(t.Context(), "k", "t", func(context.Context, string) error { return nil })
	must(t, err)
	must(t, os.WriteFile(filepath.Join(c.DenoDir(), "v8_code_cache_v2"), make([]byte, 10), 0o600))

	other := open(t, dir, Options{})
	freed, err := other.Clear(t.Context())
	if err != nil || freed.InUse != 2 {
		t.Fatalf("%+v, %v", freed, err)
	}
	must(t, c.live.close())
	freed, err = other.Clear(t.Context())
	if err != nil || freed.Entries != 2 || freed.InUse != 0 {
		t.Fatalf("%+v, %v", freed, err)
	}
	if left, err := os.ReadDir(c.DenoDir()); err != nil || len(left) > 0 {
		t.Errorf("left in Deno's directory: %v, %v", left, err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "locks")); len(left) > 0 {
		t.Errorf("left in locks: %v", left)
	}
	c.live, err = newLive(c) // for the clean-up's Close
	must(t, err)
}

func TestVerifyReportsAndRemovesWhatIsCorrupt(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	for _, key := range []string{"good", "bad"} {
		path, err := c.Put(t.Context(), "k", key, strings.NewReader(key))
		must(t, err)
		tree, _, err := c.Tree(t.Context(), "t", key, func(_ context.Context, dir string) error {
			return os.WriteFile(filepath.Join(dir, "f"), []byte(key), 0o600)
		})
		must(t, err)
		if key == "bad" {
			overwrite(t, path, "b4d")
			overwrite(t, filepath.Join(tree, "f"), "b4d")
		}
	}
	report, err := c.Verify(t.Context())
	if err != nil || report.Checked != 4 || len(report.Corrupt) != 2 || !strings.Contains(report.Corrupt[0], `k "bad"`) || !strings.Contains(report.Corrupt[1], `t "bad"`) {
		t.Fatalf("%+v, %v", report, err)
	}
	report, err = c.Verify(t.Context())
	if err != nil || report.Checked != 2 || len(report.Corrupt) != 0 {
		t.Fatalf("again: %+v, %v", report, err)
	}
}
