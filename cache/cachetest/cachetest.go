// Package cachetest opens the cache that tests share, so that Deno, Pyodide
// and packages are fetched once for all of them.
package cachetest

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"rillbox/cache"
	"rillbox/cache/egress"
)

// DirEnv names the environment variable that moves the shared test cache.
const DirEnv = "RILLBOX_TEST_CACHE_DIR"

// Open opens the shared test cache: $RILLBOX_TEST_CACHE_DIR, else
// "rillbox-test" in the user's cache directory. It is closed when the test
// ends; what it logs goes to the test's log.
func Open(t testing.TB) *cache.Cache {
	t.Helper()
	return open(t, cache.Options{Log: Logger(t)})
}

// OpenOffline is Open with the network forbidden.
func OpenOffline(t testing.TB) *cache.Cache {
	t.Helper()
	return open(t, cache.Options{Log: Logger(t), Offline: true})
}

// Dir is the shared test cache's directory.
func Dir() (string, error) {
	if dir := os.Getenv(DirEnv); dir != "" {
		return dir, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "rillbox-test"), nil
}

// Logger writes to the test's log.
func Logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// Empty opens a cache of the test's own, with nothing in it. Its log is the
// test's.
func Empty(t testing.TB, o cache.Options) *cache.Cache {
	t.Helper()
	o.Log = Logger(t)
	c, err := cache.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// NeedNetwork skips the test for want of the network, and fails it where CI
// is set. Call it with the error that showed the want; any other error fails.
func NeedNetwork(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if egress.IsOffline(err) && os.Getenv("CI") == "" {
		t.Skipf("needs the network: %v", err)
	}
	t.Fatal(err)
}

func open(t testing.TB, o cache.Options) *cache.Cache {
	t.Helper()
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	c, err := cache.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
