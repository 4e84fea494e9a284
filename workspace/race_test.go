package workspace

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestRacingGuest works in a workspace while a guest swaps files, folders, links
// and FIFOs under every name that is used, those of files in the making
// included. Nothing of outside is ever read, and nothing outside changes. The
// control, which checks a path and then opens it, is seen to leak.
func TestRacingGuest(t *testing.T) {
	d := open(t, Options{Bytes: 1 << 20, Files: 1000})
	outside := t.TempDir()
	for _, name := range []string{"f", "sub/x", "victim"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(outside, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(outside, name), []byte("SECRET"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was := tree(t, outside)

	var stop atomic.Bool
	var guests sync.WaitGroup
	guest := func(do func()) {
		guests.Go(func() {
			for !stop.Load() {
				do()
			}
		})
	}
	// A file: regular, a link out, a FIFO, a folder, gone.
	guest(func() {
		_ = os.WriteFile(d.path("g1"), []byte("inside"), 0o644)
		_ = os.Rename(d.path("g1"), d.path("file"))
		_ = os.Symlink(filepath.Join(outside, "f"), d.path("g1"))
		_ = os.Rename(d.path("g1"), d.path("file"))
		_ = syscall.Mkfifo(d.path("g1"), 0o600)
		_ = os.Rename(d.path("g1"), d.path("file"))
		_ = os.Remove(d.path("file"))
		_ = os.Mkdir(d.path("file"), 0o755)
		_ = os.RemoveAll(d.path("file"))
	})
	// A folder: its own, a link out, a link up.
	guest(func() {
		_ = os.MkdirAll(d.path("g2/sub"), 0o755)
		_ = os.WriteFile(d.path("g2/f"), []byte("inside"), 0o644)
		_ = os.Rename(d.path("g2"), d.path("dir"))
		runtime.Gosched()
		_ = os.Rename(d.path("dir"), d.path("g3"))
		_ = os.Symlink(outside, d.path("dir"))
		runtime.Gosched()
		_ = os.Remove(d.path("dir"))
		_ = os.Symlink("..", d.path("dir"))
		_ = os.Remove(d.path("dir"))
		_ = os.RemoveAll(d.path("dir"))
		_ = os.RemoveAll(d.path("g3"))
	})
	// Files in the making become links to a file outside.
	guest(func() {
		partial, _ := filepath.Glob(d.path(partialPrefix + "*"))
		for _, name := range partial {
			_ = os.Symlink(filepath.Join(outside, "victim"), d.path("g4"))
			_ = os.Rename(d.path("g4"), name)
		}
	})

	var worked, refusals, leaks int
	did := func(err error) {
		switch {
		case err == nil:
			worked++
		case strings.Contains(err.Error(), "leads out"):
			refusals++
		case strings.Contains(err.Error(), d.root.Name()):
			t.Errorf("an error tells where the workspace is: %v", err)
		}
	}
	read := func(name string) {
		c, err := d.Read(name, 0, 100)
		did(err)
		if bytes.Contains(c.Data, []byte("SECRET")) {
			t.Errorf("read %s of outside", name)
		}
	}
	write := func(name string) {
		_, err := d.Write(name, []byte("written"))
		did(err)
	}
	top, err := filepath.EvalSymlinks(d.path("."))
	if err != nil {
		t.Fatal(err)
	}
	const most = 1_000_000 // a control that never leaks by then has nothing to show
	for i := 0; i < most && (i < 1000 || worked == 0 || refusals == 0 || leaks == 0) && !t.Failed(); i++ {
		read("file")
		read("dir/f")
		read("dir/sub/x")
		switch i % 8 {
		case 0:
			write("file")
		case 1:
			write("dir/f")
		case 2:
			write("dir/sub/new/y")
		case 3:
			did(d.Delete("dir/sub", true))
		case 4:
			did(d.Delete("dir/f", false))
		case 5:
			did(d.Delete("dir", i%16 == 5))
		case 6:
			l, err := d.List("**")
			did(err)
			if strings.Contains(names(l.Files), "victim") {
				t.Errorf("listed outside: %s", names(l.Files))
			}
		case 7:
			before, err := d.Snapshot()
			did(err)
			c, err := d.Changes(before)
			did(err)
			got, _ := d.Collect(c.Files(), 1000)
			for _, f := range got {
				if bytes.Contains(f.Data, []byte("SECRET")) {
					t.Errorf("collected %s of outside", f.Name)
				}
			}
		}
		// The control: the path is within, so read it.
		if real, err := filepath.EvalSymlinks(d.path("dir/f")); err == nil && strings.HasPrefix(real, top+"/") {
			runtime.Gosched()
			if data, _ := os.ReadFile(d.path("dir/f")); string(data) == "SECRET" {
				leaks++
			}
		}
	}
	stop.Store(true)
	guests.Wait()
	t.Logf("%d calls worked, %d were refused for leading out, the control leaked %d times", worked, refusals, leaks)
	if worked == 0 || refusals == 0 || leaks == 0 {
		t.Error("the race was none")
	}
	if now := tree(t, outside); now != was {
		t.Errorf("outside became:\n%swas:\n%s", now, was)
	}
}

// tree shows the names and contents of a directory.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, syscall.EISDIR) {
			return err
		}
		all.WriteString(strings.TrimPrefix(path, dir) + " " + entry.Type().String() + " " + string(data) + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
