package cache

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWhatIsThereIsUsedWhereNothingCanBeWritten: on a full disk, opened before or
// after it was full, and on one that is read-only.
func TestWhatIsThereIsUsedWhereNothingCanBeWritten(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, disk string) string{
		"full": func(t *testing.T, disk string) string {
			for i := range 1 << 20 { // its bytes, then its files
				err := os.WriteFile(filepath.Join(disk, "fill", strings.Repeat("x", 200)+string(rune('a'+i%26))+strings.Repeat("y", i/26)), make([]byte, 64<<10), 0o600)
				if errors.Is(err, syscall.ENOSPC) {
					return disk
				}
				must(t, err)
			}
			t.Fatal("it is never full")
			return ""
		},
		"read-only": func(t *testing.T, disk string) string { // to who opens it from now on
			view := t.TempDir()
			must(t, syscall.Mount(disk, view, "", syscall.MS_BIND, ""))
			t.Cleanup(func() { _ = syscall.Unmount(view, syscall.MNT_DETACH) })
			must(t, syscall.Mount("", view, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""))
			return view
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := t.TempDir()
			if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
				t.Skip("no file system can be mounted:", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
			must(t, os.Mkdir(filepath.Join(disk, "fill"), 0o700))
			dir := filepath.Join(disk, "cache")
			first, err := Open(dir, Options{})
			must(t, err)
			_, err = first.Put(t.Context(), "k", "a", strings.NewReader("content"))
			must(t, err)
			_, _, err = first.Tree(t.Context(), "k", "b", func(_ context.Context, dir string) error {
				return os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o600)
			})
			must(t, err)
			early, err := Open(dir, Options{})
			must(t, err)
			must(t, first.Close())
			spoiled := spoil(t, disk)
			late, err := Open(filepath.Join(spoiled, "cache"), Options{})
			must(t, err)
			caches := map[string]*Cache{"after": late}
			if spoiled == disk {
				caches["before"] = early
			}
			for opened, c := range caches {
				path, err := c.Get("k", "a")
				must(t, err)
				if text, err := os.ReadFile(path); err != nil || string(text) != "content" {
					t.Errorf("opened %s: %q %v", opened, text, err)
				}
				tree, hit, err := c.Tree(t.Context(), "k", "b", nil)
				if err != nil || !hit || !exists(filepath.Join(tree, "file")) {
					t.Errorf("opened %s: %s %v %v", opened, tree, hit, err)
				}
				loan, err := c.Lend()
				must(t, err)
				if lent, err := loan.Add(path); err != nil || !exists(lent) {
					t.Errorf("opened %s: lent %s %v", opened, lent, err)
				}
				must(t, loan.Close())
				if _, _, err := c.GetOrPut(t.Context(), "k", "new", func(_ context.Context, w io.Writer) error {
					_, err := w.Write(make([]byte, 1<<20))
					return err
				}); !cannotWrite(err) {
					t.Errorf("opened %s: something new gave %v", opened, err)
				}
				if err := c.CheckWritable(); !cannotWrite(err) {
					t.Errorf("opened %s: it says of itself %v", opened, err)
				}
				_ = c.Close()
			}
		})
	}
}
