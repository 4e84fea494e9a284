//go:build !windows

package deno_test

import (
	"os"
	"path/filepath"
	"testing"

	"rillbox/supervisor"
)

// A program's workspace is its current directory, which it may read and, unless
// it is read-only, write; what is beside it is not.
func TestAProgramHasItsWorkspace(t *testing.T) {
	e := newEngine(t, "")
	beside := t.TempDir()
	dir := filepath.Join(beside, "workspace")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{"in.txt": "data", "deno.json": "{", "package.json": "{", "../secret": "secret"} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write := `Deno.writeTextFileSync("out.txt", Deno.readTextFileSync("in.txt").toUpperCase());`
	for _, row := range []struct {
		code     string
		readOnly bool
		want     supervisor.Status
	}{
		{write, false, supervisor.Completed},
		{`if (Deno.readTextFileSync("in.txt") !== "data") throw 1`, true, supervisor.Completed},
		{write, true, supervisor.Failed},
		{`Deno.readTextFileSync("../secret")`, false, supervisor.Failed},
		{`await import("../secret", {with: {type: "text"}})`, false, supervisor.Failed},
		{`Deno.symlinkSync("../secret", "link"); Deno.readTextFileSync("link")`, false, supervisor.Failed},
	} {
		r := run(t, e, supervisor.Program{Language: supervisor.JavaScript, Code: row.code, Workspace: dir, ReadOnly: row.readOnly})
		if r.Status != row.want {
			t.Errorf("%s (read-only: %v) gave %s %+v", row.code, row.readOnly, r.Status, r.Error)
		}
	}
	if out, err := os.ReadFile(filepath.Join(dir, "out.txt")); err != nil || string(out) != "DATA" {
		t.Errorf("out.txt is %q, %v", out, err)
	}
}
