package deno

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"rillbox/supervisor/launcher"
)

// SecondWall is the kernel's wall for a child with these permissions, which
// reads readOnly and changes own beside, and never changes what is in the
// directory kept. It is nil where everything is allowed, which leaves nothing to
// hold, and where the operator gave it up (without). The error is CheckWall's.
func (p Permissions) SecondWall(without bool, log *slog.Logger, readOnly, own []string, kept string) (*launcher.Wall, error) {
	if err := p.CheckWall(without, log); err != nil {
		return nil, err
	}
	if p.all || without {
		return nil, nil
	}
	return p.wall(readOnly, own, kept), nil
}

// CheckWall refuses a child that only the second wall could hold where the
// machine offers none: Deno alone can't keep a program inside a directory that
// it may both read and write (see ReadWriteOverlap). Where the operator gave the
// wall up in so many words (without), it warns instead.
func (p Permissions) CheckWall(without bool, log *slog.Logger) error {
	path, err := p.checkWall(without, launcher.Offered())
	if path != "" {
		log.Warn("a program starts without the second wall, though it may both read and write a directory: it can leave that directory", "path", path)
	}
	return err
}

// checkWall gives the path that a wall should be around, when it was given up.
func (p Permissions) checkWall(without bool, offered launcher.Support) (path string, err error) {
	path, overlap := p.ReadWriteOverlap()
	switch {
	case p.all || !overlap || offered.Name != "" && !without:
		return "", nil
	case without:
		return path, nil
	}
	return "", fmt.Errorf("%s may be both read and written, and nothing on this machine can hold a program inside it (%s): take one of the two permissions away, or accept the risk with --without-second-wall", path, offered.Detail)
}

func (p Permissions) wall(readOnly, own []string, kept string) *launcher.Wall {
	w := &launcher.Wall{ReadOnly: slices.Clone(readOnly), ReadWrite: own}
	all, reads := p.Allowed("read")
	if all {
		reads = []string{"/"}
	}
	w.ReadOnly = append(w.ReadOnly, reads...)
	w.WriteOnly = p.Writable(kept)
	all, hosts := p.Allowed("net")
	w.AnyNetwork = all || len(hosts) > 0
	for _, kind := range []string{"run", "ffi"} {
		all, names := p.Allowed(kind)
		if all || len(names) > 0 { // Deno no longer decides what such a program reads and reaches
			w.ReadOnly = append(w.ReadOnly, "/")
			w.Processes, w.AnyNetwork = true, true
		}
	}
	return w
}

// Writable are the paths that may be changed, without the directory kept: where
// it is below such a path, what stands beside the way to it takes the path's
// place, since the kernel's wall knows no exceptions. Files can then be made and
// removed everywhere but in the directories on that way themselves.
func (p Permissions) Writable(kept string) (paths []string) {
	all, writes := p.Allowed("write")
	if all {
		writes = []string{"/"}
	}
	for _, path := range writes {
		paths = append(paths, beside(resolved(existing(path)), resolved(kept))...)
	}
	return paths
}

// beside is path, or what is in it and on no way to kept; both are real paths.
func beside(path, kept string) (paths []string) {
	switch {
	case within(path, kept):
		return nil
	case !within(kept, path):
		return []string{path}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil // what can't be listed is not granted
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink == 0 { // what a link leads to is granted by its own name, if at all
			paths = append(paths, beside(filepath.Join(path, entry.Name()), kept)...)
		}
	}
	return paths
}

// existing is the nearest directory or file that is there: a file can be made
// only where its directory may be changed.
func existing(path string) string {
	for {
		if _, err := os.Lstat(path); err == nil {
			return path
		}
		path = filepath.Dir(path)
	}
}
