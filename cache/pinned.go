package cache

import (
	"fmt"
	"os"
	"path/filepath"
)

// Pinned are files that are known before they are fetched: the sha256, in hex,
// of each by its name.
type Pinned map[string]string

// Take moves the pinned files from one directory to another, of the same file
// system, if each is there with the pinned hash; else it takes none.
func (p Pinned) Take(from, to string) error {
	for name, want := range p {
		path := filepath.Join(from, name)
		st, err := os.Lstat(path)
		if err != nil {
			return fmt.Errorf("refused, as %s is missing: %w", name, err)
		}
		if !st.Mode().IsRegular() {
			return fmt.Errorf("refused, as %s is not a regular file (%v)", name, st.Mode().Type())
		}
		got, _, err := hashFile(path)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("refused, as %s is not the pinned file: want sha256 %s, got %s", name, want, got)
		}
	}
	for name := range p {
		if err := os.Rename(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}
