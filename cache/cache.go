// Package cache is the one directory where Rillbox keeps what it fetched and
// made: runtimes, packages, snapshots, install plans. Bytes come in from the
// network or from a maker, are hashed, and come out as paths of read-only
// files.
//
// It promises:
//
//   - Entries are verified: hashed when they are written and again when a
//     process first reads them. A corrupt entry is removed, logged, and counts
//     as a miss.
//   - Entries are complete, whenever a process is killed: everything is written
//     to a temporary place, synced, and renamed.
//   - Several processes share it. What several want at once is made once.
//     A dead process's locks are released by the operating system, and its
//     temporary files are removed by the next Open.
//   - With Options.Offline the network is never used.
//
// Below the directory:
//
//	blobs/sha256/ab/abcd…      a blob, named by its digest
//	index/<kind>/<id>          (kind, key) → digest, as JSON; its modification
//	                           time is the entry's last use
//	trees/<kind>/<id>/         manifest.json (digests, last use) and files/
//	deno/                      npm:, jsr: and URL modules, as Deno fetched them;
//	                           the blob deno-record has their digests
//	locks/                     locks by name
//	live/                      one locked file a process, listing what it uses
//	tmp/                       one directory a process
//	format                     the version of this layout
//
// Export writes entries into an archive, and Import takes them into another cache.
//
// RATIONALE.md in this directory gives the reasons.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"rillbox/cache/egress"
)

// ErrMiss says that the cache does not hold what was asked for.
var ErrMiss = errors.New("not in the cache")

// DirEnv names the environment variable that moves the cache.
const DirEnv = "RILLBOX_CACHE_DIR"

// Options are the choices that a Cache has; the zero value is usable.
type Options struct {
	// MaxBytes is the size to which the cache is trimmed, by last use, when it
	// is opened and now and then while it grows. Zero means no limit.
	MaxBytes int64
	// Offline forbids all use of the network.
	Offline bool
	// Log gets faults and repairs; nil discards them.
	Log *slog.Logger
}

// Cache is an open cache. It is safe for concurrent use, and for use by
// several processes at once.
type Cache struct {
	dir      string
	maxBytes int64
	network  *egress.Client
	log      *slog.Logger
	now      func() time.Time // for tests

	live *live // the process's mark, and its temporary directory

	verified sync.Map // by path, the stamp of what was hashed by this process

	hits, misses atomic.Int64 // lookups

	trimming   sync.Mutex // held while this process trims by itself
	background sync.WaitGroup
	stop       context.CancelFunc
	stopped    context.Context
}

// stamp detects that a file changed since it was verified.
type stamp struct {
	size    int64
	modTime time.Time
}

// DefaultDir is $RILLBOX_CACHE_DIR, else "rillbox" in the user's cache directory.
func DefaultDir() (string, error) {
	if dir := os.Getenv(DirEnv); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the cache (%w): set %s to a directory", err, DirEnv)
	}
	return filepath.Join(base, "rillbox"), nil
}

// Open opens the cache in dir, making the directory when there is none, and
// removes what dead processes left unfinished.
func Open(dir string, o Options) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the cache: %w", err)
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Cache{
		dir: dir, maxBytes: o.MaxBytes, network: egress.New(egress.Policy{}), log: log,
		now: time.Now,
	}
	c.network.Offline, c.network.Log = o.Offline, log
	c.stopped, c.stop = context.WithCancel(context.Background())
	err = c.ownDir()
	earlier := false
	if err == nil {
		earlier, err = c.checkFormat()
	}
	if err == nil {
		err = c.makeDirs()
	}
	if err != nil {
		return nil, fmt.Errorf("open the cache in %s: %w (set %s to use another directory)", dir, err, DirEnv)
	}
	_, unknown := c.living()
	switch c.live, err = newLive(c); {
	case cannotWrite(err):
		log.Warn("the cache can't be written to: what is in it can be used, nothing is added", "dir", dir, "err", err)
		c.live, c.maxBytes = &live{refused: err}, 0
	case err != nil:
		return nil, fmt.Errorf("open the cache in %s: %w", dir, err)
	case unknown != nil:
		log.Warn("cannot tell whether dead processes left something in the cache", "dir", dir, "err", unknown)
	}
	if earlier {
		log.Warn("an earlier version wrote the cache: what can be verified is used, the rest is fetched again when it is wanted", "dir", dir)
	}
	if err := c.writeFormat(); err != nil && !cannotWrite(err) {
		return nil, errors.Join(fmt.Errorf("open the cache in %s: note its format: %w", dir, err), c.live.close())
	}
	c.trimSometimes()
	return c, nil
}

