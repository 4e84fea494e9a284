//go:build !windows

package permission

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
)

// The names of our files in a child's root. They tell nothing about the machine, and
// nothing below ownName can be granted.
const (
	ownName       = "/rillbox"
	BinaryName    = "/rillbox/deno"
	GuestName     = "/rillbox/guest"
	RunName       = "/rillbox/run"
	ScannerName   = "/rillbox/scanner"
	workspaceName = "/rillbox/workspace"
	// certificatesName is what DENO_CERT names.
	certificatesName = "/rillbox/certificates"
)

// Walls says what children are started behind.
type Walls struct {
	// Level is the wall; the zero value is the best that the machine offers.
	Level launcher.Level
	// Without starts children without a wall, even where Deno alone can't hold them.
	Without bool
	// Shared is the directory that the operator shares as workspace, as it was at the
	// start; see Share.
	Shared Shared
	Log    *slog.Logger
}

// level is what children are started behind.
func (w Walls) level() launcher.Level {
	if w.Without {
		return launcher.Deno
	}
	return w.Level.Offered()
}

// Around names the wall around programs with these permissions; it is for people.
func (w Walls) Around(p Permissions) string {
	if p.all || w.Without {
		return "none"
	}
	return w.level().String()
}

// Shared is a directory of the operator's; the zero value is none.
type Shared struct{ granted }

// Share opens the directory that the operator shares as workspace; an empty path is
// none.
func Share(path string) (Shared, error) {
	if path == "" {
		return Shared{}, nil
	}
	file, real, err := launcher.Open(path)
	if err != nil {
		return Shared{}, fmt.Errorf("share a directory: %w", err)
	}
	if Within(real, ownName) {
		_ = file.Close()
		return Shared{}, fmt.Errorf("%s can't be shared: programs have files of ours by that name; move it", path)
	}
	return Shared{granted{name: path, file: file, real: real}}, nil
}

// Surroundings are what one child sees: our own files, and what its permissions
// grant. In a root of its own ours have names of our choice there; elsewhere they
// have their paths. Close must be called when the child was started, or could not be.
type Surroundings struct {
	wall launcher.Wall
	// without says that there is no wall: every file keeps its path and can be seen.
	without bool
	shared  Shared
	opened  []*os.File
	network bool // something on the network may be reached
	// Programs says that the child may run programs.
	Programs bool
}

// Surround begins the surroundings of a child with these permissions. hidden are
// directories of ours: whatever is granted, the child sees in them only what See
// adds, and changes nothing.
func (p Permissions) Surround(w Walls, hidden ...string) (*Surroundings, error) {
	level := w.level()
	if err := p.checkWall(w, level); err != nil {
		return nil, err
	}
	for i, dir := range hidden {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, err
		}
		hidden[i] = real
	}
	s := &Surroundings{shared: w.Shared, network: p.allowsAny("net"), Programs: p.allowsAny("run")}
	if s.without = p.all || w.Without; s.without {
		s.wall.Level = launcher.Deno
		return s, nil
	}
	allSystem, system := p.Allowed("sys")
	s.wall = launcher.Wall{
		Level:      level,
		Links:      map[string]string{},
		Hidden:     hidden,
		Network:    s.network,
		Interfaces: allSystem || slices.Contains(system, "networkInterfaces"),
		Processes:  s.Programs || p.allowsAny("ffi"),
	}
	err := s.grant(p)
	if err == nil && s.wall.Processes {
		err = s.grantPrograms(p)
	}
	if err == nil {
		err = s.check()
	}
	if err != nil { // another program may have made it so
		s.Close()
		return nil, job.Refuse("%v", err)
	}
	if level == launcher.Landlock {
		s.wall.Places = besides(s.wall.Places, hidden)
	}
	return s, nil
}

// check refuses grants of what is ours.
func (s *Surroundings) check() error {
	for _, place := range s.wall.Places {
		if s.OwnRoot() && Within(place.Name, ownName) {
			return fmt.Errorf("%s can't be granted: programs have files of ours by that name; move it", place.Name)
		}
		for _, dir := range s.wall.Hidden {
			if Within(place.Name, dir) {
				return fmt.Errorf("%s can't be granted: it is where other programs are, and what is executed for them", place.Name)
			}
		}
	}
	return nil
}

// Ours are the surroundings of a process that runs our code alone.
func Ours(w Walls) *Surroundings {
	return &Surroundings{wall: launcher.Wall{Level: w.level()}}
}

// OwnRoot says that the child has a root of its own.
func (s *Surroundings) OwnRoot() bool { return s.wall.Level == launcher.Namespaces }

// OwnNetwork says that the child has a network of its own.
func (s *Surroundings) OwnNetwork() bool { return s.OwnRoot() && !s.wall.Network }

