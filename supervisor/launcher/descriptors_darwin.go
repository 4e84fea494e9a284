package launcher

import (
	"os"
	"strconv"
	"syscall"
)

// closeDescriptors marks every descriptor from first on to be closed by execve:
// those that we inherited are none of the child's.
func closeDescriptors(first uint) error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= int(first) {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
