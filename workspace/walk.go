package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"
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
	complete, err := d.walk(maxWalk, func(name string, info fs.FileInfo) bool {
		if !utf8.ValidString(name) {
			l.Unnamed++
			return false
		}
		if p.matches(name) && !(info.IsDir() && name == plain) {
			l.Files = append(l.Files, fileOf(name, info))
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

func (d *Dir) usage() (u Usage, err error) {
	closed := leave
	if d.options.Bytes > 0 { // a guest's
		closed = look
		d.reopenTop()
	}
	top, err := d.root.Open(".")
	if err != nil {
		return u, err
	}
	return u, u.add(top, "", max(maxWalk, d.options.Files+1), maxMeasured, closed)
}

// reopenTop gives us back the right to look into the workspace itself, whose path
// nobody else changes.
func (d *Dir) reopenTop() {
	if top, err := openTop(d.root.Name()); err == nil { // else it can't be listed, which says so
		top.Close()
	}
}

// walk calls visit with each entry's path and what lstat says of it, folders
// before what is in them, and goes into those where visit says so. It looks at
// most entries, maxDepth folders deep, and says whether that was all.
//
// A folder is opened by its path from the root, and must be the one that was
// seen: a link that took its place since is not followed. One folder is open at
// a time, however deep they nest.
func (d *Dir) walk(most int, visit func(name string, info fs.FileInfo) bool) (complete bool, err error) {
	type folder struct {
		name string
		info fs.FileInfo // as seen; nil for the root
	}
	complete = true
	todo := []folder{{name: "."}}
	for len(todo) > 0 {
		now := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		err := d.readFolder(now.name, now.info, func(entries []os.DirEntry) bool {
			for _, entry := range entries {
				info, err := entry.Info()
				if err != nil {
					complete = complete && errors.Is(err, fs.ErrNotExist)
					continue
				}
				if most--; most < 0 {
					return false
				}
				name := path.Join(now.name, entry.Name())
				if !visit(name, info) || !info.IsDir() {
					continue
				}
				if strings.Count(name, "/")+1 >= maxDepth {
					complete = false
					continue
				}
				todo = append(todo, folder{name, info})
			}
			return true
		})
		switch {
		case most < 0:
			return false, nil
		case err == nil, errors.Is(err, fs.ErrNotExist) && now.info != nil: // it was removed since
		case now.info == nil:
			return false, err
		default: // the guest may have locked it, or put something else there
			complete = false
		}
	}
	return complete, nil
}

// errSwapped says that another thing is where a folder was.
var errSwapped = errors.New("it was replaced")

// readFolder gives each the entries of a folder, some hundreds at a time.
func (d *Dir) readFolder(name string, seen fs.FileInfo, each func([]os.DirEntry) bool) error {
	file, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || seen != nil && !os.SameFile(info, seen) {
		return errors.Join(errSwapped, err)
	}
	for {
		// Of a folder that was opened in a root, ReadDir gives entries whose
		// Info is fstatat's from the open folder, not a path's.
		entries, err := file.ReadDir(256)
		if len(entries) == 0 || !each(entries) {
			if err == nil || errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
