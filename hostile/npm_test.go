//go:build !windows

package hostile

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/cache"
	"rillbox/deno"
	"rillbox/supervisor"
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
		mux.HandleFunc("/"+p.name, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(document) })
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
			a := attack{language: supervisor.JavaScript, code: row.code}
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
				permissions, err := deno.Parse(grants)
				if err != nil {
					t.Fatal(err)
				}
				engine, err := deno.New(deno.Options{Cache: store, DenoPath: binary.Path, Permissions: permissions, Limits: supervisor.DefaultLimits(), WithoutSecondWall: withoutWall})
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
						s, o := run(t, inSession, []string{"--allow-all"}, true)
						a.checkControl(t, s, o)
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
