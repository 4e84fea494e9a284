package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"rillbox/supervisor/launcher"
	"rillbox/workspace"
)

// Children's directories stand in one directory for each server process, below
// one for each user: TMPDIR/rillbox-UID/PID-xxxx/run-xxxx. A server holds a lock
// on its own directory; one whose lock is free belongs to a server that was
// killed, and the next start removes it (see removeLeftovers).
const lockName = "lock"

var serverDir = sync.OnceValues(func() (string, error) {
	base, err := baseDir()
	if err != nil {
		return "", err
	}
	dir, lock, err := newLockedDir(base)
	if err != nil {
		return "", fmt.Errorf("make this process's directory for runs: %w", err)
	}
	ownLock = lock
	return dir, nil
})

// ownLock is kept so that its file is not closed as garbage.
var ownLock *flock.Flock

// NewRunDir makes an empty directory for one child; it goes when the
// child has ended.
func NewRunDir() (string, error) {
	parent, err := serverDir()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(parent, "run-")
	if err != nil {
		return "", fmt.Errorf("make a child's directory: %w", err)
	}
	return dir, nil
}

// CheckWritable says why no child's directory can be made or written to.
func CheckWritable() error {
	dir, err := NewRunDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return os.WriteFile(filepath.Join(dir, "check"), make([]byte, 4096), 0o600)
}

// RunDirs are the directories in which servers keep those of their children.
func RunDirs() []string {
	base, err := baseDir()
	if err != nil {
		return nil
	}
	return []string{base}
}

// IsRunDir says whether NewRunDir made a directory.
func IsRunDir(dir string) bool {
	parent, err := serverDir()
	return err == nil && filepath.Dir(dir) == parent
}

// RemoveServerDir removes this process's directory at its end, once all children
// are gone, or after two seconds. Their directories that are still there go with it.
func RemoveServerDir() error {
	gone := make(chan struct{})
	go func() {
		leaving.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(2 * time.Second):
	}
	dir, err := serverDir()
	if err != nil {
		return nil // there is none
	}
	return errors.Join(os.RemoveAll(dir), ownLock.Close())
}

// newLockedDir makes a directory whose lock is held until this process ends. The
// file has its lock before it has its name: by that name another server that starts
// right now looks for locks that are free.
func newLockedDir(base string) (dir string, lock *flock.Flock, err error) {
	if dir, err = os.MkdirTemp(base, fmt.Sprintf("%d-", os.Getpid())); err != nil {
		return "", nil, err
	}
	lock = flock.New(filepath.Join(dir, lockName+".new"))
	if _, err = lock.TryLock(); err == nil { // nobody else knows of it
		err = os.Rename(lock.Path(), filepath.Join(dir, lockName))
	}
	if err != nil {
		_ = lock.Close()
	}
	return dir, lock, err
}

// baseDir makes the user's directory for all servers, and checks that it is
// nobody else's.
func baseDir() (string, error) {
	// Symbolic links are resolved because Deno's permissions and Landlock
	// compare real paths (/tmp is a link on macOS).
	temp, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return "", fmt.Errorf("find the directory for temporary files (set TMPDIR to one that exists): %w", err)
	}
	base := filepath.Join(temp, fmt.Sprintf("rillbox-%d", os.Getuid()))
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", fmt.Errorf("make the directory for runs: %w", err)
	}
	info, err := os.Lstat(base)
	if err != nil {
		return "", fmt.Errorf("look at the directory for runs: %w", err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; !info.IsDir() || info.Mode().Perm()&0o077 != 0 || int(owner) != os.Getuid() {
		return "", fmt.Errorf("%s must be a directory of yours that nobody else can open: remove it, or set TMPDIR to a directory of your own", base)
	}
	return base, nil
}

// RemoveLeftovers removes what servers that were killed left behind: their
// directories, and cgroups that their keepers had not heard of yet.
func RemoveLeftovers() {
	if base, err := baseDir(); err == nil { // else the first run says what is wrong
		removeStale(base)
	}
	launcher.RemoveEmptyCgroups(func(name string) bool {
		var pid int
		_, err := fmt.Sscanf(name, launcher.CgroupPrefix+"%d-", &pid)
		return err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}

// removeStale removes the directories of servers that are gone. A directory
// without a lock file is about to get one, unless it is as old as an hour.
func removeStale(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return // the next start tries again
	}
	for _, entry := range entries {
		dir := filepath.Join(base, entry.Name())
		if _, err := os.Stat(filepath.Join(dir, lockName)); err != nil {
			if info, err := entry.Info(); err != nil || time.Since(info.ModTime()).Abs() < time.Hour { // a clock may have been set back
				continue
			}
		}
		lock := flock.New(filepath.Join(dir, lockName))
		if free, _ := lock.TryLock(); free {
			RemoveRunDir(dir)
		}
		_ = lock.Close()
	}
}

func RemoveRunDir(dir string) {
	if dir == "" {
		return
	}
	if err := os.RemoveAll(dir); err != nil {
		// A guest may have taken its own right to list a directory away.
		_ = workspace.Reopen(dir)
		_ = os.RemoveAll(dir) // what is left goes with the server's directory
	}
}
