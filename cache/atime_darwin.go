package cache

import (
	"io/fs"
	"syscall"
	"time"
)

// accessTime is when a file was last read, as far as the file system records it.
func accessTime(st fs.FileInfo) time.Time {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Atimespec.Unix())
	}
	return time.Time{}
}
