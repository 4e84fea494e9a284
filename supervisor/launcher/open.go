package launcher

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenBelow opens a path below a directory that Open has opened. A link on the
// way, which somebody may have made since, is an error.
func OpenBelow(dir *os.File, path string) (*os.File, error) {
	fd, err := openBelow(int(dir.Fd()), path)
	name := dir.Name() + "/" + path
	if err == unix.ELOOP {
		return nil, fmt.Errorf("%s is, or is behind, a symbolic link, which is not followed inside of a grant: name what it leads to", name)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
