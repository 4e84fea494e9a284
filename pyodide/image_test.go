//go:build !windows

package pyodide

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/supervisor/job"
)

// wheelIndex serves one wheel of a project.
func wheelIndex(t *testing.T, project string, wheel []byte) string {
	t.Helper()
	name := project + "-1.0-py3-none-any.whl"
	sum := sha256.Sum256(wheel)
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path.Base(r.URL.Path) {
		case name:
			_, _ = w.Write(wheel)
		case project:
			w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
			_ = json.NewEncoder(w).Encode(map[string]any{
				"meta": map[string]string{"api-version": "1.1"}, "name": project,
				"files": []map[string]any{{"filename": name, "url": "/" + name, "hashes": map[string]string{"sha256": hex.EncodeToString(sum[:])}}},
			})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(index.Close)
	return index.URL + "/simple"
}

// newProject is the name of a project that no cache has heard of.
func newProject() string { return "rb" + strings.ToLower(rand.Text()) }

// installedAs tells, of the module %[1]s of a fresh project, all that an
// installation leaves behind, and last whether it is compiled.
const installedAs = `
import importlib.metadata, importlib.util, inspect, micropip, os, pyodide_js
import %[1]s as module
here = os.path.dirname(module.__file__)
def files(top):
    return sorted(os.path.join(d, f)[len(top):] for d, _, names in os.walk(top) for f in names if not f.endswith(".pyc"))
distribution = importlib.metadata.distribution("%[1]s")
with open(here + "/data.txt", "a") as file:
    file.write(" and more")
try:
    importlib.import_module("%[1]s.broken")
    broken = ""
except SyntaxError as error:
    broken = os.path.basename(error.filename)
try:
    module.fail()
except ValueError as error:
    line = error.__traceback__.tb_next.tb_lineno
[
    module.value, files(here), open(here + "/data.txt").read(), open("/share/%[1]s.txt").read(), broken, line,
    inspect.getsource(module.fail), distribution.version, distribution.read_text("INSTALLER"), distribution.read_text("PYODIDE_SHA256"),
    micropip.list()["%[1]s"].source, getattr(pyodide_js.loadedPackages, "%[1]s", None), sorted(f.name for f in distribution.files or []),
    os.stat(module.__file__).st_size, oct(os.stat(module.__file__).st_mode), oct(os.stat(here).st_mode),
    os.path.exists(importlib.util.cache_from_source(module.__file__)),
]`

// imageWheel is a wheel with everything that installedAs looks at, and code that
// must not run before a program imports it.
func imageWheel(t *testing.T, project string) []byte {
	t.Helper()
	info := project + "-1.0.dist-info/"
	return zipWheel(t, map[string]string{
		project + "/__init__.py":                             "value = 'as ever'\ndef fail():\n    raise ValueError('on purpose')\n",
		project + "/data.txt":                                "some data",
		project + "/broken.py":                               "this is no Python\n",
		project + "/deep.py":                                 "x = " + strings.Repeat("(", 50_000),
		project + "/fatal.py":                                "import os\nos._exit(3)\n",
		project + "/sub/nested.txt":                          "",
		project + ".pth":                                     "import os; os._exit(3)\n",
		project + "-1.0.data/data/share/" + project + ".txt": "a data file",
		info + "METADATA":                                    "Metadata-Version: 2.1\nName: " + project + "\nVersion: 1.0\n",
		info + "WHEEL":                                       "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":                                      project + "/__init__.py,,\n",
	})
}

// TestImages: a program finds the same when its packages are mounted from images
// as when they are unpacked, online and offline, and when an image is gone or
// corrupt.
func TestImages(t *testing.T) {
	project := newProject()
	index := wheelIndex(t, project, imageWheel(t, project))
	program := python(fmt.Sprintf(installedAs, project))
	var log bytes.Buffer
	open := func(offline bool) *Engine {
		dir, err := cachetest.Dir()
		if err != nil {
			t.Fatal(err)
		}
		to := slog.New(slog.NewTextHandler(&log, nil))
		c, err := cache.Open(dir, cache.Options{Offline: offline, Log: to})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return newEngine(t, func(o *Options) { o.Cache, o.Log, o.IndexURL = c, to, index })
	}
	var want string
	run := func(e *Engine, compiled bool) {
		t.Helper()
		r := completed(t, e, program)
		found, ok := strings.CutSuffix(string(r.Value), fmt.Sprintf(", %v]", compiled))
		if !ok {
			t.Errorf("compiled or not: %s", r.Value)
		}
		first := want == ""
		if first {
			want = found
		}
		if found != want {
			t.Errorf("found\n%s, want\n%s", found, want)
		}
		if len(r.Packages) != 1 || r.Packages[0].Version != "1.0" || r.Packages[0].Source != "index" || r.Packages[0].Cached == first {
			t.Errorf("packages %+v", r.Packages)
		}
		e.jobs.Wait() // the image is made
	}
	e := open(false)
	run(e, false)
	run(e, true)
	run(open(true), true)
	if log.Len() > 0 {
		t.Errorf("log: %s", log.String())
	}

	plan, _ := e.findPlan(&worker{rt: e.runtime, policy: e.o.Policy}, requirements{Packages: []string{}, Imports: []string{project}})
	key := e.runtime.imageKey(plan.Files[0])
	e = open(true)
	image, err := e.o.Cache.Get(imageKind, key)
	if err != nil {
		t.Fatal(err)
	}
	spoil(t, image)
	e = open(true)
	run(e, false)
	if !strings.Contains(log.String(), "corrupt") {
		t.Errorf("the log does not tell of a corrupt image: %s", log.String())
	}
	run(e, true)
	if err := e.o.Cache.Remove(imageKind, key); err != nil {
		t.Fatal(err)
	}
	e = open(true)
	run(e, false)
	if err := e.o.Cache.Remove("wheel", plan.Files[0].SHA256); err != nil {
		t.Fatal(err)
	}
	run(open(true), true)
}

// spoil changes a byte of a file in the cache.
func spoil(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-1]++
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLeftImages: an engine that is closed right after a run leaves its images to
// a process that makes them.
func TestLeftImages(t *testing.T) {
	project := newProject()
	index := wheelIndex(t, project, imageWheel(t, project))
	e := newEngine(t, func(o *Options) { o.IndexURL, o.LeaveImages = index, true })
	p := python(fmt.Sprintf(installedAs, project))
	if r := completed(t, e, p); !strings.HasSuffix(string(r.Value), ", false]") {
		t.Errorf("the first run: %s", r.Value)
	}
	process, err := e.leaveImages()
	if err != nil || process == nil {
		t.Fatalf("process %v, %v", process, err)
	}
	if state, err := process.Wait(); err != nil || !state.Success() {
		t.Fatalf("it ended with %v, %v", state, err)
	}
	if r := completed(t, e, p); !strings.HasSuffix(string(r.Value), ", true]") {
		t.Errorf("the second run: %s", r.Value)
	}
}

// TestImagesAreLentOneByOne: a program reads the images of its own packages and
// of no others.
func TestImagesAreLentOneByOne(t *testing.T) {
	var engines []*Engine
	var images []string
	for range 2 {
		project := newProject()
		index := wheelIndex(t, project, pureWheel(t, project, "value = 1"))
		e := newEngine(t, func(o *Options) { o.IndexURL = index })
		p := python("import " + project)
		completed(t, e, p)
		e.jobs.Wait()
		plan, _ := e.findPlan(&worker{rt: e.runtime, policy: e.o.Policy}, requirements{Packages: []string{}, Imports: []string{project}})
		image, err := e.o.Cache.Get(imageKind, e.runtime.imageKey(plan.Files[0]))
		if err != nil {
			t.Fatal(err)
		}
		engines, images = append(engines, e), append(images, image)
		if len(engines) < 2 {
			continue
		}
		w, err := e.startWorker(e.runtime, childOptions{module: programModule})
		if err != nil {
			t.Fatal(err)
		}
		loan := w.loan
		p.Code += fmt.Sprintf(`
from js import Deno
def seen(look):
    try:
        return look()
    except Exception as error:
        return str(error).partition(":")[0]
[seen(lambda: [e.name for e in Deno.readDirSync(%q)]), seen(lambda: Deno.readFileSync(%q).length), seen(lambda: Deno.readFileSync(%q).length), seen(lambda: Deno.writeTextFileSync(%q, "x"))]`,
			loan, images[0], images[1], filepath.Join(loan, filepath.Base(image)))
		r, err := newRun(e, w, p, job.Streams{Emit: func(job.Event) {}}).do(t.Context())
		want := fmt.Sprintf(`[["%s"], "NotCapable", "NotCapable", "NotCapable"]`, filepath.Base(image))
		if err != nil || string(r.Value) != want {
			t.Errorf("%s, %v, error %+v, want %s", r.Value, err, r.Error, want)
		}
		e.jobs.Wait()
		if _, err := os.Stat(w.images.Dir()); !os.IsNotExist(err) {
			t.Errorf("after the run: %v", err)
		}
	}
}
