package workspace

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// open opens a workspace in a directory of the test's own.
func open(t testing.TB, o Options) *Dir {
	t.Helper()
	d, err := Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// path is where a name of the workspace is.
func (d *Dir) path(name string) string { return filepath.Join(d.root.Name(), name) }

// guestWrites writes a file as a guest would.
func guestWrites(t testing.TB, d *Dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.path(name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// refused checks that an error says want and not where the workspace is.
func refused(t *testing.T, d *Dir, what string, err error, want string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("%s was not refused", what)
	case !strings.Contains(err.Error(), want):
		t.Errorf("%s: the error %q does not say %q", what, err, want)
	case strings.Contains(err.Error(), d.root.Name()):
		t.Errorf("%s: the error %q tells where the workspace is", what, err)
	}
}

func holds(t *testing.T, d *Dir, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(d.path(name)); err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
	}
}

func TestRead(t *testing.T) {
	d := open(t, Options{})
	guestWrites(t, d, "data/in.csv", "a,b\n1,2\n")
	guestWrites(t, d, "notes", "grün")
	guestWrites(t, d, "blob", "\x00\xff")
	guestWrites(t, d, "broken.txt", "\x80abc")
	guestWrites(t, d, "new\nline", "x")
	for _, row := range []struct {
		name          string
		offset, limit int64
		data          string
		size, rest    int64
		kind          string
		text          bool
	}{
		{"data/in.csv", 0, 100, "a,b\n1,2\n", 8, 0, "text/csv", true},
		{"/workspace/data/in.csv", 4, 3, "1,2", 8, 1, "text/csv", true},
		{"./data//in.csv", 8, 3, "", 8, 0, "text/csv", true},
		{"data/in.csv", 1 << 62, 1 << 62, "", 8, 0, "text/csv", true},
		{"data/in.csv", 0, 0, "", 8, 8, "text/csv", true},
		{"notes", 0, 1 << 62, "grün", 5, 0, "text/plain", true},
		{"notes", 0, 3, "gr\xc3", 5, 2, "text/plain", true}, // cut through a character
		{"notes", 3, 9, "\xbcn", 5, 0, "text/plain", true},
		{"blob", 0, 9, "\x00\xff", 2, 0, "application/octet-stream", false},
		{"broken.txt", 0, 9, "\x80abc", 4, 0, "text/plain", false}, // nothing was cut here
		{"new\nline", 0, 9, "x", 1, 0, "text/plain", true},
	} {
		c, err := d.Read(row.name, row.offset, row.limit)
		if err != nil {
			t.Errorf("%q: %v", row.name, err)
			continue
		}
		if string(c.Data) != row.data || c.Size != row.size || c.Rest() != row.rest && row.offset < row.size ||
			c.Type != row.kind || c.Text != row.text || c.Offset != row.offset || c.Kind != Regular {
			t.Errorf("%q from %d: got %+v, %d more", row.name, row.offset, c, c.Rest())
		}
	}
	_, err := d.Read("data/in.csv", -1, 1)
	refused(t, d, "a negative offset", err, "neither can be negative")
	_, err = d.Read("nothing", 0, 1)
	refused(t, d, "what is not there", err, `"nothing" is not in the workspace`)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("what is not there is not fs.ErrNotExist")
	}
	_, err = d.Read("notes/x", 0, 1)
	refused(t, d, "a file taken for a folder", err, "not a directory")
}

