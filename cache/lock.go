package cache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a held lock is tried again: flock(2) can't be waited
// for and be cancelled at once.
const lockPoll = 20 * time.Millisecond

// Lock waits for the lock of that name, which excludes other goroutines and
// other processes alike, and is not reentrant. It fails only with ctx's error
// or when the file system refuses. The operating system releases a dead
// process's lock.
func (c *Cache) Lock(ctx context.Context, name string) (unlock func(), err error) {
	l, err := lockFile(filepath.Join(c.dir, "locks", id(name)+".lock"), func(l *flock.Flock) (bool, error) {
		return l.TryLockContext(ctx, lockPoll)
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the cache's lock %q: %w", name, err)
	}
	return func() {
		_ = os.Remove(l.Path()) // who waits for it sees that, and makes another
		_ = l.Close()
	}, nil
}

// tryLock locks path if nobody holds it, else returns nil.
func tryLock(path string) (*flock.Flock, error) {
	return lockFile(path, (*flock.Flock).TryLock)
}

// lockFile locks path with try; it returns nil if that does not succeed.
func lockFile(path string, try func(*flock.Flock) (bool, error)) (*flock.Flock, error) {
	for {
		l := newFlock(path)
		ok, err := try(l)
		if err == nil && ok && stillThere(l) {
			return l, nil
		}
		_ = l.Close()
		if err != nil || !ok {
			return nil, err
		} // else who held it removed the file before we locked it
	}
}

const storeLock = "store.lock"

// lockStore guards the moments in which entries appear or go. Lookups and
// commits share it; Trim, Clear and the removal of a corrupt entry have it
// alone. It is held for as short as possible and never while making something.
func (c *Cache) lockStore(alone bool) (unlock func(), err error) {
	l := newFlock(filepath.Join(c.dir, storeLock))
	if alone {
		err = l.Lock()
	} else if err = l.RLock(); cannotWrite(err) {
		_ = l.Close()
		l = flock.New(l.Path(), flock.SetFlag(os.O_RDONLY))
		err = l.RLock()
	}
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	return func() { _ = l.Close() }, nil
}

func newFlock(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
}

// stillThere says whether the locked file is the one that its path names. A
// lock file may be removed only by who holds it.
func stillThere(l *flock.Flock) bool {
	mine, err := l.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(l.Path())
	return err == nil && os.SameFile(mine, named)
}