// See lets the child see a file or directory of ours, and gives its name there.
func (s *Surroundings) See(path, name string, access launcher.Access) string {
	return s.see(launcher.Place{Path: path, Name: name, Access: access})
}

// SeePackages is See for a directory of packages: a child that may run programs or load
// native libraries may do so with theirs.
func (s *Surroundings) SeePackages(path, name string) string {
	access := launcher.Read
	if s.wall.Processes {
		access |= launcher.Execute
	}
	return s.See(path, name, access)
}

// Optional lets the child see a file of the machine's under its own name, if it
// is there.
func (s *Surroundings) Optional(path string) {
	s.see(launcher.Place{Path: path, Name: path, Access: launcher.Read, Optional: true})
}

func (s *Surroundings) see(place launcher.Place) (name string) {
	if !s.OwnRoot() {
		place.Name = place.Path
	}
	s.wall.Places = append(s.wall.Places, place)
	return place.Name
}

// Workspace lets the child see its workspace, and gives its name there. A directory
// that the operator shares keeps its path.
func (s *Surroundings) Workspace(path string, readOnly bool) string {
	place := launcher.Place{Path: path, Name: path, Access: launcher.Read}
	if !readOnly {
		place.Access |= launcher.Write
	}
	if s.wall.Processes {
		place.Access |= launcher.Execute
	}
	if sandbox.IsRunDir(path) {
		place.Name = workspaceName
	}
	if s.shared.name == path {
		place.File = s.shared.file
	}
	return s.see(place)
}

// Listen opens a socket of ours that listens on the port in the child's own network.
func (s *Surroundings) Listen(port uint16) { s.wall.Listen = append(s.wall.Listen, port) }

// Dial opens a socket with which we can connect to a port that the child opens.
func (s *Surroundings) Dial() {
	s.wall.Dial = s.OwnNetwork()
	s.wall.AnyPort = !s.wall.Dial
}

// Connect lets the child connect to a port of ours on the machine's loopback.
func (s *Surroundings) Connect(port uint16) { s.wall.Connect = append(s.wall.Connect, port) }

// Wall is what the launcher builds of it; nil where there is none.
func (s *Surroundings) Wall() *launcher.Wall {
	if s.without {
		return nil
	}
	return &s.wall
}

// Close closes the files that were opened for the child.
func (s *Surroundings) Close() {
	for _, f := range s.opened {
		_ = f.Close()
	}
	s.opened = nil
}

// Environment is what the surroundings add to the child's variables: where programs
// are, and whose certificates our own environment has Deno trust.
func (s *Surroundings) Environment() (env []string) {
	if s.Programs {
		env = append(env, "PATH="+programPath)
	}
	if !s.network {
		return env
	}
	if stores := os.Getenv("DENO_TLS_CA_STORE"); stores != "" {
		env = append(env, "DENO_TLS_CA_STORE="+stores)
	}
	if file := os.Getenv("DENO_CERT"); file != "" {
		if path, err := filepath.Abs(file); err == nil {
			file = path
		}
		env = append(env, "DENO_CERT="+s.see(launcher.Place{Path: file, Name: certificatesName, Access: launcher.Read, Optional: true}))
	}
	return env
}

// checkWall refuses a child that may both read and write a directory where there is
// no second wall: Deno alone can't keep a program inside it (see ReadWriteOverlap).
// Where the operator turned the wall off, it warns instead.
func (p Permissions) checkWall(w Walls, level launcher.Level) error {
	path, overlap := p.ReadWriteOverlap()
	switch {
	case p.all || !overlap || level > launcher.Deno:
		return nil
	case w.Without:
		w.Log.Warn("a program starts without the second wall, though it may both read and write a directory: it can leave that directory", "path", path)
		return nil
	}
	return fmt.Errorf("%s may be both read and written, and nothing on this machine can hold a program inside it (%s): take one of the two permissions away, or accept the risk with --without-second-wall", path, launcher.Offered().Detail)
}

// besides takes directories out of what may be written, for a wall that knows no
// exceptions: a place that holds one is replaced by everything in it that is not on
// the way there. Nothing can then be made or removed directly in the directories on
// that way.
func besides(places []launcher.Place, kept []string) []launcher.Place {
	for _, dir := range kept {
		var left []launcher.Place
		for _, p := range places {
			if p.Access&launcher.Write == 0 || !Within(dir, p.Path) && !Within(p.Path, dir) {
				left = append(left, p)
				continue
			}
			if p.Access &^= launcher.Write; p.Access != 0 {
				left = append(left, p)
			}
			for _, path := range beside(p.Path, dir) {
				left = append(left, launcher.Place{Path: path, Access: launcher.Write})
			}
		}
		places = left
	}
	return places
}

// beside is path, or what is in it and not on the way to kept; both are real paths.
func beside(path, kept string) (paths []string) {
	switch {
	case Within(path, kept):
		return nil
	case !Within(kept, path):
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
