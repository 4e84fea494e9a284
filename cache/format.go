package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// format is the version of the layout in the package comment, and of the content that
// the engines store. It is raised when another version of Rillbox would misread what
// this one writes. That is rare, as keys name what an entry is made of: an entry that is
// made otherwise has another key.
const format = 1

const formatFile = "format"

// checkFormat refuses a cache that a later version wrote, before changing anything in
// it. earlier reports a cache of the time before there was a format file.
func (c *Cache) checkFormat() (earlier bool, err error) {
	text, err := os.ReadFile(filepath.Join(c.dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		_, err := os.Stat(filepath.Join(c.dir, storeLock)) // nothing was ever kept without it
		return err == nil, nil
	}
	if err != nil {
		return false, err
	}
	number := strings.TrimSpace(string(text))
	if n, err := strconv.Atoi(number); err != nil || n > format {
		return false, fmt.Errorf("a later version of Rillbox wrote it, in format %.40q, and this version knows up to %d: use that version for it", number, format)
	}
	return false, nil
}

// writeFormat creates the format file if there is none.
func (c *Cache) writeFormat() error {
	path := filepath.Join(c.dir, formatFile)
	if _, err := os.Stat(path); err == nil { // there is no other yet
		return nil
	}
	tmp, err := c.tempDir("format-")
	if err != nil {
		return err
	}
	defer removeAll(tmp)
	made := filepath.Join(tmp, formatFile)
	if err := sealNew(made, fmt.Appendln(nil, format), 0o600); err != nil {
		return err
	}
	return rename(made, path)
}
