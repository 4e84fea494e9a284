package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Info summarizes what the cache holds.
type Info struct {
	Dir   string
	Bytes int64               // of all entries; a blob of two names counts once
	Kinds map[string]KindInfo // by kind
	// Unknown counts Deno's modules of an earlier version, which nothing uses.
	Unknown int
}

// KindInfo counts the entries of one kind.
type KindInfo struct {
	Count int
	Bytes int64
}

// Info summarizes what the cache holds, without verifying it.
func (c *Cache) Info() (Info, error) {
	records, err := c.denoRecords()
	if err != nil {
		return Info{}, err
	}
	unlock, err := c.lockStore(false)
	if err != nil {
		return Info{}, err
	}
	defer unlock()
	entries, _, err := c.entries()
	if err != nil {
		return Info{}, fmt.Errorf("look through the cache in %s: %w", c.dir, err)
	}
	info := Info{Dir: c.dir, Kinds: map[string]KindInfo{}}
	counted := map[string]bool{}
	for _, e := range entries {
		k := info.Kinds[e.kind]
		k.Count++
		k.Bytes += e.size
		info.Kinds[e.kind] = k
		if e.blob == "" || !counted[e.blob] {
			info.Bytes += e.size
		}
		counted[e.blob] = true
	}
	parts, err := denoParts(c.DenoDir())
	if err != nil {
		return Info{}, fmt.Errorf("look through the cache in %s: %w", c.dir, err)
	}
	for _, path := range parts {
		if _, known := records[path]; !known {
			info.Unknown++
		}
	}
	return info, nil
}

// Report is what Verify found.
type Report struct {
	Checked int      // entries
	Corrupt []string // "kind key: why", removed
	Left    []string // those that could not be removed, with the reason
	Unknown int      // modules that an earlier version fetched, which nothing uses
}

// Verify hashes every entry again, and removes those that are corrupt or can't be
// read; they are made or fetched again when they are next wanted. Deno's modules are
// compared with their records.
func (c *Cache) Verify(ctx context.Context) (Report, error) {
	var r Report
	found := func(name string, why, removed error) {
		line := name + ": " + why.Error()
		if removed != nil {
			r.Left = append(r.Left, line+"; and it can't be removed: "+removed.Error())
			return
		}
		r.Corrupt = append(r.Corrupt, line)
	}
	err := c.each(func(kind, path string, read reader) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, err := verify(path, read)
		if errors.Is(err, fs.ErrNotExist) { // trimmed meanwhile
			return nil
		}
		r.Checked++
		if err != nil {
			found(fmt.Sprintf("%s %q", kind, e.key), err, c.drop(path, read, func(error) bool { return true }))
		}
		return nil
	})
	if err == nil {
		err = c.verifyDeno(ctx, &r, found)
	}
	if err != nil {
		return r, fmt.Errorf("verify the cache in %s: %w", c.dir, err)
	}
	return r, nil
}
