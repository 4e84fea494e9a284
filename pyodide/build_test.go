//go:build !windows

package pyodide

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/cache/egress"
	"rillbox/deno"
	"rillbox/pyodide/gateway"
	"rillbox/supervisor/job"
)

// sourceOf makes a source archive of files.
func sourceOf(t testing.TB, project string, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.ReplaceAll(files[name], "NAME", project)
		name = project + "-1.0/" + strings.ReplaceAll(name, "NAME", project)
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, text)
	}
	if w.Close() != nil || zipped.Close() != nil {
		t.Fatal("a source archive can't be made")
	}
	return b.Bytes()
}

// sourceIndex is an index of source archives, by project; others are elsewhere's.
func sourceIndex(t testing.TB, sources map[string][]byte, elsewhere string) *httptest.Server {
	t.Helper()
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		project, isPage := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/"), "/simple/")
		source, ours := sources[project]
		switch {
		case isPage && ours:
			file := project + "-1.0.tar.gz"
			w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
			_ = json.NewEncoder(w).Encode(map[string]any{
				"meta": map[string]string{"api-version": "1.1"}, "name": project,
				"files": []any{map[string]any{"filename": file, "url": "/" + file, "hashes": map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(source))}}},
			})
		case isPage && elsewhere != "":
			http.Redirect(w, r, elsewhere+"/"+project+"/", http.StatusFound)
		default:
			source, ours := sources[strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), "-1.0.tar.gz")]
			if !ours {
				http.NotFound(w, r)
			}
			_, _ = w.Write(source)
		}
	}))
	t.Cleanup(index.Close)
	return index
}

const projectTable = `
[project]
name = "NAME"
version = "1.0"
`

// backends are tiny projects of each build backend, whose module has a value. Those of
// setuptools with a pyproject.toml are among the real ones.
var backends = map[string]map[string]string{
	"b-legacy":    {"setup.py": "import blegacy\nfrom setuptools import setup\nsetup(name='NAME', version='1.0', py_modules=['blegacy'])\n", "blegacy.py": "value = 2"},
	"b-hatchling": {"pyproject.toml": "[build-system]\nrequires = ['hatchling']\nbuild-backend = 'hatchling.build'" + projectTable + "[tool.hatch.build.targets.wheel]\ninclude = ['bhatchling.py']\n", "bhatchling.py": "value = 4"},
	"b-flit":      {"pyproject.toml": "[build-system]\nrequires = ['flit_core>=3']\nbuild-backend = 'flit_core.buildapi'" + projectTable + "description = 'x'\n[tool.flit.module]\nname = 'bflit'\n", "bflit.py": "value = 5"},
	"b-poetry":    {"pyproject.toml": "[build-system]\nrequires = ['poetry-core']\nbuild-backend = 'poetry.core.masonry.api'\n[tool.poetry]\nname = 'NAME'\nversion = '1.0'\ndescription = ''\nauthors = []\npackages = [{include = 'bpoetry.py'}]\n", "bpoetry.py": "value = 6"},
	"b-pdm":       {"pyproject.toml": "[build-system]\nrequires = ['pdm-backend']\nbuild-backend = 'pdm.backend'" + projectTable + "[tool.pdm.build]\nincludes = ['bpdm.py']\n", "bpdm.py": "value = 7"},
	"b-uv":        {"pyproject.toml": "[build-system]\nrequires = ['uv_build>=0.7,<1']\nbuild-backend = 'uv_build'" + projectTable, "src/b_uv/__init__.py": "from b_uv.inner import value", "src/b_uv/inner.py": "value = 8"},
	"b-own":       {"pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'backend:hooks.of'\nbackend-path = ['tools']", "tools/backend.py": ownBackend, "bown.py": "value = 9"},
}

// ownBackend is a backend that a source brings along.
const ownBackend = `
import os, zipfile
class hooks:
    class of:
        def build_wheel(directory, settings=None, metadata=None):
            assert metadata is None and os.path.exists("bown.py")
            with zipfile.ZipFile(f"{directory}/b_own-1.0-cp314-cp314-any.whl", "w") as wheel:
                wheel.write("bown.py")
                wheel.writestr("b_own-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: b.own\nVersion: 1\n")
            return "b_own-1.0-cp314-cp314-any.whl"
`

