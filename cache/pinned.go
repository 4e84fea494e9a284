package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Pinned is something whose files are known before they are fetched: from wherever they
// come, they are those or refused.
type Pinned struct {
	// Name is what a person would call it: "Deno 2.9.6".
	Name string
	// Files are the hashes (sha256, in hex) that each file may have, by its name.
	Files map[string][]string
	// From is where the files may come from, the best first.
	From []Origin
}

// check compares the files in a directory with their hashes.
func (p Pinned) check(dir string) error {
	for name, want := range p.Files {
		path := filepath.Join(dir, name)
		st, err := os.Lstat(path)
		if err != nil {
			return fmt.Errorf("refused, as %s is missing: %w", name, err)
		}
		if !st.Mode().IsRegular() {
			return fmt.Errorf("refused, as %s is not a regular file (%v)", name, st.Mode().Type())
		}
		got, _, err := HashFile(path)
		if err != nil {
			return err
		}
		if !slices.Contains(want, got) {
			return fmt.Errorf("refused, as %s is not the pinned file: want sha256 %s, got %s", name, strings.Join(want, " or "), got)
		}
	}
	return nil
}
