package manifest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"rillbox/supervisor/job"
)

// filesOf are those of a txtar archive.
func filesOf(archive string) Files {
	files := Files{}
	for _, file := range txtar.Parse([]byte(archive)).Files {
		files[file.Name] = file.Data
	}
	return files
}

func show(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func TestJavaScriptsManifests(t *testing.T) {
	for _, row := range []struct {
		name, program, files, want string // want has what is said, as JSON
		notes                      []string
	}{
		{"none", "main.ts", "", `{}`, nil},
		{"versions", "main.ts", `
-- package.json --
{"name": "x", "scripts": {"a": "b"}, "dependencies": {"ms": "^2", "a": "npm:b@1 || 2", "@s/j": "jsr:^1", "j": "jsr:@s/t@1", "e": "", "t": "next"},
 "devDependencies": {"ms": "1", "dev": "1.x"}}`,
			`{"imports":{"@s/j":"jsr:@s/j@^1","a":"npm:b@1 || 2","dev":"npm:dev@1.x","e":"npm:e@*","j":"jsr:@s/t@1","ms":"npm:ms@^2","t":"npm:t@next"}}`, nil},
		{"no registry's", "main.ts", `
-- package.json --
{"dependencies": {"f": "file:../f", "g": "git+https://x.test/g", "h": "user/repo", "u": "https://x.test/u.tgz", "w": "workspace:*", "c": "catalog:", "--x": "1", "v": "1;rm"}}`,
			`{"refused":{"c":"package.json makes it \"catalog:\", which is a version that another file gives, which is not read: write it here","f":"package.json makes it \"file:../f\", which is a directory or an archive of this machine: import it by its path","g":"package.json makes it \"git+https://x.test/g\", which is no version of a package in the registry","h":"package.json makes it \"user/repo\", which is no version of a package in the registry","u":"package.json makes it \"https://x.test/u.tgz\", which is no version of a package in the registry","v":"package.json makes it \"1;rm\", which is no version of a package in the registry","w":"package.json makes it \"workspace:*\", which is a package of the workspace, and there is none of that name"}}`,
			[]string{`package.json: "--x" in "dependencies" is no name of a package`}},
		{"imports and type", "src/main.js", `
-- package.json --
{"type": "module", "imports": {"#a": "./a.js", "#b/*": {"browser": "./no.js", "node": "./src/b/*.js"}, "#c": "ms/index.js", "#d": {"x": "./d.js"}, "e": "./e.js", "#f": "./../../f.js"}, "dependencies": {"ms": "2"}}`,
			`{"imports":{"#a":"../a.js","#b/*":"./b/*.js","#c":"npm:ms@2/index.js","ms":"npm:ms@2"},"refused":{"#f":"../package.json makes it \"./../../f.js\", which is outside of the project"},"esm":true}`,
			[]string{`../package.json: "#d" in "imports" is not honoured: it has no file for Deno, Node or import`, `../package.json: "e" in "imports" is not honoured: it is no name that begins with #`}},
		{"the nearest first", "a/b/main.ts", `
-- package.json --
{"type": "module", "dependencies": {"x": "1", "y": "1"}, "overrides": {"z": "1", "y": {".": "2", "w@^1": "$x", "q": "file:q"}}}
-- a/package.json --
{"dependencies": {"x": "2"}, "resolutions": {}}`,
			`{"imports":{"x":"npm:x@2","y":"npm:y@1"},"overrides":{"y":{".":"2","w@^1":"2"},"z":"1"}}`,
			[]string{`../package.json: "resolutions" is not honoured`, `../../package.json: the override of "q" is not honoured: it is no version of a package in the registry`}},
		{"workspaces", "main.ts", `
-- package.json --
{"workspaces": ["packages/*", "./one", "../out", "x/**"], "dependencies": {"@me/a": "^1"}}
-- packages/a/package.json --
{"name": "@me/a", "exports": {".": "./a.ts", "./deep/*": "./deep/*.ts"}, "dependencies": {"ms": "1"}}
-- packages/b/package.json --
{"name": "b", "main": "lib"}
-- packages/b/lib/index.js --
-- one/deno.json --
{"name": "@me/one", "exports": "./mod.ts", "imports": {"x": "./x.ts"}}`,
			`{"imports":{"@me/a":"./packages/a/a.ts","@me/a/deep/*":"./packages/a/deep/*.ts","@me/one":"./one/mod.ts","b":"./packages/b/lib/index.js"},"scopes":{"./one/":{"x":"./one/x.ts"},"./packages/a/":{"ms":"npm:ms@1"}},"refused":{"@me/a":"packages/a/package.json is the project's own package of that name, and it exports no such file","@me/one":"one/deno.json is the project's own package of that name, and it exports no such file","b":"packages/b/package.json is the project's own package of that name, and it exports no such file"}}`,
			[]string{`package.json: "../out" in "workspaces" is not honoured: it is no folder below, and no folder/*`, `package.json: "x/**" in "workspaces" is not honoured: it is no folder below, and no folder/*`}},
		{"deno.json", "src/main.ts", `
-- deno.jsonc --
{ // with comments
  "imports": {"a": "npm:a@1", "@/": "./src/", "u": "https://x.test/u.ts", "n": "node:fs", "f": "file:///etc/passwd", "o": "../../o.ts", "r": "/etc/passwd", "./x": "./y", "node:fs": "./y", "file:///x": "./y", "z": null, "https://x.test/": "npm:/x@1/"},
  "scopes": {"./lib/": {"a": "npm:a@2"}, "file:///": {"a": "./x"}, "https://x.test/": {"a": "npm:a@3"}},
  "compilerOptions": {"strict": true, "jsx": "react-jsx", "jsxImportSource": "preact"}, "unstable": ["x"],
}
-- package.json --
{"dependencies": {"a": "5", "b": "1"}}`,
			`{"imports":{"@/":"./","a":"npm:a@1","b":"npm:b@1","https://x.test/":"npm:/x@1/","n":"node:fs","u":"https://x.test/u.ts"},"scopes":{"../lib/":{"a":"npm:a@2"},"https://x.test/":{"a":"npm:a@3"}},"refused":{"f":"../deno.jsonc makes it \"file:///etc/passwd\", which is no package, no https: URL and no path that begins with ./","o":"../deno.jsonc makes it \"../../o.ts\", which is outside of the project","r":"../deno.jsonc makes it \"/etc/passwd\", which is no package, no https: URL and no path that begins with ./","z":"../deno.jsonc maps it to nothing"},"jsx":{"source":"preact"}}`,
			[]string{`../deno.jsonc: "unstable" is not honoured`,
				`../deno.jsonc: the import "./x" is not honoured: a path is always the file at that path`,
				`../deno.jsonc: the import "file:///x" is not honoured: names that begin with file: can't be changed`,
				`../deno.jsonc: the import "node:fs" is not honoured: names that begin with node: can't be changed`,
				`../deno.jsonc: the scope "file:///" is not honoured: it is no folder of the project and no https: URL`}},
		{"another project's deno.json", "in/main.ts", `
-- deno.json --
{"imports": {"a": "npm:a@1"}}
-- in/deno.json --
{"importMap": "map.json", "compilerOptions": {"jsx": "react", "jsxFactory": "h", "jsxFragmentFactory": "*/"}}
-- in/map.json --
{"imports": {"b": "./b.ts"}}`,
			`{"imports":{"b":"./b.ts"},"jsx":{"factory":"h","fragment":"React.Fragment"}}`, nil},
		{"import_map.json", "main.ts", `
-- import_map.json --
{"imports": {"b": "./b%20c.ts"}}`, `{"imports":{"b":"./b c.ts"}}`, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, notes, err := Read(filesOf(row.files), row.program, "", job.TypeScript)
			if err != nil {
				t.Fatal(err)
			}
			if show(m) != row.want {
				t.Errorf("it says %s, not %s", show(m), row.want)
			}
			if !slices.Equal(notes, row.notes) {
				t.Errorf("it notes %q", notes)
			}
		})
	}
}

