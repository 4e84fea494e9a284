package cache_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/cache"
	"rillbox/cache/cachetest"
)

// TestALoanOutlivesItsEntry: what is lent stays readable when the entry is
// removed, and is gone with the loan; the entry is not.
func TestALoanOutlivesItsEntry(t *testing.T) {
	c := cachetest.Empty(t, cache.Options{})
	path, err := c.Put(t.Context(), "thing", "key", strings.NewReader("lent"))
	if err != nil {
		t.Fatal(err)
	}
	loan, err := c.Lend()
	if err != nil {
		t.Fatal(err)
	}
	lent, err := loan.Add(path)
	if err != nil || filepath.Dir(lent) != loan.Dir() {
		t.Fatalf("%q, %v", lent, err)
	}
	if again, err := loan.Add(path); err != nil || again != lent {
		t.Errorf("lent again: %q, %v", again, err)
	}
	other, err := c.Lend()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Add(path); err != nil {
		t.Fatal(err)
	}
	if err := loan.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
	if again, err := c.Get("thing", "key"); err != nil || again != path {
		t.Errorf("the entry after Close: %q, %v", again, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(other.Dir(), filepath.Base(path))); string(text) != "lent" {
		t.Errorf("the other loan, without the entry: %q, %v", text, err)
	}
}
