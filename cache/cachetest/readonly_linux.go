package cachetest

import (
	"syscall"
	"testing"

	"rillbox/cache"
)

// ReadOnly opens the shared test cache where nothing can be written to it.
func ReadOnly(t testing.TB) *cache.Cache {
	t.Helper()
	view := t.TempDir()
	if err := syscall.Mount(Open(t).Dir(), view, "", syscall.MS_BIND, ""); err != nil {
		t.Skip("no file system can be mounted:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(view, syscall.MNT_DETACH) })
	if err := syscall.Mount("", view, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	c, err := cache.Open(view, cache.Options{Log: Logger(t), Offline: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