// elsewhere is the package index that tests use.
func elsewhere(t *testing.T, e *Engine) string {
	indexes, err := e.indexes(e.runtime)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(indexes[0], "/")
}

// TestEachBackend builds a project of each, installs it, and uses it again offline.
func TestEachBackend(t *testing.T) {
	sources := map[string][]byte{}
	for project, files := range backends {
		sources[project] = sourceOf(t, project, files)
	}
	index := sourceIndex(t, sources, elsewhere(t, newEngine(t)))
	change := func(o *Options) { o.IndexURL = index.URL + "/simple" }
	program := python("import blegacy, bhatchling, bflit, bpoetry, bpdm, b_uv, bown\n" +
		"[m.value for m in (blegacy, bhatchling, bflit, bpoetry, bpdm, b_uv, bown)]")
	program.Packages = slices.Sorted(maps.Keys(sources))
	const want = "[2,4,5,6,7,8,9]"
	e := newEngine(t, change)
	var stages []string
	r, err := e.Run(t.Context(), program, job.Streams{Emit: func(event job.Event) { stages = append(stages, event.Text) }})
	if err != nil {
		t.Fatal(err)
	}
	needIndex(t, r)
	value := strings.ReplaceAll(string(r.Value), " ", "")
	if r.Status != job.Completed || value != want {
		t.Fatalf("%s, value %s, error %+v", r.Status, value, r.Error)
	}
	for project := range sources {
		if !slices.Contains(r.Packages, job.Package{Name: project, Version: "1.0", Source: gateway.Built}) {
			t.Errorf("packages %+v lack %s", r.Packages, project)
		}
		if stage := "building " + project + " 1.0 from source"; !slices.Contains(stages, stage) {
			t.Errorf("%q is not told", stage)
		}
	}
	index.Close()
	offline := newEngine(t, change, func(o *Options) { o.Cache = cachetest.OpenOffline(t) })
	again := completed(t, offline, program)
	if value := strings.ReplaceAll(string(again.Value), " ", ""); value != want || slices.ContainsFunc(again.Packages, func(p job.Package) bool { return !p.Cached }) {
		t.Errorf("offline: value %s, packages %+v", value, again.Packages)
	}
	// A program that wants other packages has no plan; what was built is there.
	one := python("import blegacy\nblegacy.value")
	one.Packages = []string{"b-legacy"}
	if r := completed(t, offline, one); string(r.Value) != "2" {
		t.Errorf("offline, another program: value %s", r.Value)
	}
	// A plan whose wheel was trimmed is made anew.
	p, err := offline.findPlan(&worker{rt: offline.runtime, policy: offline.o.Policy}, requirements{Packages: one.Packages, Imports: []string{"blegacy"}})
	if err != nil || p == nil || len(p.Files) != 1 {
		t.Fatalf("the plan is %+v (%v)", p, err)
	}
	if err := offline.o.Cache.Remove("wheel", p.Files[0].SHA256); err != nil {
		t.Fatal(err)
	}
	if p, err := offline.findPlan(&worker{rt: offline.runtime, policy: offline.o.Policy}, requirements{Packages: one.Packages, Imports: []string{"blegacy"}}); p != nil || err != nil {
		t.Errorf("a plan whose wheel is gone is %+v (%v)", p, err)
	}
	if r := completed(t, offline, one); string(r.Value) != "2" {
		t.Errorf("offline, from what is built: value %s", r.Value)
	}
}

