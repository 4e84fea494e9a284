//go:build !windows

package pyodide

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/cache/egress"
	"rillbox/pyodide/gateway"
	"rillbox/supervisor/job"
)

// needIndex skips a test for want of the package index.
func needIndex(t testing.TB, r job.Result) {
	t.Helper()
	if r.Error != nil && strings.Contains(r.Error.Message, "network is not reachable") {
		cachetest.NeedNetwork(t, fmt.Errorf("%w: %s", egress.ErrOffline, r.Error.Message))
	}
}

var indexPrograms = []struct {
	name, code string
	packages   []string
	want       string // the value
	installed  string // one of the packages
}{
	{"rich", "import rich.table\nrich.table.Table.__name__", nil, `"Table"`, "rich"},
	{"beautifulsoup4 for bs4", "import bs4\nbs4.BeautifulSoup('<p>hi</p>', 'html.parser').p.text", nil, `"hi"`, "beautifulsoup4"},
	{"binary: pydantic", "import pydantic\nclass M(pydantic.BaseModel):\n  x: int\nM(x='3').model_dump()", nil, `{"x": 3}`, "pydantic-core"},
	{"binary: msgpack", "import msgpack\nmsgpack.unpackb(msgpack.packb([1, 2]))", nil, `[1, 2]`, "msgpack"},
	{"python-slugify for slugify", "from slugify import slugify\nslugify('Hello World')", nil, `"hello-world"`, "python-slugify"},
	{"namespace", "from google.protobuf import wrappers_pb2\nwrappers_pb2.Int32Value(value=3).value", nil, `3`, "protobuf"},
	{"networkx", "import networkx as nx\nnx.shortest_path(nx.path_graph(4), 0, 3)", nil, `[0, 1, 2, 3]`, "networkx"},
	{"version", "import importlib.metadata as m\nm.version('attrs')", []string{"attrs==23.2.0"}, `"23.2.0"`, "attrs"},
	{"extra", "import requests, socks\nsocks.__name__", []string{"requests[socks]>=2.30"}, `"socks"`, "pysocks"},
	{"inline metadata", "# /// script\n# dependencies = ['sortedcontainers']\n# ///\nimport sortedcontainers\nlist(sortedcontainers.SortedSet([3, 1]))", nil, `[1, 3]`, "sortedcontainers"},
	{"micropip", "import micropip\nawait micropip.install('snowballstemmer')\nimport importlib\nimportlib.import_module('snowballstemmer').stemmer('english').stemWord('running')", nil, `"run"`, "snowballstemmer"},
}

// TestIndexPackages runs programs with real packages of the index, and runs
// them again with the network gone: with the same values.
func TestIndexPackages(t *testing.T) {
	online := newEngine(t)
	ran := map[string]bool{}
	for _, test := range indexPrograms {
		t.Run(test.name, func(t *testing.T) {
			p := python(test.code)
			p.Packages = test.packages
			r := run1(t, online, p)
			needIndex(t, r)
			if r.Status != job.Completed || string(r.Value) != test.want {
				t.Fatalf("%s, value %s, error %+v", r.Status, r.Value, r.Error)
			}
			if !slices.ContainsFunc(r.Packages, func(p job.Package) bool {
				return p.Name == test.installed && p.Version != "" && p.Source != ""
			}) {
				t.Errorf("packages %+v lack %s", r.Packages, test.installed)
			}
			once := map[string]bool{}
			for _, p := range r.Packages {
				if once[p.Name] {
					t.Errorf("%s is there twice", p.Name)
				}
				once[p.Name] = true
			}
			ran[test.name] = true
		})
	}
	offline := newEngine(t, func(o *Options) { o.Cache = cachetest.OpenOffline(t) })
	for _, test := range indexPrograms {
		if !ran[test.name] {
			continue
		}
		t.Run(test.name+", offline", func(t *testing.T) {
			p := python(test.code)
			p.Packages = test.packages
			r := completed(t, offline, p)
			if string(r.Value) != test.want {
				t.Errorf("value %s, want %s", r.Value, test.want)
			}
			for _, p := range r.Packages {
				if !p.Cached {
					t.Errorf("%s %s was not cached", p.Name, p.Version)
				}
			}
		})
	}
}

