package modules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandsOfPackages: a package's manifest may say anything.
func TestCommandsOfPackages(t *testing.T) {
	const in = "npm/registry.example/@a/tool/1.2.3"
	for _, test := range []struct{ manifest, ask, file, wrong string }{
		{`{"bin": "cli.js"}`, "@a/tool", "cli.js", ""},
		{`{"bin": {"tool": "./cli.js", "other": "bin/other.mjs"}}`, "@a/tool", "cli.js", ""},
		{`{"bin": {"tool": "./cli.js", "other": "bin/other.mjs"}}`, "npm:@a/tool@1/other", "bin/other.mjs", ""},
		{`{"bin": {"a": "cli.js", "b": "cli.js"}}`, "@a/tool", "cli.js", ""},
		{`{"bin": {"a": "cli.js", "b": "bin/other.mjs"}}`, "@a/tool", "", "these commands: npm:@a/tool/a, npm:@a/tool/b"},
		{`{"bin": {"tool": "cli.js"}}`, "@a/tool/none", "", "these commands: npm:@a/tool/tool"},
		{`{}`, "@a/tool", "", "has no commands"},
		{`{"bin": 7}`, "@a/tool", "", "has no commands"},
		{`{"bin": {}}`, "@a/tool", "", "has no commands"},
		{`[`, "@a/tool", "", "can't be read"},
		{`{"bin": "../1.2.4/cli.js"}`, "@a/tool", "", "is not in the package"},
		{`{"bin": "../../../../../plan.json"}`, "@a/tool", "", "is not in the package"},
		{`{"bin": "/etc/passwd"}`, "@a/tool", "", "is not in the package"},
		{`{"bin": "bin"}`, "@a/tool", "", "is not in the package"},
		{`{"bin": "."}`, "@a/tool", "", "is not in the package"},
		{`{"bin": "none.js"}`, "@a/tool", "", "is not in the package"},
	} {
		plan := Plan{Dir: t.TempDir(), Modules: []string{in + "_1"}}
		plan.Locked.Specifiers = map[string]string{"npm:@a/tool@*": "1.2.3", "npm:@a/tool@1": "1.2.3"}
		dir := filepath.Join(plan.Dir, in+"_1")
		for name, text := range map[string]string{"package.json": test.manifest, "cli.js": "", "bin/other.mjs": ""} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := ParseCommand(test.ask)
		if err != nil {
			t.Fatal(err)
		}
		file, commonjs, err := plan.Command(s)
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: %q, %v", test.manifest, file, err)
			}
			continue
		}
		if err != nil || file != in+"_1/"+test.file || commonjs == strings.HasSuffix(file, ".mjs") {
			t.Errorf("%s: %q, CommonJS %v, %v", test.manifest, file, commonjs, err)
		}
	}
	for _, text := range []string{"jsr:@std/cli", "https://example.com/x.js", "..", "npm:", "a b"} {
		if s, err := ParseCommand(text); err == nil {
			t.Errorf("%q is the command %v", text, s)
		}
	}
}
