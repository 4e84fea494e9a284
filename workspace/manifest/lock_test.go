package manifest

import (
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

func TestNpmsLockIsReadAsDenos(t *testing.T) {
	files := filesOf(`
-- package-lock.json --
{"lockfileVersion": 3, "packages": {
  "": {"dependencies": {"a": "^1", "al": "npm:b@2", "local": "file:x"}, "devDependencies": {"d": "1"}, "workspaces": ["w"]},
  "w": {"dependencies": {"b": "^1"}},
  "node_modules/w": {"resolved": "w", "link": true},
  "node_modules/a": {"version": "1.2.0", "resolved": "https://evil.test/a.tgz", "integrity": "sha512-A", "dependencies": {"b": "^1", "none": "1"}, "optionalDependencies": {"o": "1"}, "peerDependencies": {"d": "*"}},
  "node_modules/a/node_modules/b": {"version": "1.5.0", "integrity": "sha512-B1", "dependencies": {"al": "*"}},
  "node_modules/b": {"version": "1.0.0", "integrity": "sha512-B0"},
  "node_modules/al": {"name": "b", "version": "2.0.0", "integrity": "sha512-B2"},
  "node_modules/d": {"version": "1.0.0", "integrity": "sha512-D"},
  "node_modules/o": {"version": "1.0.0", "integrity": "sha512-O", "os": ["darwin"], "cpu": ["x64"], "optional": true}
}}`)
	m, _, err := Read(files, "main.ts", "", job.TypeScript)
	want := `{"npm":{"a@1.2.0":{"integrity":"sha512-A","dependencies":["b@1.5.0","d@1.0.0"],"optionalDependencies":["o@1.0.0"]},` +
		`"b@1.0.0":{"integrity":"sha512-B0"},"b@1.5.0":{"integrity":"sha512-B1","dependencies":["al@npm:b@2.0.0"]},"b@2.0.0":{"integrity":"sha512-B2"},` +
		`"d@1.0.0":{"integrity":"sha512-D"},"o@1.0.0":{"integrity":"sha512-O","os":["darwin"],"cpu":["x64"]}},` +
		`"specifiers":{"npm:a@^1":"1.2.0","npm:b@2":"2.0.0","npm:b@^1":"1.0.0","npm:d@1":"1.0.0"},"version":"5"}`
	if err != nil || m.Lock.File != "package-lock.json" || string(m.Lock.Deno) != want {
		t.Errorf("%s: %s, %v", m.Lock.File, m.Lock.Deno, err)
	}
}

func TestWhichLockFileHolds(t *testing.T) {
	for _, row := range []struct{ files, file, note, err string }{
		{"", "", "", ""},
		{"-- deno.lock --\n{}\n-- package-lock.json --\n{\"packages\":{}}", "../deno.lock", "", ""},
		{"-- deno.lock --\n{}\n-- a/package-lock.json --\n{\"packages\":{}}", "package-lock.json", "", ""},
		{"-- deno.lock --\n{}\n-- deno.json --\n{\"lock\": false}", "", "", ""},
		{"-- x.lock --\n{}\n-- deno.json --\n{\"lock\": {\"path\": \"x.lock\", \"frozen\": true}}", "../x.lock", "", ""},
		{"-- deno.json --\n{\"lock\": \"../x.lock\"}", "", "", "no file of the project"},
		{"-- deno.json --\n{\"lock\": [1]}", "", "", "no path"},
		{"-- pnpm-lock.yaml --\n", "", "../pnpm-lock.yaml is not honoured", ""},
		{"-- package-lock.json --\n{\"lockfileVersion\": 1}", "", "form of version 1", ""},
		{"-- package-lock.json --\n[]", "", "", "no lock file of npm's"},
		{"-- deno.lock --\n{", "", "", "deno.lock is no JSON"},
		{"-- package-lock.json --\n{\"packages\": {\"" + strings.Repeat("node_modules/a/", 100) + "\": {}}}", "", "", "a package at a path of more than 1000 bytes"},
	} {
		m, notes, err := Read(filesOf(row.files), "a/main.ts", "", job.TypeScript)
		if row.err != "" {
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%q: %v", row.files, err)
			}
		} else if err != nil || m.Lock.File != row.file || !strings.Contains(strings.Join(notes, "\n"), row.note) {
			t.Errorf("%q: %q, %q, %v", row.files, m.Lock.File, notes, err)
		}
		if frozen := strings.Contains(row.files, "frozen"); m.Frozen != frozen {
			t.Errorf("%q: frozen is %v", row.files, m.Frozen)
		}
	}
}

// FuzzPackageLock: whatever npm's lock file holds, reading it ends, in a lock file or an error.
func FuzzPackageLock(f *testing.F) {
	f.Add(`{"packages": {"": {"dependencies": {"a": "1"}}, "node_modules/a": {"version": "1", "dependencies": {"a": "1"}}, "node_modules/a/node_modules/a": {"version": "1"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, _, err := Read(Files{"package-lock.json": []byte(text)}, "main.ts", "", job.TypeScript)
		if err == nil && m.Lock.File != "" && len(m.Lock.Deno) == 0 {
			t.Error("a lock file without content")
		}
	})
}