func TestManifestsThatCantBeRead(t *testing.T) {
	many := map[string]string{}
	for i := range maxEntries + 1 {
		many[strings.Repeat("a", i%200+1)+string(rune('a'+i%26))+show(i)] = "1"
	}
	for _, row := range []struct{ file, text, want string }{
		{"package.json", "{", "package.json is not JSON: line 1"},
		{"package.json", "[]", "package.json is no JSON object"},
		{"package.json", "null", "package.json is no JSON object"},
		{"package.json", "{\"a\": \"\xff\"}", "package.json is not UTF-8 text"},
		{"package.json", `{"dependencies": ["ms"]}`, `package.json: "dependencies" is not an object of strings`},
		{"package.json", `{"dependencies": ` + show(many) + `}`, "more than 5000 names"},
		{"package.json", strings.Repeat("[", maxBrackets+1), "brackets"},
		{"package.json", strings.Repeat(" ", maxFile+1), "package.json has more than 1024 KiB"},
		{"deno.json", `{"imports": [1]}`, `deno.json: "imports" is not an object`},
		{"deno.json", `{"importMap": "../map.json"}`, "no file of the project"},
		{"deno.json", `{"importMap": "https://x.test/map.json"}`, "no file of the project"},
		{"deno.json", `{"importMap": "map.json"}`, "which is not there"},
	} {
		_, _, err := Read(Files{row.file: []byte(row.text)}, "main.ts", "", job.JavaScript)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s with %.40q: %v", row.file, row.text, err)
		}
	}
}

