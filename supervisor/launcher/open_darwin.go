package launcher

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Open opens what path leads to, links followed, to be named and nothing else,
// and gives its real path.
func Open(path string) (file *os.File, real string, err error) {
	if real, err = filepath.EvalSymlinks(path); err != nil {
		return nil, "", err
	}
	fd, err := unix.Open(real, unix.O_EVTONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), real, nil
}

// OpenBelow opens a path below a directory that Open has opened. A link on the
// way, which somebody may have made since, is an error.
func OpenBelow(dir *os.File, path string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), path, unix.O_EVTONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOFOLLOW_ANY, 0)
	name := dir.Name() + "/" + path
	if err == unix.ELOOP {
		return nil, fmt.Errorf("%s is, or is behind, a symbolic link, which is not followed inside of a grant: name what it leads to", name)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
