package cache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Deno fetches into a directory of its own (DENO_DIR). It checks downloads against
// the registry's signatures, and trusts its directory from then on. So each fetch gets
// a new directory, the stage, with links to what earlier fetches brought. What is new
// in it afterwards came from the network: its digests are recorded, and it is moved to
// where the next stage links to. What an earlier fetch brought is compared with its
// record before it is used.
//
// A part is a unit that is fetched at once and never changed: the directory of a
// package's version, a registry's document about a package, the content of a URL.

// denoKind is the kind of Deno's modules in Info and Trim.
const denoKind = "deno-module"

// recordKind and recordKey name the blob with the records.
const (
	recordKind = "deno-record"
	recordKey  = "modules"
)

// denoRecord describes a part as it was fetched.
type denoRecord struct {
	Digest string `json:"digest"`
	// Integrity is the hash of a package's archive that the registry signed.
	Integrity string `json:"integrity,omitempty"`
	// Stamp detects changes, without reading all of a part, in what Deno reads before
	// the digest is checked.
	Stamp string `json:"stamp"`
}

// ErrChanged means that a part differs from its record.
var ErrChanged = errors.New("changed since it was fetched")

// DenoStage is the DENO_DIR of one fetch.
type DenoStage struct {
	c     *Cache
	dir   string
	known map[string]denoRecord // linked, by path below dir
	fresh map[string]denoRecord // taken, and not linked
	bases []string              // dir and Deno's directory, as named and in truth
}

// StageDeno fills dir, an empty directory, with links to the recorded parts.
func (c *Cache) StageDeno(dir string) (*DenoStage, error) {
	known, err := c.denoRecords()
	if err != nil {
		return nil, err
	}
	s := &DenoStage{c: c, dir: dir, known: known, fresh: map[string]denoRecord{}}
	for _, base := range []string{dir, c.DenoDir()} {
		real, err := filepath.EvalSymlinks(base)
		if err != nil {
			return nil, fmt.Errorf("make a directory for Deno: %w", err)
		}
		s.bases = append(s.bases, base, real)
	}
	for path, record := range known {
		from, to := c.denoPart(path), filepath.Join(dir, filepath.FromSlash(path))
		if !filepath.IsLocal(filepath.FromSlash(path)) || stampOf(from) != record.Stamp {
			delete(known, path)
			continue
		}
		err := os.MkdirAll(filepath.Dir(to), 0o700)
		if err == nil {
			err = os.Symlink(from, to)
		}
		if err != nil {
			return nil, fmt.Errorf("make a directory for Deno: %w", err)
		}
	}
	return s, nil
}

