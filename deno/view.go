package deno

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
)

// view gives the directory, like Deno's own, that holds what the plan names and
// nothing else, in its subdirectories npm and remote.
func (e *Engine) view(_ context.Context, p plan) (dir string, err error) {
	if !p.there() {
		return "", errors.New("the packages were removed from the cache: run again, and they are fetched again")
	}
	return p.dir, nil
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
