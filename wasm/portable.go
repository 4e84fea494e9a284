//go:build !windows

package wasm

import (
	"context"
	"errors"
	"fmt"

	"rillbox/cache"
)

// Portable are the cache's kinds of what programs need that were fetched, and not made here.
var Portable = []string{partKind}

// PortableKey is the key of an entry in an archive.
func (e *Engine) PortableKey(_, key string) string { return key }

// Admit judges an entry of an archive of the cache's: store stores it, and is nil for one
// that is left out, of which note says why. The error is cache.ErrNotPortable for what is
// none of the engine's.
func (e *Engine) Admit(a *cache.Archive, p cache.Portable) (store func(context.Context) error, note string, err error) {
	if p.Kind != partKind || !p.Tree {
		return nil, "", cache.ErrNotPortable
	}
	var pinned part
	found := false
	for name, candidate := range parts {
		if candidate.key(name) == p.Key {
			pinned, found = candidate, true
		}
	}
	if !found {
		return nil, fmt.Sprintf("%.60q is left out: this version of Rillbox needs another", p.Key), nil
	}
	same := len(p.Files) == len(pinned.Files)
	for _, f := range p.Files {
		same = same && f.SHA256 == pinned.Files[f.Path]
	}
	if !same {
		return nil, "", errors.New("it is not the pinned package")
	}
	return func(ctx context.Context) error {
		_, _, err := e.o.Cache.Tree(ctx, p.Kind, p.Key, func(_ context.Context, dir string) error { return a.Fill(p, dir) })
		return err
	}, "", nil
}
