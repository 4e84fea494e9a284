package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// getOrMake returns what get finds, or else what make makes. When several goroutines or
// processes want it at once, one makes it and the others wait.
func (c *Cache) getOrMake(ctx context.Context, lock string, get, make func() (string, error)) (path string, hit bool, err error) {
	if path, err = get(); !errors.Is(err, ErrMiss) {
		return path, err == nil, err
	}
	unlock, err := c.Lock(ctx, lock)
	if err != nil {
		return "", false, err
	}
	defer unlock()
	if path, err = get(); !errors.Is(err, ErrMiss) {
		return path, err == nil, err
	}
	path, err = make()
	return path, false, err
}

// get looks up the entry (kind, key), which is at path. A corrupt one is removed and
// counts as a miss.
func (c *Cache) get(kind, key, path string, lookup func() (string, error), check func() error) (found string, err error) {
	if err := checkKind(kind); err != nil {
		return "", err
	}
	found, err = lookup()
	if corrupt, ok := errors.AsType[corruptError](err); ok {
		err = c.dropCorrupt(path, check)
		if err == nil { // it is gone, or was read wrongly, or another process mended it
			found, err = lookup()
		}
		if errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("a cache entry is corrupt and will be made again", "kind", kind, "key", key, "why", corrupt.what)
		}
	}
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s %q: %w", kind, key, ErrMiss)
	}
	return "", fmt.Errorf("look up %s %q in the cache: %w", kind, key, err)
}

// claim records that this process uses an entry, so that it is not trimmed, and the
// time in the entry's file. read reads that file.
func (c *Cache) claim(entry, file string, read func() (fs.FileInfo, error)) error {
	unlock, err := c.lockStore(false)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := read()
	if err != nil {
		return err
	}
	if err := c.live.use(c.entryName(entry)); err != nil {
		return err
	}
	c.touch(file, st)
	return nil
}

// verifyOnce calls check unless this process has verified path and content, a file or
// directory, has not changed since.
func (c *Cache) verifyOnce(path, content string, check func() error) error {
	st, err := os.Stat(content)
	if errors.Is(err, fs.ErrNotExist) {
		return corruptError{"its content is gone"}
	}
	if err != nil || c.isVerified(path, st) {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	c.setVerified(path, st)
	return nil
}

// dropCorrupt removes an entry if check still finds it corrupt: another process
// may have replaced it by a good one meanwhile.
func (c *Cache) dropCorrupt(path string, check func() error) error {
	return c.dropBad(path, func() error {
		err := check()
		if _, corrupt := errors.AsType[corruptError](err); corrupt {
			return err
		}
		return nil
	})
}

// dropBad removes an entry if check still fails.
func (c *Cache) dropBad(path string, check func() error) error {
	unlock, err := c.lockStore(true)
	if err != nil {
		return err
	}
	defer unlock()
	if err := check(); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return c.discard(path)
}

// discard moves an entry out of sight, at once also when it is a large tree.
// The store's lock must be held alone.
func (c *Cache) discard(path string) error {
	c.verified.Delete(path)
	trash, err := c.tempDir("trash-")
	if err != nil {
		return err
	}
	err = os.Rename(path, filepath.Join(trash, "entry"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, removeAll(trash))
}
