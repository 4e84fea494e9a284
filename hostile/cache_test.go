//go:build !windows

package hostile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/supervisor/launcher"
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
		{name: "write through the run's own DENO_DIR", code: `Deno.writeTextFileSync(new URL("../.rillbox/npm/%MARKNAME%", import.meta.url), "x");`, noControl: ownDir},
		{name: "write through the run's own DENO_DIR, with all writes granted", grants: []string{"--allow-write"},
			code: `Deno.writeTextFileSync(new URL("../.rillbox/npm/%MARKNAME%", import.meta.url), "x");`, noControl: ownDir},
		{name: "write through the run's own DENO_DIR, with all reads and writes granted", grants: readWrite,
			code: `process.getBuiltinModule("fs").writeFileSync(new URL("../.rillbox/npm/%MARKNAME%", import.meta.url), "x");`, noControl: ownDir},
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

// What lies in the cache and is not what the registry signed, is never run,
// however it came there, and whoever asks for it in whatever words.
func TestChangedCacheIsNotRun(t *testing.T) { // not parallel: the registry is named by the environment
	const store, view = "%CACHE%/deno/npm/*/", "%CACHE%/trees/modules/*/files/npm/*/"
	change := func(pattern, text string) func(*testing.T, *scene) {
		return func(t *testing.T, s *scene) {
			for _, file := range globbed(t, s.fillText(pattern)) {
				st, err := os.Stat(file)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(file); err != nil { // of this name alone: it may be a hard link
					t.Fatal(err)
				}
				write(t, file, s.fillSecret(text))
				if err := os.Chtimes(file, st.ModTime(), st.ModTime()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	const evil = `module.exports = "%SECRET%";`
	for _, row := range []struct {
		name      string
		specifier string
		change    func(*testing.T, *scene)
	}{
		{"a file, and another range", "npm:good@^1", change(store+"good/1.0.0/index.js", evil)},
		{"a file of the view, and the same range", "npm:good", change(view+"good/1.0.0/index.js", evil)},
		{"a file of a dependency", "npm:good@1", change(store+"dep/1.0.0/index.js", evil)},
		{"a file in both places", "npm:good@1", func(t *testing.T, s *scene) {
			change(store+"good/1.0.0/index.js", evil)(t, s)
			change(view+"good/1.0.0/index.js", evil)(t, s)
		}},
		{"the entry in package.json", "npm:good@1", change(store+"good/1.0.0/package.json", `{"name":"good","version":"1.0.0","main":"../../../../../../../../../../../../../../%DIR%/secret.cjs"}`)},
		{"a file that is now a link", "npm:good@1", func(t *testing.T, s *scene) {
			file := globbed(t, s.fillText(store+"good/1.0.0/index.js"))[0]
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(s.dir()+"/secret.cjs", file); err != nil {
				t.Fatal(err)
			}
		}},
		{"a package that is now a link", "npm:good@1", func(t *testing.T, s *scene) {
			dir := globbed(t, s.fillText(store+"good/1.0.0"))[0]
			if err := os.Rename(dir, s.dir()+"/moved"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(s.dir()+"/moved", dir); err != nil {
				t.Fatal(err)
			}
			change("%DIR%/moved/index.js", evil)(t, s)
			s.before = tree(s.dir())
		}},
		{"a package that nobody fetched", "npm:planted@1", func(t *testing.T, s *scene) {
			planted := filepath.Join(filepath.Dir(globbed(t, s.fillText(store+"good"))[0]), "planted")
			if err := os.MkdirAll(filepath.Join(planted, "1.0.0"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(planted, "1.0.0", "package.json"), `{"name":"planted","version":"1.0.0"}`)
			write(t, filepath.Join(planted, "1.0.0", "index.js"), s.fillSecret(evil))
			write(t, filepath.Join(planted, "registry.json"), `{"name":"planted","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"planted","version":"1.0.0"}}}`)
		}},
		{"what the registry says of a package", "npm:good@1", func(t *testing.T, s *scene) {
			file := globbed(t, s.fillText(store+"good/registry.json"))[0]
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var page map[string]any
			if err := json.Unmarshal(text, &page); err != nil {
				t.Fatal(err)
			}
			page["versions"].(map[string]any)["1.0.0"].(map[string]any)["dependencies"] = map[string]string{"dep": "npm:evil@1"}
			if text, err = json.Marshal(page); err != nil {
				t.Fatal(err)
			}
			change(store+"good/registry.json", string(text))(t, s)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for language, in := range inBoth {
				t.Run(string(language)+" "+in, func(t *testing.T) {
					a := attack{language: language, code: `import x from "` + row.specifier + `"; console.log(x); /* %DIR% */`}
					s := newScene(t, a)
					index := func(text string) []tarFile { return []tarFile{{name: "package/index.js", text: s.fillSecret(text)}} }
					t.Setenv("NPM_CONFIG_REGISTRY", serveNPM(t,
						npmPackage{name: "good", manifest: map[string]any{"dependencies": map[string]string{"dep": "1"}}, files: index(`module.exports = "good " + require("dep");`)},
						npmPackage{name: "dep", files: index(`module.exports = "dep";`)},
						npmPackage{name: "evil", files: index(evil)}))
					s.words["%CACHE%"] = ownCache(s)
					if o := runOwn(t, s, attack{language: language, code: `import x from "npm:good"; console.log(x)`}, in, nil); !strings.Contains(o.text(), "good dep") {
						t.Fatalf("the package can't be had: %s", o.text())
					}
					row.change(t, s)
					o := runOwn(t, s, a, in, nil)
					a.checkBounded(t, launcher.Best, s, o)
					if row.specifier != "npm:planted@1" && !strings.Contains(o.text(), "good dep") {
						t.Errorf("the package was not mended: %s", o.text())
					}
				})
			}
		})
	}
}

func globbed(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("nothing is at %s: %v", pattern, err)
	}
	return found
}
