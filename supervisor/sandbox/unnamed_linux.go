package sandbox

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// unnamed is how many bytes the files have that the child's processes have open and
// that have no name any more: they are on the disk until they are closed. They are
// looked for by the processes' descriptors alone.
func (c *Child) unnamed() (bytes int64) {
	type file struct{ device, inode uint64 }
	seen := map[file]bool{}
	for _, pid := range c.processes() {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		descriptors, err := os.ReadDir(dir)
		if err != nil {
			continue // it has just ended
		}
		for _, descriptor := range descriptors {
			path := dir + "/" + descriptor.Name()
			var stat syscall.Stat_t
			if syscall.Stat(path, &stat) != nil || stat.Nlink > 0 || stat.Mode&syscall.S_IFMT != syscall.S_IFREG {
				continue
			}
			key := file{uint64(stat.Dev), stat.Ino} // its type depends on the machine
			if target, err := os.Readlink(path); err != nil || strings.HasPrefix(target, "/memfd:") || seen[key] {
				continue // what is in memory is bounded as memory
			}
			seen[key] = true
			bytes += stat.Size
		}
	}
	return bytes
}
