package cache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func open(t *testing.T, dir string, o Options) *Cache {
	t.Helper()
	c, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// logged opens a cache whose log can be read.
func logged(t *testing.T, dir string) (*Cache, *bytes.Buffer) {
	var log bytes.Buffer
	return open(t, dir, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}), &log
}

func write(text string) func(context.Context, io.Writer) error {
	return func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestABlobIsMadeOnceAndServedReadOnly(t *testing.T) {
	c := open(t, filepath.Join(t.TempDir(), "cache"), Options{})
	path, hit, err := c.GetOrPut(t.Context(), "wheel", "six 1.17", write("six"))
	if err != nil || hit || mustRead(t, path) != "six" {
		t.Fatalf("first: path %s, hit %v, err %v", path, hit, err)
	}
	again, hit, err := c.GetOrPut(t.Context(), "wheel", "six 1.17", func(context.Context, io.Writer) error {
		t.Error("made twice")
		return nil
	})
	if err != nil || !hit || again != path {
		t.Fatalf("second: path %s, hit %v, err %v", again, hit, err)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o400 {
		t.Fatalf("mode %v, err %v", st.Mode(), err)
	}
	err = filepath.WalkDir(c.Dir(), func(path string, d os.DirEntry, err error) error {
		if d.IsDir() {
			if st, _ := d.Info(); st.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, st.Mode())
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAFailedMakerLeavesNothing(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	broken := errors.New("the line dropped")
	_, _, err := c.GetOrPut(t.Context(), "wheel", "six", func(_ context.Context, w io.Writer) error {
		_, _ = io.WriteString(w, "si")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("err %v", err)
	}
	_, _, err = c.Tree(t.Context(), "runtime", "x", func(_ context.Context, dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o600), broken)
	})
	if !errors.Is(err, broken) {
		t.Fatalf("err %v", err)
	}
	if _, err := c.Get("wheel", "six"); !errors.Is(err, ErrMiss) {
		t.Fatalf("err %v", err)
	}
	if _, err := c.GetTree("runtime", "x"); !errors.Is(err, ErrMiss) {
		t.Fatalf("err %v", err)
	}
	if left, _ := os.ReadDir(c.live.tmp); len(left) > 0 {
		t.Fatalf("left in the temporary directory: %v", left)
	}
}

func TestACorruptBlobIsALoggedMiss(t *testing.T) {
	damage := map[string]func(t *testing.T, c *Cache, path string){
		"a flipped bit": func(t *testing.T, c *Cache, path string) { overwrite(t, path, "sux") },
		"cut short":     func(t *testing.T, c *Cache, path string) { overwrite(t, path, "s") },
		"gone": func(t *testing.T, c *Cache, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"an index file cut short": func(t *testing.T, c *Cache, path string) {
			overwrite(t, c.indexPath("wheel", "six"), `{"key":`)
		},
		"an index file of another key": func(t *testing.T, c *Cache, path string) {
			other := c.indexPath("wheel", "seven")
			if _, err := c.Put(t.Context(), "wheel", "seven", strings.NewReader("seven")); err != nil {
				t.Fatal(err)
			}
			overwrite(t, c.indexPath("wheel", "six"), mustRead(t, other))
		},
	}
	for name, spoil := range damage {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := open(t, dir, Options{})
			path, err := first.Put(t.Context(), "wheel", "six", strings.NewReader("six"))
			if err != nil {
				t.Fatal(err)
			}
			spoil(t, first, path)
			c, log := logged(t, dir)
			if _, err := c.Get("wheel", "six"); !errors.Is(err, ErrMiss) {
				t.Fatalf("err %v", err)
			}
			if !strings.Contains(log.String(), "corrupt") || !strings.Contains(log.String(), "six") {
				t.Errorf("log %q", log)
			}
			path, hit, err := c.GetOrPut(t.Context(), "wheel", "six", write("six"))
			if err != nil || hit || mustRead(t, path) != "six" {
				t.Fatalf("path %s, hit %v, err %v", path, hit, err)
			}
		})
	}
}

func TestACorruptTreeIsALoggedMiss(t *testing.T) {
	damage := map[string]func(t *testing.T, tree string){
		"a changed file":  func(t *testing.T, tree string) { overwrite(t, filepath.Join(tree, "files/bin/tool"), "evil") },
		"a file gone":     func(t *testing.T, tree string) { must(t, os.Remove(filepath.Join(tree, "files/bin/tool"))) },
		"a file added":    func(t *testing.T, tree string) { overwrite(t, filepath.Join(tree, "files/bin/more"), "") },
		"a link added":    func(t *testing.T, tree string) { must(t, os.Symlink("tool", filepath.Join(tree, "files/bin/l"))) },
		"a mode changed":  func(t *testing.T, tree string) { must(t, os.Chmod(filepath.Join(tree, "files/bin/tool"), 0o400)) },
		"files gone":      func(t *testing.T, tree string) { must(t, os.RemoveAll(filepath.Join(tree, "files"))) },
		"manifest gone":   func(t *testing.T, tree string) { must(t, os.Remove(filepath.Join(tree, "manifest.json"))) },
		"manifest broken": func(t *testing.T, tree string) { overwrite(t, filepath.Join(tree, "manifest.json"), "{") },
	}
	maker := func(_ context.Context, dir string) error {
		return errors.Join(
			os.Mkdir(filepath.Join(dir, "bin"), 0o700),
			os.WriteFile(filepath.Join(dir, "bin/tool"), []byte("tool"), 0o700),
			os.WriteFile(filepath.Join(dir, "README"), []byte("read me"), 0o600))
	}
	for name, spoil := range damage {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := open(t, dir, Options{})
			if _, hit, err := first.Tree(t.Context(), "runtime", "x", maker); err != nil || hit {
				t.Fatal(hit, err)
			}
			spoil(t, first.treePath("runtime", "x"))
			c, log := logged(t, dir)
			got, hit, err := c.Tree(t.Context(), "runtime", "x", maker)
			if err != nil || hit {
				t.Fatalf("hit %v, err %v", hit, err)
			}
			if !strings.Contains(log.String(), "corrupt") {
				t.Errorf("log %q", log)
			}
			if text := mustRead(t, filepath.Join(got, "bin/tool")); text != "tool" {
				t.Errorf("tool is %q", text)
			}
			if _, hit, err := c.Tree(t.Context(), "runtime", "x", maker); err != nil || !hit {
				t.Fatalf("again: hit %v, err %v", hit, err)
			}
		})
	}
}

func TestATreeHoldsNoLinks(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	_, _, err := c.Tree(t.Context(), "runtime", "x", func(_ context.Context, dir string) error {
		return os.Symlink("/etc/passwd", filepath.Join(dir, "passwd"))
	})
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Fatalf("err %v", err)
	}
}

