//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// FuzzConfig reads configurations: one that is taken means the same when it is
// written down and read again.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"", "memory = \"1GiB\"\ntimeout = 5\n", "deno_permission_args = [\"--allow-net=x\"]", "deno_permission_args = \"-R='/a b'\"",
		"allow_packages = [\"npm:@a/*\"]\nfetch_packages = false", "[limits]\ntimeout = 3", "timeout = 1e400", "env = [1, \"\\u0000\"]", "memory = -1", "a = {b = [[1]]}",
		"min_release_age = \"7d\"\nrunning = 9223372036854775807", "cache_dir = \"\\t\"", "x = 1979-05-27T07:32:00Z", "\xff",
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Setenv("RILLBOX_CACHE_DIR", filepath.Join(dir, "cache"))
	read := func(t *testing.T, text []byte) (*config, error) {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c := newConfig()
		flags := pflag.NewFlagSet("fuzz", pflag.ContinueOnError)
		c.bindFlags(flags, func(string) bool { return true })
		return c, c.load(path, nil, flags)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := read(t, text)
		if err != nil {
			if err.Error() == "" {
				t.Errorf("%q gave an empty error", text)
			}
			return
		}
		_ = c.Engine.Policy.Validate()
		var written strings.Builder
		if err := c.print(&written); err != nil {
			t.Fatalf("%q can't be written: %v", text, err)
		}
		again, err := read(t, []byte(written.String()))
		if err != nil {
			t.Fatalf("%q became %q: %v", text, written.String(), err)
		}
		for i, s := range c.settings {
			if have := again.settings[i].value.String(); have != s.value.String() {
				t.Errorf("%q: %s is %q, then %q", text, s.key, s.value.String(), have)
			}
		}
	})
}
