//go:build !windows

package hostile

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"rillbox/cache/egress"
	"rillbox/pyodide"
	"rillbox/supervisor/job"
)

// Wheels that an index serves and that should not be trusted. A wheel is
// unpacked in the memory of the child that asked for it, so that the host's
// files are out of reach by nature; what is looked for here is a file out of
// its place, code that runs before its time, and a child or server that breaks.
func TestPythonHostileWheels(t *testing.T) {
	t.Parallel()
	wheels := newIndex(t)
	engine := pythonEngine(t, func(o *pyodide.Options) { o.IndexURL = wheels.url() })
	session := ownSession(t, job.Python, engine) // which goes on after each of them
	const linked = os.ModeSymlink
	for _, row := range []struct {
		name    string
		project string
		more    []zipFile
		// instead of the usual files of a wheel, if any.
		instead []zipFile
		// look prints "here" when the attack went well; the project is installed.
		look string
		// fails is what the error must hold when the wheel can't be installed.
		fails string
	}{
		{name: "a path that climbs", project: "climbs", more: []zipFile{{name: "../../../../../../../../climbed.py", text: "x = 1"}},
			look: `import os; print("here" if os.path.exists("/climbed.py") else "not")`},
		{name: "a path that climbs from within", project: "climbswithin", more: []zipFile{{name: "climbswithin/../../../../../../../climbed.py", text: "x = 1"}},
			look: `import os; print("here" if os.path.exists("/climbed.py") else "not")`},
		{name: "a path that climbs by backslashes", project: "climbsback", more: []zipFile{{name: `..\..\..\..\..\..\climbed.py`, text: "x = 1"}},
			look: `import os; print("here" if os.path.exists("/climbed.py") else "not")`},
		{name: "an absolute path", project: "absolutepath", more: []zipFile{{name: "/climbed.py", text: "x = 1"}},
			look: `import os; print("here" if os.path.exists("/climbed.py") else "not")`},
		{name: "a path that climbs to the standard library", project: "stdlibclimb", more: []zipFile{{name: "../json/__init__.py", text: "x = 1"}, {name: "../../python314.zip", text: "x"}},
			look: `import json, os; print("here" if os.path.getsize("/lib/python314.zip") < 1000 or hasattr(json, "x") else "not")`},
		{name: "a symbolic link", project: "symlinked", more: []zipFile{
			{name: "symlinked/out", text: "/", mode: linked}, {name: "symlinked/out/climbed.py", text: "x = 1"}},
			look: `import os; print("here" if os.path.exists("/climbed.py") else "not")`, fails: "symlinked"},
		{name: "a symbolic link to a process's files", project: "symlinkproc", more: []zipFile{{name: "symlinkproc/proc", text: "/proc/self/environ", mode: linked}},
			look: `import os, symlinkproc; print("here" if os.path.islink(os.path.dirname(symlinkproc.__file__) + "/proc") else "not")`},
		{name: "a name of our own package", project: "ownpackage", more: []zipFile{{name: "rillbox/runner.py", text: "print('here')"}, {name: "rillbox/__init__.py", text: "print('here')"}},
			look: `import rillbox.runner; print("not")`},
		{name: "names of the standard library", project: "stdlibnames", more: []zipFile{{name: "json.py", text: "print('here')"}, {name: "asyncio/__init__.py", text: "print('here')"}, {name: "sitecustomize.py", text: "print('here')"}},
			look: `import json, asyncio; print("not")`},
		{name: "a .pth file with code", project: "pthfile", more: []zipFile{{name: "pthfile.pth", text: "import sys; print('here')\n"}}, look: `print("not")`},
		{name: "code of a parent package, before the program", project: "parentcode", more: []zipFile{
			{name: "google/__init__.py", text: "open('/tmp/early', 'w').close()"}, {name: "google/genai/__init__.py"}},
			look: `
import os
print("here" if os.path.exists("/tmp/early") else "not")
import google.genai
if not os.path.exists("/tmp/early"): print("here")`},
		{name: "scripts and data of an installation", project: "scripts", more: []zipFile{
			{name: "scripts-1.0.data/scripts/../../../../../../../climbed.py", text: "x = 1"}},
			look: `import os; print("here" if os.path.exists("/climbed.py") else "not")`},
		{name: "no zip at all", project: "nozip", instead: []zipFile{}, look: `print("not")`, fails: "nozip"},
		{name: "no dist-info", project: "noinfo", instead: []zipFile{{name: "noinfo/__init__.py"}}, look: `print("not")`, fails: "noinfo"},
		{name: "two dist-infos", project: "twoinfos", more: []zipFile{{name: "other-2.0.dist-info/METADATA", text: "Name: other\nVersion: 2.0\n"}}, look: `print("not")`, fails: "twoinfos"},
		{name: "the dist-info of another project", project: "otherinfo", instead: wheelFiles("requests", "print('here')"), look: `print("not")`, fails: "otherinfo"},
		{name: "metadata that is no text", project: "binarymeta", instead: replaced("binarymeta", "METADATA", "\xff\xfe\x00\x01Name: \x80"), look: `print("not")`, fails: "binarymeta"},
		{name: "metadata without a name", project: "noname", instead: replaced("noname", "METADATA", "Requires-Dist: ((((\n"), look: `print("not")`, fails: "noname"},
		{name: "metadata of a million requirements", project: "millions", instead: replaced("millions", "METADATA",
			"Metadata-Version: 2.1\nName: millions\nVersion: 1.0\n"+strings.Repeat("Requires-Dist: millions; extra == 'x'\n", 20_000)), look: `print("not")`},
		{name: "a requirement of itself", project: "itself", instead: wheelFiles("itself", "", "Requires-Dist: itself>=1", "Requires-Dist: itself[x]", "Provides-Extra: x"), look: `print("not")`},
		{name: "a requirement of a missing version of itself", project: "itself2", instead: wheelFiles("itself2", "", "Requires-Dist: itself2>=2"), look: `print("not")`, fails: "itself2"},
		{name: "a marker that does not end", project: "marker", instead: wheelFiles("marker", "", "Requires-Dist: x; "+strings.Repeat("(", 5000)), look: `print("not")`, fails: "marker"},
		{name: "a module that takes the process down", project: "fatalmodule", more: []zipFile{{name: "fatalmodule/x.so", text: "\x00asm not really"}}, look: `print("not")`, fails: "x.so"},
	} {
		t.Run(row.name, func(t *testing.T) {
			files := append(wheelFiles(row.project, ""), row.more...)
			if row.instead != nil {
				files = row.instead
			}
			content := zipOf(t, files...)
			if row.name == "no zip at all" {
				content = []byte("this is no zip")
			}
			wheels.put(row.project, content)
			for name, engine := range map[string]job.Engine{"program": engine, "cell": session} {
				t.Run(name, func(t *testing.T) {
					p := job.Program{Language: job.Python, Packages: []string{row.project}, Code: row.look}
					o := runProgram(t.Context(), engine, p, nil)
					t.Logf("bounded: %s", o.summary())
					if o.err != nil {
						t.Fatal(o.err)
					}
					if strings.Contains(o.Stdout.String(), "here") {
						t.Errorf("the attack got through: %s", o.summary())
					}
					if o.Status == job.Completed && !strings.Contains(o.Stdout.String(), "not") {
						t.Errorf("the program did not run: %s", o.summary())
					}
					if o.Status != job.Completed && (row.fails == "" || o.Error == nil || !strings.Contains(o.text(), row.fails)) {
						t.Errorf("it ended as %s, without a word of why: %s", o.Status, o.summary())
					}
				})
			}
			checkUsable(t, session)
		})
	}
	checkUsable(t, engine)
}

