//go:build !windows

package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// checkDisk ends the child when its directories hold more than they may. A
// single file can't outgrow Limits.FileBytes: the kernel refuses that.
func (c *Child) checkDisk() {
	for _, dir := range []string{c.command.Dir, c.command.WorkDir} {
		if dir == "" || dir == c.command.WorkDir && !IsRunDir(dir) {
			continue // a directory of the operator's own, with limits of its own
		}
		files, bytes := measure(dir, c.command.OwnDir, c.limits.Files)
		switch {
		case files > c.limits.Files:
			c.Kill(Failed, fmt.Sprintf("the program's directory holds more than its %d files", c.limits.Files))
		case bytes > c.limits.Disk:
			c.Kill(Failed, fmt.Sprintf("the files in the program's directory have more than their %d MiB", c.limits.Disk>>20))
		}
	}
}

var errEnough = errors.New("enough was seen")

// measure counts what is in dir, save what is in except, and stops soon after limit files. What can't
// be read (it was just removed, or is locked by the guest against us) counts
// as a file without bytes.
func measure(dir, except string, limit int64) (files, bytes int64) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if path == dir {
			return nil
		}
		if path == except {
			return fs.SkipDir
		}
		files++
		if files > limit {
			return errEnough
		}
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return files, bytes
}
