package modules

import (
	"testing"

	"rillbox/supervisor/job"
)

func TestWhatNamesStandFor(t *testing.T) {
	p := job.Program{Packages: []string{"asked@9"}, Manifest: job.Manifest{
		Imports: map[string]string{
			"ms": "npm:ms@2", "alias": "npm:ms@1", "@/": "./src/", "@/deep/": "./deep/", "out": "../out.ts", "fs": "./fs.ts",
			"#p/*.js": "./p/*.mjs", "asked": "npm:asked@1", "asked/x": "npm:x@1", "std/": "https://x.test/std/", "web": "https://x.test/web",
		},
		Scopes:  map[string]map[string]string{"./lib/": {"ms": "npm:ms@3"}, "./lib/one.ts": {"ms": "./ms.ts"}},
		Refused: map[string]string{"no": "reason", "os": "reason", "@s/no": "reason"},
	}}
	for _, row := range []struct{ file, specifier, path, target, scope, reason string }{
		{"main.ts", "ms", "", "npm:ms@2", "", ""},
		{"main.ts", "ms/x.js", "", "npm:ms@2/x.js", "", ""},
		{"main.ts", "msx", "", "", "", ""},
		{"main.ts", "npm:ms", "", "npm:ms@2", "", ""},
		{"main.ts", "npm:ms/x.js", "", "npm:ms@2/x.js", "", ""},
		{"main.ts", "npm:ms@5", "", "", "", ""}, // the program says it itself
		{"main.ts", "npm:alias", "", "", "", ""},
		{"main.ts", "jsr:@s/ms", "", "", "", ""},
		{"main.ts", "alias", "", "npm:ms@1", "", ""},
		{"main.ts", "@/a.ts", "", "./src/a.ts", "", ""},
		{"main.ts", "@/deep/a.ts", "", "./deep/a.ts", "", ""},
		{"main.ts", "@/../../a.ts", "", "", "", "the project has it stand for ./src/../../a.ts, which is outside of the program's directory: it can be imported in a workspace that has both"},
		{"main.ts", "fs", "", "./fs.ts", "", ""},
		{"main.ts", "#p/a/b.js", "", "./p/a/b.mjs", "", ""},
		{"main.ts", "#p/.js", "", "", "", ""},
		{"main.ts", "out", "", "", "", "the project has it stand for ../out.ts, which is outside of the program's directory: it can be imported in a workspace that has both"},
		{"in/main.ts", "out", "in/main.ts", "./out.ts", "", ""}, // there it is in the workspace
		{"in/main.ts", "@/a.ts", "in/main.ts", "./in/src/a.ts", "", ""},
		{"lib/two.ts", "ms", "", "npm:ms@3", "./lib/", ""},
		{"lib/one.ts", "ms", "", "./ms.ts", "./lib/one.ts", ""},
		{"lib/one.ts", "alias", "", "npm:ms@1", "", ""},
		{"in/lib/two.ts", "ms", "in/main.ts", "npm:ms@3", "./in/lib/", ""},
		{"main.ts", "asked", "", "", "", ""},
		{"main.ts", "asked/x", "", "", "", ""},
		{"main.ts", "std/a.ts", "", "https://x.test/std/a.ts", "", ""},
		{"main.ts", "web/a.ts", "", "", "", ""}, // a URL has nothing below it
		{"main.ts", "no", "", "", "", "reason"},
		{"main.ts", "no/x", "", "", "", "reason"},
		{"main.ts", "@s/no", "", "", "", "reason"},
		{"main.ts", "npm:no", "", "", "", ""}, // the program says itself that it is npm's
		{"main.ts", "os", "", "", "", ""},     // Node's own
		{"main.ts", "./ms", "", "", "", ""},
		{"main.ts", "", "", "", "", ""},
		{"main.ts", "@", "", "", "", ""},
	} {
		p.Path = row.path
		got, found, reason := namesOf(p).find(namesOf(p).scopesOf(row.file), row.specifier)
		if reason != row.reason || reason == "" && (got.target != row.target || got.scope != row.scope || found != (row.target != "")) {
			t.Errorf("%q in %s stands for %+v, %v, %q", row.specifier, row.file, got, found, reason)
		}
	}
}
