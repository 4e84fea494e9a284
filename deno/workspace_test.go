//go:build !windows

package deno_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/supervisor/job"
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
		want     job.Status
	}{
		{write, false, job.Completed},
		{`if (Deno.readTextFileSync("in.txt") !== "data") throw 1`, true, job.Completed},
		{write, true, job.Failed},
		{`Deno.readTextFileSync("../secret")`, false, job.Failed},
		{`await import("../secret", {with: {type: "text"}})`, false, job.Failed},
		{`Deno.symlinkSync("../secret", "link"); Deno.readTextFileSync("link")`, false, job.Failed},
	} {
		r := run(t, e, job.Program{Language: job.JavaScript, Code: row.code, Workspace: dir, ReadOnly: row.readOnly})
		if r.Status != row.want {
			t.Errorf("%s (read-only: %v) gave %s %+v", row.code, row.readOnly, r.Status, r.Error)
		}
	}
	if out, err := os.ReadFile(filepath.Join(dir, "out.txt")); err != nil || string(out) != "DATA" {
		t.Errorf("out.txt is %q, %v", out, err)
	}
}

// What a program names relative to itself is in its workspace, however it is
// imported, and so is what files name relative to themselves.
func TestAProgramImportsFilesOfItsWorkspace(t *testing.T) {
	e := newEngine(t, "")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"helper.js": `import { g } from "./lib/g.ts"; export const f = g;`,
		"lib/g.ts":  `export const g = (): number => 5;`,
		"d.json":    `{"a": 5}`,
		"five.ts":   `import isOdd from "npm:is-odd@3.0.1"; export const five = isOdd(7) ? 5 : 0;`,
		"jsx.tsx":   `export const five = (<b>{5}</b>).props.children;`,
		"h.cjs":     `exports.f = () => require("./lib/h.cjs").n;`,
		"lib/h.cjs": `exports.n = 5;`,
		"main.js":   `export const f = () => "not the program";`,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, code := range []string{
		`import { f } from "./helper.js"; export default f();`,
		`const { f } = await import("./helper.js"); export default f();`,
		`import { five } from "./five.ts"; export default five;`,
		`import { five } from "./jsx.tsx"; export default five;`,
		`import d from "./d.json" with { type: "json" }; export default d.a;`,
		`module.exports = Promise.resolve(require("./h.cjs").f());`,
		`module.exports = Promise.resolve(require("./h").f());`,
		`module.exports = Promise.resolve(require(require.resolve("./h.cjs", { paths: [Deno.cwd() + "/lib"] })).n);`,
	} {
		for _, readOnly := range []bool{false, true} {
			r := run(t, e, job.Program{Language: job.JavaScript, Code: code, Workspace: dir, ReadOnly: readOnly})
			if string(r.Value) != "5" {
				t.Errorf("%s (read-only: %v) gave %s %+v", code, readOnly, r.Value, r.Error)
			}
		}
	}
	if err := os.Symlink(filepath.Dir(dir), filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	r := run(t, e, job.Program{Language: job.JavaScript, Code: `import { f } from "./helper.js"; "./out/x.js"; export default f();`, Workspace: dir})
	if string(r.Value) != "5" || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "was not fetched") || !strings.Contains(r.Notes[0], "leads out") {
		t.Errorf("beside a link that leads out: %s %+v %q", r.Value, r.Error, r.Notes)
	}
	r = run(t, e, job.Program{Language: job.JavaScript, Code: `require("./none.cjs")`, Workspace: dir})
	if r.Error == nil || !strings.Contains(r.Error.Message, "Cannot find module") {
		t.Errorf("a file that is not there: %+v", r.Error)
	}
	r = run(t, e, job.Program{Language: job.JavaScript, Code: `require("./h.cjs")`})
	if r.Error == nil || !strings.Contains(r.Error.Message, "no directory of files") {
		t.Errorf("without a workspace: %+v", r.Error)
	}
}
