package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// denoKind is the kind under which Info and Trim speak of Deno's modules.
const denoKind = "deno-module"

// denoPackages lists the packages in Deno's directory: one entry for each
// version of an npm package, one for each host of URL and jsr: modules.
func (c *Cache) denoPackages() ([]entry, error) {
	var dirs []string
	for _, pattern := range []string{
		"npm/*/*/*",    // registry, name, version
		"npm/*/@*/*/*", // registry, scope, name, version
		"remote/*/*",   // scheme, host
	} {
		found, err := filepath.Glob(filepath.Join(c.DenoDir(), filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, found...)
	}
	var entries []entry
	for _, dir := range dirs {
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() || filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(dir)))) == "npm" && filepath.Base(filepath.Dir(dir))[0] == '@' {
			continue // a file, or a scope's package where a version would be
		}
		e := entry{path: dir, kind: denoKind}
		if e.size, e.lastUse, err = measure(dir); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// measure returns the bytes in dir and when any of its files was last read or
// written.
func measure(dir string) (size int64, lastUse time.Time, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		size += st.Size()
		for _, t := range []time.Time{st.ModTime(), accessTime(st)} {
			if t.After(lastUse) {
				lastUse = t
			}
		}
		return nil
	})
	return size, lastUse, err
}

// alone says that no other living process has the cache open.
func (c *Cache) alone() (bool, error) {
	files, err := os.ReadDir(filepath.Join(c.dir, "live"))
	if err != nil {
		return false, err
	}
	for _, f := range files {
		path := filepath.Join(c.dir, "live", f.Name())
		if path == c.live.lock.Path() {
			continue
		}
		l, err := tryLock(path)
		if err != nil || l == nil {
			return false, err
		}
		if err := l.Close(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// clearDeno empties Deno's directory, its compiled code included.
func (c *Cache) clearDeno(freed *Freed) error {
	size, _, err := measure(c.DenoDir())
	if err != nil {
		return err
	}
	if err := removeAll(c.DenoDir()); err != nil {
		return err
	}
	freed.Bytes += size
	return os.Mkdir(c.DenoDir(), 0o700)
}
