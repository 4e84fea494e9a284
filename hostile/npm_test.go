//go:build !windows

package hostile

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/cache/egress"
	"rillbox/deno"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// tarFile is one entry of a package's archive; link makes it a symbolic link.
type tarFile struct{ name, text, link string }

// npmPackage is version 1.0.0 of a package on the fixture registry.
type npmPackage struct {
	name     string
	manifest map[string]any // beside name and version
	files    []tarFile      // below package/, unless absolute or with ..
}

// serveNPM serves packages as a registry does.
func serveNPM(t *testing.T, packages ...npmPackage) (address string) {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, p := range packages {
		manifest := map[string]any{"name": p.name, "version": "1.0.0", "main": "index.js"}
		for key, value := range p.manifest {
			manifest[key] = value
		}
		text, err := json.Marshal(manifest)
		if err != nil {
			t.Fatal(err)
		}
		archive := tgz(t, append([]tarFile{{name: "package/package.json", text: string(text)}}, p.files...))
		sum := sha512.Sum512(archive)
		manifest["dist"] = map[string]any{
			"tarball":   server.URL + "/" + p.name + "/-/" + p.name + "-1.0.0.tgz",
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}
		document := map[string]any{"name": p.name, "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": manifest},
			"time": map[string]string{"1.0.0": "2020-01-01T00:00:00.000Z"}}
		mux.HandleFunc("/"+strings.Replace(p.name, "/", "%2f", 1), func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(document) })
		mux.HandleFunc("/"+p.name+"/-/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
	}
	return server.URL + "/"
}

