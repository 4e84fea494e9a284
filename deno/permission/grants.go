//go:build !windows

package permission

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"rillbox/supervisor/launcher"
)

// granted is a path that the operator granted. What it led to at the start is what
// is granted, even if a program replaces what has the name later.
type granted struct {
	name string
	file *os.File // nil: it was not there
	real string   // its path without links, at the start
	// needs are the programs that the first line of a script names.
	needs []granted
}

// Open opens the paths and the programs that the flags name. A path to write to
// must exist.
func (p Permissions) Open() (Permissions, error) {
	p.opened = map[string]granted{}
	for _, kind := range []string{"read", "write", "ffi"} {
		_, paths := p.Allowed(kind)
		for _, path := range paths {
			if g, done := p.opened[path]; done && (kind != "write" || g.file != nil) {
				continue
			}
			file, real, err := launcher.Open(path)
			if errors.Is(err, fs.ErrNotExist) && kind == "write" {
				return p, missingTarget(path)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return p, fmt.Errorf("--allow-%s=%s: %w", kind, path, err)
			}
			if strings.HasPrefix(real, "/proc/") && len(real) > 6 && real[6] >= '0' && real[6] <= '9' {
				return p, fmt.Errorf("--allow-%s=%s: that is one process's own, and another one's in a program", kind, path)
			}
			p.opened[path] = granted{name: path, file: file, real: real}
		}
	}
	_, programs := p.Allowed("run")
	for _, program := range programs {
		g, err := openProgram(program)
		if err != nil {
			return p, fmt.Errorf("--allow-run=%s: %w", program, err)
		}
		p.opened[program] = g
	}
	return p, nil
}

func missingTarget(path string) error {
	return fmt.Errorf("--allow-write=%s: there is nothing at that path: make it first, or grant its directory", path)
}

// programPath is where programs that may be run are looked for, and PATH where
// programs run.
const programPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// openProgram opens a program that may be run, found by its path or in programPath.
func openProgram(name string) (granted, error) {
	path := findProgram(name)
	switch {
	case path == "" && strings.Contains(name, "/"):
		return granted{}, fmt.Errorf("%s is not a file that may be executed", name)
	case path == "":
		return granted{}, fmt.Errorf("there is no such program in %s", programPath)
	}
	file, real, err := launcher.Open(path)
	if err != nil {
		return granted{}, err
	}
	return granted{name: path, file: file, real: real, needs: interpreters(real)}, nil
}