// linkTo makes a symbolic link.
func linkTo(t testing.TB, d *Dir, target, name string) {
	t.Helper()
	if err := os.Symlink(target, d.path(name)); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	d := open(t, Options{})
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	guestWrites(t, d, "in/file", "inside")
	if err := syscall.Mkfifo(d.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", d.path("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	linkTo(t, d, "in/file", "within")
	linkTo(t, d, "in", "folder")
	linkTo(t, d, secret, "absolute")
	linkTo(t, d, "../"+filepath.Base(outside)+"/secret", "relative")
	linkTo(t, d, outside, "away")
	linkTo(t, d, "..", "up")
	linkTo(t, d, "loop", "loop")
	linkTo(t, d, "/dev/zero", "zero")
	linkTo(t, d, d.path("in/file"), "home") // absolute, and yet within: os.Root follows no such link
	for name, want := range map[string]string{
		"fifo":        "not a regular file",
		"socket":      "is a socket",
		"in":          "is a folder",
		".":           "names a folder",
		"in/":         "names a folder",
		"absolute":    "leads out of the workspace",
		"relative":    "leads out of the workspace",
		"away/secret": "leads out of the workspace",
		"up/x":        "leads out of the workspace",
		"zero":        "leads out of the workspace",
		"home":        "leads out of the workspace",
		"loop":        "too many levels of symbolic links",
	} {
		_, err := d.Read(name, 0, 100)
		refused(t, d, name, err, want)
	}
	for _, name := range []string{"within", "folder/file"} {
		if c, err := d.Read(name, 0, 100); err != nil || string(c.Data) != "inside" {
			t.Errorf("%s gave %q, %v", name, c.Data, err)
		}
	}
}

func TestWrite(t *testing.T) {
	d := open(t, Options{Bytes: 1000, Files: 100})
	outside := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string, created bool) {
		t.Helper()
		want := Written{strings.TrimPrefix(name, "/workspace/"), created}
		if got, err := d.Write(name, []byte(content)); err != nil || got != want {
			t.Errorf("write %s: got %+v, %v", name, got, err)
		}
		holds(t, d, want.Name, content)
	}
	write("a.txt", "one", true)
	write("a.txt", "two", false)
	write("/workspace/b/c/d.txt", "deep", true)
	write("b/c/empty", "", true)
	write("-rf\n*", "odd names are names", true)

	if err := os.Chmod(d.path("a.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	write("a.txt", "three", false)
	if info, err := os.Stat(d.path("a.txt")); err != nil || info.Mode() != 0o444 {
		t.Errorf("the permissions became %v (%v)", info.Mode(), err)
	}

	// What stands there is replaced, and not written to.
	linkTo(t, d, outside, "link")
	write("link", "mine", false)
	guestWrites(t, d, "first", "kept")
	if err := os.Link(d.path("first"), d.path("second")); err != nil {
		t.Fatal(err)
	}
	write("second", "own", false)
	holds(t, d, "first", "kept")
	if err := syscall.Mkfifo(d.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	write("fifo", "a file now", false)
	linkTo(t, d, "b", "folder")
	write("folder/through", "a link to a folder within", true)

	linkTo(t, d, filepath.Dir(outside), "away")
	for name, want := range map[string]string{
		"b":             "is a folder",
		"b/c/":          "names a folder",
		".":             "names a folder",
		"a.txt/x":       "one of its folders is a file",
		"a.txt/x/y":     "one of its folders is a file",
		"away/file":     "leads out of the workspace",
		"away/new/file": "leads out of the workspace",
		"../file":       `holds ".."`,
	} {
		_, err := d.Write(name, []byte("x"))
		refused(t, d, name, err, want)
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "outside" {
		t.Errorf("the file outside holds %q (%v)", got, err)
	}
	if others, _ := filepath.Glob(filepath.Dir(outside) + "/*"); len(others) != 1 {
		t.Errorf("there is more outside now: %q", others)
	}
	nothingPartial(t, d)
}

func nothingPartial(t *testing.T, d *Dir) {
	t.Helper()
	if left, _ := filepath.Glob(d.path(partialPrefix + "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestWriteKeepsTheLimits(t *testing.T) {
	d := open(t, Options{Bytes: 100, Files: 5})
	write := func(name string, n int) error {
		_, err := d.Write(name, make([]byte, n))
		return err
	}
	refused(t, d, "too large at all", write("a", 101), `"a" has 101 bytes: the workspace holds 100 at most`)
	if err := write("a", 60); err != nil {
		t.Error(err)
	}
	refused(t, d, "the second", write("b", 41), "it has 41 bytes, the workspace holds 60, and 100 at most")
	refused(t, d, "two of the same", write("a", 41), "a file that is replaced counts until then")
	if err := write("x/y/z", 40); err != nil { // 4 entries, 100 bytes
		t.Error(err)
	}
	refused(t, d, "one entry too many", write("v/w", 0), "the workspace holds 4 files and folders, and 5 at most")
	if err := write("w", 0); err != nil {
		t.Error(err)
	}
	refused(t, d, "a replacement in a full workspace", write("w", 0), "5 at most")
	if err := d.Delete("x/y/z", false); err != nil {
		t.Error(err)
	}
	if err := write("w", 40); err != nil {
		t.Error(err)
	}
	holds(t, d, "a", strings.Repeat("\x00", 60))
	nothingPartial(t, d)

	// Sizes that a guest claims for files with holes do not add up to less.
	sparse := open(t, Options{Bytes: 100, Files: 50})
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := os.WriteFile(sparse.path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(sparse.path(name), 1<<43); err != nil {
			t.Skip("no large files with holes here: ", err)
		}
	}
	_, err := sparse.Write("e", []byte("x"))
	refused(t, sparse, "beside files with holes", err, "does not fit")
	if c, err := sparse.Read("a", 1<<42, 10); err != nil || !bytes.Equal(c.Data, make([]byte, 10)) || c.Rest() != 1<<42-10 {
		t.Errorf("a hole gave %v, %v", c, err)
	}
}

func TestDelete(t *testing.T) {
	d := open(t, Options{})
	guestWrites(t, d, "file", "x")
	guestWrites(t, d, "full/sub/file", "x")
	guestWrites(t, d, "keep/file", "kept")
	if err := os.Mkdir(d.path("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	linkTo(t, d, "keep", "link")
	linkTo(t, d, "nowhere", "dangling")
	refused(t, d, "a full folder", d.Delete("full", false), "is not empty")
	refused(t, d, "the workspace", d.Delete("/workspace", true), "the workspace itself")
	refused(t, d, "nothing", d.Delete("nothing", true), "is not in the workspace")
	refused(t, d, "outside", d.Delete("../x", true), `holds ".."`)
	for name, recursive := range map[string]bool{"file": false, "empty/": false, "full": true, "link": true, "dangling": false} {
		if err := d.Delete(name, recursive); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there", name)
		}
	}
	holds(t, d, "keep/file", "kept")
}

func TestReadOnlyAndClosed(t *testing.T) {
	d := open(t, Options{ReadOnly: true})
	guestWrites(t, d, "file", "x")
	_, err := d.Write("file", nil)
	refused(t, d, "writing", err, "read-only")
	refused(t, d, "writing all", d.WriteAll(map[string][]byte{"a": nil}), "read-only")
	refused(t, d, "deleting", d.Delete("file", true), "read-only")
	holds(t, d, "file", "x")

	w := open(t, Options{})
	w.Close()
	_, err = w.Write("a", nil)
	refused(t, w, "writing", err, "its session has ended")
	_, err = w.Read("a", 0, 1)
	refused(t, w, "reading", err, "its session has ended")
	_, err = w.List("")
	refused(t, w, "listing", err, "its session has ended")
	if _, err = w.Snapshot(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a snapshot gave %v", err)
	}
	refused(t, w, "deleting", w.Delete("a", true), "its session has ended")
}

func TestWriteAllAndCollect(t *testing.T) {
	d := open(t, Options{Bytes: 100, Files: 7})
	if err := d.WriteAll(map[string][]byte{"in.csv": []byte("1,2"), "/workspace/lib/a.py": []byte("x"), "lib/b.py": nil}); err != nil {
		t.Fatal(err)
	}
	holds(t, d, "lib/a.py", "x")
	for want, files := range map[string]map[string][]byte{
		"are the same file":   {"x/y": nil, "x//y": nil},
		"the path is empty":   {"": nil},
		"101 bytes":           {"a": make([]byte, 50), "b": make([]byte, 51)},
		"7 at most":           {"a": nil, "b/c/d": nil},
		`"lib" is a folder`:   {"lib": nil},
		"it has 98 bytes":     {"a": make([]byte, 98)},
		"leads out":           {"away/x": nil},
		"names a folder":      {"a/": nil},
		"outside the workspa": {"/etc/passwd": nil},
	} {
		if want == "leads out" {
			linkTo(t, d, "/", "away")
		}
		refused(t, d, want, d.WriteAll(files), want)
	}
	_ = os.Remove(d.path("away"))

	before, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	guestWrites(t, d, "out/big", strings.Repeat("x", 60))
	guestWrites(t, d, "out/late", strings.Repeat("y", 30))
	guestWrites(t, d, "out/small", "small")
	guestWrites(t, d, "out/gone", "gone")
	changes, err := d.Changes(before)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Delete("out/gone", false); err != nil {
		t.Fatal(err)
	}
	got, left := d.Collect(changes.Files(), 70)
	if len(got) != 2 || got[0].Name != "out/big" || len(got[0].Data) != 60 || string(got[1].Data) != "small" ||
		len(left) != 2 || left[0].Name != "out/gone" || left[1].Name != "out/late" {
		t.Errorf("got %v, left %v", got, left)
	}
	if got, left := d.Collect(changes.Files(), 0); len(got) != 0 || len(left) != 4 {
		t.Errorf("with no room: got %v, left %v", got, left)
	}
}

func TestChanges(t *testing.T) {
	d := open(t, Options{})
	for _, name := range []string{"same", "grown", "rewritten", "touched", "replaced", "gone", "dir/moved"} {
		guestWrites(t, d, name, "before")
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(d.path("replaced"), old, old); err != nil {
		t.Fatal(err)
	}
	before, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if c, err := d.Changes(before); err != nil || c.Any() || c.Incomplete {
		t.Errorf("without a change: %+v, %v", c, err)
	}
	guestWrites(t, d, "grown", "before and after")
	guestWrites(t, d, "rewritten", "after!")
	if err := os.Chtimes(d.path("rewritten"), old, old); err != nil { // whatever the clock's grain
		t.Fatal(err)
	}
	guestWrites(t, d, "new.png", "x")
	guestWrites(t, d, "copy", "before")
	if err := os.Chtimes(d.path("copy"), old, old); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"copy": "replaced", "dir": "other"} {
		if err := os.Rename(d.path(from), d.path(to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(d.path("gone")); err != nil {
		t.Fatal(err)
	}
	linkTo(t, d, "same", "link")
	c, err := d.Changes(before)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(c.Created); got != "new.png other/moved" {
		t.Errorf("created: %s", got)
	}
	if got := names(c.Changed); got != "grown replaced rewritten" {
		t.Errorf("changed: %s", got)
	}
	if got := strings.Join(c.Deleted, " "); got != "dir/moved gone" {
		t.Errorf("deleted: %s", got)
	}
	if got := names(c.Files()); got != "grown new.png other/moved replaced rewritten" {
		t.Errorf("files: %s", got)
	}
	if c.Created[0].Type != "image/png" || c.Created[0].Size != 1 {
		t.Errorf("got %+v", c.Created[0])
	}
}

func names(files []File) string {
	var all []string
	for _, f := range files {
		all = append(all, f.Name)
	}
	return strings.Join(all, " ")
}

// TestNewFilesTakeFreeNames, also when many are written at once.
func TestNewFilesTakeFreeNames(t *testing.T) {
	d, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.Write("new-1.txt", []byte("old")); err != nil {
		t.Fatal(err)
	}
	names := make(chan string)
	for i := range 20 {
		go func() {
			file, err := d.WriteNew("new-", ".txt", []byte{byte(i)})
			if err != nil {
				t.Error(err)
			}
			names <- file.Name
		}()
	}
	taken := map[string]bool{"new-1.txt": true}
	for range 20 {
		name := <-names
		if taken[name] {
			t.Errorf("%s was taken", name)
		}
		taken[name] = true
	}
	if old, err := d.Read("new-1.txt", 0, 10); string(old.Data) != "old" {
		t.Errorf("what was there is %q, %v", old.Data, err)
	}
}
