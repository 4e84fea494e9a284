//go:build !windows

package deno

import (
	"context"
	"errors"

	"rillbox/cache"
	"rillbox/deno/binary"
	"rillbox/deno/modules"
)

// Portable are the cache's kinds of what programs need that were fetched, and not made here.
var Portable = []string{"runtime", "modules"}

// PortableKey is the key of an entry in an archive: nothing in it comes from a secret of the
// configuration.
func (e *Engine) PortableKey(kind, key string) string { return modules.PortableKey(kind, key) }

// Admit judges an entry of an archive of the cache's: store stores it, and is nil for one
// that is left out, of which note says why. The error is cache.ErrNotPortable for what is
// none of the engine's.
func (e *Engine) Admit(a *cache.Archive, p cache.Portable) (store func(context.Context) error, note string, err error) {
	if note, err = binary.Admit(p); err != nil || note != "" {
		if errors.Is(err, cache.ErrNotPortable) {
			return e.planner.Admit(a, p)
		}
		return nil, note, err
	}
	return func(ctx context.Context) error {
		_, _, err := e.options.Cache.Tree(ctx, p.Kind, p.Key, func(_ context.Context, dir string) error { return a.Fill(p, dir) })
		return err
	}, "", nil
}