func TestManyGoroutinesMakeItOnce(t *testing.T) {
	dir := t.TempDir()
	caches := []*Cache{open(t, dir, Options{}), open(t, dir, Options{})}
	var made atomic.Int32
	var g sync.WaitGroup
	for i := range 40 {
		g.Go(func() {
			_, _, err := caches[i%2].GetOrPut(t.Context(), "k", "x", func(ctx context.Context, w io.Writer) error {
				made.Add(1)
				return write("x")(ctx, w)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

func TestBadKindsAreRefused(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	for _, kind := range []string{"", "..", "a/b", "A", ".a"} {
		if _, err := c.Put(t.Context(), kind, "k", strings.NewReader("")); err == nil {
			t.Errorf("Put took the kind %q", kind)
		}
		if _, err := c.Get(kind, "k"); err == nil || errors.Is(err, ErrMiss) {
			t.Errorf("Get of the kind %q: %v", kind, err)
		}
	}
}

func TestACacheThatOthersCanWriteIsRefused(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o775))
	open(t, dir, Options{})
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, err %v", st.Mode(), err)
	}
	must(t, os.Chmod(dir, 0o777))
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Fatalf("err %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// overwrite replaces a file's content behind the cache's back.
func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	must(t, os.WriteFile(path, []byte(text), 0o600))
}
