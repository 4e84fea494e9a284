package cache

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"
)

// live is a process's mark in the cache: a file that is locked for as long as
// the process lives and lists the entries that it uses, and a temporary
// directory of the same name. Whoever gets the lock of another's file knows
// that its process is dead.
//
// Where the cache can't be written to, there is no mark: this process could not trim
// it, and whoever can is expected to know about its readers.
type live struct {
	refused error        // why there is none
	lock    *flock.Flock // nil then
	tmp     string

	log *slog.Logger

	mu   sync.Mutex
	file *os.File
	used map[string]bool
}

func newLive(c *Cache) (*live, error) {
	var name, path string
	var l *flock.Flock
	for l == nil { // another process may look at a new file before it is locked
		name = rand.Text()
		path = filepath.Join(c.dir, "live", name)
		var err error
		if l, err = tryLock(path); err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	tmp := filepath.Join(c.dir, "tmp", name)
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return nil, errors.Join(err, file.Close(), l.Close())
	}
	return &live{log: c.log, lock: l, tmp: tmp, file: file, used: map[string]bool{}}, nil
}

// use records that the process uses an entry. It must be called before the entry is
// read, under the store's lock.
func (l *live) use(entry string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used[entry] || l.refused != nil {
		return nil
	}
	if _, err := l.file.WriteString(entry + "\n"); err != nil {
		err = fmt.Errorf("note the use of a cache entry: %w", err)
		if cannotWrite(err) {
			l.log.Warn("a cache entry is used without a note of it: another process may trim it", "entry", entry, "err", err)
			return nil
		}
		return err
	}
	l.used[entry] = true
	return nil
}

// entries lists what the process has used.
func (l *live) entries() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.used))
}

// cannotWrite reports whether err means that the file system is full or read-only:
// what is in the cache can still be used.
func cannotWrite(err error) bool {
	for _, no := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, fs.ErrPermission} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

func (l *live) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != nil {
		return nil
	}
	err := removeAll(l.tmp)
	if err == nil { // else another process removes it
		err = os.Remove(l.mark())
	}
	return errors.Join(err, l.file.Close(), l.lock.Close())
}

// mark is the path of this process's mark, empty without one.
func (l *live) mark() string {
	if l == nil || l.lock == nil {
		return ""
	}
	return l.lock.Path()
}

// living lists the marks of the living processes that have the cache open, without
// this one's. It removes the marks and temporary directories of those that died.
func (c *Cache) living() (others []string, err error) {
	files, err := os.ReadDir(filepath.Join(c.dir, "live"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(c.dir, "live", f.Name())
		if path == c.live.mark() {
			continue
		}
		l, err := tryLock(path)
		if err != nil {
			return nil, err
		}
		if l == nil {
			others = append(others, path)
			continue
		}
		err = removeAll(filepath.Join(c.dir, "tmp", f.Name()))
		if err == nil {
			err = os.Remove(path)
		}
		if err := errors.Join(err, l.Close()); err != nil {
			c.log.Warn("cannot remove what a dead process left in the cache", "dir", c.dir, "err", err)
		}
	}
	return others, nil
}

// inUse lists the entries that living processes use, this one included. The
// store's lock must be held alone.
func (c *Cache) inUse() (map[string]bool, error) {
	marks, err := c.living()
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, path := range append(marks, c.live.mark()) {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for entry := range strings.Lines(string(text)) {
			used[strings.TrimSuffix(entry, "\n")] = true
		}
	}
	return used, nil
}

// CheckWritable says why nothing can be added to the cache: its directory is gone, or the
// disk is full.
func (c *Cache) CheckWritable() error {
	dir, err := c.tempDir("check-")
	if err != nil {
		return err
	}
	defer removeAll(dir)
	return os.WriteFile(filepath.Join(dir, "check"), make([]byte, 4096), 0o600)
}

// tempDir makes a directory for work in progress; Rename from it into the
// cache is atomic, as both are on one file system.
func (c *Cache) tempDir(pattern string) (string, error) {
	if c.live.refused != nil {
		return "", fmt.Errorf("the cache can't be written to: %w", c.live.refused)
	}
	return os.MkdirTemp(c.live.tmp, pattern)
}
