package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// sandboxExec is macOS's own program that puts itself behind a profile and becomes
// another.
const sandboxExec = "/usr/bin/sandbox-exec"

// Offered says which wall this machine offers, by raising it once. It is called
// Landlock, because it is no root of the child's own; it holds what Landlock does,
// and looking at what is not granted.
var Offered = sync.OnceValue(func() Support {
	if err := probeProfile(); err != nil {
		return Support{Level: Deno, Detail: fmt.Sprintf("%s holds nothing here (%v); Deno's permissions are the boundary", sandboxExec, err)}
	}
	return Support{Level: Landlock, Detail: "a profile of sandbox-exec; it was built and vetted, but not attacked on macOS"}
})

// probeProfile runs a program of the system's that does nothing.
func probeProfile() error {
	const program = "/usr/bin/true"
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	started, err := Start(Command{
		Path: program, Dir: "/", Files: []*os.File{null, null, null},
		Wall: &Wall{Level: Landlock, Places: []Place{{Path: program, Access: Read | Execute}}},
	})
	if err != nil {
		return err
	}
	state, err := started.Process.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("%s: %v", program, state)
	}
	return err
}

// sandboxProfile is the profile of a child; empty where it has no wall.
func (c Command) sandboxProfile() (string, error) {
	w := c.Wall
	if w == nil || w.Level < Landlock {
		return "", nil
	}
	var places []found
	for _, p := range w.Places {
		real, err := p.real()
		if err == nil {
			places = append(places, found{p.Access, p.Path, real})
		} else if !errors.Is(err, os.ErrNotExist) { // else it can't be reached either
			return "", fmt.Errorf("look at %s, which the child is to see: %w", p.Path, err)
		}
	}
	executable, err := filepath.EvalSymlinks(c.Path)
	if err != nil {
		return "", err
	}
	hidden := slices.Clone(w.Hidden)
	for i, path := range hidden {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			hidden[i] = real
		}
	}
	return w.profile(executable, places, hidden), nil
}

// real is the place's path without links, if what is there is what was judged.
func (p Place) real() (string, error) {
	real, err := filepath.EvalSymlinks(p.Path)
	if err != nil || p.File == nil {
		return real, err
	}
	now, err := os.Lstat(real)
	judged, wrong := p.File.Stat()
	if err = errors.Join(err, wrong); err != nil {
		return "", err
	}
	if !os.SameFile(now, judged) {
		return "", errors.New("something else has come to its place since it was granted; grant its own name, or start again to take what is there now")
	}
	return real, nil
}
