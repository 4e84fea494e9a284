package launcher

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

// libraries are the shared libraries of an executable, by the names under which its
// loader opens them, as far as no place of the wall has them.
func (w *Wall) libraries(executable string) (places []Place, err error) {
	paths, err := loaded(executable)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		places = append(places, Place{Path: path})
		if w.Network && filepath.Base(path) == "libc.so.6" { // it looks names up with modules
			for _, name := range []string{"libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2"} {
				places = append(places, Place{Path: filepath.Join(filepath.Dir(path), name), Optional: true})
			}
		}
	}
	held := func(path string, access Access) bool {
		name := w.follow(path)
		return slices.ContainsFunc(w.Places, func(p Place) bool { return p.Access&access == access && within(name, p.name()) })
	}
	if slices.ContainsFunc(places, func(l Place) bool { return held(l.Path, 0) }) {
		// Inside of a place, links are the machine's, and lead through these.
		links := map[string]string{}
		for _, top := range []string{"/lib", "/lib32", "/lib64"} {
			if to, err := os.Readlink(top); err == nil {
				links[top] = to
			}
		}
		maps.Copy(links, w.Links)
		w.Links = links
	}
	places = slices.DeleteFunc(places, func(l Place) bool { return held(l.Path, Read|Execute) })
	for i := range places {
		l := &places[i]
		l.Access = Read | Execute
		l.Name = w.follow(l.Path)
		if held(l.Path, 0) {
			// The name is there already; mount what it leads to, to be executable.
			if l.Name, err = filepath.EvalSymlinks(l.Path); err != nil {
				return nil, fmt.Errorf("look at the library %s: %w", l.Path, err)
			}
		}
	}
	return places, nil
}

var known sync.Map // the libraries of executables that have been asked for

// loaded are the libraries of an executable, whose loader is asked once.
func loaded(executable string) ([]string, error) {
	info, err := os.Stat(executable)
	if err != nil {
		return nil, fmt.Errorf("look at %s for its libraries: %w", executable, err)
	}
	key := fmt.Sprint(executable, info.ModTime().UnixNano(), info.Size())
	if paths, ok := known.Load(key); ok {
		return paths.([]string), nil
	}
	paths, err := askLoader(executable)
	if err == nil {
		known.Store(key, paths)
	}
	return paths, err
}

// askLoader has an executable's loader list its libraries, as ldd(1) does; nothing of
// the executable runs. A static executable has no loader.
func askLoader(executable string) ([]string, error) {
	file, err := elf.Open(executable)
	if err != nil {
		return nil, fmt.Errorf("look at %s for its libraries: %w", executable, err)
	}
	defer file.Close()
	loader := ""
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			text, err := io.ReadAll(part.Open())
			if err != nil {
				return nil, fmt.Errorf("look at %s for its loader: %w", executable, err)
			}
			loader = string(bytes.TrimRight(text, "\x00"))
		}
	}
	if loader == "" {
		return nil, nil
	}
	// We execute it, so it must be one of the system's.
	if !usualLoader.MatchString(loader) {
		return nil, fmt.Errorf("%s names %q as its loader, which is none that systems have", executable, loader)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, loader, "--list", executable) // musl's knows no other way
	cmd.Env = []string{"LD_TRACE_LOADED_OBJECTS=1"}
	out, err := cmd.Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("ask %s for the libraries of %s: %w", loader, executable, err)
	}
	paths := []string{loader}
	for _, match := range libraryLine.FindAllSubmatch(out, -1) {
		if path := string(match[1]); path != loader {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

var usualLoader = regexp.MustCompile(`^(/lib|/lib64|/usr/lib|/usr/lib64|/nix/store/[a-z0-9]{32}-[^/]+/lib|/gnu/store/[a-z0-9]{32}-[^/]+/lib)/(ld-linux[a-z0-9._-]*|ld-musl-[a-z0-9_]+|ld64)\.so\.[0-9]+$`)

// libraryLine is a line such as "libm.so.6 => /lib/libm.so.6 (0x00007f46)" or
// "/lib64/ld.so (0x00007f46)".
var libraryLine = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$`)