// FuzzRead: whatever the files of a project hold, what they say stays in it.
func FuzzRead(f *testing.F) {
	f.Add(`{"imports": {"a": "./b", "#c/*": "./d/*"}, "workspaces": ["p/*"], "overrides": {"a": {"b": "1"}}}`, "a/main.ts")
	f.Add(`{"scopes": {"./x/": {"a": "../../.."}}, "name": "x", "exports": {"./*": "./../*"}}`, "main.ts")
	f.Fuzz(func(t *testing.T, text, program string) {
		if program == "" || strings.HasPrefix(program, "/") || strings.Contains(program, "..") || strings.HasSuffix(program, "/") {
			return
		}
		files := Files{"p/q/package.json": []byte(text), "p/q/deno.json": []byte(text)}
		for _, name := range []string{"package.json", "deno.json", "import_map.json", "a/package.json", "a/deno.jsonc"} {
			files[name] = []byte(text)
		}
		m, _, err := Read(files, program, "", job.JavaScript)
		if err != nil {
			return
		}
		depth := strings.Count(program, "/")
		all := []map[string]string{m.Imports}
		for at, scope := range m.Scopes {
			if up := strings.Count(at+"/", "../"); up > depth && !strings.Contains(at, ":") {
				t.Errorf("the scope %q leads out of the project", at)
			}
			all = append(all, scope)
		}
		for _, imports := range all {
			for _, name := range slices.Sorted(maps.Keys(imports)) {
				target := imports[name]
				up := 0
				for rest := target; strings.HasPrefix(rest, "../"); rest = rest[3:] {
					up++
				}
				scheme, _, _ := strings.Cut(target, ":")
				if up > depth || strings.Contains(strings.TrimLeft(target, "./"), "../") && strings.HasPrefix(target, ".") ||
					!strings.HasPrefix(target, "./") && !strings.HasPrefix(target, "../") && !slices.Contains([]string{"npm", "jsr", "https", "http", "node"}, scheme) {
					t.Errorf("%q stands for %q", name, target)
				}
				if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "node:") || strings.HasPrefix(name, "file:") {
					t.Errorf("%q has another meaning: %q", name, target)
				}
			}
		}
	})
}
