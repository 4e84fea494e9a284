package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// manifest lists the files of a tree.
type manifest struct {
	Key   string         `json:"key"`
	Files []manifestFile `json:"files"` // sorted by path
}

type manifestFile struct {
	Path       string `json:"path"` // slash-separated, below files/
	SHA256     string `json:"sha256"`
	Size       int64  `json:"size"`
	Executable bool   `json:"executable,omitempty"`
}

// Tree returns the directory (kind, key), filled by maker when the cache does
// not hold it; hit says that it did. maker gets an empty directory and may
// leave regular files and directories in it. Among all goroutines and processes
// that ask at once, one makes it and the others wait.
//
// The files are read-only, and stay for as long as this Cache is open.
func (c *Cache) Tree(ctx context.Context, kind, key string, maker func(ctx context.Context, dir string) error) (dir string, hit bool, err error) {
	get := func() (string, error) { return c.GetTree(kind, key) }
	return c.getOrMake(ctx, "tree/"+kind+"/"+key, get, func() (string, error) { return c.makeTree(ctx, kind, key, maker) })
}

// GetTree returns the directory (kind, key), or an error that wraps ErrMiss.
func (c *Cache) GetTree(kind, key string) (dir string, err error) {
	tree := c.treePath(kind, key)
	lookup := func() (string, error) { return c.lookupTree(tree) }
	return c.get(kind, key, tree, lookup, func() error { _, err := c.checkTree(tree); return err })
}

func (c *Cache) lookupTree(tree string) (dir string, err error) {
	err = c.claim(tree, filepath.Join(tree, manifestFileName), func() (fs.FileInfo, error) {
		_, st, err := readManifest(tree)
		return st, err
	})
	if err != nil {
		return "", err
	}
	dir = filepath.Join(tree, "files")
	return dir, c.verifyOnce(tree, dir, func() error { _, err := c.checkTree(tree); return err })
}

const manifestFileName = "manifest.json"

func readManifest(tree string) (m manifest, st fs.FileInfo, err error) {
	dir, err := os.Stat(tree)
	if err != nil {
		return m, nil, err
	}
	if !dir.IsDir() {
		return m, nil, corruptError{"it is not a directory"}
	}
	st, err = readJSON(filepath.Join(tree, manifestFileName), &m)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = corruptError{"its manifest is gone"}
	case err == nil && id(m.Key) != filepath.Base(tree):
		err = corruptError{"its manifest belongs to another key"}
	}
	return m, st, err
}

// checkTree verifies every file of a tree against its manifest.
func (c *Cache) checkTree(tree string) (manifest, error) {
	m, _, err := readManifest(tree)
	if err != nil {
		return m, err
	}
	found, err := listFiles(filepath.Join(tree, "files"))
	if errors.Is(err, errNotRegular) || errors.Is(err, fs.ErrNotExist) {
		return m, corruptError{err.Error()}
	}
	if err != nil { // it can't be told, as with too many open files
		return m, err
	}
	if !slices.Equal(found, m.Files) {
		return m, corruptError{"its files are not those that were written: " + firstDifference(m.Files, found)}
	}
	return m, nil
}

func firstDifference(want, got []manifestFile) string {
	for _, w := range want {
		if !slices.Contains(got, w) {
			return w.Path + " is changed or gone"
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			return g.Path + " was added"
		}
	}
	return "their order"
}

// listFiles hashes all files below dir; anything but files and directories is
// refused.
func listFiles(dir string) ([]manifestFile, error) {
	var files []manifestFile
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is %w (%v)", rel, errNotRegular, d.Type())
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		files = append(files, manifestFile{Path: filepath.ToSlash(rel), Executable: st.Mode()&0o100 != 0})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b manifestFile) int { return strings.Compare(a.Path, b.Path) })
	var g errgroup.Group
	g.SetLimit(4)
	for i := range files {
		f := &files[i]
		g.Go(func() (err error) {
			f.SHA256, f.Size, err = HashFile(filepath.Join(dir, filepath.FromSlash(f.Path)))
			return err
		})
	}
	return files, g.Wait()
}

func (c *Cache) makeTree(ctx context.Context, kind, key string, maker func(ctx context.Context, dir string) error) (string, error) {
	tmp, err := c.tempDir("tree-")
	if err != nil {
		return "", fmt.Errorf("store %s %q: %w", kind, key, err)
	}
	defer removeAll(tmp)
	work := filepath.Join(tmp, "tree")
	files := filepath.Join(work, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return "", fmt.Errorf("store %s %q: %w", kind, key, err)
	}
	if err := maker(ctx, files); err != nil {
		return "", err // the maker's own words
	}
	m := manifest{Key: key}
	if m.Files, err = sealTree(files); err == nil {
		err = writeJSON(filepath.Join(work, manifestFileName), m)
	}
	if err == nil {
		err = syncDir(work)
	}
	if err == nil {
		err = c.commitTree(work, c.treePath(kind, key))
	}
	if err != nil {
		return "", fmt.Errorf("store %s %q: %w", kind, key, err)
	}
	c.trimSometimes()
	return filepath.Join(c.treePath(kind, key), "files"), nil
}

// sealTree makes all files below dir read-only and durable, and lists them. Many
// are synced at once, which the file system does together.
func sealTree(dir string) ([]manifestFile, error) {
	var g errgroup.Group
	g.SetLimit(32)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if err := os.Chmod(path, 0o700); err != nil {
				return err
			}
			g.Go(func() error { return syncDir(path) })
			return nil
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file (%v)", path, d.Type())
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		g.Go(func() error { return sealPath(path, 0o400|st.Mode()&0o100) })
		return nil
	})
	if err = errors.Join(err, g.Wait()); err != nil {
		return nil, err
	}
	return listFiles(dir)
}

func (c *Cache) commitTree(work, tree string) error {
	unlock, err := c.lockStore(false)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.live.use(c.entryName(tree)); err != nil {
		return err
	}
	if err := rename(work, tree); err != nil {
		return err
	}
	st, err := os.Stat(filepath.Join(tree, "files"))
	if err != nil {
		return err
	}
	c.setVerified(tree, st)
	return nil
}

func (c *Cache) treePath(kind, key string) string {
	return filepath.Join(c.dir, "trees", kind, id(key))
}

// HasTree says that the cache holds the directory (kind, key), without
// verifying it.
func (c *Cache) HasTree(kind, key string) bool {
	_, err := os.Stat(filepath.Join(c.treePath(kind, key), manifestFileName))
	return err == nil
}