// checkUsable checks that another program runs as if nothing had been.
func checkUsable(t *testing.T, engine job.Engine) {
	t.Helper()
	o := runProgram(t.Context(), engine, job.Program{Language: job.Python, Code: "1 + 1"}, nil)
	if string(o.Value) != "2" {
		t.Errorf("afterwards: %s", o.summary())
	}
}

// replaced are the files of a wheel, one of its dist-info replaced.
func replaced(project, name, text string) []zipFile {
	files := wheelFiles(project, "")
	for i := range files {
		if strings.HasSuffix(files[i].name, name) {
			files[i].text = text
		}
	}
	return files
}

// A wheel of a few kilobytes that unpacks to gigabytes ends its own run, at the
// latest when its files are read.
func TestPythonWheelBombs(t *testing.T) {
	t.Parallel()
	wheels := newIndex(t)
	limits := job.DefaultLimits()
	limits.Memory = 128 << 20
	engine := pythonEngine(t, func(o *pyodide.Options) { o.IndexURL = wheels.url(); o.Limits = limits })
	many := wheelFiles("manyparts", "")
	for _, part := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		many = append(many, zipFile{name: "manyparts/" + part, zeros: 64})
	}
	const readAll = `
import os, site
for directory, _, names in os.walk(site.getsitepackages()[0]):
    for name in names:
        open(os.path.join(directory, name), "rb").read()
"read"`
	large := replaced("largemeta", "METADATA", "Metadata-Version: 2.1\nName: largemeta\nVersion: 1.0\n\n")
	large[1].zeros = 512
	for _, row := range []struct {
		name, project string
		files         []zipFile
	}{
		{"one large file", "onelarge", append(wheelFiles("onelarge", ""), zipFile{name: "onelarge/zeros", zeros: 512})},
		{"many files", "manyparts", many},
		{"metadata", "largemeta", large},
	} {
		t.Run(row.name, func(t *testing.T) {
			wheels.put(row.project, zipOf(t, row.files...))
			bothWays(t, job.Python, engine, func(t *testing.T, engine job.Engine) {
				o := runProgram(t.Context(), engine, job.Program{Language: job.Python, Packages: []string{row.project}, Code: readAll}, nil)
				t.Logf("bounded: %s, peak %d MiB", o.summary(), o.PeakMemory>>20)
				if o.err != nil || o.Error == nil {
					t.Fatalf("it did not end by a clear error: %s", o.summary())
				}
				if o.Status != job.OutOfMemory && !strings.Contains(o.Error.Message, "allocate") && o.Error.Name != "MemoryError" {
					t.Errorf("it did not end for want of memory: %s", o.summary())
				}
				if o.PeakMemory > 250<<20+2*limits.Memory {
					t.Errorf("it had %d MiB", o.PeakMemory>>20)
				}
				checkUsable(t, engine)
			})
		})
	}
}

