//go:build !windows

package deno_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/deno/binary"
)

// TestTypeScript runs the guest side's own tests and checks under Deno.
func TestTypeScript(t *testing.T) {
	binary, err := binary.Locate(t.Context(), binary.LocateOptions{Cache: cachetest.Open(t)})
	cachetest.NeedNetwork(t, err)
	tests, err := filepath.Glob("*_test.ts")
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests in TypeScript were found: %v", err)
	}
	sources, err := filepath.Glob("*.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		append([]string{"test", "--no-config", "--no-lock", "--cached-only"}, tests...),
		append([]string{"check", "--no-config", "--no-lock"}, sources...),
	} {
		cmd := exec.Command(binary.Path, args...)
		cmd.Env = append(os.Environ(), "DENO_DIR="+t.TempDir(), "NO_COLOR=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("deno %s: %v\n%s", args[0], err, out)
		}
	}
}
