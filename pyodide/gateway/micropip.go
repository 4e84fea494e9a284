package gateway

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"regexp"
)

// defaultIndex is how the pinned micropip names the index that it asks by itself.
var defaultIndex = regexp.MustCompile(`(?m)^PYPI_URL = "(https://[^"{}\\]+)"$`)

// DefaultIndexURL reads from micropip's wheel, the file micropipWheel, which
// index micropip asks by itself. It is what to use where pip is not configured.
func DefaultIndexURL(micropipWheel string) (string, error) {
	wheel, err := zip.OpenReader(micropipWheel)
	if err != nil {
		return "", fmt.Errorf("read micropip's default index from its wheel: %w", err)
	}
	defer wheel.Close()
	source, err := fs.ReadFile(wheel, "micropip/package_index.py")
	if err != nil {
		return "", fmt.Errorf("read micropip's default index from its wheel: %w", err)
	}
	found := defaultIndex.FindSubmatch(source)
	if found == nil {
		return "", fmt.Errorf("%s names no default package index: configure one for pip (pip config set global.index-url …)", micropipWheel)
	}
	return string(found[1]), nil
}
