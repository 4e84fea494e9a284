package sandbox

import (
	"fmt"
	"path/filepath"

	"rillbox/supervisor/job"
	"rillbox/workspace"
)

// checkDisk ends the child when its directories hold more than they may. A
// single file can't outgrow Limits.FileBytes: the kernel refuses that.
func (c *Child) checkDisk() {
	unnamed := c.unnamed()
	for _, dir := range []string{c.command.Dir, c.command.WorkDir} {
		if dir == "" || dir == c.command.WorkDir && !IsRunDir(dir) {
			continue // a directory of the operator's own, with limits of its own
		}
		except := ""
		if filepath.Dir(c.command.OwnDir) == dir {
			except = filepath.Base(c.command.OwnDir)
		}
		used, err := workspace.Measure(dir, except, c.limits.Files)
		if err != nil {
			continue // it has just been removed
		}
		switch {
		case used.Files > c.limits.Files:
			c.Kill(job.Failed, fmt.Sprintf("the program's directory holds more than its %d files", c.limits.Files))
		case used.Deep:
			c.Kill(job.Failed, "the folders in the program's directory nest too deep to be counted")
		case used.Bytes > c.limits.Disk-unnamed:
			c.Kill(job.Failed, fmt.Sprintf("the files in the program's directory have more than their %d MiB", c.limits.Disk>>20))
		}
	}
}