// Rel returns the path of a part below the stage. full is as Deno names it, with links
// followed.
func (s *DenoStage) Rel(full string) (path string, ok bool) {
	for _, base := range s.bases {
		if rel, err := filepath.Rel(base, full); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// Integrity returns what the registry signed of a package that an earlier fetch brought.
func (s *DenoStage) Integrity(path string) (integrity string, known bool) {
	record, known := s.known[path]
	return record.Integrity, known
}

// Take links or copies a part to the path to, if it has this integrity and is as
// recorded; else the error is ErrChanged. It wraps fs.ErrNotExist if there is no such
// part.
func (s *DenoStage) Take(path, integrity, to string) error {
	from, err := filepath.EvalSymlinks(filepath.Join(s.dir, filepath.FromSlash(path)))
	if err != nil {
		return err
	}
	record, known := s.known[path]
	err = linkTree(to, from)
	digest := ""
	if err == nil {
		digest, err = digestOf(to)
	}
	switch {
	case known && (errors.Is(err, errNotRegular) || err == nil && (record.Digest != digest || record.Integrity != integrity)):
		return errors.Join(ErrChanged, removeAll(to))
	case err == nil && !known:
		s.fresh[path] = denoRecord{digest, integrity, stampOf(from)}
	}
	return err
}

var errNotRegular = errors.New("not a regular file") // Deno makes none

// Forget removes parts from the next stages.
func (s *DenoStage) Forget(ctx context.Context, paths []string) error {
	return s.c.changeRecords(ctx, func(records map[string]denoRecord) error {
		for _, path := range paths {
			if records[path] == s.known[path] { // another process may have a good one
				delete(records, path)
			}
		}
		return nil
	})
}

// Keep moves the stage's new parts to where later stages find them.
func (s *DenoStage) Keep(ctx context.Context) error {
	parts, err := denoParts(s.dir)
	if err != nil {
		return err
	}
	discard, empty, err := s.c.trash()
	if err != nil {
		return err
	}
	defer empty()
	return s.c.changeRecords(ctx, func(records map[string]denoRecord) error {
		for _, path := range parts {
			from := filepath.Join(s.dir, filepath.FromSlash(path))
			if st, err := os.Lstat(from); err != nil || st.Mode()&fs.ModeSymlink != 0 {
				continue
			}
			record, taken := s.fresh[path]
			if !taken {
				if record.Digest, err = digestOf(from); err != nil {
					return err
				}
				record.Stamp = stampOf(from)
			}
			to := s.c.denoPart(path)
			if records[path] == record && stampOf(to) == record.Stamp {
				continue // another process was faster
			}
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return err
			}
			if err := discard(to); err != nil {
				return err
			}
			if err := os.Rename(from, to); err != nil {
				return err
			}
			records[path] = record
		}
		return nil
	})
}

func (c *Cache) denoPart(path string) string {
	return filepath.Join(c.DenoDir(), filepath.FromSlash(path))
}

func (c *Cache) denoRecords() (map[string]denoRecord, error) {
	records := map[string]denoRecord{}
	path, err := c.Get(recordKind, recordKey)
	if errors.Is(err, ErrMiss) {
		return records, nil
	}
	if err == nil {
		_, err = readJSON(path, &records)
	}
	if err != nil {
		return nil, fmt.Errorf("read what was fetched: %w", err)
	}
	return records, nil
}

// changeRecords is the only way to change the records and the parts.
func (c *Cache) changeRecords(ctx context.Context, change func(map[string]denoRecord) error) error {
	unlock, err := c.Lock(ctx, "deno-modules")
	if err != nil {
		return err
	}
	defer unlock()
	records, err := c.denoRecords()
	if err != nil {
		return err
	}
	before := maps.Clone(records)
	err = change(records)
	maps.DeleteFunc(records, func(path string, _ denoRecord) bool { return stampOf(c.denoPart(path)) == "" }) // trimmed
	if maps.Equal(before, records) {
		return err
	}
	text, encodeErr := json.Marshal(records)
	if err := errors.Join(err, encodeErr); err != nil {
		return err
	}
	_, err = c.Put(ctx, recordKind, recordKey, bytes.NewReader(text))
	return err
}

// verifyDeno compares all parts with their records, and removes those that changed.
// Parts without a record, which earlier versions fetched, are counted; nothing uses
// them.
func (c *Cache) verifyDeno(ctx context.Context, r *Report, found func(name string, why, removed error)) error {
	return c.changeRecords(ctx, func(records map[string]denoRecord) error {
		parts, err := denoParts(c.DenoDir())
		if err != nil {
			return err
		}
		for _, path := range parts {
			if err := ctx.Err(); err != nil {
				return err
			}
			record, known := records[path]
			if !known {
				r.Unknown++
				continue
			}
			r.Checked++
			digest, err := digestOf(c.denoPart(path))
			if err == nil && digest != record.Digest {
				err = ErrChanged
			}
			if err != nil {
				delete(records, path)
				found(denoKind+" "+path, err, removeAll(c.denoPart(path)))
			}
		}
		return nil
	})
}

// stampOf returns the stamp of a part's file, or of a package's package.json; it is
// empty if there is no part.
func stampOf(part string) string {
	st, err := os.Lstat(part)
	if err == nil && st.IsDir() {
		if st, err = os.Lstat(filepath.Join(part, "package.json")); err != nil {
			return "no package.json"
		}
	}
	if err != nil {
		return ""
	}
	return fmt.Sprint(st.Size(), st.ModTime().UnixNano())
}

// digestOf hashes a file, or a directory with all names, kinds and contents.
func digestOf(root string) (string, error) {
	h := sha256.New()
	err := walkBelow(root, func(rel, path string, entry fs.DirEntry) error {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v ", rel, entry.Type())
		if !entry.Type().IsRegular() {
			return nil
		}
		fmt.Fprintf(h, "%d ", info.Size())
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = copyWhole(h, file)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// linkTree is CopyTree by hard links, or copies where there can be none.
func linkTree(to, from string) error {
	return eachFile(to, from, func(to, from string) error {
		if os.Link(from, to) == nil {
			return nil
		}
		return CopyFile(to, from)
	})
}

// CopyTree makes a file or a directory at to that holds what is at from. It follows
// no links, and refuses what is neither a file nor a directory.
func CopyTree(to, from string) error { return eachFile(to, from, CopyFile) }

func eachFile(to, from string, do func(to, from string) error) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return walkBelow(from, func(rel, name string, entry fs.DirEntry) error {
		target := filepath.Join(to, rel)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o700)
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s: %w", name, errNotRegular)
		}
		return do(target, name)
	})
}

// CopyFile copies a file, by reference where the file system supports that.
func CopyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, st.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	_, err = copyWhole(out, in)
	return errors.Join(err, out.Close())
}