// What the operator's policy denies is not installed, by whatever way it is
// asked for. The control has no policy.
func TestPythonDeniedPackages(t *testing.T) {
	t.Parallel()
	wheels := newIndex(t)
	secret := newSecret()
	wheels.put("denied_thing", zipOf(t, wheelFiles("denied_thing", "print('"+secret+"')")...))
	wheels.put("needs_denied", zipOf(t, wheelFiles("needs_denied", "import denied_thing", "Requires-Dist: denied-thing")...))
	open := pythonEngine(t, func(o *pyodide.Options) { o.IndexURL = wheels.url() })
	bounded := pythonEngine(t, func(o *pyodide.Options) {
		o.IndexURL = wheels.url()
		o.Policy = egress.Policy{Deny: []string{"denied-*"}}
	})
	allowed := pythonEngine(t, func(o *pyodide.Options) {
		o.IndexURL = wheels.url()
		o.Policy = egress.Policy{Allow: []string{"needs-denied"}}
	})
	denying := map[string]job.Engine{"program": bounded, "cell": ownSession(t, job.Python, bounded)}
	allowing := map[string]job.Engine{"program": allowed, "cell": ownSession(t, job.Python, allowed)}
	for _, row := range []struct {
		name, code string
		packages   []string
	}{
		{"a package of the request", "import denied_thing", []string{"denied-thing"}},
		{"a package in other spelling", "import denied_thing", []string{"Denied.Thing"}},
		{"an import", "import denied_thing", nil},
		{"inline metadata", "# /// script\n# dependencies = ['denied_thing']\n# ///\nimport denied_thing", nil},
		{"a package that needs it", "import needs_denied", []string{"needs_denied"}},
		{"micropip at run time", "import micropip\nawait micropip.install('denied-thing')\n__import__('denied_thing')", nil},
		{"micropip with other letters", "import micropip\nawait micropip.install('DENIED__thing')\n__import__('denied_thing')", nil},
		{"the gateway's page and file by hand", `
import js, json, zipfile, io, sys
from micropip import package_index
base = package_index.PYPI_URL
page = await (await js.fetch(base + "/denied-thing/")).text()
print(page[:300])
content = (await (await js.fetch(json.loads(page)["files"][0]["url"])).arrayBuffer()).to_bytes()
print(zipfile.ZipFile(io.BytesIO(content)).read("denied_thing/__init__.py"))`, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := job.Program{Language: job.Python, Packages: row.packages, Code: row.code}
			onceShown(t, func() {
				if o := runProgram(t.Context(), open, p, nil); !strings.Contains(o.text(), secret) {
					t.Errorf("it is not had without the policy either, so this shows nothing: %s", o.summary())
				}
			})
			policies := map[string]map[string]job.Engine{"denied": denying}
			if row.packages != nil {
				policies["not allowed"] = allowing
			}
			for policy, engines := range policies {
				for name, engine := range engines {
					t.Run(policy+", "+name, func(t *testing.T) {
						o := runProgram(t.Context(), engine, p, nil)
						if strings.Contains(o.text(), secret) || o.Status == job.Completed {
							t.Errorf("it got through: %s", o.summary())
						}
						if !strings.Contains(o.text(), "the operator denied package") {
							t.Errorf("the error does not say why: %s", o.summary())
						}
					})
				}
			}
		})
	}
}

