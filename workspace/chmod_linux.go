package workspace

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// chmodAt sets the mode of a folder in an open one; no link is followed.
func chmodAt(folder int, name string, mode uint32) error {
	fd, err := unix.Openat(folder, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode) // fchmod takes no such descriptor
}