// TestWhatCantBeBuilt: the error names the package and what is wrong.
func TestWhatCantBeBuilt(t *testing.T) {
	pyproject := func(text string) map[string]string { return map[string]string{"pyproject.toml": text} }
	hook := func(code string) map[string]string { // a backend that runs this
		return map[string]string{
			"pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'b'\nbackend-path = ['.']\n",
			"b.py":           "import subprocess, sys, zipfile\ndef build_wheel(directory, settings):\n  " + code + "\n",
		}
	}
	sources, wants := map[string][]byte{}, map[string]string{}
	for project, row := range map[string]struct {
		files map[string]string
		want  string
	}{
		"n-c":        {map[string]string{"setup.py": "from setuptools import Extension, setup\nsetup(name='NAME', version='1.0', ext_modules=[Extension('x', ['x.c'])])\n", "x.c": ""}, "needs C code to be compiled (by "},
		"n-rust":     {pyproject("[build-system]\nrequires = ['maturin']\nbuild-backend = 'maturin'"), "needs Rust code to be compiled (its build backend is maturin)"},
		"n-config":   {hook("subprocess.check_output(['mysql_config', '--libs'])"), "needs C code to be compiled (by mysql_config)"},
		"n-exit":     {hook("print('Error: no database here', file=sys.stderr); sys.exit(1)"), "can't be built: Error: no database here"},
		"n-error":    {hook("import nosuchmodule"), "can't be built: its build ended with ModuleNotFoundError: No module named 'nosuchmodule'"},
		"n-nothing":  {map[string]string{"README": ""}, "has neither a pyproject.toml nor a setup.py"},
		"n-system":   {pyproject("[build-system]\nrequires = [3]\n"), "is not as it must be (PEP 518)"},
		"n-uv":       {pyproject("[build-system]\nrequires = ['uv_build']\nbuild-backend = 'uv_build'\n[project]\nname = 'NAME'\n[tool.uv.build-backend]\nnamespace = true\n"), "is built by uv_build with namespace"},
		"n-requires": {pyproject("[build-system]\nrequires = ['this-package-does-not-exist-xyz']\nbuild-backend = 'x'\n"), "there is no package 'this-package-does-not-exist-xyz'"},
		"n-source":   {pyproject("[build-system]\nrequires = ['n-error']\nbuild-backend = 'x'\n"), "what a build needs is not built itself"},
		"n-other":    {hook("zipfile.ZipFile(directory + '/x', 'w').writestr('requests-1.0.dist-info/METADATA', 'Name: requests\\nVersion: 1.0'); return 'x'"), "is to be n-other 1.0"},
	} {
		sources[project], wants[project] = sourceOf(t, project, row.files), row.want
	}
	sources["n-archive"], wants["n-archive"] = []byte("this is no archive"), "can't be built: its source is refused: n-archive-1.0.tar.gz: gzip: invalid header"
	index := sourceIndex(t, sources, elsewhere(t, newEngine(t)))
	e := newEngine(t, func(o *Options) { o.IndexURL = index.URL + "/simple" })
	program := python("1")
	program.Packages = slices.Sorted(maps.Keys(sources))
	for _, what := range []string{"the first time", "as it was found"} {
		start := time.Now()
		r := run1(t, e, program)
		if r.Error == nil {
			t.Fatalf("%s, value %s", r.Status, r.Value)
		}
		needIndex(t, r)
		for project, want := range wants {
			if !slices.ContainsFunc(strings.Split(r.Error.Message, "\n"), func(line string) bool {
				return strings.HasPrefix(line, project+" 1.0 ") && strings.Contains(line, want)
			}) {
				t.Errorf("%s: the message has no line of %s that says %q:\n%s", what, project, want, r.Error.Message)
			}
		}
		t.Logf("%s: %v", what, time.Since(start))
	}
}

// TestSourcesAndThePolicy: what is denied, or too young, is neither built nor built with.
func TestSourcesAndThePolicy(t *testing.T) {
	sources := map[string][]byte{"p-legacy": sourceOf(t, "p-legacy", backends["b-legacy"])}
	index := sourceIndex(t, sources, elsewhere(t, newEngine(t)))
	for _, test := range []struct {
		policy egress.Policy
		want   string
	}{
		{egress.Policy{Deny: []string{"p-legacy"}}, `the operator denied package "p-legacy"`},
		{egress.Policy{Deny: []string{"setuptools"}}, `p-legacy 1.0 can't be built without setuptools: `},
		{egress.Policy{Allow: []string{"p-legacy"}}, `the operator denied package "setuptools": it is not among the allowed ones`},
		{egress.Policy{MinReleaseAge: time.Hour}, `the package index has no files of it`}, // its index does not tell
	} {
		e := newEngine(t, func(o *Options) { o.IndexURL, o.Policy = index.URL+"/simple", test.policy })
		p := python("1")
		p.Packages = []string{"p-legacy"}
		if r := run1(t, e, p); r.Error == nil || !strings.Contains(r.Error.Message, test.want) {
			t.Errorf("%+v: %s, error %+v, want %q", test.policy, r.Status, r.Error, test.want)
		}
	}
}

