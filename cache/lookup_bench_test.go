package cache

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkLookup is what it costs to find an entry of 30 MB, the size of a
// snapshot: for the first time in a process, when it is hashed, and again.
func BenchmarkLookup(b *testing.B) {
	dir := b.TempDir()
	content := bytes.Repeat([]byte("0123456789abcdef"), 2e6)
	c, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Put(b.Context(), "snapshot", "python", bytes.NewReader(content)); err != nil {
		b.Fatal(err)
	}
	_, _, err = c.Tree(b.Context(), "runtime", "python", func(_ context.Context, dir string) error {
		return os.WriteFile(filepath.Join(dir, "python.wasm"), content, 0o644)
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []struct {
		name string
		get  func(*Cache) (string, error)
	}{
		{"file", func(c *Cache) (string, error) { return c.Get("snapshot", "python") }},
		{"tree", func(c *Cache) (string, error) { return c.GetTree("runtime", "python") }},
	} {
		b.Run(kind.name+" for the first time", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				fresh, err := Open(dir, Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if _, err := kind.get(fresh); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				_ = fresh.Close()
				b.StartTimer()
			}
		})
		b.Run(kind.name+" again", func(b *testing.B) {
			for b.Loop() {
				if _, err := kind.get(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
