package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Source has the files of a project, by their paths from there.
type Source interface {
	// ReadFile gives at most so many bytes of a file; fs.ErrNotExist where there is none.
	ReadFile(name string, limit int64) ([]byte, error)
	// Folders are the names of some folders in a folder, sorted; none where it is not there.
	Folders(name string) ([]string, error)
}

// Dir is the Source of a directory. No link leads out of it.
type Dir struct{ root *os.Root }

// Open opens a directory; the caller must call Close.
func Open(path string) (Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return Dir{}, fmt.Errorf("open the project's directory: %w", err)
	}
	return Dir{root}, nil
}

// Close closes the directory.
func (d Dir) Close() error { return d.root.Close() }

// ReadFile reads a file, never waiting for one.
func (d Dir) ReadFile(name string, limit int64) ([]byte, error) {
	file, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, why(err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, why(err)
	case info.IsDir():
		return nil, fs.ErrNotExist
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(file, limit))
	return text, why(err)
}

// maxFolders is how many entries of a folder are looked at.
const maxFolders = 1000

// Folders lists a folder.
func (d Dir) Folders(name string) (names []string, err error) {
	folder, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, why(err)
	}
	defer folder.Close()
	entries, err := folder.ReadDir(maxFolders)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, why(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// why is an error without the path that the system gives, which the reader tells in its
// own way.
func why(err error) error {
	var told *fs.PathError
	switch {
	case errors.As(err, &told) && told.Err.Error() == "path escapes from parent": // os.Root's, which has no name
		return errors.New("it leads out of the project through a symbolic link, which is not followed")
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrNotExist):
		return fs.ErrNotExist
	case told != nil:
		return told.Err
	}
	return err
}

// Files is a Source of files in memory.
type Files map[string][]byte

// ReadFile reads a file.
func (f Files) ReadFile(name string, limit int64) ([]byte, error) {
	text, there := f[name]
	if !there {
		return nil, fs.ErrNotExist
	}
	return text[:min(int64(len(text)), limit)], nil
}

// Folders lists a folder.
func (f Files) Folders(name string) (names []string, err error) {
	for file := range f {
		if rest, below := strings.CutPrefix(file, name+"/"); below || name == "." {
			if name == "." {
				rest = file
			}
			if folder, _, in := strings.Cut(rest, "/"); in && !slices.Contains(names, folder) {
				names = append(names, folder)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
