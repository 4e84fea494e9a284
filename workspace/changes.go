package workspace

import (
	"cmp"
	"slices"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Snapshot is what the regular files of a workspace were at one time: their
// identities, sizes and times, nothing of what is in them.
type Snapshot struct {
	files    map[string]unix.Stat_t
	complete bool
	taken    time.Time
}

// Changes are what became different since a Snapshot, by the guest's own claim:
// who can write a file can also set its time back, and hide a change of its own.
type Changes struct {
	// Created and Changed are regular files, sorted by name; Deleted are names.
	Created, Changed []File
	Deleted          []string
	// Incomplete says that the workspace holds more than was looked at.
	Incomplete bool
}

// Any says whether there is any change.
func (c Changes) Any() bool { return len(c.Created)+len(c.Changed)+len(c.Deleted) > 0 }

// Files are those created and changed, sorted by name.
func (c Changes) Files() []File {
	files := slices.Concat(c.Created, c.Changed)
	slices.SortFunc(files, byName)
	return files
}

// Snapshot looks at the workspace before a run, for Changes after it. It costs
// two to three microseconds a file.
func (d *Dir) Snapshot() (Snapshot, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	s := Snapshot{files: make(map[string]unix.Stat_t), taken: time.Now()}
	complete, err := d.walk(func(name string, stat *unix.Stat_t) bool {
		if stat.Mode&unix.S_IFMT == unix.S_IFREG && utf8.ValidString(name) {
			s.files[name] = *stat
		}
		return true
	})
	s.complete = complete
	return s, failed("list", ".", err)
}

// Changes says what is different from before. A file counts as changed when its
// identity, size or time of modification is another.
func (d *Dir) Changes(before Snapshot) (Changes, error) {
	now, err := d.Snapshot()
	if err != nil {
		return Changes{}, err
	}
	c := Changes{Incomplete: !before.complete || !now.complete}
	for name, stat := range now.files {
		f := fileOf(name, &stat)
		old, known := before.files[name]
		switch {
		case !known && !before.complete && f.Modified.Before(before.taken):
			// It was there, among what was not looked at.
		case !known:
			c.Created = append(c.Created, f)
		case old.Dev != stat.Dev, old.Ino != stat.Ino, old.Size != stat.Size, old.Mtim != stat.Mtim:
			c.Changed = append(c.Changed, f)
		}
	}
	for name := range before.files {
		if _, still := now.files[name]; !still && now.complete {
			c.Deleted = append(c.Deleted, name)
		}
	}
	slices.SortFunc(c.Created, byName)
	slices.SortFunc(c.Changed, byName)
	slices.Sort(c.Deleted)
	return c, nil
}

// Collect reads whole files, in the order given, as long as all of them
// together have no more than limit bytes, and says which were left out: those
// that are too large, and those that are gone or cannot be read.
func (d *Dir) Collect(files []File, limit int64) (got []Content, left []File) {
	for _, f := range files {
		// One byte more than fits tells whether all of it was read.
		c, err := d.Read(f.Name, 0, limit+1)
		if err != nil || int64(len(c.Data)) > limit || c.Rest() > 0 {
			left = append(left, f)
			continue
		}
		limit -= int64(len(c.Data))
		got = append(got, c)
	}
	return got, left
}

func byName(a, b File) int { return cmp.Compare(a.Name, b.Name) }
