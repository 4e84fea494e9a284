package launcher

import "golang.org/x/sys/unix"

// closeDescriptors marks every descriptor from first on to be closed by execve:
// those that we inherited are none of the child's.
func closeDescriptors(first uint) error {
	return unix.CloseRange(first, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
}
