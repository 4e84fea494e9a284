package workspace

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestClosedFoldersAreCounted: what a guest of our own user has closed to us counts,
// and stays closed.
func TestClosedFoldersAreCounted(t *testing.T) {
	d := open(t, Options{Bytes: 1 << 20, Files: 100})
	for _, mode := range []os.FileMode{0o300, 0, 0o400, 0o500} {
		guestWrites(t, d, "outer/inner/file", "12345")
		for _, folder := range []string{"outer/inner", "outer", ""} {
			if err := os.Chmod(d.path(folder), mode); err != nil {
				t.Fatal(err)
			}
		}
		asGuest(t, d, func() {
			if u, err := d.Usage(); err != nil || u.Bytes != 5 || u.Files != 3 || u.More {
				t.Errorf("%v: %+v, %v", mode, u, err)
			}
			if u, err := Measure(d.path(""), "", 100); err != nil || u.Bytes != 5 || u.Files != 3 || u.More {
				t.Errorf("%v: %+v, %v", mode, u, err)
			}
		})
		for _, folder := range []string{"outer", "outer/inner"} {
			if info, err := os.Stat(d.path(folder)); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s is %v afterwards, %v", folder, info, err)
			}
		}
		asGuest(t, d, func() {
			if err := Reopen(d.path("")); err != nil {
				t.Error(err)
			}
			if err := os.RemoveAll(d.path("outer")); err != nil {
				t.Error(err)
			}
		})
	}
}

// asGuest calls f with the rights of an ordinary user, whose workspace it is.
func asGuest(t *testing.T, d *Dir, f func()) {
	t.Helper()
	done := make(chan bool)
	go func() { // whose thread ends with it
		defer close(done)
		runtime.LockOSThread()
		if os.Geteuid() == 0 { // who may look into all
			if err := os.Chmod(filepath.Dir(d.path("")), 0o711); err != nil {
				t.Error(err)
			}
			for _, name := range []string{"", "outer", "outer/inner"} {
				if err := os.Chown(d.path(name), 1234, -1); err != nil {
					t.Error(err)
				}
			}
			if err := unix.Setfsuid(1234); err != nil {
				t.Error(err)
			}
		}
		f()
	}()
	<-done
}
