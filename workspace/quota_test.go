package workspace

import (
	"os"
	"strings"
	"sync"
	"testing"
)

// TestQuota: workspaces that have a quota hold no more than it together, by what is
// written through them; what guests write is seen when it is measured.
func TestQuota(t *testing.T) {
	q := NewQuota(1000)
	open := func() (*Dir, string) {
		path := t.TempDir()
		d, err := Open(path, Options{Quota: q})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d, path
	}
	a, _ := open()
	b, guest := open()
	write := func(d *Dir, name string, bytes int) error {
		_, err := d.Write(name, make([]byte, bytes))
		return err
	}
	if err := write(a, "x", 600); err != nil {
		t.Fatal(err)
	}
	if err := write(b, "x", 401); err == nil || !strings.Contains(err.Error(), "1001 bytes, and may have 1000") {
		t.Errorf("one byte too many: %v", err)
	}
	if err := write(b, "x", 400); err != nil {
		t.Errorf("what fits: %v", err)
	}
	if err := b.WriteAll(map[string][]byte{"y": {1}}); err == nil {
		t.Error("and one more")
	}
	if err := a.Delete("x", false); err != nil {
		t.Fatal(err)
	}
	if err := write(b, "y", 600); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
	if !b.WithinQuota() || write(a, "z", 1) == nil {
		t.Error("it is not full")
	}
	if err := b.Empty(); err != nil || write(a, "z", 1000) != nil {
		t.Errorf("after all was deleted: %v", err)
	}
	if err := os.WriteFile(guest+"/by-a-guest", []byte("12"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b.WithinQuota() {
		t.Error("what a guest wrote does not count")
	}
	a.Close()
	if !b.WithinQuota() || write(b, "z", 998) != nil {
		t.Error("what is closed counts")
	}
	// Closed between being measured and being noted, as a call that deletes is by one
	// that ends the session.
	if q.hold(a, 500, true); !b.WithinQuota() {
		t.Error("what was closed since it was measured counts")
	}
	// Many at once have no more than there is.
	c, _ := open()
	if err := b.Empty(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			_ = write([]*Dir{b, c}[i%2], string(rune('a'+i)), 100)
		})
	}
	all.Wait()
	one, _ := b.Usage()
	other, _ := c.Usage()
	if sum := one.Bytes + other.Bytes; sum > 1000 || sum < 900 {
		t.Errorf("together they hold %d bytes", sum)
	}
}
