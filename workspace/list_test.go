package workspace

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestList(t *testing.T) {
	d := open(t, Options{})
	for _, name := range []string{"b.csv", "a.txt", "data/x.csv", "data/deep/y.csv", "data/deep/z", "new\nline", "a[1].txt"} {
		guestWrites(t, d, name, "content")
	}
	if err := os.Mkdir(d.path("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	if err := os.WriteFile(outside+"/outside.csv", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	linkTo(t, d, outside, "away")
	linkTo(t, d, "data", "data/loop")
	if err := syscall.Mkfifo(d.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for glob, want := range map[string]string{
		"":             "a.txt a[1].txt away b.csv data data/deep data/deep/y.csv data/deep/z data/loop data/x.csv empty fifo new\nline",
		"*":            "a.txt a[1].txt away b.csv data empty fifo new\nline",
		"*.csv":        "b.csv",
		"**/*.csv":     "b.csv data/deep/y.csv data/x.csv",
		"data":         "data/deep data/deep/y.csv data/deep/z data/loop data/x.csv",
		"data/":        "data/deep data/deep/y.csv data/deep/z data/loop data/x.csv",
		"data/*":       "data/deep data/loop data/x.csv",
		"data/**/z":    "data/deep/z",
		"b.csv":        "b.csv",
		"empty":        "",
		"away":         "away",
		"away/*":       "",
		"data/loop/**": "data/loop",
		"nothing*":     "",
		"/workspace/*": "a.txt a[1].txt away b.csv data empty fifo new\nline",
	} {
		l, err := d.List(glob)
		if err != nil || names(l.Files) != want || l.Incomplete || l.Unnamed != 0 {
			t.Errorf("%q gave %q, %+v, %v; want %q", glob, names(l.Files), l, err, want)
		}
	}
	_, err := d.List("nothing")
	refused(t, d, "a name without wildcards", err, "is not in the workspace")
	_, err = d.List("../*")
	refused(t, d, "outside", err, `holds ".."`)

	l, err := d.List("*")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]File{}
	for _, f := range l.Files {
		kinds[f.Name] = f
		if f.Modified.IsZero() {
			t.Errorf("%s has no time", f.Name)
		}
	}
	for name, want := range map[string]File{
		"a.txt": {Kind: Regular, Size: 7, Type: "text/plain"},
		"b.csv": {Kind: Regular, Size: 7, Type: "text/csv"},
		"data":  {Kind: Folder},
		"away":  {Kind: Link},
		"fifo":  {Kind: Other},
	} {
		if got := kinds[name]; got.Kind != want.Kind || got.Size != want.Size || got.Type != want.Type {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	if u, err := d.Usage(); err != nil || u != (Usage{Bytes: 7 * 7, Files: 13}) {
		t.Errorf("usage %+v, %v", u, err)
	}
}

func TestHostileTrees(t *testing.T) {
	t.Run("many files", func(t *testing.T) {
		d := open(t, Options{Bytes: 1 << 20, Files: 100})
		guestWrites(t, d, "many/file", "x")
		for i := range maxWalk + 500 {
			if err := os.Link(d.path("many/file"), d.path(fmt.Sprintf("many/%d", i))); err != nil {
				t.Skip("no so many links here: ", err)
			}
		}
		l, err := d.List("")
		if err != nil || !l.Incomplete || len(l.Files) != maxWalk {
			t.Errorf("%d files, incomplete %v, %v", len(l.Files), l.Incomplete, err)
		}
		if l, err := d.List("*"); err != nil || l.Incomplete || names(l.Files) != "many" {
			t.Errorf("the top: %+v, %v", l, err)
		}
		_, err = d.Write("one more", nil)
		refused(t, d, "one more", err, "more files than are counted")
		if u, err := d.Usage(); err != nil || !u.More {
			t.Errorf("usage %+v, %v", u, err)
		}
		before, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if c, err := d.Changes(before); err != nil || !c.Incomplete || c.Any() {
			t.Errorf("changes of what was partly seen: %d created, %d changed, %d deleted, incomplete %v, %v",
				len(c.Created), len(c.Changed), len(c.Deleted), c.Incomplete, err)
		}
		if err := d.Delete("many", true); err != nil {
			t.Error(err)
		}
		if _, err = d.Write("one more", nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("deep folders", func(t *testing.T) {
		d := open(t, Options{Bytes: 1 << 20, Files: 100})
		deep := strings.Repeat("d/", 1500)
		if err := os.MkdirAll(d.path(deep), 0o755); err != nil {
			t.Skip("no so deep folders here: ", err)
		}
		l, err := d.List("")
		if err != nil || !l.Incomplete || len(l.Files) != maxDepth {
			t.Errorf("%d files, incomplete %v, %v", len(l.Files), l.Incomplete, err)
		}
		_, err = d.Read(deep+"x", 0, 1)
		refused(t, d, "reading", err, "1501 folders deep")
		_, err = d.Write("x", nil)
		refused(t, d, "writing beside", err, "deeper folders")
		if err := d.Delete("d", true); err != nil {
			t.Error(err)
		}
		if _, err = d.Write("x", nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("names that are no text", func(t *testing.T) {
		d := open(t, Options{})
		if err := os.MkdirAll(d.path("a\xff/b"), 0o755); err != nil {
			t.Skip("no such names here: ", err)
		}
		guestWrites(t, d, "\xfe", "12345")
		guestWrites(t, d, "file", "12345")
		l, err := d.List("")
		if err != nil || names(l.Files) != "file" || l.Unnamed != 2 {
			t.Errorf("%+v, %v", l, err)
		}
		if u, err := d.Usage(); err != nil || u != (Usage{Bytes: 10, Files: 4}) {
			t.Errorf("usage %+v, %v", u, err)
		}
		if c, err := d.Changes(Snapshot{complete: true}); err != nil || names(c.Created) != "file" {
			t.Errorf("%+v, %v", c, err)
		}
	})
	t.Run("a folder that cannot be read", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("root reads all")
		}
		d := open(t, Options{})
		guestWrites(t, d, "locked/file", "x")
		guestWrites(t, d, "open/file", "x")
		if err := os.Chmod(d.path("locked"), 0); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(d.path("locked"), 0o700)
		l, err := d.List("")
		if err != nil || !l.Incomplete || names(l.Files) != "locked open open/file" {
			t.Errorf("%+v, %v", l, err)
		}
	})
}
