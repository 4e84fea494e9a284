package modules

import (
	"maps"
	"slices"
	"testing"

	"rillbox/supervisor/job"
)

func TestMentionsStayInTheProgramsDirectory(t *testing.T) {
	for _, row := range []struct{ file, code, want string }{
		{"main.ts", `import "./a.ts"`, "a.ts"},
		{"lib/x.ts", `export * from '../b.ts';`, "b.ts"},
		{"lib/x.ts", "await import(`./c.ts?v=1#h`)", "lib/c.ts"},
		{"main.ts", `import "./a%20b.ts"`, "a b.ts"},
		{"main.ts", `require("./d")`, "d/index.js"},
		{"main.ts", `import "../up.ts"`, ""},
		{"lib/x.ts", `import "../../up.ts"`, ""},
		{"main.ts", `import "./lib/../../up.ts"`, ""},
		{"main.ts", `import "./%2e%2e/up.ts"`, ""},
		{"main.ts", `new Worker(new URL("./w.ts", import.meta.url))`, "w.ts"},
		{"main.cjs", `require(".")`, "index.js"},
		{"lib/a.cjs", `require("..")`, "index.json"},
		{"lib/a.cjs", `require("./b")`, "lib/b/package.json"},
		{"lib/b/package.json", `{"main" : "src/x.js"}`, "lib/b/src/x.js"},
		{"lib/b/package.json", `{"main": "../../../up.js"}`, ""},
		{"main.ts", `import "npm:a"; import "/etc/passwd"; import "file:///x"; import "a"`, ""},
	} {
		files := Mentions(job.Program{})(row.file, row.code)
		if found := slices.Contains(files, row.want); found == (row.want == "") && (row.want != "" || len(files) > 0) {
			t.Errorf("%s in %s mentions %q, want %q", row.code, row.file, files, row.want)
		}
	}
}

// Calls that load modules are no imports, but what they load is part of the program.
func TestAProgramHasTheFilesThatItsCallsLoad(t *testing.T) {
	scan := func(r ScanRequest) (Scanned, error) { return r.answer(), nil }
	files := map[string][]byte{}
	for file, text := range map[string]string{
		"worker.ts": `import "npm:x"; import "./part.ts"`, "part.ts": "", "d.json": "{}",
		"lib/package.json": `{"main": "src/main.js"}`, "lib/src/main.js": "", "lib/other.js": "", "mentioned.ts": "",
	} {
		files[file] = []byte(text)
	}
	m, err := Inspect(job.Program{Language: job.TypeScript, Name: "main.ts", Files: files, Code: `
		import { createRequire } from "node:module";
		new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
		createRequire(import.meta.url)("./d.json");
		const require = createRequire(import.meta.url);
		require("./lib");
		const text = "./mentioned.ts";`}, scan)
	if err != nil {
		t.Fatal(err)
	}
	if have := slices.Sorted(maps.Keys(m.Files)); !slices.Equal(have, []string{"d.json", "lib/package.json", "lib/src/main.js", "part.ts", "worker.ts"}) {
		t.Errorf("its files are %q", have)
	}
	if !slices.Contains(m.Imports, "npm:x") {
		t.Errorf("it imports %q", m.Imports)
	}
}

// Of what a program mentions, only what it imports is part of it.
func TestAProgramHasTheFilesThatItImports(t *testing.T) {
	scan := func(r ScanRequest) (Scanned, error) { return r.answer(), nil }
	files := map[string][]byte{}
	for file, code := range map[string]string{
		"a.ts":         `import b from "./lib/b.tsx"; import x from "npm:x"; import "./main.ts"; "./mentioned.ts"`,
		"lib/b.tsx":    `import d from "../d.json" with { type: "json" }; export default <b/>;`,
		"d.json":       `{"import": "./mentioned.ts"}`,
		"mentioned.ts": `import "npm:stranger"`,
	} {
		files[file] = []byte(code)
	}
	m, err := Inspect(job.Program{Language: job.TypeScript, Code: `import "./a.ts"; // "./mentioned.ts"`, Name: "main.ts", Files: files}, scan)
	if err != nil {
		t.Fatal(err)
	}
	if have := slices.Sorted(maps.Keys(m.Files)); !slices.Equal(have, []string{"a.ts", "d.json", "lib/b.tsx"}) {
		t.Errorf("its files are %q", have)
	}
	slices.Sort(m.Imports)
	if !slices.Equal(m.Imports, []string{"npm:x", "react/jsx-runtime"}) {
		t.Errorf("it imports %q", m.Imports)
	}
	files["main.ts"] = nil
	if m, err = Inspect(job.Program{Language: job.TypeScript, Code: `import "./main.ts"`, Name: "odd name.ts", Files: files}, scan); err != nil || m.File != "program.ts" {
		t.Errorf("beside main.ts it is %s (%v)", m.File, err)
	}
}
