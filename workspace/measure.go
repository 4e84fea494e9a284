package workspace

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"

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
func Measure(path, except string, most int64) (u Usage, err error) {
	top, err := openTop(path)
	if err != nil {
		return u, err
	}
	return u, u.add(top, except, most, maxMeasured, look)
}

// Reopen gives us back the right to look into all folders of a guest's directory, of
// which it may have closed some to us.
func Reopen(path string) error {
	top, err := openTop(path)
	if err != nil {
		return err
	}
	var u Usage
	return u.add(top, "", math.MaxInt32, math.MaxInt, reopen)
}

// openTop opens a directory of a guest's, which may have closed it.
func openTop(path string) (*os.File, error) {
	top, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		if err = os.Chmod(path, 0o700); err == nil { // nothing else comes to this place
			top, err = os.Open(path)
		}
	}
	return top, err
}

// closedFolders says what is done with folders of which a guest has taken its own
// right to look into them away: they are no guest's, and left; have that right while
// they are looked into; or from then on.
type closedFolders int

const (
	leave closedFolders = iota
	look
	reopen
)

// add counts what is in a folder, and closes it. Each folder is opened from the one
// that holds it, since a guest can make paths longer than the system takes, and
// nothing that has come to its place is waited for or followed.
func (u *Usage) add(folder *os.File, except string, most int64, depth int, closed closedFolders) error {
	defer folder.Close()
	if depth == 0 {
		u.More, u.Deep = true, true
		return nil
	}
	names, err := folder.Readdirnames(int(min(most, math.MaxInt32) - u.Files + 2)) // except is one
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	at := int(folder.Fd())
	for _, name := range names {
		if name == except {
			continue
		}
		if u.Files > most {
			u.More = true
			return nil
		}
		var stat unix.Stat_t
		if err := unix.Fstatat(at, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err == unix.ENOENT {
			continue // it was removed since
		}
		u.Files++
		switch stat.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			if u.Bytes += stat.Size; u.Bytes < 0 { // sparse files can claim anything
				u.Bytes = math.MaxInt64
			}
		case unix.S_IFDIR:
			const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
			inner, err := unix.Openat(at, name, flags, 0)
			opens := err == unix.EACCES && closed != leave
			if opens {
				if err = chmodAt(at, name, 0o700); err == nil {
					inner, err = unix.Openat(at, name, flags, 0)
				}
			}
			if err == nil {
				err = u.add(os.NewFile(uintptr(inner), name), "", most, depth-1, closed)
			}
			if opens && closed == look {
				_ = chmodAt(at, name, uint32(stat.Mode)&0o7777)
			}
			u.More = u.More || err != nil && err != unix.ENOENT
		}
	}
	u.More = u.More || u.Files > most
	return nil
}
