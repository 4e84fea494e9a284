package cache

import (
	"os"
	"strings"
	"testing"
)

func TestLookupsAreCounted(t *testing.T) {
	c, err := Open(t.TempDir(), Options{})
	must(t, err)
	defer c.Close()
	check := func(what string, hits, misses int64) {
		t.Helper()
		if h, m := c.Lookups(); h != hits || m != misses {
			t.Errorf("after %s: %d hits and %d misses, want %d and %d", what, h, m, hits, misses)
		}
	}
	if _, err := c.Get("k", "a"); err == nil {
		t.Error("there is something")
	}
	check("a miss", 0, 1)
	_, err = c.Put(t.Context(), "k", "a", strings.NewReader("x"))
	must(t, err)
	_, err = c.Get("k", "a")
	must(t, err)
	check("a hit", 1, 1)
	for range 2 {
		_, _, err = c.GetOrDownload(t.Context(), "k", "b", func(path string) error { return os.WriteFile(path, nil, 0o600) })
		must(t, err)
	}
	check("what is made, and then there", 2, 2)
}

func TestACacheThatCannotBeAddedToSaysSo(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(dir, Options{})
	must(t, err)
	defer c.Close()
	must(t, c.CheckWritable())
	must(t, os.RemoveAll(dir))
	if err := c.CheckWritable(); err == nil {
		t.Error("a cache without its directory can be added to")
	}
}
