package cache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Loan is a directory through which a child sees entries of the cache: only those
// that are added to it, which may be after the child has started. The files are hard
// links to the cache's own; they are copies only where the cache is read-only.
type Loan struct {
	dir string
}

// Lend makes an empty Loan. It ends with Close, or with the process.
func (c *Cache) Lend() (*Loan, error) {
	dir, err := c.tempDir("loan-")
	if err != nil { // the cache is full, or read-only
		if dir, err = os.MkdirTemp("", "rillbox-loan-"); err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make a directory for what a child is lent: %w", err)
	}
	return &Loan{dir}, nil
}

// Dir is the loan's directory, absolute.
func (l *Loan) Dir() string { return l.dir }

// Add lends the file at path, an entry of the cache, and returns its path in the
// loan's directory. Adding it again is no error.
func (l *Loan) Add(path string) (string, error) {
	lent := filepath.Join(l.dir, filepath.Base(path))
	err := os.Link(path, lent)
	if errors.Is(err, syscall.EXDEV) {
		err = CopyFile(lent, path)
	}
	if err != nil && !os.IsExist(err) {
		return "", fmt.Errorf("lend %s to a child: %w", path, err)
	}
	return lent, nil
}

// Close removes the loan's directory.
func (l *Loan) Close() error { return removeAll(l.dir) }
