package launcher

import (
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

func openBelow(dir int, path string) (int, error) {
	return unix.Openat2(dir, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}
