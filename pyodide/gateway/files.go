package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"rillbox/cache"
	"rillbox/cache/egress"
)

// WheelKind is the cache's kind of files of packages; the key is the file's SHA-256.
const WheelKind = "wheel"

const (
	metadataKind = "metadata"  // the key is the SHA-256
	urlKind      = "wheel-url" // the wheel that a URL gave; the key is the URL

	maxFile     = 512 << 20 // bytes of a wheel
	maxMetadata = 16 << 20  // bytes of a wheel's metadata
)

// blob returns the path of a verified file of the given kind, from the cache or else
// downloaded.
func (g *Gateway) blob(ctx context.Context, gr *Grant, kind string, limit int64, e entry) (path string, hit bool, err error) {
	defer g.watch(e.SHA256, gr)()
	get := func() (string, bool, error) {
		if gr.noFetch() && !(g.isMirrored(e) && !gr.policy.NoFetch) || e.Source == Built {
			path, err := g.cache.Get(kind, e.SHA256)
			return path, err == nil, err
		}
		return g.cache.GetOrDownload(ctx, kind, e.SHA256, func(path string) error {
			return g.download(ctx, gr, e, e.SHA256, limit, path)
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

// Cached returns the path of a verified file of an install plan, and an error that
// wraps cache.ErrMiss when the cache does not hold it.
func (g *Gateway) Cached(f File) (path string, err error) {
	path, err = g.cache.Get(WheelKind, f.SHA256)
	if err == nil && filepath.Base(path) != f.SHA256 {
		return "", fmt.Errorf("%s in the cache is another file than its key says", f.Filename)
	}
	return path, err
}

// download fetches a file to path and checks its hash. Progress goes to the watchers of
// key.
func (g *Gateway) download(ctx context.Context, gr *Grant, e entry, key string, limit int64, path string) error {
	if g.isMirrored(e) {
		return g.copyMirrored(e, limit, path)
	}
	if e.route.Host == nil {
		e.route.Host = gr.policy.CheckLink
	}
	src := egress.Source{URL: e.link.String(), Route: e.route, SHA256: e.SHA256, MaxBytes: limit, NoResume: e.SHA256 == ""}
	return g.network.Download(ctx, src, path, func(done, total int64) {
		if total == 0 {
			total = e.Size
		}
		g.tell(key, e.stage(), done, total)
	})
}

// isMirrored says that a file is taken from the operator's directory.
func (g *Gateway) isMirrored(e entry) bool { return g.mirrored != "" && e.Source == "pyodide" }

// copyMirrored copies a file of the operator's directory to path and checks its hash.
func (g *Gateway) copyMirrored(e entry, limit int64, path string) error {
	err := CopyMirrored(filepath.Join(g.mirrored, e.Filename), path, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it is not in %s, the mirror of Pyodide's CDN", g.mirrored)
	}
	if err != nil {
		return err
	}
	digest, _, err := cache.HashFile(path)
	if err == nil && digest != e.SHA256 {
		return &egress.MismatchError{Host: g.mirrored, Got: digest, Want: e.SHA256}
	}
	return err
}

// CopyMirrored copies a file of at most limit bytes from a directory of the operator's.
func CopyMirrored(from, to string, limit int64) error {
	in, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would keep us waiting
	if err != nil {
		return err
	}
	defer in.Close()
	if st, err := in.Stat(); err != nil || !st.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is not a regular file", from))
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, limit+1))
	if n > limit {
		err = fmt.Errorf("%s has more than %d bytes", from, limit)
	}
	return errors.Join(err, out.Close())
}

// urlBlob returns the path of the wheel at a URL without a digest. Each URL is
// fetched once and never again, as Deno's https: imports are.
func (g *Gateway) urlBlob(ctx context.Context, gr *Grant, e entry) (path string, hit bool, err error) {
	if gr.noFetch() {
		path, err := g.cache.Get(urlKind, e.URL)
		return path, err == nil, err
	}
	defer g.watch(e.URL, gr)()
	path, hit, err = g.cache.GetOrDownload(ctx, urlKind, e.URL, func(path string) error {
		return g.download(ctx, gr, e, e.URL, maxFile, path)
	})
	if err != nil || hit {
		return path, hit, err
	}
	// An install plan will name it by its digest.
	f, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	path, err = g.cache.Put(ctx, WheelKind, filepath.Base(path), f)
	return path, false, err
}

// stage describes the download for progress.
func (e *entry) stage() string { return strings.TrimSpace("fetching " + e.Name + " " + e.Version) }

// watcher is a grant that waits for a download, whichever request started it.
type watcher struct {
	grant *Grant
	key   string
}

// watch passes the progress of a download to gr until stop is called.
func (g *Gateway) watch(key string, gr *Grant) (stop func()) {
	w := &watcher{gr, key}
	g.watchers.Store(w, nil)
	return func() { g.watchers.Delete(w) }
}

func (g *Gateway) tell(key, stage string, done, total int64) {
	told := map[*Grant]bool{}
	for w := range g.watchers.Range {
		if w := w.(*watcher); w.key == key && !told[w.grant] {
			told[w.grant] = true
			w.grant.tell(stage, done, total)
		}
	}
}
