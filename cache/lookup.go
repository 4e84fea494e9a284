package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// getOrMake returns what get finds, or else what make makes. When several goroutines or
// processes want it at once, one makes it and the others wait.
func (c *Cache) getOrMake(ctx context.Context, lock string, get, make func() (string, error)) (path string, hit bool, err error) {
	if path, err = c.counted(get()); !errors.Is(err, ErrMiss) {
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

// counted counts a lookup.
func (c *Cache) counted(path string, err error) (string, error) {
	switch {
	case err == nil:
		c.hits.Add(1)
	case errors.Is(err, ErrMiss):
		c.misses.Add(1)
	}
	return path, err
}

// Lookups is how many lookups of blobs and trees found what they wanted since Open, and
// how many did not.
func (c *Cache) Lookups() (hits, misses int64) { return c.hits.Load(), c.misses.Load() }

// store makes an entry: fill creates what it holds in an empty directory, and finish
// seals that, puts it in place and returns its path.
func (c *Cache) store(kind, key string, fill func(tmp string) error, finish func(tmp string) (string, error)) (content string, err error) {
	if err := checkKind(kind); err != nil {
		return "", err
	}
	tmp, err := c.tempDir("entry-")
	if err != nil {
		return "", fmt.Errorf("store %s %q: %w", kind, key, err)
	}
	defer removeAll(tmp)
	if err := fill(tmp); err != nil {
		return "", err // the maker's own words
	}
	if content, err = finish(tmp); err != nil {
		return "", fmt.Errorf("store %s %q: %w", kind, key, err)
	}
	c.trimSometimes()
	return content, nil
}

// commit puts an entry in place by moves, of which the last makes it one.
func (c *Cache) commit(path, content string, moves [][2]string) error {
	unlock, err := c.lockStore(false)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.live.use(c.entryName(path)); err != nil {
		return err
	}
	for _, move := range moves {
		if err := rename(move[0], move[1]); err != nil {
			return err
		}
	}
	st, err := os.Stat(content)
	if err != nil {
		return err
	}
	c.setVerified(content, st)
	return nil
}

// entry is one thing that the cache holds.
type entry struct {
	path      string // of the index file, the tree, or the package of Deno's
	kind, key string
	record    string // the file that describes it
	content   string // the blob, or the tree's files
	blob      string // the blob, which other entries may share
	size      int64
	lastUse   time.Time
	check     func() error // verifies the content
}

// reader reads the record of the entry at a path: readBlob or readTree.
type reader func(path string) (entry, error)

// verify reads an entry and checks its content. An error that wraps fs.ErrNotExist
// means that there is no such entry.
func verify(path string, read reader) (entry, error) {
	e, err := read(path)
	if err == nil {
		err = e.verify()
	}
	return e, err
}

func (e entry) verify() error {
	err := e.check()
	if errors.Is(err, fs.ErrNotExist) {
		return corruptError{"its content is gone"}
	}
	return err
}

// get looks up the entry (kind, key), which is at path. A corrupt one is removed and
// counts as a miss.
func (c *Cache) get(kind, key, path string, read reader) (found string, err error) {
	if err := checkKind(kind); err != nil {
		return "", err
	}
	found, err = c.lookup(path, read)
	if corrupt, ok := errors.AsType[corruptError](err); ok {
		err = c.drop(path, read, isCorrupt)
		if err == nil { // it is gone, or was read wrongly, or another process mended it
			found, err = c.lookup(path, read)
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

// lookup returns the content of the entry at path, which is verified unless this process
// has done that and it has not changed since.
func (c *Cache) lookup(path string, read reader) (content string, err error) {
	e, err := c.claim(path, read)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(e.content)
	if errors.Is(err, fs.ErrNotExist) {
		return "", corruptError{"its content is gone"}
	}
	if err != nil || c.isVerified(e.content, st) {
		return e.content, err
	}
	if err := e.verify(); err != nil {
		return "", err
	}
	c.setVerified(e.content, st)
	return e.content, nil
}

// claim records that this process uses an entry, so that it is not trimmed, and the
// time.
func (c *Cache) claim(path string, read reader) (entry, error) {
	unlock, err := c.lockStore(false)
	if err != nil {
		return entry{}, err
	}
	defer unlock()
	e, err := read(path)
	if err == nil {
		err = c.live.use(c.entryName(path))
	}
	if err == nil {
		c.touch(e.record, e.lastUse)
	}
	return e, err
}

// entryName is how live files name an entry.
func (c *Cache) entryName(path string) string {
	return strings.TrimPrefix(path, c.dir+string(filepath.Separator))
}

// drop removes the entry at path if it is still bad: another process may have replaced
// it by a good one meanwhile.
func (c *Cache) drop(path string, read reader, bad func(error) bool) error {
	unlock, err := c.lockStore(true)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := verify(path, read); err == nil || errors.Is(err, fs.ErrNotExist) || !bad(err) {
		return nil
	}
	discard, empty, err := c.trash()
	if err != nil {
		return err
	}
	return errors.Join(discard(path), empty())
}
