//go:build !windows

package wasm

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"rillbox/cache"
	"rillbox/cache/egress"
)

// part is an npm package, of which a language needs some files. scripts/parts writes
// parts.json.
type part struct {
	Version string `json:"version"`
	SHA512  string `json:"sha512"` // of the tarball, in hex
	Size    int64  `json:"size"`   // of the tarball, in bytes
	License string `json:"license"`
	// Files are those that are needed, with their SHA-256.
	Files map[string]string `json:"files"`
}

//go:embed parts.json
var partsJSON []byte

var parts = func() (all map[string]part) {
	if err := json.Unmarshal(partsJSON, &all); err != nil {
		panic(err) // it is ours
	}
	return all
}()

// partKind is the cache's kind of parts.
const partKind = "part"

// maxPart is how large a part's tarball may be unpacked, in bytes; the largest has 140 MB.
const maxPart = 400 << 20

// key is the cache's: what a part holds is decided by its tarball and the list of its files.
func (p part) key(name string) string {
	hash := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(p.Files)) {
		fmt.Fprintln(hash, file, p.Files[file])
	}
	return fmt.Sprintf("%s@%s %s %x", name, p.Version, p.SHA512[:16], hash.Sum(nil)[:16])
}

// part gives the directory of a part, fetched if need be.
func (e *Engine) part(ctx context.Context, name string, tell func(stage string, done, total int64)) (string, error) {
	p := parts[name]
	dir, _, err := e.o.Cache.Tree(ctx, partKind, p.key(name), func(ctx context.Context, dir string) error {
		files := map[string][]string{}
		for file, digest := range p.Files {
			files[file] = []string{digest}
		}
		return e.o.Cache.Fetch(ctx, cache.Pinned{
			Name: fmt.Sprintf("%s %s (%.1f MB)", name, p.Version, float64(p.Size)/1e6), Files: files,
			From: []cache.Origin{e.o.Cache.NPM(name, p.Version, egress.Source{SHA512: p.SHA512, MaxBytes: maxPart})},
		}, dir, tell)
	})
	return dir, err
}
