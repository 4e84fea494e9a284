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

// format is the number of what the package comment tells, and of what the engines
// write into their entries. It is raised when another version of Rillbox would take
// what this one writes for something else. That is rare: an entry whose key says
// what it is made of is just not found by who makes it otherwise.
const format = 1

const formatFile = "format"

// checkFormat refuses a cache that a later version wrote, before anything in it is
// touched. It says whether the cache is of an earlier one, before there were numbers.
func (c *Cache) checkFormat() (earlier bool, err error) {
	text, err := os.ReadFile(filepath.Join(c.dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		_, err := os.Stat(filepath.Join(c.dir, storeLock)) // nothing was ever kept without it
		return err == nil, nil
	}
	if err != nil {
		return false, err
	}
	said := strings.TrimSpace(string(text))
	if n, err := strconv.Atoi(said); err != nil || n > format {
		return false, fmt.Errorf("a later version of Rillbox wrote it, in format %.40q, and this version knows up to %d: use that version for it", said, format)
	}
	return false, nil
}

// writeFormat says for other versions in which format the cache is from now on.
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
	if err := errors.Join(os.WriteFile(made, fmt.Appendln(nil, format), 0o600), sealPath(made, 0o600)); err != nil {
		return err
	}
	return rename(made, path)
}
