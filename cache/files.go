package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// HashFile returns the sha256 of a regular file, in hex, and its size.
func HashFile(path string) (digest string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = copyWhole(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// copyWhole copies a file's content. It fails if that ends before the file's size, as on
// a network file system that lost its server: such content must not count as corrupt.
func copyWhole(w io.Writer, f *os.File) (size int64, err error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size, err = io.Copy(w, f)
	if err == nil && size < st.Size() {
		err = &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("%w after %d of %d bytes", io.ErrUnexpectedEOF, size, st.Size())}
	}
	return size, err
}

// seal gives a finished file its mode and makes it durable.
func seal(path string, mode fs.FileMode) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(mode), f.Sync(), f.Close())
}

// sealNew makes a file of text.
func sealNew(path string, text []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	return seal(path, mode)
}

// syncDir makes renames into dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// rename moves a finished file or directory into place, durably.
func rename(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

// writeJSON writes v into a new read-only file.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return sealNew(path, append(text, '\n'), 0o400)
}

// readJSON reads what writeJSON wrote; anything else is a corruptError.
func readJSON(path string, v any) (fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 64<<20))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, corruptError{fmt.Sprintf("%s: %v", filepath.Base(path), err)}
	}
	return st, nil
}

// walkBelow visits what is at and below root, with its path from there.
func walkBelow(root string, visit func(rel, path string, d fs.DirEntry) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return visit(rel, path, d)
	})
}

// corruptError means that an entry is not what was written.
type corruptError struct{ what string }

func (e corruptError) Error() string { return e.what }

func isCorrupt(err error) bool { return errors.As(err, new(corruptError)) }

// removeAll removes a tree whose directories may be read-only, as archives can make
// them.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
