//go:build !windows

package wasm

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rillbox/supervisor/job"
)

// TestSourcesOfAHostileWorkspace reads what a compiler is given of a workspace that
// programs have written.
func TestSourcesOfAHostileWorkspace(t *testing.T) {
	c := rowOf("c")
	outside := filepath.Join(t.TempDir(), "secret.h")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"a pipe that nobody writes": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link that leads out":     func(path string) error { return os.Symlink(outside, path) },
		"a directory":               func(path string) error { return os.Mkdir(path, 0o700) },
		"a file that can't be read": func(path string) error { return os.WriteFile(path, nil, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := make(filepath.Join(dir, "a.h")); err != nil {
				t.Fatal(err)
			}
			files, err := withSources(nil, c, dir)
			if err != nil || strings.Contains(string(files["/workspace/a.h"]), "secret") || len(files["/workspace/a.h"]) > 0 {
				t.Errorf("withSources = %v, %v", files, err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if content, err := readSource(root, "a.h", maxSources); len(content) > 0 { // what has become so since it was looked at
				t.Errorf("readSource = %q, %v", content, err)
			}
		})
	}
	t.Run("a file of a terabyte", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.h"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, "a.h"), 1<<40); err != nil {
			t.Skip(err)
		}
		if _, err := withSources(nil, c, dir); !isRefused(err) {
			t.Errorf("err = %v", err)
		}
	})
	t.Run("very many files", func(t *testing.T) {
		dir := t.TempDir()
		for i := range mostSources + 1 {
			if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)+".h"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := withSources(nil, c, dir); !isRefused(err) {
			t.Errorf("err = %v", err)
		}
	})
}

func isRefused(err error) bool {
	_, refused := err.(*job.ProgramError)
	return refused
}
