//go:build !windows

package hostile

import (
	"os"
	"path/filepath"
	"testing"
)

// What one run could leave in the cache, others would execute.
func TestCacheIsNotWritable(t *testing.T) {
	mark := func(s *scene) string {
		return filepath.Join(s.words["%CACHE%"], "deno", "npm", "mark-"+filepath.Base(filepath.Dir(s.dir())))
	}
	made := func(s *scene, _ outcome) string {
		if _, err := os.Lstat(mark(s)); err != nil {
			return ""
		}
		if err := os.Remove(mark(s)); err != nil {
			return err.Error()
		}
		return "a file was made in the cache"
	}
	prepare := func(t *testing.T, s *scene) {
		if err := os.MkdirAll(filepath.Dir(mark(s)), 0o700); err != nil {
			t.Fatal(err)
		}
		s.words["%MARK%"] = mark(s)
		s.words["%CACHEPARENT%"] = filepath.Dir(s.words["%CACHE%"])
		s.words["%MARKNAME%"] = filepath.Base(mark(s))
	}
	const ownDir = "only runs of ours have this directory, and Deno's denial stands there whatever is granted"
	readWrite := []string{"--allow-read", "--allow-write"}
	rows := []attack{
		{name: "write by its path", bare: true, code: `Deno.writeTextFileSync("%MARK%", "x");`},
		{name: "write by its path, with all writes granted", bare: true, grants: []string{"--allow-write"}, code: `Deno.writeTextFileSync("%MARK%", "x");`},
		{name: "write through the run's own DENO_DIR", code: `Deno.writeTextFileSync(new URL("./.rillbox/npm/%MARKNAME%", import.meta.url), "x");`, noControl: ownDir},
		{name: "write through the run's own DENO_DIR, with all writes granted", grants: []string{"--allow-write"},
			code: `Deno.writeTextFileSync(new URL("./.rillbox/npm/%MARKNAME%", import.meta.url), "x");`, noControl: ownDir},
		{name: "write through the run's own DENO_DIR, with all reads and writes granted", grants: readWrite,
			code: `process.getBuiltinModule("fs").writeFileSync(new URL("./.rillbox/npm/%MARKNAME%", import.meta.url), "x");`, noControl: ownDir},
		{name: "write by node:wasi, with all reads and writes granted", grants: readWrite,
			code: swapped(wasiEscape, `"%DIR%/escaped"`, `"%MARK%"`)},
		{name: "write by node:wasi, with the directory that holds the cache granted", grants: []string{"--allow-read=%CACHEPARENT%,%GRANTED%", "--allow-write=%CACHEPARENT%,%GRANTED%"},
			code: swapped(wasiEscape, `"%DIR%/escaped"`, `"%MARK%"`)},
		{name: "rename into it, with all reads and writes granted", bare: true, grants: readWrite,
			code: `Deno.writeTextFileSync("%GRANTED%/f", "x"); Deno.renameSync("%GRANTED%/f", "%MARK%");`},
		{name: "a program that writes, with programs granted", grants: []string{"--allow-run=/bin/sh", "--allow-write"},
			code: `await new Deno.Command("/bin/sh", { args: ["-c", ": > %MARK%"] }).output();`},
	}
	for i := range rows {
		rows[i].evidence = made
		rows[i].prepare = prepare
	}
	try(t, rows)
}