// findProgram gives the path of a program, empty where there is none.
func findProgram(name string) string {
	if strings.Contains(name, "/") {
		if isProgram(name) {
			return name
		}
		return ""
	}
	for dir := range strings.SplitSeq(programPath, ":") {
		if path := filepath.Join(dir, name); isProgram(path) {
			return path
		}
	}
	return ""
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// interpreters are the programs that a script's first line names: its interpreter
// and, where that is env(1), the program that env starts.
func interpreters(script string) (programs []granted) {
	file, err := os.OpenFile(script, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil // it can be executed without being read
	}
	defer file.Close()
	line, _ := bufio.NewReaderSize(file, 256).ReadSlice('\n')
	rest, isScript := strings.CutPrefix(string(line), "#!")
	words := strings.Fields(rest)
	if !isScript || len(words) == 0 || !filepath.IsAbs(words[0]) {
		return nil
	}
	names := words[:1:1]
	if filepath.Base(words[0]) == "env" {
		isName := func(word string) bool { return word[0] != '-' && !strings.Contains(word, "=") }
		if i := slices.IndexFunc(words[1:], isName); i >= 0 && !strings.Contains(words[1+i], "/") {
			names = append(names, words[1+i])
		}
	}
	for _, name := range names {
		path := findProgram(name)
		if path == "" || isKernels(path) {
			continue
		}
		if file, real, err := launcher.Open(path); err == nil {
			programs = append(programs, granted{name: path, file: file, real: real})
		}
	}
	return programs
}

// grant lets the child see the files that the permissions name.
func (s *Surroundings) grant(p Permissions) error {
	for _, kind := range []struct {
		name   string
		access launcher.Access
	}{{"read", launcher.Read}, {"write", launcher.Write}, {"ffi", launcher.Read | launcher.Execute}} {
		if everything, _ := p.Allowed(kind.name); everything && kind.name == "ffi" {
			continue // libraries come with grantPrograms
		}
		for _, path := range p.paths(kind.name) {
			g, err := s.open(p, path)
			switch {
			case errors.Is(err, fs.ErrNotExist) && kind.name == "write":
				return missingTarget(path)
			case errors.Is(err, fs.ErrNotExist): // there is nothing to see
			case err != nil:
				return err
			case g.real != "/":
				s.show(g, kind.access)
			case kind.name == "ffi":
				return fmt.Errorf("--allow-ffi=%s: name libraries, or directories of them", path)
			default:
				if err := s.grantEverything(kind.access); err != nil {
					return err
				}
			}
		}
	}
	s.wall.Places = covered(s.wall.Places)
	return nil
}

// show lets the child see what was granted, also by the name that was used for it.
func (s *Surroundings) show(g granted, access launcher.Access) {
	s.wall.Places = append(s.wall.Places, launcher.Place{Path: g.real, Name: g.real, File: g.file, Access: access})
	if g.name != g.real {
		s.wall.Links[g.name] = g.real
	}
}

// open opens a path that the operator granted, or one below.
func (s *Surroundings) open(p Permissions, path string) (granted, error) {
	var nearest granted
	for name, g := range p.opened {
		if Within(path, name) && len(name) >= len(nearest.name) {
			nearest = g
		}
	}
	if nearest.name == "" { // everything is granted, but for what is the kernel's
		file, real, err := launcher.Open(path)
		if err != nil {
			return granted{}, err
		}
		s.opened = append(s.opened, file)
		if isKernels(real) {
			return granted{}, notEverything(path)
		}
		return granted{name: path, file: file, real: real}, nil
	}
	below := strings.TrimPrefix(strings.TrimPrefix(path, nearest.name), "/")
	switch {
	case nearest.file == nil:
		return granted{}, fs.ErrNotExist
	case below == "":
		return nearest, nil
	case nearest.real == "/" && isKernels("/"+below): // no link is followed below
		return granted{}, notEverything(path)
	}
	file, err := launcher.OpenBelow(nearest.file, below)
	if err != nil {
		return granted{}, err
	}
	s.opened = append(s.opened, file)
	if nearest.name != nearest.real {
		s.wall.Links[nearest.name] = nearest.real
	}
	real := filepath.Join(nearest.real, below)
	return granted{name: real, file: file, real: real}, nil
}

// covered leaves out places within another place that has at least their access. A
// place within another one also has that one's access.
func covered(places []launcher.Place) (kept []launcher.Place) {
	given := slices.Clone(places)
	for i := range places {
		for _, outer := range given {
			if Within(places[i].Name, outer.Name) {
				places[i].Access |= outer.Access
			}
		}
	}
	for _, p := range places {
		covers := func(outer launcher.Place) bool {
			return outer.Name != p.Name && Within(p.Name, outer.Name) && outer.Access&p.Access == p.Access
		}
		again := func(other launcher.Place) bool { return other.Name == p.Name }
		if !slices.ContainsFunc(places, covers) && !slices.ContainsFunc(kept, again) {
			kept = append(kept, p)
		}
	}
	return kept
}

// kernelsOwn is left out of a grant of everything.
var kernelsOwn = []string{"/proc", "/dev", "/sys"}

func isKernels(path string) bool {
	return slices.ContainsFunc(kernelsOwn, func(dir string) bool { return Within(path, dir) })
}

func notEverything(path string) error {
	return fmt.Errorf("%s is not granted: a grant of everything leaves out %s", path, strings.Join(kernelsOwn, ", "))
}

// grantEverything lets the child see all of the machine's files, but for the kernel's.
func (s *Surroundings) grantEverything(access launcher.Access) error {
	if !s.OwnRoot() {
		s.show(granted{name: "/", real: "/"}, access)
		return nil
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := "/" + entry.Name()
		switch {
		case slices.Contains(kernelsOwn, name), name == ownName:
		case entry.Type()&fs.ModeSymlink != 0:
			if s.wall.Links[name], err = os.Readlink(name); err != nil {
				return err
			}
		default:
			s.show(granted{name: name, real: name}, access)
		}
	}
	return nil
}

// systemPrograms are where a system has its programs and libraries.
var systemPrograms = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/nix/store"}

// systemPublic is what programs of the system look at in /etc, and its devices.
var systemPublic = []string{
	"/etc/alternatives", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone",
	"/etc/os-release", "/etc/mime.types", "/etc/magic", "/etc/terminfo", "/etc/locale.alias", "/etc/services", "/etc/protocols", "/etc/fonts", "/etc/inputrc",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/ca-certificates",
}

// grantPrograms lets the child see the programs that it may run, with what they need:
// all of the system's, or those that were named and the system's libraries. Then all
// that the child sees may be executed.
func (s *Surroundings) grantPrograms(p Permissions) error {
	all, named := p.Allowed("run")
	loadsAll, _ := p.Allowed("ffi")
	directories := []string{"/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/local/lib", "/usr/local/share"}
	if all || loadsAll {
		directories = systemPrograms
	}
	for _, path := range slices.Concat(directories, systemPublic) {
		if to, err := os.Readlink(path); err == nil && filepath.Dir(path) == "/" { // /lib leads to usr/lib
			s.wall.Links[path] = to
			continue
		}
		s.wall.Places = append(s.wall.Places, launcher.Place{Path: path, Access: launcher.Read, Optional: true})
	}
	for _, name := range named {
		g, err := s.program(p, name)
		if err != nil {
			return fmt.Errorf("--allow-run=%s: %w", name, err)
		}
		for _, g := range append([]granted{g}, g.needs...) {
			s.show(g, launcher.Read)
		}
	}
	for i := range s.wall.Places {
		s.wall.Places[i].Access |= launcher.Execute
	}
	return nil
}

// program gives a program that may be run. Where all are granted, a run may name one
// of the system's.
func (s *Surroundings) program(p Permissions, name string) (granted, error) {
	if g, named := p.opened[name]; named {
		return g, nil
	}
	g, err := openProgram(name)
	if err != nil {
		return granted{}, err
	}
	for _, g := range append([]granted{g}, g.needs...) {
		s.opened = append(s.opened, g.file)
	}
	if !slices.ContainsFunc(systemPrograms, func(dir string) bool { return Within(g.real, dir) }) {
		return granted{}, fmt.Errorf("all programs of the system are granted, and %s is none", g.real)
	}
	return g, nil
}