// What a wheel's own metadata requires from elsewhere is not fetched there. The
// control is micropip in a bare Pyodide.
func TestPythonRequirementsFromElsewhere(t *testing.T) {
	t.Parallel()
	wheels := newIndex(t)
	engine := pythonEngine(t, func(o *pyodide.Options) { o.IndexURL = wheels.url() })
	session := ownSession(t, job.Python, engine)
	var rows []attack
	for _, row := range []struct{ name, project, requirement string }{
		{"by a file: URL", "byfile", "led_file @ file://%DIR%/led_file-1.0-py3-none-any.whl"},
		{"over http", "byhttp", "led_http @ http://%HTTP%/led_http-1.0-py3-none-any.whl"},
		{"from an address on loopback", "byloopback", "led_https @ https://%HTTP%/led_https-1.0-py3-none-any.whl"},
	} {
		led, _, _ := strings.Cut(row.requirement, " ")
		rows = append(rows, attack{
			name: row.name, packages: []string{row.project}, bare: true,
			code: "import " + row.project + "\nimport " + led + "\nprint(" + led + ".secret) # " + row.requirement,
			prepare: func(t *testing.T, s *scene) {
				secretWheel(led)(t, s)
				wheels.put(row.project, zipOf(t, wheelFiles(row.project, "", "Requires-Dist: "+s.fillText(row.requirement))...))
			},
		})
	}
	installing := slices.Clone(rows)
	for i, row := range rows {
		installing[i].code = `import micropip
await micropip.install("` + row.packages[0] + `", index_urls="` + wheels.url() + `")
` + row.code
	}
	problems := controlTogether(t, installing, "program", nil)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if problem := problems[row.name]; problem != "" {
				t.Error(problem)
			}
			s := newScene(t, row)
			for name, engine := range map[string]job.Engine{"program": engine, "cell": session} {
				o := runProgram(t.Context(), engine, job.Program{Language: job.Python, Packages: row.packages, Code: s.fillText(row.code)}, nil)
				t.Logf("bounded, %s: %s", name, o.summary())
				if found := s.evidenceOf(o); len(found) > 0 || o.err != nil || o.Status == job.Completed {
					t.Errorf("the attack got through: %q, %s", found, o.summary())
				}
			}
		})
	}
}

// A guest that says after its start what was installed changes nothing for the
// next program with the same wishes.
func TestPythonInstallPlanIsNotPoisoned(t *testing.T) {
	t.Parallel()
	wheels := newIndex(t)
	index := func(o *pyodide.Options) { o.IndexURL = wheels.url() }
	engine := pythonEngine(t, index)
	another := ownSession(t, job.Python, pythonEngine(t, index)) // another server's
	for i, row := range []struct{ name, code string }{
		{"installed after the start", climb + `send(type="installed", files=[], missing={"harmless": "forged"})`},
		{"resolve and installed after the start", climb + `
send(type="resolve", requirements=["harmless"], imports=[])
send(type="installed", files=[], missing={})`},
		{"started and installed again", climb + `
send(type="started")
send(type="installed", files=[], missing={})`},
		{"a wheel that runs at its import", "import tampering"},
		{"the gateway's answers replaced", `
import js
js.globalThis.fetch = lambda *_: 1 / 0
import micropip
await micropip.install("tampering")`},
	} {
		t.Run(row.name, func(t *testing.T) {
			for kind, climbs := range map[string]string{"program": climb, "cell": climbInCell} {
				t.Run(kind, func(t *testing.T) {
					// Packages of its own, which have no plan yet.
					own := strings.NewReplacer("harmless", fmt.Sprint("harmless", i, kind), "tampering", fmt.Sprint("tampering", i, kind), climb, climbs).Replace
					wheels.put(own("harmless"), zipOf(t, wheelFiles(own("harmless"), "text = 'harmless'")...))
					wheels.put(own("tampering"), zipOf(t, wheelFiles(own("tampering"), climbs+`send(type="installed", files=[], missing={})`)...))
					packages := []string{own("harmless")}
					if strings.Contains(row.code, "import tampering") {
						packages = append(packages, own("tampering"))
					}
					hostile := job.Engine(engine)
					if kind == "cell" {
						hostile = ownSession(t, job.Python, engine)
					}
					p := job.Program{Language: job.Python, Packages: packages, Code: own(row.code)}
					first := runProgram(t.Context(), hostile, p, nil)
					t.Logf("hostile: %s", first.summary())
					p.Code = own("import harmless\nharmless.text")
					next := runProgram(t.Context(), engine, p, nil)
					if string(next.Value) != `"harmless"` || len(next.Packages) != len(packages) {
						t.Errorf("the next run: %s, packages %v", next.summary(), next.Packages)
					}
					if last := runProgram(t.Context(), another, p, nil); string(last.Value) != `"harmless"` {
						t.Errorf("another server's run: %s", last.summary())
					}
				})
			}
		})
	}
}
