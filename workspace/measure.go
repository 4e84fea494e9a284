package workspace

import (
	"errors"
	"io"
	"math"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

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