// TestVersionsThatFitTogether: where the newest versions clash, or ask for what is not
// there, others are taken, as pip does.
func TestVersionsThatFitTogether(t *testing.T) {
	index := releasesIndex(t,
		release{project: "both", version: "1.0", requires: []string{"anyshared", "oldshared"}},
		release{project: "anyshared", version: "1.0", requires: []string{"shared"}},
		release{project: "oldshared", version: "1.0", requires: []string{"shared<2"}},
		release{project: "shared", version: "1.0"},
		release{project: "shared", version: "2.0"},
		release{project: "ahead", version: "1.0", requires: []string{"shared"}},
		release{project: "ahead", version: "2.0", requires: []string{"shared>=3"}},
		release{project: "top", version: "1.0", requires: []string{"mid"}},
		release{project: "mid", version: "1.0", requires: []string{"nowhere"}},
		release{project: "never", version: "1.0", requires: []string{"anyshared", "shared>=3"}})
	e := newEngine(t, func(o *Options) { o.IndexURL = index.URL + "/simple" })
	for packages, want := range map[string]string{"both": `["both 1.0", "shared 1.0"]`, "ahead": `["ahead 1.0", "shared 2.0"]`} {
		p := python("import importlib.metadata as m\n[*sorted({f'{d.name} {d.version}' for d in m.distributions() if d.name in ('both', 'ahead', 'shared')})]")
		p.Packages = []string{packages}
		if r := completed(t, e, p); string(r.Value) != want {
			t.Errorf("%s: %s", packages, r.Value)
		}
	}
	p := python("1")
	p.Packages = []string{"never"}
	if r := run1(t, e, p); r.Error == nil || !strings.Contains(r.Error.Message, "shared>=3") {
		t.Errorf("%+v", r.Error)
	}
	p.Packages = []string{"both", "top"}
	if r := run1(t, e, p); r.Error == nil || !strings.HasPrefix(r.Error.Message, "top can't be installed: it needs mid, which needs nowhere: there is no package 'nowhere'") {
		t.Errorf("%+v", r.Error)
	}
}

func TestPackageErrors(t *testing.T) {
	e := newEngine(t)
	for _, test := range []struct {
		name, code string
		packages   []string
		want       string // a part of the message
	}{
		{"no such package", "1", []string{"this-package-does-not-exist-xyz"}, "there is no package 'this-package-does-not-exist-xyz'"},
		{"no such version", "1", []string{"attrs==99.0"}, "no such version; version"},
		{"no such version of a source", "1", []string{"docopt==99.0"}, "docopt==99.0: the package index has no such version; version 0.6.2 can be built here."},
		{"not a requirement", "1", []string{"six", "not a requirement!!"}, `'not a requirement!!' is not a requirement (PEP 508), such as requests>=2: Expected end or semicolon (after name and no valid version specifier).`},
		{"native only", "1", []string{"torch"}, "torch can't run in WebAssembly: it is native code, and the package index has wheels for Linux"},
		{"native dependency", "1", []string{"polars"}, "the package index has only native code"},
		{"native but for a pre-release", "1", []string{"watchfiles"}, "watchfiles: the package index has only native code for it. watchfiles"},
		{"http wheel", "1", []string{"http://127.0.0.1:1/x-1.0-py3-none-any.whl"}, "https"},
		{"file wheel", "1", []string{"file:///etc/x-1.0-py3-none-any.whl"}, "x-1.0"},
		{"inline metadata", "# /// script\n# dependencies = 3\n# ///\n", nil, "not a list of strings"},
		{"another Python", "# /// script\n# requires-python = '<3.14'\n# ///\n", nil, "the program requires Python <3.14"},
		{"no version", "# /// script\n# requires-python = 'three'\n# ///\n", nil, "no version specifier (PEP 440): 'three'"},
		{"import", "import nosuchmodulexyz", nil, "there is no package 'nosuchmodulexyz'"},
		{"micropip", "import micropip\nawait micropip.install('torch')", nil, "torch can't run in WebAssembly"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := python(test.code)
			p.Packages = test.packages
			r := run1(t, e, p)
			if r.Status != job.Failed || r.Error == nil || !strings.Contains(r.Error.Message, test.want) {
				needIndex(t, r)
				t.Errorf("%s, error %+v, want %q", r.Status, r.Error, test.want)
			}
			if len(r.Notes) > 0 {
				t.Errorf("notes %q beside the error %+v", r.Notes, r.Error)
			}
		})
	}
}