// TestRealSources builds real packages of the index, which need or leave out what is native.
func TestRealSources(t *testing.T) {
	e := newEngine(t)
	for _, test := range []struct{ code, want, built string }{
		{"import docopt\ndict(docopt.docopt('Usage: x [--a]', ['--a']))", `{"--a": true}`, "docopt"},
		{"import jinja2\njinja2.Template('{{ a|e }}').render(a='<x>')", `"&lt;x&gt;"`, "markupsafe"},
		{"import yaml\nyaml.safe_load('a: [1, 2]')", `{"a": [1, 2]}`, "pyyaml"},
	} {
		for _, what := range []string{"first", "again"} {
			r := run1(t, e, python(test.code))
			needIndex(t, r)
			if r.Status != job.Completed || string(r.Value) != test.want {
				t.Fatalf("%s, %s: %s, value %s, error %+v", test.built, what, r.Status, r.Value, r.Error)
			}
			if !slices.ContainsFunc(r.Packages, func(p job.Package) bool { return p.Name == test.built }) {
				t.Errorf("%s, %s: packages %+v", test.built, what, r.Packages)
			}
		}
	}
}

// TestWhichSourceIsBuilt: the newest that fits the requirement and this Python, as for wheels.
func TestWhichSourceIsBuilt(t *testing.T) {
	e := newEngine(t)
	r := completed(t, e, python(`
from micropip._vendored.packaging.src.packaging.requirements import Requirement
from rillbox.installer import newest_source
FILES = [
    {"filename": "a-b-1.0.tar.gz"},
    {"filename": "a-b-1.0.zip"},
    {"filename": "A.b-1.10.zip", "requires-python": ">=3.8"},
    {"filename": "a_b-1.9.tar.gz", "yanked": False},
    {"filename": "a_b-2.0rc1.tar.gz"},
    {"filename": "a_b-3.0.tar.gz", "yanked": "it is broken"},
    {"filename": "a_b-4.0.tar.gz", "requires-python": ">=4"},
    {"filename": "a_b-5.0.tar.gz", "requires-python": "three"},
    {"filename": "a-b-0.3-19.tar.gz"},
    {"filename": "a_b-6.0-py3-none-any.whl"},
    {"filename": "a_b-x.tar.gz"},
    {"filename": "other-9.0.tar.gz"},
]
def chosen(specifier):
    source = newest_source(Requirement("a-b" + specifier), FILES)
    return source and source["filename"]
[chosen(s) for s in ("", "<1.10", "<1.5", ">=2.0rc1", "==3.0", ">3", "==4.0")]`))
	const want = `["A.b-1.10.zip", "a_b-1.9.tar.gz", "a-b-1.0.tar.gz", "a_b-2.0rc1.tar.gz", "a_b-3.0.tar.gz", null, null]`
	if string(r.Value) != want {
		t.Errorf("value %s, want %s", r.Value, want)
	}
}

// TestWhyASourceIsNotBuiltIsForgotten: after a day, and when the clock was set back.
func TestWhyASourceIsNotBuiltIsForgotten(t *testing.T) {
	e, err := New(Options{Options: deno.Options{Cache: cachetest.Empty(t, cache.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for age, want := range map[time.Duration]string{time.Hour: "why", unbuiltFor + time.Hour: "", -time.Hour: ""} {
		text, err := json.Marshal(unbuiltRecord{time.Now().Add(-age), "why"})
		if err == nil {
			_, err = e.o.Cache.Put(t.Context(), unbuiltKind, age.String(), bytes.NewReader(text))
		}
		if got := e.unbuilt(age.String()); err != nil || got != want {
			t.Errorf("what was found %v ago is %q, %v", age, got, err)
		}
	}
}