// Close ends the process's claim on the entries that it used: they may be trimmed
// from then on. The end of the process has the same effect.
func (c *Cache) Close() error {
	c.stop()
	c.background.Wait()
	c.network.Close()
	return c.live.close()
}

// Dir is the cache's directory, absolute and without symbolic links.
func (c *Cache) Dir() string { return c.dir }

// Offline reports whether the network must not be used.
func (c *Cache) Offline() bool { return c.network.Offline }

// DenoDir is where Deno keeps npm:, jsr: and URL modules (its DENO_DIR).
func (c *Cache) DenoDir() string { return filepath.Join(c.dir, "deno") }

// ownDir makes the cache's directory, and checks that nobody else can write to it.
func (c *Cache) ownDir() error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	// Children and their walls get paths without symbolic links.
	real, err := filepath.EvalSymlinks(c.dir)
	if err != nil {
		return err
	}
	c.dir = real
	st, err := os.Stat(c.dir)
	if err != nil {
		return err
	}
	switch mode := st.Mode(); {
	case mode.Perm()&0o002 != 0: // perhaps /tmp itself: not ours to change
		return fmt.Errorf("everybody may write to it (mode %v), so its content can't be trusted: chmod go-w %s", mode.Perm(), c.dir)
	case mode.Perm()&0o020 != 0: // mkdir under a umask of 002
		if err := os.Chmod(c.dir, mode.Perm()&^0o020); err != nil {
			return fmt.Errorf("its group may write to it, so its content can't be trusted: %w", err)
		}
	}
	return nil
}

func (c *Cache) makeDirs() error {
	for _, sub := range []string{"blobs/sha256", "index", "trees", "deno", "locks", "live", "tmp"} {
		if err := os.MkdirAll(filepath.Join(c.dir, sub), 0o700); err != nil {
			return err
		}
	}
	return nil
}

var kindPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// checkKind refuses a kind that could not be a directory's name.
func checkKind(kind string) error {
	if !kindPattern.MatchString(kind) {
		return fmt.Errorf("cache: bad kind %q: want lower-case letters, digits, '.', '_' and '-'", kind)
	}
	return nil
}

// id is the file name of a key.
func id(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// distance is how far a time of a file is from now. One in the future was told by a clock
// that has been set back since: it says as little as one as long ago.
func (c *Cache) distance(t time.Time) time.Duration { return c.now().Sub(t).Abs() }

// touch records a use in the modification time of path, at most hourly so that
// reading stays cheap.
func (c *Cache) touch(path string, lastUse time.Time) {
	if c.distance(lastUse) > time.Hour {
		now := c.now()
		if err := os.Chtimes(path, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.log.Debug("cannot record the use of a cache entry", "path", path, "err", err)
		}
	}
}

// isVerified says whether this process hashed path as it is now.
func (c *Cache) isVerified(path string, st fs.FileInfo) bool {
	was, ok := c.verified.Load(path)
	return ok && was == stamp{st.Size(), st.ModTime()}
}

func (c *Cache) setVerified(path string, st fs.FileInfo) {
	c.verified.Store(path, stamp{st.Size(), st.ModTime()})
}
