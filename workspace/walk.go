package workspace

import (
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