func tgz(t *testing.T, files []tarFile) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.text)), Typeflag: tar.TypeReg}
		if f.link != "" {
			header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, f.link, 0
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(f.text)[:header.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// The code of packages has the program's permissions, no more; and fetching
// them runs none of it and writes nowhere but into the cache.
func TestNPMPackages(t *testing.T) { // not parallel: the registry is named by the environment
	plain := func(code string) func(*scene) npmPackage {
		return func(s *scene) npmPackage {
			return npmPackage{files: []tarFile{{name: "package/index.js", text: s.fillText(code)}}}
		}
	}
	module := func(code string) func(*scene) npmPackage {
		return func(s *scene) npmPackage {
			return npmPackage{manifest: map[string]any{"type": "module"}, files: []tarFile{{name: "package/index.js", text: s.fillText(code)}}}
		}
	}
	scripts := func(names ...string) func(*scene) npmPackage {
		return func(s *scene) npmPackage {
			all := map[string]string{}
			for _, name := range names {
				all[name] = s.dir() + "/run.sh"
			}
			return npmPackage{manifest: map[string]any{"scripts": all, "hasInstallScript": true, "gypfile": true}, files: []tarFile{
				{name: "package/index.js", text: "module.exports = 1"}, {name: "package/binding.gyp", text: "{}"}}}
		}
	}
	entry := func(f tarFile) func(*scene) npmPackage {
		return func(s *scene) npmPackage {
			f := tarFile{s.fillText(f.name), f.text, s.fillText(f.link)}
			return npmPackage{files: []tarFile{{name: "package/index.js", text: "module.exports = 1"}, f}}
		}
	}
	const unprepared = "Deno loads no local module that a package imports statically, whatever is allowed"
	const noInstaller = "fetching never runs or unpacks so; Deno has no switch that makes it"
	for _, row := range []struct {
		name      string
		pkg       func(*scene) npmPackage
		code      string
		noControl string
	}{
		{name: "package reads a file when it is loaded", pkg: plain(`module.exports = require("fs").readFileSync("%DIR%/secret.txt", "utf8");`)},
		{name: "package requires a local file", pkg: plain(`module.exports = require("%DIR%/secret.cjs");`)},
		{name: "package requires a relative path out of itself", pkg: plain(`module.exports = require("../../../../../../../../../../../..%DIR%/secret.cjs");`)},
		{name: "package imports a local file statically", pkg: module(`export { default } from "file://%DIR%/secret.mjs";`), noControl: unprepared},
		{name: "package imports local JSON statically", pkg: module(`export { default } from "file://%DIR%/secret.json" with { type: "json" };`), noControl: unprepared},
		{name: "package imports a relative path out of itself", pkg: module(`export { default } from "../../../../../../../../../../../..%DIR%/secret.mjs";`), noControl: unprepared},
		{name: "package imports a local file dynamically", pkg: module(`export default (await import("file://%DIR%/secret.mjs")).default;`)},
		{name: "package starts a program", pkg: plain(`module.exports = require("child_process").execFileSync("%DIR%/run.sh").toString();`)},
		{name: "package starts a worker", pkg: plain(`const { Worker } = require("worker_threads"); module.exports = new Promise((r) => new Worker("require('worker_threads').parentPort.postMessage(require('fs').readFileSync('%DIR%/secret.txt', 'utf8'))", { eval: true }).on("message", r).on("error", r));`)},
		{name: "package loads an addon", pkg: plain(`try { process.dlopen({ exports: {} }, "%DIR%/run.sh"); } catch (e) { module.exports = e.message.includes("invalid ELF") ? require("fs").readFileSync("%DIR%/secret.txt", "utf8") : e.message; }`)},
		{name: "package writes a file", pkg: plain(`require("fs").writeFileSync("%DIR%/new", "x");`)},
		{name: "package connects to loopback", pkg: plain(`module.exports = fetch("http://%HTTP%/").then((r) => r.text());`), code: `/* %HTTP% */`},
		{name: "package writes to its own directory", pkg: plain(`require("fs").writeFileSync(__dirname + "/left.js", "x"); module.exports = "wrote";`), noControl: "it would change the tests' cache"},
		{name: "package with an entry that leads out", pkg: func(s *scene) npmPackage {
			return npmPackage{manifest: map[string]any{"main": strings.Repeat("../", 16) + s.dir() + "/secret.cjs"}}
		}, noControl: "Deno itself follows no such entry"},
		{name: "package with exports that lead out", pkg: func(s *scene) npmPackage {
			return npmPackage{manifest: map[string]any{"type": "module", "exports": "./" + strings.Repeat("../", 16) + s.dir() + "/secret.mjs"}}
		}, noControl: "Deno itself follows no such entry"},
		{name: "package with imports that lead out", pkg: func(s *scene) npmPackage {
			return npmPackage{manifest: map[string]any{"type": "module", "imports": map[string]string{"#x": "file://" + s.dir() + "/secret.mjs"}},
				files: []tarFile{{name: "package/index.js", text: `export { default } from "#x";`}}}
		}, noControl: "Deno itself follows no such entry"},
		{name: "lifecycle scripts", pkg: scripts("preinstall", "install", "postinstall", "prepare", "prepublish"), noControl: noInstaller},
		{name: "entry with a path out of the archive", pkg: entry(tarFile{name: "package/../../../../../../../../../../../..%DIR%/new", text: "x"}), noControl: noInstaller},
		{name: "entry with an absolute path", pkg: entry(tarFile{name: "%DIR%/new", text: "x"}), noControl: noInstaller},
		{name: "symbolic link in the archive", pkg: entry(tarFile{name: "package/link.cjs", link: "%DIR%/secret.cjs"}), code: `console.log((await import("npm:evil/link.cjs")).default);`, noControl: noInstaller},
		{name: "linked directory in the archive", pkg: func(s *scene) npmPackage {
			return npmPackage{files: []tarFile{{name: "package/index.js", text: "module.exports = 1"}, {name: "package/d", link: s.dir()}, {name: "package/d/new", text: "x"}}}
		}, noControl: noInstaller},
		{name: "package with a bin", pkg: func(s *scene) npmPackage {
			return npmPackage{manifest: map[string]any{"bin": map[string]string{"evil": s.dir() + "/run.sh"}}, files: []tarFile{{name: "package/index.js", text: "module.exports = 1"}}}
		}, noControl: noInstaller},
		{name: "dependency on a local directory", pkg: func(s *scene) npmPackage {
			return npmPackage{manifest: map[string]any{"dependencies": map[string]string{"x": "file:" + s.dir()}}, files: []tarFile{{name: "package/index.js", text: `module.exports = require("x/secret.cjs")`}}}
		}, noControl: "Deno itself takes no such dependency"},
		{name: "dependency on a URL of loopback", pkg: func(s *scene) npmPackage {
			return npmPackage{manifest: map[string]any{"dependencies": map[string]string{"x": "http://" + s.words["%HTTP%"] + "/x.tgz"}}, files: []tarFile{{name: "package/index.js", text: `module.exports = 1`}}}
		}, code: `/* %HTTP% */`, noControl: "Deno itself takes no such dependency"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := attack{language: job.JavaScript, code: row.code}
			if !strings.Contains(a.code, "import") {
				a.code += `import evil from "npm:evil"; console.log(await evil);`
			}
			binary := denoBinary(t)
			run := func(t *testing.T, inSession bool, grants []string, withoutWall bool) (*scene, outcome) {
				s := newScene(t, a)
				p := row.pkg(s)
				p.name = "evil"
				t.Setenv("NPM_CONFIG_REGISTRY", serveNPM(t, p))
				store, err := cache.Open(filepath.Join(t.TempDir(), "cache"), cache.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = store.Close() })
				permissions, err := permission.Parse(grants)
				if err != nil {
					t.Fatal(err)
				}
				engine, err := deno.New(deno.Options{Cache: store, DenoPath: binary, Permissions: permissions, Limits: job.DefaultLimits(), WithoutSecondWall: withoutWall})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(engine.Close)
				if !inSession {
					return s, a.run(t, s, engine, engine)
				}
				session := ownSession(t, a.language, engine)
				return s, a.run(t, s, session, session)
			}
			for name, inSession := range map[string]bool{"program": false, "cell": true} {
				t.Run(name, func(t *testing.T) {
					if row.noControl == "" {
						onceShown(t, func() {
							s, o := run(t, inSession, []string{"--allow-all"}, true)
							a.checkControl(t, s, o)
						})
					}
					s, o := run(t, inSession, nil, false)
					a.checkBounded(t, launcher.Best, s, o)
					if o.err != nil {
						t.Errorf("the bounded run failed: %v", o.err)
					}
				})
			}
		})
	}
}

