package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAProjectIsARepository(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Join(base, "above/home"))
	for _, dir := range []string{
		"above/.git", "above/home/repo/.git", "above/home/repo/a/b", "above/home/plain", "open/.git", "open/mine/deep", "file/a",
	} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(filepath.Join(base, "open"), 0o1777), os.WriteFile(filepath.Join(base, "file/.git"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{
		"above/home/repo/a/b/main.ts": "above/home/repo",
		"above/home/repo/main.ts":     "above/home/repo",
		"above/home/plain/main.ts":    "above/home/plain", // what is above the user's home is not theirs
		"above/main.ts":               "above",
		"open/mine/deep/main.ts":      "open/mine/deep", // anybody could have made open/.git
		"file/a/main.ts":              "file",           // as git has it for a worktree
	} {
		if got := Project(filepath.Join(base, program)); got != filepath.Join(base, want) {
			t.Errorf("%s is in %s, not in %s", program, got, want)
		}
	}
}

func TestADirectorysFiles(t *testing.T) {
	base := t.TempDir()
	err := errors.Join(
		os.MkdirAll(filepath.Join(base, "in/packages/b"), 0o755), os.Mkdir(filepath.Join(base, "in/packages/a"), 0o755),
		os.WriteFile(filepath.Join(base, "secret"), []byte("secret"), 0o600), os.WriteFile(filepath.Join(base, "in/packages/f"), []byte("text"), 0o600),
		os.Symlink("../secret", filepath.Join(base, "in/out")), os.Symlink("packages/f", filepath.Join(base, "in/link")),
		os.Symlink("loop", filepath.Join(base, "in/loop")), syscall.Mkfifo(filepath.Join(base, "in/fifo"), 0o600),
		os.Symlink("..", filepath.Join(base, "in/packages/up")), os.Symlink("../..", filepath.Join(base, "in/far")),
	)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := Open(filepath.Join(base, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for name, want := range map[string]string{"packages/f": "tex", "link": "tex", "packages/up/link": "tex"} {
		if text, err := dir.ReadFile(name, 3); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for name, want := range map[string]string{
		"out": "leads out of the project", "../secret": "leads out of the project", "far/secret": "leads out of the project",
		"fifo": "not a regular file", "loop": "too many levels", "none": "does not exist", "packages": "does not exist", "link/x": "does not exist",
	} {
		text, err := dir.ReadFile(name, 100)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), base) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if absent := errors.Is(err, fs.ErrNotExist); absent != (want == "does not exist") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if folders, err := dir.Folders("packages"); err != nil || strings.Join(folders, " ") != "a b" {
		t.Errorf("folders: %q, %v", folders, err)
	}
	for _, name := range []string{"none", "packages/f"} {
		if folders, err := dir.Folders(name); err != nil || folders != nil {
			t.Errorf("folders of %s: %q, %v", name, folders, err)
		}
	}
	if _, err := dir.Folders("far"); err == nil {
		t.Error("folders outside are listed")
	}
}
