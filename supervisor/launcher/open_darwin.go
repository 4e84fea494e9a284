package launcher

import (
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

func openBelow(dir int, path string) (int, error) {
	return unix.Openat(dir, path, unix.O_EVTONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOFOLLOW_ANY, 0)
}
