package workspace

import "golang.org/x/sys/unix"

// chmodAt sets the mode of a folder in an open one; no link is followed.
func chmodAt(folder int, name string, mode uint32) error {
	return unix.Fchmodat(folder, name, mode, unix.AT_SYMLINK_NOFOLLOW)
}
