package workspace

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// words are what a test's file mentions.
func words(_, text string) []string { return strings.Fields(text) }

func TestModulesAreFollowedInsideTheDirectoryOnly(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "dir")
	for name, text := range map[string]string{
		"dir/main": "a", "dir/a": "lib/b main", "dir/lib/b": "a lib/c none lib", "dir/lib/c": "", "dir/unmentioned": "", "secret": "secret",
	} {
		path := filepath.Join(parent, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"out": "../secret", "absolute": filepath.Join(parent, "secret"), "folder": "..", "loop": "loop", "in": "lib/c"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	files, err := d.Modules("main", "a in lib", words)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../secret", "out", "absolute", "folder/secret", "loop", "pipe", "/etc/passwd", "lib/../../secret"} {
		if files, err := d.Modules("main", name, words); err == nil || len(files) > 0 {
			t.Errorf("%s is one of the program's files: %q", name, slices.Collect(maps.Keys(files)))
		}
	}
	if have := slices.Sorted(maps.Keys(files)); !slices.Equal(have, []string{"a", "in", "lib/b", "lib/c"}) {
		t.Errorf("the program's files are %q", have)
	}
}

func TestModulesAreBounded(t *testing.T) {
	dir := t.TempDir()
	var all []string
	for i := range maxModules + 1 {
		name := fmt.Sprint("f", i)
		all = append(all, name)
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, maxModuleBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if files, err := d.Modules("main", strings.Join(all[1:], " "), words); err != nil || len(files) != maxModules {
		t.Errorf("%d modules: %v", len(files), err)
	}
	for _, text := range []string{strings.Join(all, " "), "large"} {
		if files, err := d.Modules("main", text, words); err == nil || !strings.Contains(err.Error(), "modules") {
			t.Errorf("%d modules: %v", len(files), err)
		}
	}
}