// npmVersion matches the name of the directory of a package's version.
var npmVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+_].*)?$`)

// denoParts lists the parts in a DENO_DIR. npm's are below the names of registry and
// package, each of one or several directories.
func denoParts(base string) ([]string, error) {
	var parts []string
	err := filepath.WalkDir(filepath.Join(base, "npm"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		version := npmVersion.MatchString(d.Name())
		if version || d.Name() == npmManifest {
			parts = append(parts, path)
		}
		if version && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	modules, err := filepath.Glob(filepath.Join(base, "remote", "*", "*", "*"))
	if err != nil {
		return nil, err
	}
	parts = append(parts, modules...)
	for i, part := range parts {
		if part, err = filepath.Rel(base, part); err != nil {
			return nil, err
		}
		parts[i] = filepath.ToSlash(part)
	}
	return parts, nil
}

// npmManifest is Deno's file for a registry's document about a package.
const npmManifest = "registry.json"

// denoPackages lists the packages in Deno's directory: one entry for each
// version of an npm package, one for each host of URL and jsr: modules.
func (c *Cache) denoPackages() ([]entry, error) {
	parts, err := denoParts(c.DenoDir())
	if err != nil {
		return nil, err
	}
	dirs := map[string]bool{}
	for _, part := range parts {
		if strings.HasPrefix(part, "remote/") {
			part = filepath.Dir(part)
		}
		if filepath.Base(part) != npmManifest {
			dirs[c.denoPart(part)] = true
		}
	}
	var entries []entry
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		e := entry{path: dir, kind: denoKind}
		if e.size, e.lastUse, err = measure(dir); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// measure returns the bytes in dir and when any of its files was last read or
// written. Of a file that others share by a hard link, each has its part.
func measure(dir string) (size int64, lastUse time.Time, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil && !d.IsDir() {
			err = unix.Lstat(path, &st)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		size += st.Size / max(int64(st.Nlink), 1)
		for _, t := range []unix.Timespec{st.Mtim, st.Atim} {
			if used := time.Unix(t.Unix()); used.After(lastUse) {
				lastUse = used
			}
		}
		return nil
	})
	return size, lastUse, err
}

// clearDeno empties Deno's directory, its compiled code included.
func (c *Cache) clearDeno(freed *Freed) error {
	size, _, err := measure(c.DenoDir())
	if err != nil {
		return err
	}
	if err := removeAll(c.DenoDir()); err != nil {
		return err
	}
	freed.Bytes += size
	return os.Mkdir(c.DenoDir(), 0o700)
}
