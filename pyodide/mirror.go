package pyodide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"rillbox/cache"
	"rillbox/cache/egress"
	"rillbox/pyodide/gateway"
)

// readMirror reads Options.Mirror: a URL, which ends in a slash, or a directory, whose
// files are then those of the CDN itself.
func readMirror(mirror string) (address, dir string, err error) {
	mirror = cmp.Or(mirror, DefaultCDN)
	scheme, _, isURL := strings.Cut(mirror, "://")
	switch {
	case isURL && (scheme == "https" || scheme == "http"):
		return strings.TrimRight(mirror, "/") + "/", "", nil
	case isURL && scheme == "file":
		u, parseErr := url.Parse(mirror)
		if parseErr != nil || u.Host != "" && u.Host != "localhost" {
			return "", "", fmt.Errorf("the mirror of Pyodide's CDN, %q, is not the URL of a directory of this machine", mirror)
		}
		mirror = u.Path
	case isURL:
		return "", "", errors.New("the mirror of Pyodide's CDN is neither a directory nor an http, https or file URL")
	}
	if dir, err = filepath.Abs(mirror); err != nil {
		return "", "", fmt.Errorf("the mirror of Pyodide's CDN: %w", err)
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", fmt.Errorf("there is no directory %s, which is to be the mirror of Pyodide's CDN", dir)
	case err != nil:
		return "", "", fmt.Errorf("the mirror of Pyodide's CDN: %w", err)
	case !info.IsDir():
		return "", "", fmt.Errorf("%s, which is to be the mirror of Pyodide's CDN, is not a directory", dir)
	}
	return DefaultCDN, dir, nil
}

// mirror is the operator's mirror as an origin of the files with these names; none if the
// operator names none.
func (o LocateOptions) mirror(names ...string) ([]cache.Origin, error) {
	if o.Mirror == "" {
		return nil, nil
	}
	address, dir, err := readMirror(o.Mirror)
	if err != nil {
		return nil, err
	}
	return []cache.Origin{{Name: "the mirror of Pyodide's CDN", Local: dir != "", Fetch: func(ctx context.Context, to string, progress func(done, total int64)) error {
		for _, name := range names {
			var err error
			if dir != "" {
				err = gateway.CopyMirrored(filepath.Join(dir, name), filepath.Join(to, name), maxCore)
			} else {
				err = o.Cache.Download(ctx, egress.Source{URL: address + name, MaxBytes: maxCore}, filepath.Join(to, name), progress)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}}, nil
}
