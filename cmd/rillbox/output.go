//go:build !windows

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rillbox/cmd/rillbox/terminal"
)

// checkOutput says why a file that is to be written at the end could not be.
func checkOutput(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("cannot write %s: it is not a regular file", path)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("cannot write %s: %s is not a directory", path, filepath.Dir(path))
	}
	return nil
}

// replaceFile puts what write writes in the place of a file, at once and whole, or leaves
// that as it is.
func replaceFile(path string, write func(io.Writer) error) error {
	if err := checkOutput(path); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err == nil {
		err = errors.Join(write(file), file.Chmod(0o644), file.Sync(), file.Close())
		if err == nil {
			err = os.Rename(file.Name(), path)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// jsonOutput is where JSON goes, which leaves some control characters as they are.
func jsonOutput() io.Writer {
	if terminal.Is(os.Stdout) {
		return &terminal.Screen{To: os.Stdout}
	}
	return os.Stdout
}
