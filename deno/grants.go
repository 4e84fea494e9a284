//go:build !windows

package deno

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"rillbox/supervisor/launcher"
)

// granted is a path that the operator granted, as it was at the start: what it
// led to then is what is granted, whatever a program makes of the name later.
type granted struct {
	name string
	file *os.File // nil: it was not there
	real string   // its path without links, at the start
	// needs are, of a script that may be run, the programs that its first line names.
	needs []granted
}

// Open opens what the flags name: paths, and programs that may be run. A path to
// write to has to be there.
func (p Permissions) Open() (Permissions, error) {
	p = p.clone()
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

// openProgram finds a program that may be run, by its path or in programPath.
func openProgram(name string) (granted, error) {
	path := name
	if !strings.Contains(name, "/") {
		for dir := range strings.SplitSeq(programPath, ":") {
			if isProgram(filepath.Join(dir, name)) {
				path = filepath.Join(dir, name)
				break
			}
		}
		if path == name {
			return granted{}, fmt.Errorf("there is no such program in %s", programPath)
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return granted{}, err
	}
	if !isProgram(path) {
		return granted{}, fmt.Errorf("%s is no file that may be executed", path)
	}
	file, real, err := launcher.Open(path)
	if err != nil {
		return granted{}, err
	}
	return granted{name: path, file: file, real: real, needs: interpreters(real)}, nil
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// interpreters are what a script's first line names, its interpreter and the program
// that env(1) is to find.
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
	wanted := words[:1]
	if filepath.Base(words[0]) == "env" {
		for _, word := range words[1:] {
			if word[0] != '-' && !strings.Contains(word, "=") {
				wanted = append(wanted, word)
				break
			}
		}
	}
	for i, name := range wanted {
		if i > 0 && strings.Contains(name, "/") {
			continue
		}
		for dir := range strings.SplitSeq(programPath, ":") {
			path := name
			if i > 0 {
				path = filepath.Join(dir, name)
			}
			if !isProgram(path) || isKernels(path) {
				continue
			}
			if file, real, err := launcher.Open(path); err == nil {
				programs = append(programs, granted{name: path, file: file, real: real})
				break
			}
		}
	}
	return programs
}

// places are what of the machine a child with these permissions sees, with the
// links by which granted names lead there. what is to be closed once the child
// has been started is added to opened.
func (p Permissions) places(level launcher.Level, opened *[]*os.File) ([]launcher.Place, map[string]string, error) {
	var places []launcher.Place
	links := map[string]string{}
	add := func(g granted, file *os.File, path string, access launcher.Access) {
		if file == nil {
			return // there is nothing to see
		}
		if g.real != g.name {
			links[g.name] = g.real
		}
		real := filepath.Join(g.real, strings.TrimPrefix(path, g.name))
		for i := range places {
			if places[i].Name == real {
				places[i].Access |= access
				return
			}
		}
		places = append(places, launcher.Place{Path: real, Name: real, File: file, Access: access})
	}
	for _, kind := range []struct {
		name   string
		access launcher.Access
	}{{"read", launcher.Read}, {"write", launcher.Write}, {"ffi", launcher.Read | launcher.Execute}} {
		everything, paths := p.Allowed(kind.name)
		if !everything && kind.name != "ffi" { // the root by its name
			everything = slices.ContainsFunc(paths, func(path string) bool { return p.realOf(path) == "/" })
			paths = slices.DeleteFunc(paths, func(path string) bool { return p.realOf(path) == "/" })
		}
		if everything && kind.name != "ffi" {
			top, topLinks, err := topLevel(level, kind.access)
			if err != nil {
				return nil, nil, err
			}
			maps.Copy(links, topLinks)
			for _, place := range top {
				if i := slices.IndexFunc(places, func(other launcher.Place) bool { return other.Name == place.Name }); i >= 0 {
					places[i].Access |= place.Access
					continue
				}
				places = append(places, place)
			}
		}
		for _, path := range paths {
			g, file, err := p.open(path, opened)
			if errors.Is(err, fs.ErrNotExist) && kind.name == "write" || err == nil && file == nil && kind.name == "write" {
				return nil, nil, missingTarget(path)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, nil, err
			}
			if file != nil && g.real == "/" && g.name == path { // everything, by a name
				if kind.name == "ffi" {
					return nil, nil, fmt.Errorf("--allow-ffi=%s: name libraries, or directories of them", path)
				}
				top, topLinks, err := topLevel(level, kind.access)
				if err != nil {
					return nil, nil, err
				}
				maps.Copy(links, topLinks)
				places = append(places, top...)
				continue
			}
			add(g, file, path, kind.access)
		}
	}
	return covered(places), links, nil
}

// realOf is the path without links of what was granted by this very name.
func (p Permissions) realOf(path string) string { return p.opened[path].real }

// open opens a path that the operator granted, or one below.
func (p Permissions) open(path string, opened *[]*os.File) (granted, *os.File, error) {
	var nearest granted
	for name, g := range p.opened {
		if Within(path, name) && len(name) >= len(nearest.name) {
			nearest = g
		}
	}
	if nearest.name == "" { // everything is granted, but for what is the kernel's
		file, real, err := launcher.Open(path)
		if err != nil {
			return granted{name: path}, nil, err
		}
		*opened = append(*opened, file)
		if isKernels(real) {
			return granted{name: path}, nil, notEverything(path)
		}
		return granted{name: path, file: file, real: real}, file, nil
	}
	if nearest.file == nil {
		return nearest, nil, fs.ErrNotExist
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(path, nearest.name), "/")
	if rest == "" {
		return nearest, nearest.file, nil
	}
	if nearest.real == "/" && isKernels("/"+rest) { // no link is followed below
		return nearest, nil, notEverything(path)
	}
	file, err := launcher.OpenBelow(nearest.file, rest)
	if err != nil {
		return nearest, nil, err
	}
	*opened = append(*opened, file)
	return nearest, file, nil
}

// covered leaves out places that are in another one with no less access: there
// they are seen anyway, whatever a program makes of their names. What is in another
// one may be done to the others, too.
func covered(places []launcher.Place) []launcher.Place {
	given := slices.Clone(places)
	for i := range places {
		for _, outer := range given {
			if Within(places[i].Name, outer.Name) {
				places[i].Access |= outer.Access
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(places), func(p launcher.Place) bool {
		return slices.ContainsFunc(places, func(outer launcher.Place) bool {
			return outer.Name != p.Name && Within(p.Name, outer.Name) && outer.Access&p.Access == p.Access
		})
	})
}

// kernelsOwn is no part of what is granted when everything is.
var kernelsOwn = []string{"/proc", "/dev", "/sys"}

func isKernels(path string) bool {
	return slices.ContainsFunc(kernelsOwn, func(dir string) bool { return Within(path, dir) })
}

func notEverything(path string) error {
	return fmt.Errorf("%s is not granted: a grant of everything leaves out %s", path, strings.Join(kernelsOwn, ", "))
}

// topLevel is all of the machine's tree, but for what is the kernel's.
func topLevel(level launcher.Level, access launcher.Access) ([]launcher.Place, map[string]string, error) {
	if level != launcher.Namespaces {
		return []launcher.Place{{Path: "/", Name: "/", Access: access}}, nil, nil
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil, nil, err
	}
	var places []launcher.Place
	links := map[string]string{}
	for _, entry := range entries {
		name := "/" + entry.Name()
		switch {
		case slices.Contains(kernelsOwn, name), name == ownName:
		case entry.Type()&fs.ModeSymlink != 0:
			if links[name], err = os.Readlink(name); err != nil {
				return nil, nil, err
			}
		default:
			places = append(places, launcher.Place{Path: name, Name: name, Access: access})
		}
	}
	return places, links, nil
}

// systemPrograms are where a system has its programs and libraries.
var systemPrograms = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/nix/store"}

// systemPublic is what programs of the system look at in /etc, and its devices.
var systemPublic = []string{
	"/etc/alternatives", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone",
	"/etc/os-release", "/etc/mime.types", "/etc/magic", "/etc/terminfo", "/etc/locale.alias", "/etc/services", "/etc/protocols", "/etc/fonts", "/etc/inputrc",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/ca-certificates",
}

// programs are the places and links that programs of the system need, which the
// operator lets be run or loaded: all of them, or those that were named and the
// system's libraries.
func (p Permissions) programs() ([]launcher.Place, map[string]string, error) {
	all, named := p.Allowed("run")
	if loadsAll, _ := p.Allowed("ffi"); loadsAll {
		all = true
	}
	directories := []string{"/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/local/lib", "/usr/local/share"}
	if all {
		directories = systemPrograms
	}
	var places []launcher.Place
	links := map[string]string{}
	for _, path := range slices.Concat(directories, systemPublic) {
		if to, err := os.Readlink(path); err == nil && filepath.Dir(path) == "/" { // /lib leads to usr/lib
			links[path] = to
			continue
		}
		places = append(places, launcher.Place{Path: path, Access: launcher.Read | launcher.Execute, Optional: true})
	}
	for _, program := range named {
		if err := p.program(program, &places, links); err != nil {
			return nil, nil, err
		}
	}
	return places, links, nil
}

// program adds a program that may be run, and what its first line names.
func (p Permissions) program(name string, places *[]launcher.Place, links map[string]string) error {
	g, known := p.opened[name]
	if !known { // all programs are granted, and this run asks for one of the system's
		var err error
		if g, err = openProgram(name); err != nil {
			return fmt.Errorf("--allow-run=%s: %w", name, err)
		}
		_ = g.file.Close()
		g.file = nil
		for i := range g.needs {
			_ = g.needs[i].file.Close()
			g.needs[i].file = nil
		}
		if !slices.ContainsFunc(systemPrograms, func(dir string) bool { return Within(g.real, dir) }) {
			return fmt.Errorf("--allow-run=%s: all programs of the system are granted, and %s is none", name, g.real)
		}
	}
	add := func(path string, file *os.File, real string) {
		*places = append(*places, launcher.Place{Path: real, Name: real, File: file, Access: launcher.Read | launcher.Execute})
		if path != real {
			links[path] = real
		}
	}
	add(g.name, g.file, g.real)
	for _, needed := range g.needs {
		add(needed.name, needed.file, needed.real)
	}
	return nil
}
