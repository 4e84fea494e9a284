package launcher

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Open opens what path leads to, links followed, to be named and mounted and
// nothing else, and gives its real path.
func Open(path string) (file *os.File, real string, err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	file = os.NewFile(uintptr(fd), path)
	if real, err = pathOf(file); err != nil {
		_ = file.Close()
		return nil, "", err
	}
	return file, real, nil
}

// OpenBelow opens a path below a directory that Open has opened. A link on the
// way, which somebody may have made since, is an error.
func OpenBelow(dir *os.File, path string) (*os.File, error) {
	fd, err := unix.Openat2(int(dir.Fd()), path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	name := dir.Name() + "/" + path
	if err == unix.ELOOP {
		return nil, fmt.Errorf("%s is, or is behind, a symbolic link, which is not followed inside of a grant: name what it leads to", name)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
