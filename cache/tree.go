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
	get := func() (string, error) { return c.get(kind, key, c.treePath(kind, key), c.readTree) }
	return c.getOrMake(ctx, "tree/"+kind+"/"+key, get, func() (string, error) { return c.makeTree(ctx, kind, key, maker) })
}

// GetTree returns the directory (kind, key), or an error that wraps ErrMiss.
func (c *Cache) GetTree(kind, key string) (dir string, err error) {
	return c.counted(c.get(kind, key, c.treePath(kind, key), c.readTree))
}

const manifestFileName = "manifest.json"

// readTree reads the manifest of a tree.
func (c *Cache) readTree(path string) (entry, error) {
	dir, err := os.Stat(path)
	if err != nil {
		return entry{}, err
	}
	if !dir.IsDir() {
		return entry{}, corruptError{"it is not a directory"}
	}
	var m manifest
	record := filepath.Join(path, manifestFileName)
	st, err := readJSON(record, &m)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = corruptError{"its manifest is gone"}
	case err == nil && id(m.Key) != filepath.Base(path):
		err = corruptError{"its manifest belongs to another key"}
	}
	if err != nil {
		return entry{key: m.Key}, err
	}
	files := filepath.Join(path, "files")
	return entry{
		path: path, key: m.Key, record: record, content: files, lastUse: st.ModTime(),
		check: func() error { return m.matches(files) },
	}, nil
}

// matches compares every file with the manifest.
func (m manifest) matches(dir string) error {
	found, err := listFiles(dir)
	if errors.Is(err, errNotRegular) {
		return corruptError{err.Error()}
	}
	if err == nil && !slices.Equal(found, m.Files) {
		return corruptError{"its files are not those that were written: " + firstDifference(m.Files, found)}
	}
	return err // it can't be told, as with too many open files
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
	err := walkBelow(dir, func(rel, path string, d fs.DirEntry) error {
		if d.IsDir() {
			return nil
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
	return c.store(kind, key, func(tmp string) error {
		dir := filepath.Join(tmp, "files")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		return maker(ctx, dir)
	}, func(tmp string) (string, error) {
		files, err := sealTree(filepath.Join(tmp, "files"))
		if err == nil {
			err = writeJSON(filepath.Join(tmp, manifestFileName), manifest{key, files})
		}
		if err == nil {
			err = syncDir(tmp)
		}
		if err != nil {
			return "", err
		}
		tree := c.treePath(kind, key)
		dir := filepath.Join(tree, "files")
		return dir, c.commit(tree, dir, [][2]string{{tmp, tree}})
	})
}

// sealTree makes all files below dir read-only and durable, and lists them. Many
// are synced at once, which the file system does together.
func sealTree(dir string) ([]manifestFile, error) {
	var g errgroup.Group
	g.SetLimit(32)
	err := walkBelow(dir, func(_, path string, d fs.DirEntry) error {
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
		g.Go(func() error { return seal(path, 0o400|st.Mode()&0o100) })
		return nil
	})
	if err = errors.Join(err, g.Wait()); err != nil {
		return nil, err
	}
	return listFiles(dir)
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
