package launcher

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// libraries are the shared libraries that the loader takes for an executable, by
// the names by which it asks for them. With Processes the system's own are there
// altogether, by places of the wall.
func (f *forked) libraries(w *Wall, executable string) ([]Place, error) {
	info, err := os.Stat(executable)
	if err != nil {
		return nil, fmt.Errorf("look at %s for its libraries: %w", executable, err)
	}
	key := fmt.Sprint(executable, info.ModTime().UnixNano(), info.Size())
	knownLibraries.Lock()
	defer knownLibraries.Unlock()
	paths, known := knownLibraries.of[key]
	if !known {
		if paths, err = askLoader(executable); err != nil {
			return nil, err
		}
		knownLibraries.of[key] = paths
	}
	var places []Place
	for _, path := range paths {
		places = append(places, Place{Path: path, Access: Read | Execute})
		if w.Network { // its C library may look names up with modules of its own
			for _, name := range []string{"libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2"} {
				if filepath.Base(path) == "libc.so.6" {
					places = append(places, Place{Path: filepath.Join(filepath.Dir(path), name), Access: Read | Execute, Optional: true})
				}
			}
		}
	}
	return places, nil
}

var knownLibraries = struct {
	sync.Mutex
	of map[string][]string
}{of: map[string][]string{}}

// askLoader has the executable's own loader name the libraries, as ldd(1) does;
// nothing of the executable runs. One that names no loader has none.
func askLoader(executable string) ([]string, error) {
	file, err := elf.Open(executable)
	if err != nil {
		return nil, fmt.Errorf("look at %s for its libraries: %w", executable, err)
	}
	defer file.Close()
	loader := ""
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			text := make([]byte, part.Filesz)
			if _, err := part.ReadAt(text, 0); err != nil {
				return nil, fmt.Errorf("look at %s for its loader: %w", executable, err)
			}
			loader = string(bytes.TrimRight(text, "\x00"))
		}
	}
	if loader == "" {
		return nil, nil
	}
	// It is executed: one that the executable makes up is not.
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
