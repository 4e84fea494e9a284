package deno

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// A view is a directory like Deno's own that holds what one plan names and
// nothing else. Where the policy restricts what may be used, a run sees a view:
// whatever path or specifier its program makes up, packages that others fetched
// are not there.

const viewKind = "modules2"

// view gives the plan's view from the cache, or makes it. It is a copy, because
// Deno takes as modules only what is below its own directory when links are
// followed.
func (e *Engine) view(ctx context.Context, p plan) (string, error) {
	described, err := json.Marshal([]any{p.Lock, p.Digests})
	if err != nil {
		return "", fmt.Errorf("describe an install plan: %w", err)
	}
	var paths []string
	for _, m := range p.manifests() {
		paths = append(paths, m.path)
	}
	for path := range p.Digests {
		paths = append(paths, path)
	}
	key := sha256.Sum256(described)
	dir, _, err := e.options.Cache.Tree(ctx, viewKind, "deno/"+hex.EncodeToString(key[:]), func(_ context.Context, dir string) error {
		for _, kind := range []string{"npm", "remote"} {
			if err := os.Mkdir(filepath.Join(dir, kind), 0o700); err != nil {
				return err
			}
		}
		for _, path := range paths {
			if err := copyInto(dir, e.options.Cache.DenoDir(), path); err != nil {
				return fmt.Errorf("copy %s for the programs that may use it: %w", path, err)
			}
		}
		return nil
	})
	return dir, err
}

// copyInto copies a file or directory, which may be missing.
func copyInto(to, from, path string) error {
	if !filepath.IsLocal(filepath.FromSlash(path)) {
		return errors.New("it is not below Deno's directory")
	}
	source, target := filepath.Join(from, path), filepath.Join(to, path)
	info, err := os.Lstat(source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(target, os.DirFS(source))
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	return os.WriteFile(target, text, 0o600)
}

// jsrManifest is a file, below Deno's directory, in which JSR tells of a package.
type jsrManifest struct {
	path string
	// lists is the version of the plan's where the file lists all that there
	// are, empty where it tells of one.
	lists string
}

// manifests are those of the packages of the plan; they are not modules, and Deno
// reads them all the same.
func (p plan) manifests() []jsrManifest {
	lock, err := readLock(p.Lock)
	base, urlErr := url.Parse(jsrURL())
	if err != nil || urlErr != nil {
		return nil
	}
	var manifests []jsrManifest
	for key := range lock.JSR {
		name := lockedName(key)
		version := strings.TrimPrefix(strings.TrimPrefix(key, name), "@")
		manifests = append(manifests,
			jsrManifest{cachedURL(base.JoinPath(name, "meta.json")), version},
			jsrManifest{path: cachedURL(base.JoinPath(name, version+"_meta.json"))})
	}
	return manifests
}

// cachedURL is where Deno keeps a URL's content: remote/{scheme}/{host}, with
// its port, and the SHA-256 of path and query.
func cachedURL(u *url.URL) string {
	host := u.Hostname()
	if u.Port() != "" {
		host += "_PORT" + u.Port()
	}
	rest := u.EscapedPath()
	if u.RawQuery != "" {
		rest += "?" + u.RawQuery
	}
	sum := sha256.Sum256([]byte(rest))
	return "remote/" + u.Scheme + "/" + host + "/" + hex.EncodeToString(sum[:])
}
