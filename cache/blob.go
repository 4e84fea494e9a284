package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// index is what a file below index/ says.
type index struct {
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// GetOrPut returns the path of the blob (kind, key). If the cache does not hold it,
// hit is false and maker writes it. When several goroutines or processes want it at
// once, one makes it and the others wait. If maker fails, nothing is kept.
//
// The file is read-only, and stays for as long as this Cache is open.
func (c *Cache) GetOrPut(ctx context.Context, kind, key string, maker func(ctx context.Context, w io.Writer) error) (path string, hit bool, err error) {
	return c.blob(ctx, kind, key, blobWriter(func(w io.Writer) error { return maker(ctx, w) }))
}

// GetOrDownload is GetOrPut with a maker that creates the file at path.
func (c *Cache) GetOrDownload(ctx context.Context, kind, key string, download func(path string) error) (path string, hit bool, err error) {
	return c.blob(ctx, kind, key, func(path string) (string, error) { return "", download(path) })
}

// blobMaker creates the file at path and returns its sha256, or "" if it does not know it.
type blobMaker func(path string) (digest string, err error)

func (c *Cache) blob(ctx context.Context, kind, key string, maker blobMaker) (path string, hit bool, err error) {
	get := func() (string, error) { return c.get(kind, key, c.indexPath(kind, key), c.readBlob) }
	return c.getOrMake(ctx, "blob/"+kind+"/"+key, get, func() (string, error) { return c.put(kind, key, maker) })
}

// Put stores what r gives as the blob (kind, key), replacing an earlier one.
func (c *Cache) Put(ctx context.Context, kind, key string, r io.Reader) (path string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return c.put(kind, key, blobWriter(func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	}))
}

// Get returns the path of the blob (kind, key), or an error that wraps ErrMiss.
func (c *Cache) Get(kind, key string) (path string, err error) {
	return c.counted(c.get(kind, key, c.indexPath(kind, key), c.readBlob))
}

// Has says that the cache holds the blob (kind, key), without verifying it.
func (c *Cache) Has(kind, key string) bool {
	_, err := os.Stat(c.indexPath(kind, key))
	return err == nil
}

// Remove forgets the blob (kind, key). Removing what is not there is no error.
func (c *Cache) Remove(kind, key string) error {
	if err := checkKind(kind); err != nil {
		return err
	}
	unlock, err := c.lockStore(true)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.Remove(c.indexPath(kind, key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s %q from the cache: %w", kind, key, err)
	}
	return nil // Trim removes the blob when nothing else names it
}

// readBlob reads an index file.
func (c *Cache) readBlob(path string) (entry, error) {
	var ix index
	st, err := readJSON(path, &ix)
	if err == nil && (id(ix.Key) != filepath.Base(path) || !digestPattern.MatchString(ix.SHA256)) {
		err = corruptError{"its index file belongs to another key"}
	}
	if err != nil {
		return entry{key: ix.Key}, err
	}
	blob := c.blobPath(ix.SHA256)
	return entry{
		path: path, key: ix.Key, record: path, content: blob, blob: blob, size: ix.Size, lastUse: st.ModTime(),
		check: func() error { return matches(blob, ix) },
	}, nil
}

func matches(path string, ix index) error {
	digest, size, err := HashFile(path)
	if err != nil {
		return err
	}
	if digest != ix.SHA256 || size != ix.Size {
		return corruptError{fmt.Sprintf("it is %d bytes with sha256 %s, and was written as %d bytes with sha256 %s", size, digest, ix.Size, ix.SHA256)}
	}
	return nil
}

// put writes a blob and its index file. An earlier file of the same digest is replaced,
// as it might be corrupt.
func (c *Cache) put(kind, key string, maker blobMaker) (path string, err error) {
	var written string
	return c.store(kind, key, func(tmp string) (err error) {
		written, err = maker(filepath.Join(tmp, "blob"))
		return err
	}, func(tmp string) (string, error) {
		blob, record := filepath.Join(tmp, "blob"), filepath.Join(tmp, "index")
		if err := seal(blob, 0o400); err != nil {
			return "", err
		}
		digest, size, err := HashFile(blob)
		if err != nil {
			return "", err
		}
		if written != "" && written != digest {
			return "", errors.New("the file system does not hold what was written to it")
		}
		if err := writeJSON(record, index{key, digest, size}); err != nil {
			return "", err
		}
		path, at := c.blobPath(digest), c.indexPath(kind, key)
		return path, c.commit(at, path, [][2]string{{blob, path}, {record, at}})
	})
}

// blobWriter makes a blobMaker of a function that writes the content.
func blobWriter(write func(w io.Writer) error) blobMaker {
	return func(path string) (string, error) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return "", err
		}
		h := sha256.New()
		err = write(io.MultiWriter(f, h))
		return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
	}
}

func (c *Cache) indexPath(kind, key string) string {
	return filepath.Join(c.dir, "index", kind, id(key))
}

func (c *Cache) blobPath(digest string) string {
	return filepath.Join(c.dir, "blobs", "sha256", digest[:2], digest)
}

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