// TestImportsAreAWish: a program that can do without a module runs without it.
func TestImportsAreAWish(t *testing.T) {
	e := newEngine(t)
	r := completed(t, e, python("try:\n  import nosuchmodulexyz\nexcept ImportError: x = 'without'\nx"))
	if string(r.Value) != `"without"` || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "nosuchmodulexyz") {
		t.Errorf("value %s, notes %q", r.Value, r.Notes)
	}
}

func TestOfflineNamesWhatIsMissing(t *testing.T) {
	newEngine(t) // the runtimes are there
	e := newEngine(t, func(o *Options) { o.Cache = cachetest.OpenOffline(t) })
	p := python("1")
	p.Packages = []string{"a-package-that-nobody-fetched"}
	start := time.Now()
	r := run1(t, e, p)
	if r.Error == nil || !strings.Contains(r.Error.Message, "a-package-that-nobody-fetched") || !strings.Contains(r.Error.Message, "not in the cache") {
		t.Errorf("error %+v", r.Error)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestInstall(t *testing.T) {
	e := newEngine(t)
	packages, err := e.Install(t.Context(), job.Program{Packages: []string{"six==1.17.0"}}, func(job.Event) {})
	if err != nil && strings.Contains(err.Error(), "network is not reachable") {
		cachetest.NeedNetwork(t, fmt.Errorf("%w: %w", egress.ErrOffline, err))
	}
	if err != nil || len(packages) != 1 || packages[0].Name != "six" || packages[0].Version != "1.17.0" {
		t.Errorf("%+v, %v", packages, err)
	}
	if _, err := e.Install(t.Context(), job.Program{Packages: []string{"this-package-does-not-exist-xyz"}}, func(job.Event) {}); err == nil || !strings.Contains(err.Error(), "there is no package") {
		t.Errorf("error %v", err)
	}
}

// TestDistributionPackages takes packages from a CDN of its own, which serves a
// real binary wheel and a wheel that depends on it, named by a lock file.
func TestDistributionPackages(t *testing.T) {
	base := newEngine(t)
	needIndex(t, run1(t, base, python("import msgpack")))
	file, wheel := indexWheel(t, base, "msgpack", "pyemscripten_2026_0_wasm32")
	pure := pureWheel(t, "rillbox_fixture", "import msgpack\nvalue = msgpack.packb(1)[0]\n")
	const pureFile = "rillbox_fixture-1.0-py3-none-any.whl"
	const needyFile = "needy-1.0-py3-none-any.whl"
	needy := pureWheel(t, "needy", "")
	served := map[string][]byte{"/full/" + file: wheel, "/full/" + pureFile: pure, "/full/" + needyFile: needy}
	cdn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	defer cdn.Close()
	index := httptest.NewServer(http.NotFoundHandler())
	defer index.Close()

	dir := ownDistribution(t, base.runtime.pyodide, map[string]any{
		"msgpack":         lockEntry("msgpack", strings.Split(file, "-")[1], file, wheel, []string{"msgpack"}, nil),
		"rillbox-fixture": lockEntry("rillbox-fixture", "1.0", pureFile, pure, []string{"rb_fixture_module", "rillbox_fixture"}, []string{"msgpack"}),
		"needy":           lockEntry("needy", "1.0", needyFile, needy, []string{"needy"}, []string{"broken"}),
		"lost":            lockEntry("lost", "1.0", "lost-1.0-py3-none-any.whl", nil, []string{"lost"}, []string{"broken"}),
		"broken":          lockEntry("broken", "1.0", "broken-1.0-py3-none-any.whl", nil, []string{"broken"}, nil),
	})
	change := func(o *Options) { o.Path, o.Mirror, o.IndexURL = dir, cdn.URL+"/full/", index.URL }
	e := newEngine(t, change)
	program := python("import rillbox_fixture\nrillbox_fixture.value")
	check := func(t *testing.T, e *Engine) {
		t.Helper()
		r := completed(t, e, program)
		names := ""
		for _, p := range r.Packages {
			names += p.Name + " " + p.Source + ";"
		}
		if string(r.Value) != "1" || names != "msgpack pyodide;rillbox-fixture pyodide;" {
			t.Errorf("value %s, packages %+v", r.Value, r.Packages)
		}
	}
	check(t, e)
	check(t, e) // by the plan
	if r := completed(t, e, python("import pyodide_js\nawait pyodide_js.loadPackage(['rillbox-fixture'])\nimport importlib\nimportlib.import_module('rillbox_fixture').value")); string(r.Value) != "1" {
		t.Errorf("loadPackage: value %s", r.Value)
	}
	for name, want := range map[string]string{"broken": "cannot fetch broken-1.0", "needy": "needy needs broken, and cannot fetch broken-1.0", "lost": "cannot fetch lost-1.0"} {
		p := python("1")
		p.Packages = []string{name}
		want = name + " 1.0 is on Pyodide's CDN, and fetching it from there failed: " + want
		if r := run1(t, e, p); r.Error == nil || !strings.HasPrefix(r.Error.Message, want) {
			t.Errorf("a package that the CDN does not have: %s, %+v, want %s", r.Status, r.Error, want)
		}
	}
	cdn.Close()
	check(t, newEngine(t, change, func(o *Options) { o.Cache = cachetest.OpenOffline(t) }))

	// From a directory it is installed without the network.
	mirror, offline := t.TempDir(), cachetest.OpenOffline(t)
	digest := sha256.Sum256(pure)
	err := errors.Join(os.WriteFile(filepath.Join(mirror, pureFile), pure, 0o600), os.WriteFile(filepath.Join(mirror, file), wheel, 0o600),
		offline.Remove(gateway.WheelKind, hex.EncodeToString(digest[:])))
	if err != nil {
		t.Fatal(err)
	}
	check(t, newEngine(t, change, func(o *Options) { o.Cache, o.Mirror = offline, mirror }))
}

// indexWheel fetches a wheel of a project whose name has part in it.
func indexWheel(t *testing.T, e *Engine, project, part string) (name string, content []byte) {
	t.Helper()
	grant := e.runtime.gateway.Grant(e.runtime.gateway.Addr(), e.o.Policy)
	defer grant.Close()
	get := func(url string) []byte {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v", resp.Status, body, err)
		}
		return body
	}
	var page struct {
		Files []struct{ Filename, URL string }
	}
	if err := json.Unmarshal(get(grant.BaseURL()+"simple/"+project+"/"), &page); err != nil {
		t.Fatal(err)
	}
	for _, f := range slices.Backward(page.Files) {
		if strings.Contains(f.Filename, part) && strings.Contains(f.Filename, "-cp314-cp314-") {
			return f.Filename, get(f.URL)
		}
	}
	t.Fatalf("the index has no %s wheel of %s", part, project)
	return "", nil
}

// pureWheel makes a wheel of one module.
func pureWheel(t *testing.T, module, source string) []byte {
	t.Helper()
	info := module + "-1.0.dist-info/"
	return zipWheel(t, map[string]string{
		module + ".py":    source,
		info + "METADATA": "Metadata-Version: 2.1\nName: " + module + "\nVersion: 1.0\n",
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":   "",
	})
}

// zipWheel makes a wheel of files.
func zipWheel(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		part, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(part, files[name])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func lockEntry(name, version, file string, content []byte, imports, depends []string) map[string]any {
	sum := sha256.Sum256(content)
	return map[string]any{
		"name": name, "version": version, "file_name": file, "sha256": hex.EncodeToString(sum[:]),
		"imports": imports, "depends": append([]string{}, depends...), "install_dir": "site", "package_type": "package",
	}
}

// ownDistribution is a copy of a Pyodide with other packages in its lock file.
func ownDistribution(t *testing.T, d Distribution, packages map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	for name := range core {
		copyFile(t, filepath.Join(d.Dir, name), filepath.Join(dir, name))
	}
	copyFile(t, d.Micropip, filepath.Join(dir, filepath.Base(d.Micropip)))
	path := filepath.Join(dir, "pyodide-lock.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lock map[string]any
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	lock["packages"] = packages
	text, err = json.Marshal(lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