// inBoth are the languages of Deno's, one as a program and one as a cell: which
// packages there are is decided in one place for both.
var inBoth = map[job.Language]string{job.JavaScript: "program", job.TypeScript: "cell"}

// ownCache is a cache of the scene's own, at a path that a permission flag can hold.
func ownCache(s *scene) string { return filepath.Join(filepath.Dir(s.dir()), "cache") }

// runOwn runs a program or a cell with the packages' cache of the scene, for a
// process of its own, as a server has that is started anew.
func runOwn(t *testing.T, s *scene, a attack, in string, change func(*deno.Options)) outcome {
	t.Helper()
	store, err := cache.Open(s.words["%CACHE%"], cache.Options{Log: cachetest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	permissions, err := permission.Parse(s.fill(a.grants))
	if err != nil {
		t.Fatal(err)
	}
	o := deno.Options{Cache: store, DenoPath: denoBinary(t), Permissions: permissions, Limits: job.DefaultLimits()}
	if change != nil {
		change(&o)
	}
	engine, err := deno.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	if in == "program" {
		return a.run(t, s, engine, engine)
	}
	session := ownSession(t, a.language, engine)
	return a.run(t, s, session, session)
}

// The packages of one program have no name for another: not as packages, not as
// paths, not through links.
func TestPackagesOfOthers(t *testing.T) { // not parallel: the registry is named by the environment
	const mine = `import mine from "npm:mine"; import { createRequire } from "node:module"; const mineRequire = createRequire(mine.here);`
	// It reads what a link leads to.
	reading := swapped(swapped(swapped(wasiEscape, `1, 64n | 2n`, `0, 2n`), `put(3000, "escaped")`, `500`),
		`console.log("symlink", linked, "open", opened, "write", calls.fd_write(view.getUint32(4096, true), 5000, 1, 5100));`,
		`console.log("symlink", linked, "open", opened, "read", calls.fd_read(view.getUint32(4096, true), 5000, 1, 5100), new TextDecoder().decode(new Uint8Array(memory.buffer, 3000, 500)));`)
	links := []string{"--allow-read=%GRANTED%", "--allow-write=%GRANTED%"}
	paths := map[string]string{"the cache": "%STORE%", "its view": "%VIEW%"}
	type row struct {
		name, code    string
		grants        []string
		asked         bool // the control is who asks for it, not who may do anything
		walls         bool // it is tried behind each wall
		noControl     string
		noCellControl string
	}
	rows := []row{
		{name: "import by its name", code: `console.log((await import(["npm:", "private"].join(""))).default);`, asked: true},
		{name: "import by its version", code: `console.log((await import(["npm:", "private@1.0.0"].join(""))).default);`, asked: true},
		{name: "require from another package", code: mine + `console.log(mineRequire("private"));`, asked: true, noCellControl: "in a cell, packages find what they depend on and nothing else"},
		{name: "require by a path from another package", code: mine + `console.log(mineRequire("../../private/1.0.0/index.js"));`, asked: true},
		{name: "import by a path from another package", code: mine + `console.log((await import(mine.here + "/../../../private/1.0.0/index.js")).default);`, asked: true},
	}
	// A package's own files are there to be read; what is beside its plan is not.
	looks := []string{
		`() => fs.readFileSync(path + "/index.js")`, `() => fs.existsSync(path + "/index.js")`, `() => fs.lstatSync(path)`, `() => fs.readdirSync(path)`,
		`() => fs.readdirSync(path + "/../..").includes("private")`, `() => fs.realpathSync(path)`, `() => Deno.readTextFileSync(path + "/index.js")`, `() => Deno.statSync(path)`,
	}
	changes := []string{
		`() => fs.symlinkSync(path, beside + "/link") === undefined`, `() => fs.linkSync(path + "/index.js", beside + "/hard") === undefined`,
		`() => fs.writeFileSync(beside + "/new", "") === undefined`, `() => fs.writeFileSync(beside + "/../../new", "") === undefined`,
		`() => fs.chmodSync(beside + "/index.js", 0o777) === undefined`, `() => fs.utimesSync(beside + "/index.js", 1, 1) === undefined`,
		`() => fs.renameSync(beside + "/index.js", beside + "/other.js") === undefined`, `() => fs.rmSync(beside, { recursive: true }) === undefined`,
	}
	for from, path := range map[string]string{"its package": `beside + "/../../private/1.0.0"`, "its package, up": `beside + "/../../../../../../../../../../../../../../..%STORE%"`, "the cache": `"%STORE%"`, "the view": `"%VIEW%"`} {
		try := `import fs from "node:fs"; import mine from "npm:mine"; const beside = mine.here.replace(/.index.js$/, ""), path = ` + path + `;
			const done = [LOOKS].filter((act) => { try { return act() } catch { return false } }); console.log(done.length > %LESS% ? "%FOUND%" : "", String(done)); /* %DIR% */`
		rows = append(rows, row{name: "look from " + from, code: strings.Replace(try, "LOOKS", strings.Join(looks, ", "), 1), asked: from == "its package", walls: true},
			row{name: "change something from " + from, code: strings.Replace(try, "LOOKS", strings.Join(changes, ", "), 1), walls: true, noControl: "it would change the cache for the other rows"})
	}
	for where, path := range paths {
		rows = append(rows,
			row{name: "import by its path in " + where, code: `console.log((await import(["file://%PATH%", "index.mjs"].join("/"))).default);`},
			row{name: "require by its path in " + where, code: mine + `console.log(mineRequire("%PATH%/index.js"));`},
			row{name: "read by its path in " + where, code: `console.log(Deno.readTextFileSync("%PATH%/index.js"));`},
			row{name: "ask whether it is in " + where, code: `Deno.lstatSync("%PATH%"); console.log("%FOUND%");`},
			row{name: "read through a link into " + where, grants: links, code: swapped(reading, `"%DIR%/escaped"`, `"%PATH%/index.js"`), noControl: "only where the second wall is missing, which another table shows"},
		)
		for i := range rows {
			rows[i].code = strings.ReplaceAll(rows[i].code, "%PATH%", path)
		}
	}
	for language, in := range inBoth {
		t.Run(string(language)+" "+in, func(t *testing.T) {
			// What another's run has left in the cache, once for all rows and once for their
			// controls.
			prepare := func() *scene {
				s := newScene(t, attack{language: language, code: "%DIR%"})
				s.words["%REGISTRY%"] = serveNPM(t,
					npmPackage{name: "private", files: []tarFile{{name: "package/index.js", text: `module.exports = "` + s.secret + `";`}, {name: "package/index.mjs", text: `export default "` + s.secret + `";`}}},
					npmPackage{name: "mine", files: []tarFile{{name: "package/index.js", text: `exports.here = __filename;`}}})
				t.Setenv("NPM_CONFIG_REGISTRY", s.words["%REGISTRY%"])
				s.words["%CACHE%"] = ownCache(s)
				if o := runOwn(t, s, attack{language: language, code: `import "npm:private"`}, "program", nil); o.Error != nil {
					t.Fatalf("the package can't be had: %s", o.text())
				}
				s.words["%STORE%"] = globbed(t, s.words["%CACHE%"]+"/deno/npm/*/private/1.0.0")[0]
				s.words["%VIEW%"] = globbed(t, s.words["%CACHE%"]+"/trees/modules/*/files/npm/*/private/1.0.0")[0]
				return s
			}
			bounded, free := prepare(), prepare()
			for _, row := range rows {
				t.Run(row.name, func(t *testing.T) {
					a := attack{language: language, code: row.code, grants: row.grants}
					found, less := "", "0"
					if strings.Contains(a.code, "%FOUND%") { // the program may not hold what it finds
						found = "there"
						a.evidence = func(_ *scene, o outcome) string {
							return map[bool]string{true: "it is seen"}[strings.Contains(o.Stdout.String(), "there")]
						}
					}
					of := func(s *scene, a attack) *scene {
						t.Setenv("NPM_CONFIG_REGISTRY", s.words["%REGISTRY%"])
						s.attack, s.words["%FOUND%"], s.words["%LESS%"] = a, found, less
						return s
					}
					s := of(bounded, a)
					levels := []launcher.Level{launcher.Best}
					if row.walls {
						levels = a.levels(in == "cell")
					}
					for _, level := range levels {
						a.checkBounded(t, level, s, runOwn(t, s, a, in, func(o *deno.Options) { o.Wall = level }))
					}
					if row.noControl != "" || row.noCellControl != "" && in == "cell" {
						return
					}
					onceShown(t, func() {
						less = fmt.Sprint(len(looks) - 1) // each look works
						if row.asked {
							a.packages = []string{"npm:private"}
						} else {
							a.grants = []string{"--allow-all"}
						}
						s := of(free, a)
						a.checkControl(t, s, runOwn(t, s, a, in, func(o *deno.Options) { o.WithoutSecondWall = true }))
					})
				})
			}
		})
	}
	// Python's process has no packages of Deno's; it reaches JavaScript all the same.
	for name, code := range map[string]string{
		"read":   `from pyodide.code import run_js; print(run_js('Deno.readTextFileSync("%STORE%/index.js")'))`,
		"import": `from pyodide.code import run_js; print((await run_js('import("file://%STORE%/index.js")')).default)`,
		"name":   `from pyodide.code import run_js; print((await run_js('import("npm:private")')).default)`,
	} {
		t.Run("Python: "+name, func(t *testing.T) {
			a := attack{language: job.Python, code: code + "  # %DIR%", noControl: "it is shown above"}
			a.prepare = func(t *testing.T, s *scene) {
				t.Setenv("NPM_CONFIG_REGISTRY", serveNPM(t, npmPackage{name: "private", files: []tarFile{{name: "package/index.js", text: `module.exports = "` + s.secret + `";`}}}))
				s.words["%CACHE%"] = ownCache(s)
				if o := runOwn(t, s, attack{language: job.JavaScript, code: `import "npm:private"`}, "program", nil); o.Error != nil {
					t.Fatalf("the package can't be had: %s", o.text())
				}
				s.words["%STORE%"] = globbed(t, s.words["%CACHE%"]+"/deno/npm/*/private/1.0.0")[0]
			}
			a.runBounded(t)
		})
	}
}

// What is denied is denied in every form in which it can be had.
func TestDeniedPackagesInOtherWords(t *testing.T) { // not parallel: the registry is named by the environment
	policy := func(o *deno.Options) { o.Policy = egress.Policy{Deny: []string{"@std/csv", "left-pad"}} }
	shared, err := cachetest.Dir()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(cachetest.DirEnv, shared) // which may be below the home directory
	for _, row := range []struct{ name, imports string }{
		{"JSR's package by its npm name", `"npm:@jsr/std__csv"`},
		{"JSR's package by its npm name, bare", `"@jsr/std__csv"`},
		{"a package that needs JSR's package", `"npm:needs-csv"`},
		{"a package that needs it by another name", `"npm:needs-alias"`},
		{"a URL that bundles it by its query", `"%URL%/x.js?deps=left-pad"`},
		{"a URL that bundles it by its query, with a version", `"%URL%/x.js?a=1&deps=y@1,left-pad@1.3.0"`},
		{"a URL that bundles it by its query, encoded", `"%URL%/x.js?deps=%6ceft-pad"`},
		{"a URL that bundles it by its query, encoded twice", `"%URL%/x.js?deps=%256ceft-pad"`},
		{"a URL that bundles it as an alias", `"%URL%/x.js?alias=y:left-pad"`},
		{"a URL that bundles JSR's package", `"%URL%/x.js?deps=@jsr/std__csv"`},
		{"a URL after a semicolon", `"%URL%/;left-pad"`},
		{"a URL before an ampersand", `"%URL%/left-pad&x"`},
		{"a URL after a comma", `"%URL%/combine/npm/x,npm/left-pad@1"`},
		{"a URL that says it in a code", `"%URL%/v1/X-ZC9sZWZ0LXBhZEAx/x.js"`}, // d/left-pad@1
		{"a URL of what somebody had built", `"%URL%/~0123456789abcdef"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			for language, in := range inBoth {
				t.Run(string(language)+" "+in, func(t *testing.T) {
					a := attack{language: language, code: `import x from ` + row.imports + `; console.log(x); /* %DIR% */`}
					prepare := func() (*scene, func(*deno.Options)) {
						s := newScene(t, a)
						bundles := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
							w.Header().Set("Content-Type", "text/javascript")
							_, _ = w.Write([]byte(`export default "` + s.secret + `";`))
						}))
						t.Cleanup(bundles.Close)
						s.words["%URL%"], s.words["%CACHE%"] = bundles.URL, ownCache(s)
						text := []tarFile{{name: "package/index.js", text: `module.exports = "` + s.secret + `";`}}
						registry := serveNPM(t, npmPackage{name: "@jsr/std__csv", files: text}, npmPackage{name: "@jsr/Std__csv", files: text},
							npmPackage{name: "needs-csv", manifest: map[string]any{"dependencies": map[string]string{"@jsr/std__csv": "1"}}, files: []tarFile{{name: "package/index.js", text: `module.exports = require("@jsr/std__csv");`}}},
							npmPackage{name: "needs-alias", manifest: map[string]any{"dependencies": map[string]string{"y": "npm:@jsr/std__csv@1"}}, files: []tarFile{{name: "package/index.js", text: `module.exports = require("y");`}}})
						home := t.TempDir()
						write(t, filepath.Join(home, ".npmrc"), "@jsr:registry="+registry+"\n")
						t.Setenv("HOME", home)
						t.Setenv("NPM_CONFIG_REGISTRY", registry)
						return s, func(o *deno.Options) { o.AllowImport = []string{strings.TrimPrefix(bundles.URL, "http://")} }
					}
					s, imports := prepare()
					a.checkBounded(t, launcher.Best, s, runOwn(t, s, a, in, func(o *deno.Options) { imports(o); policy(o) }))
					s, imports = prepare()
					a.checkControl(t, s, runOwn(t, s, a, in, imports))
				})
			}
		})
	}
}
