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
	"time"
)

const (
	trimEvery  = time.Hour        // between two trims, by whichever process
	trimPause  = 15 * time.Second // before a process trims
	trimAtOnce = 24 * time.Hour   // after which it does not wait
)

// trimMark is a file in the cache whose time is that of the last trim.
const trimMark = "trimmed"

// denoRest is how long a package of Deno's must have gone unread before it may
// be trimmed. Deno does not tell us what it uses, and most systems update a file's
// access time only once a day (mount option relatime): a package that was unread for
// a day and a half is not in use.
const denoRest = 36 * time.Hour

// Freed says what Trim and Clear did.
type Freed struct {
	Entries int   // removed
	Bytes   int64 // freed
	Kept    int64 // bytes left
	InUse   int   // entries left because a living process uses them
}

// Trim removes entries until the cache holds maxBytes or less, those first
// that were not used for longest. It never removes what a living process uses.
func (c *Cache) Trim(ctx context.Context, maxBytes int64) (Freed, error) {
	freed, err := c.trim(ctx, maxBytes, denoRest)
	if err != nil {
		return freed, fmt.Errorf("trim the cache in %s: %w", c.dir, err)
	}
	return freed, nil
}

// Clear removes everything that no other living process uses. Deno's packages
// go too, unless another process has the cache open.
func (c *Cache) Clear(ctx context.Context) (Freed, error) {
	rest := time.Duration(0)
	others, err := c.living()
	if len(others) > 0 {
		rest = denoRest
	}
	var freed Freed
	if err == nil {
		freed, err = c.trim(ctx, -1, rest)
	}
	if err == nil && len(others) == 0 {
		err = c.clearDeno(&freed)
	}
	if err != nil {
		return Freed{}, fmt.Errorf("clear the cache in %s: %w", c.dir, err)
	}
	return freed, nil
}

func (c *Cache) trim(ctx context.Context, maxBytes int64, rest time.Duration) (freed Freed, err error) {
	discard, empty, err := c.trash()
	if err != nil {
		return freed, err
	}
	defer empty() // when the store's lock is released
	unlock, err := c.lockStore(true)
	if err != nil {
		return freed, err
	}
	defer unlock()
	entries, orphans, err := c.entries()
	if err != nil {
		return freed, err
	}
	used, err := c.inUse()
	if err != nil {
		return freed, err
	}
	names := map[string]int{} // how many entries name a blob
	for _, e := range entries {
		names[e.blob]++
		if e.blob == "" || names[e.blob] == 1 {
			freed.Kept += e.size
		}
	}
	for _, path := range orphans { // a process died before it named them, or Remove did
		if err := discard(path); err != nil {
			return freed, err
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.lastUse.Compare(b.lastUse) })
	for _, e := range entries {
		if freed.Kept <= maxBytes {
			break
		}
		if err := ctx.Err(); err != nil {
			return freed, err
		}
		if used[c.entryName(e.path)] || e.kind == denoKind && c.distance(e.lastUse) < rest {
			freed.InUse++
			continue
		}
		if err := discard(e.path); err != nil {
			return freed, err
		}
		freed.Entries++
		if e.blob != "" {
			if names[e.blob]--; names[e.blob] > 0 {
				continue
			}
			if err := discard(e.blob); err != nil {
				return freed, err
			}
		}
		freed.Bytes += e.size
		freed.Kept -= e.size
	}
	return freed, nil
}

// trash makes a place for what goes: discard moves a file or a directory there, at once
// also when it is large, and empty removes all of it.
func (c *Cache) trash() (discard func(path string) error, empty func() error, err error) {
	dir, err := c.tempDir("trash-")
	moved := 0
	discard = func(path string) error {
		moved++
		err := os.Rename(path, filepath.Join(dir, fmt.Sprint(moved)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return discard, func() error { return removeAll(dir) }, err
}

// entries lists what can be trimmed, and the blobs that no index file names.
func (c *Cache) entries() (entries []entry, orphans []string, err error) {
	named := map[string]bool{}
	err = c.each(func(kind, path string, read reader) error {
		e, err := read(path)
		if isCorrupt(err) {
			orphans = append(orphans, path)
			return nil
		}
		if err != nil { // it can't be told, as with too many open files
			return err
		}
		if e.kind = kind; e.blob == "" {
			e.size, _, err = measure(e.content)
		}
		named[e.blob] = true
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	err = filepath.WalkDir(filepath.Join(c.dir, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !named[path] {
			orphans = append(orphans, path)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	packages, err := c.denoPackages()
	return append(entries, packages...), orphans, err
}

// each visits the blobs and the trees of all kinds.
func (c *Cache) each(visit func(kind, path string, read reader) error) error {
	visitIn := func(sub string, read reader) error {
		return filepath.WalkDir(filepath.Join(c.dir, sub), func(path string, d fs.DirEntry, err error) error {
			names := strings.SplitN(c.entryName(path), string(filepath.Separator), 3) // sub, kind and its own
			if err != nil || len(names) < 3 || strings.HasPrefix(names[2], ".") {     // a desktop's own files
				return err
			}
			if err := visit(names[1], path, read); err != nil || !d.IsDir() {
				return err
			}
			return fs.SkipDir
		})
	}
	if err := visitIn("index", c.readBlob); err != nil {
		return err
	}
	return visitIn("trees", c.readTree)
}

// trimSometimes trims in the background if no process has for trimEvery. As that reads
// all of the cache's index, it waits for trimPause, so as not to slow down the work
// that the process was started for; but not after trimAtOnce, or short-lived processes
// would never trim.
func (c *Cache) trimSometimes() {
	if c.maxBytes <= 0 || !c.trimming.TryLock() {
		return
	}
	last := time.Time{}
	mark := filepath.Join(c.dir, trimMark)
	if st, err := os.Stat(mark); err == nil {
		last = st.ModTime()
	}
	ago := c.distance(last)
	if ago < trimEvery || c.stopped.Err() != nil {
		c.trimming.Unlock()
		return
	}
	c.background.Go(func() {
		defer c.trimming.Unlock()
		if ago < trimAtOnce {
			select {
			case <-time.After(trimPause):
			case <-c.stopped.Done():
				return
			}
		}
		freed, err := c.Trim(c.stopped, c.maxBytes)
		if err == nil {
			err = os.WriteFile(mark, nil, 0o600)
		}
		if err != nil && c.stopped.Err() == nil {
			c.log.Warn("cannot trim the cache", "dir", c.dir, "err", err)
		}
		if freed.Entries > 0 {
			c.log.Info("trimmed the cache", "dir", c.dir, "entries", freed.Entries, "bytes", freed.Bytes, "left", freed.Kept)
		}
	})
}
