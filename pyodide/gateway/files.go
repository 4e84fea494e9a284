package gateway

import (
	"context"
	cryptosha256 "crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rillbox/cache"
)

const (
	wheelKind    = "wheel"     // of the cache; the key is the file's SHA-256
	metadataKind = "metadata"  // likewise
	urlKind      = "wheel-url" // the SHA-256 of the wheel that a URL gave; the key is the URL

	maxFile     = 512 << 20 // bytes of a wheel
	maxMetadata = 16 << 20  // bytes of a wheel's metadata
)

// mismatchError says that a file is not what the index said it is.
type mismatchError struct{ filename, host, got, want string }

func (e *mismatchError) Error() string {
	return fmt.Sprintf("%s as %s sent it has sha256 %s, and the index or lock file says %s: it was thrown away", e.filename, e.host, e.got, e.want)
}

// blob returns the path of a verified file of the given kind, which it fetches
// when the cache does not hold it.
func (g *Gateway) blob(ctx context.Context, gr *Grant, kind string, limit int64, e entry) (path string, hit bool, err error) {
	defer g.watch.add(e.SHA256, gr)()
	get := func() (string, bool, error) {
		if g.noFetch() {
			path, err := g.cache.Get(kind, e.SHA256)
			return path, err == nil, err
		}
		return g.cache.GetOrPut(ctx, kind, e.SHA256, func(ctx context.Context, w io.Writer) error {
			return g.fetchFile(ctx, e, limit, w)
		})
	}
	path, hit, err = get()
	if err == nil && filepath.Base(path) != e.SHA256 {
		// The cache names blobs by their digests, so this key leads to another
		// file than it was made for.
		g.log.Warn("a file in the cache is not what its key says, and will be fetched again", "file", e.Filename)
		if err = g.cache.Remove(kind, e.SHA256); err == nil {
			path, hit, err = get()
		}
	}
	return path, hit, err
}

// fetchFile writes a file to w, and fails when it is not the one that e names.
func (g *Gateway) fetchFile(ctx context.Context, e entry, limit int64, w io.Writer) error {
	stage := strings.TrimSpace("fetching " + e.Name + " " + e.Version)
	h := cryptosha256.New()
	err := g.fetch.download(ctx, e.from, io.MultiWriter(w, h), limit, true, func(done, total int64) {
		if total == 0 {
			total = e.Size
		}
		g.watch.tell(e.SHA256, stage, done, total)
	})
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != e.SHA256 {
		return &mismatchError{e.Filename, e.from.url.Host, got, e.SHA256}
	}
	return nil
}

// digestOfURL is the SHA-256 of the wheel that a URL without a digest gives.
// It is fetched once: what a URL gave the first time is what it means from then
// on, as for Deno's https: imports.
func (g *Gateway) digestOfURL(ctx context.Context, gr *Grant, e entry) (string, error) {
	key := e.URL
	defer g.watch.add(key, gr)()
	var path string
	var err error
	if g.noFetch() {
		path, err = g.cache.Get(urlKind, key)
	} else {
		path, _, err = g.cache.GetOrPut(ctx, urlKind, key, func(ctx context.Context, w io.Writer) error {
			return g.fetchURL(ctx, e, key, w)
		})
	}
	if err != nil {
		return "", err
	}
	sum, err := os.ReadFile(path)
	if err == nil && !isSHA256(string(sum)) {
		err = errors.Join(errors.New("its entry in the cache holds no digest"), g.cache.Remove(urlKind, key))
	}
	return string(sum), err
}

// fetchURL stores the wheel at a URL, and writes its digest to w.
func (g *Gateway) fetchURL(ctx context.Context, e entry, key string, w io.Writer) error {
	tmp, err := os.CreateTemp("", "rillbox-wheel-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	h := cryptosha256.New()
	stage := "fetching " + e.Name + " " + e.Version
	err = g.fetch.download(ctx, e.from, io.MultiWriter(tmp, h), maxFile, false, func(done, total int64) {
		g.watch.tell(key, stage, done, total)
	})
	if err != nil {
		return err
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if _, err := g.cache.Put(ctx, wheelKind, sum, tmp); err != nil {
		return err
	}
	_, err = io.WriteString(w, sum)
	return err
}

// forgetURL lets a URL be asked again when it no longer gives what it gave.
func (g *Gateway) forgetURL(e entry, err error) {
	var mismatch *mismatchError
	if errors.As(err, &mismatch) {
		if err := g.cache.Remove(urlKind, e.URL); err != nil && !errors.Is(err, cache.ErrMiss) {
			g.log.Warn("cannot forget what a URL gave", "file", e.Filename, "err", err)
		}
	}
}

// watchers are the grants that wait for a download, whoever's request makes it.
type watchers struct {
	mu     sync.Mutex
	grants map[string][]*Grant
}

// add has gr told of a download until remove is called.
func (w *watchers) add(key string, gr *Grant) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.grants == nil {
		w.grants = map[string][]*Grant{}
	}
	w.grants[key] = append(w.grants[key], gr)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		left := slices.Clone(w.grants[key])
		i := slices.Index(left, gr)
		if left = slices.Delete(left, i, i+1); len(left) == 0 {
			delete(w.grants, key)
			return
		}
		w.grants[key] = left
	}
}

func (w *watchers) tell(key, stage string, done, total int64) {
	w.mu.Lock()
	grants := slices.Compact(slices.Clone(w.grants[key]))
	w.mu.Unlock()
	for _, gr := range grants {
		gr.tell(stage, done, total)
	}
}
