package workspace

import (
	"errors"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// maxWalk is how many entries one call looks at (25 ms, at 2.3 µs each); where
// Options.Files is more, counting goes on until there.
const maxWalk = 10_000

// Listing is what List found, sorted by name.
type Listing struct {
	Files []File
	// Incomplete says that not all was looked at: the workspace holds more than
	// List visits, nests too deep, or has folders that cannot be read.
	Incomplete bool
	// Unnamed counts entries whose names are not UTF-8 and cannot be told.
	Unnamed int
}

// List lists what matches a glob: path.Match's patterns, and ** for any number
// of folders. An empty glob lists all, and one without wildcards that names a
// folder lists all in it. Links are listed and not followed.
func (d *Dir) List(glob string) (Listing, error) {
	p, err := parseGlob(glob)
	if err != nil {
		return Listing{}, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	plain, ok := p.plain()
	if ok {
		info, err := d.root.Lstat(plain)
		if err != nil {
			return Listing{}, failed("list", glob, err)
		}
		if info.IsDir() {
			p = append(p, "**")
		}
	}
	var l Listing
	complete, err := d.walk(func(name string, stat *unix.Stat_t) bool {
		if !utf8.ValidString(name) {
			l.Unnamed++
			return false
		}
		f := fileOf(name, stat)
		if p.matches(name) && !(f.Kind == Folder && name == plain) {
			l.Files = append(l.Files, f)
		}
		return p.mayHold(name)
	})
	if err != nil {
		return Listing{}, failed("list", glob, err)
	}
	slices.SortFunc(l.Files, byName)
	l.Incomplete = !complete
	return l, nil
}

// Usage counts what the workspace holds, up to a bound.
func (d *Dir) Usage() (Usage, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	u, err := d.usage()
	return u, failed("count", ".", err)
}

func (d *Dir) usage() (Usage, error) {
	w := walk{most: max(maxWalk, d.options.Files+1), depth: maxMeasured}
	if d.options.Bytes > 0 { // a guest's
		w.rights = toLook
	}
	err := d.start(&w)
	return w.Usage, err
}

// start begins a walk at the top, whose path nobody else changes.
func (d *Dir) start(w *walk) error {
	if w.rights != 0 {
		if top, err := openTop(d.root.Name()); err == nil { // else it can't be opened, which says so
			top.Close()
		}
	}
	top, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return w.folder(top, "", 0)
}

// walk calls visit as walk.visit, for as much as one call looks at, and says whether
// that was all.
func (d *Dir) walk(visit func(name string, stat *unix.Stat_t) (into bool)) (complete bool, err error) {
	w := walk{most: maxWalk, depth: maxDepth, visit: visit}
	err = d.start(&w)
	return !w.More, err
}

// Usage is how much a workspace holds.
type Usage struct {
	// Bytes are those of regular files, by their sizes (holes included); Files
	// counts all entries, folders too.
	Bytes, Files int64
	// More says that it holds more than was counted; Deep, that this is because its
	// folders nest deeper than is looked, of which each costs an open file.
	More, Deep bool
}

// maxMeasured is how deep folders are measured.
const maxMeasured = 256

// Measure counts what a directory of a guest's holds, save what is in the folder
// except at its top, and stops soon after most entries.
func Measure(path, except string, most int64) (Usage, error) {
	w := walk{most: most + 1, depth: maxMeasured, except: except, rights: toLook}
	top, err := openTop(path)
	if err == nil {
		err = w.folder(top, "", 0)
	}
	return w.Usage, err
}

// Reopen gives us back the rights to all folders of a guest's directory, of which it
// may have closed some to us.
func Reopen(path string) error {
	w := walk{most: math.MaxInt32, depth: math.MaxInt, rights: toRemove}
	top, err := openTop(path)
	if err != nil {
		return err
	}
	return w.folder(top, "", 0)
}

// openTop opens a directory of a guest's, which may have closed it.
func openTop(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&toRemove != toRemove {
		err = os.Chmod(path, toRemove) // nothing else comes to this place
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// walk is one look at all that is in a directory, in which a guest may be at work.
type walk struct {
	Usage // so far
	most  int64
	depth int // how deep folders are looked into
	// except is a folder at the top that is left out.
	except string
	// rights are what we need of a folder: a guest may have taken them from us. They are
	// given back, toLook only while the folder is looked into.
	rights uint32
	// visit, if any, gets each entry's path and what lstat says of it, a folder before
	// what is in it, and says whether to look into a folder.
	visit func(name string, stat *unix.Stat_t) (into bool)
}

// The owner's rights to a folder.
const (
	toLook   = 0o500
	toRemove = 0o700
)

// folder looks at what is in a folder, and closes it. Each folder is opened from the one
// that holds it, since a guest can make paths longer than the system takes, and
// nothing that has come to its place is waited for or followed.
func (w *walk) folder(folder *os.File, name string, depth int) error {
	defer folder.Close()
	names, err := folder.Readdirnames(int(min(w.most-w.Files, math.MaxInt32)) + 2) // one too many, and except
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	at := int(folder.Fd())
	for _, base := range names {
		if depth == 0 && base == w.except {
			continue
		}
		if w.Files == w.most {
			w.More = true
			return nil
		}
		var stat unix.Stat_t
		switch err := unix.Fstatat(at, base, &stat, unix.AT_SYMLINK_NOFOLLOW); {
		case err == unix.ENOENT:
			continue // it was removed since
		case err != nil:
			w.More = true
		}
		w.Files++
		inner := base
		if w.visit != nil {
			inner = path.Join(name, base)
			if err == nil && !w.visit(inner, &stat) {
				continue
			}
		}
		switch stat.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			if w.Bytes += stat.Size; w.Bytes < 0 { // sparse files can claim anything
				w.Bytes = math.MaxInt64
			}
		case unix.S_IFDIR:
			if depth+1 == w.depth {
				w.More, w.Deep = true, true
			} else if err := w.enter(at, base, &stat, inner, depth+1); err != nil && err != unix.ENOENT {
				w.More = true // the guest may have locked it, or put something else there
			}
		}
	}
	return nil
}

// enter looks into a folder in an open one.
func (w *walk) enter(at int, base string, stat *unix.Stat_t, name string, depth int) error {
	if mode := uint32(stat.Mode); mode&w.rights != w.rights {
		if err := chmodAt(at, base, toRemove); err != nil {
			return err
		}
		if w.rights == toLook {
			defer func() { _ = chmodAt(at, base, mode&0o7777) }()
		}
	}
	fd, err := unix.Openat(at, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return w.folder(os.NewFile(uintptr(fd), base), name, depth)
}
