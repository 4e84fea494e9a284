//go:build !windows

package hostile

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rillbox/deno/permission"
	"rillbox/pyodide"
	"rillbox/supervisor/job"
)

// sources is a package index that has sources only, by project.
type sources struct {
	server *httptest.Server
	root   string
	of     map[string][]byte
	asked  atomic.Int64 // for projects that it has not
}

func newSources(t *testing.T, of map[string][]byte) *sources {
	s := &sources{root: "/" + newSecret(), of: of}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

func (s *sources) url() string { return s.server.URL + s.root + "/simple" }

func (s *sources) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(strings.TrimSuffix(r.URL.Path, "/"), s.root+"/")
	project, isPage := strings.CutPrefix(path, "simple/")
	project = strings.TrimSuffix(project, "-1.0.tar.gz")
	content, ok := s.of[project]
	switch {
	case !ok:
		s.asked.Add(1)
		http.NotFound(w, r)
	case isPage:
		file, sum := project+"-1.0.tar.gz", sha256.Sum256(content)
		w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"meta": map[string]string{"api-version": "1.1"}, "name": project,
			"files": []any{map[string]any{"filename": file, "url": s.root + "/" + file, "hashes": map[string]string{"sha256": hex.EncodeToString(sum[:])}}},
		})
	default:
		_, _ = w.Write(content)
	}
}

// tarGzOf makes a source archive.
func tarGzOf(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, h := range headers {
		text := h.PAXRecords["VENDOR.text"]
		h.PAXRecords, h.Mode = nil, 0o644
		if h.Size == 0 {
			h.Size = int64(len(text))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, text)
	}
	_ = w.Close() // it says when a file lacks what its header promised, which is meant
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// textFile is a file of a source archive.
func textFile(name, text string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, PAXRecords: map[string]string{"VENDOR.text": text}}
}

// backendOf is a source whose own build backend runs code.
func backendOf(t *testing.T, project, code string) []byte {
	return tarGzOf(t,
		textFile(project+"-1.0/pyproject.toml", "[build-system]\nrequires = []\nbuild-backend = 'own'\nbackend-path = ['.']\n"),
		textFile(project+"-1.0/own.py", "def build_wheel(directory, settings):\n    "+strings.ReplaceAll(strings.TrimSpace(code), "\n", "\n    ")+"\n"))
}

// lookAround tries what only a grant gives, and tells in the error what it could do.
const lookAround = `
import js, json, os
from pyodide.ffi import run_sync
found = []
def attempt(name, what):
    try:
        what()
        found.append(name)
    except BaseException as error:
        pass
def fetch(url):
    answer = run_sync(js.fetch(url))
    assert answer.ok
attempt("a file", lambda: js.Deno.readTextFileSync("%SECRET%"))
attempt("a file of Python's", lambda: open("%SECRET%").read())
attempt("the cache", lambda: [*js.Deno.readDirSync("%CACHE%")])
attempt("to write", lambda: js.Deno.writeTextFileSync("%SECRET%.written", "x"))
attempt("a variable", lambda: js.Deno.env.get("RILLBOX_HOSTILE").length)
attempt("a variable of Python's", lambda: os.environ["RILLBOX_HOSTILE"])
attempt("the network", lambda: run_sync(js.Deno.connect(js.JSON.parse('{"hostname": "127.0.0.1", "port": %PORT%}'))))
attempt("the index", lambda: fetch("%INDEX%/b-victim/"))
attempt("a program", lambda: js.Deno.Command.new("true").outputSync())
attempt("the system", lambda: js.Deno.hostname())
raise RuntimeError("found " + json.dumps(found))
`

// TestPythonBuilds: a package's source is built by code of its own. It gets nothing, even
// where programs are granted much; what it makes is looked at, and when it does not end,
// it is ended.
func TestPythonBuilds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.txt")
	write(t, secret, "secret")
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	store := openShared(t)
	rows := []struct {
		name, project, code string
		archive             []byte // in place of a backend that runs code
		want                string // in the program's error
	}{
		{name: "looks around", project: "b-looks", code: lookAround, want: `RuntimeError: found []`},
		{name: "asks for builds", project: "b-asks", code: `
import json
from micropip import package_index
from rillbox import installer
import js
from pyodide.ffi import run_sync
page = json.loads(run_sync(run_sync(js.fetch(package_index.PYPI_URL + "/b-victim/")).text()))
answer = run_sync(js.fetch(page["files"][0]["url"].replace("/file/", "/built/")))
raise RuntimeError(f"answer {answer.status}")`, want: "RuntimeError: answer 403"},
		{name: "forges another's wheel", project: "b-forges", code: `
import zipfile
with zipfile.ZipFile(directory + "/x", "w") as wheel:
    wheel.writestr("requests/__init__.py", "")
    wheel.writestr("requests-1.0.dist-info/METADATA", "Name: requests\nVersion: 1.0\n")
return "x"`, want: `has "requests-1.0.dist-info", and is to be b-forges 1.0`},
		{name: "gives another file", project: "b-file", code: `return "../source/own.py"`, want: "zip: not a valid zip file"},
		{name: "makes a wheel with a way out", project: "b-climbs", code: `
import zipfile
with zipfile.ZipFile(directory + "/x", "w") as wheel:
    wheel.writestr("b_climbs-1.0.dist-info/METADATA", "Name: b-climbs\nVersion: 1.0\n")
    wheel.writestr("../../../climbed.py", "")
return "x"`, want: `"../../../climbed.py" is no path within the archive`},
		{name: "takes Python's memory", project: "b-memory", code: "x = []\nwhile True: x.append(bytes(1 << 20))", want: "MemoryError"},
		{name: "takes the process's memory", project: "b-process", code: `
import js
js.eval("globalThis.all = []; for (;;) all.push(new Uint8Array(1 << 24).fill(1))")`, want: "takes more memory than a program may have"},
		{name: "writes much", project: "b-writes", code: `
import os
for i in range(2000): os.write(1, b"x" * 50_000), os.write(2, b"x" * 5_000)
raise RuntimeError("written")`, want: "RuntimeError: written"},
		{name: "says much", project: "b-says", code: `raise RuntimeError("said\x1b[2J " + "x" * 10_000_000)`, want: `RuntimeError: said\x1b[2J xxx`},
		{name: "ends its process", project: "b-ends", code: `import os; os._exit(0)`, want: "b-ends 1.0 can't be built: its build gave no wheel"},
		{name: "has an archive with a way out", project: "a-climbs", archive: tarGzOf(t, textFile("a-climbs-1.0/setup.py", ""), textFile("../../climbed.py", "")), want: `its source is refused: a-climbs-1.0.tar.gz: "../../climbed.py" is no path within`},
		{name: "has a link out", project: "a-links", archive: tarGzOf(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a-links-1.0/setup.py", Linkname: secret}), want: "is a link that leads out"},
		{name: "has a device", project: "a-device", archive: tarGzOf(t, tar.Header{Typeflag: tar.TypeChar, Name: "a-device-1.0/setup.py"}), want: "neither a file nor a directory nor a link"},
		{name: "is a bomb", project: "a-bomb", archive: tarGzOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "a-bomb-1.0/setup.py", Size: 1 << 40}), want: "unpacks to more than"},
	}
	of := map[string][]byte{"b-victim": backendOf(t, "b-victim", "return 'x'")}
	index := newSources(t, of)
	fill := strings.NewReplacer("%SECRET%", secret, "%CACHE%", store.Dir(), "%PORT%", fmt.Sprint(listener.Addr().(*net.TCPAddr).Port), "%INDEX%", index.url()).Replace
	for _, row := range rows {
		if of[row.project] = row.archive; row.archive == nil {
			of[row.project] = backendOf(t, row.project, fill(row.code))
		}
	}
	permissions, err := permission.Parse([]string{"--allow-all"})
	if err != nil {
		t.Fatal(err)
	}
	engine := pythonEngine(t, func(o *pyodide.Options) {
		o.IndexURL, o.Permissions, o.WithoutSecondWall = index.url(), permissions, true
		o.Env = []string{"RILLBOX_HOSTILE=secret"}
	})
	// The control: a program that may can do most of it: Python itself has no file without its path.
	o := runProgram(t.Context(), engine, job.Program{Language: job.Python, Code: fill(lookAround)}, nil)
	if o.err != nil || o.Error == nil || strings.Count(o.Error.Message, `", "`) < 7 {
		t.Fatalf("a program that may do everything: %s", o.summary())
	}
	_ = os.Remove(secret + ".written")
	program := job.Program{Language: job.Python, Code: "1"}
	for _, row := range rows {
		program.Packages = append(program.Packages, row.project)
	}
	o = runProgram(t.Context(), engine, program, nil)
	if o.err != nil || o.Error == nil {
		t.Fatal(o.summary())
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			found := false
			for line := range strings.Lines(o.Error.Message) {
				found = found || strings.HasPrefix(line, row.project+" 1.0 ") && strings.Contains(line, row.want) && len(line) < 2000
			}
			if !found {
				t.Errorf("no line says %q:\n%s", row.want, o.Error.Message)
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the directory has %q (%v)", left, err)
	}
}

// TestPythonBuildsEnd: a build that does not end is ended with the run that waits for it.
func TestPythonBuildsEnd(t *testing.T) {
	t.Parallel()
	index := newSources(t, map[string][]byte{"b-endless": backendOf(t, "b-endless", `
from micropip import package_index
import js
from pyodide.ffi import run_sync
while True:
    try: run_sync(js.fetch(f"{package_index.PYPI_URL}/not-there-{js.Math.random()}/"))
    except Exception: pass`)})
	engine := pythonEngine(t, func(o *pyodide.Options) {
		o.IndexURL = index.url()
		o.Limits.InstallTimeout = 8 * time.Second
	})
	start := time.Now()
	o := runProgram(t.Context(), engine, job.Program{Language: job.Python, Code: "1", Packages: []string{"b-endless"}}, nil)
	asked := index.asked.Load()
	if o.err != nil || o.Status != job.TimedOut || asked == 0 {
		t.Errorf("after %v, and %d requests of its build: %s", time.Since(start), asked, o.summary())
	}
	// What goes on would ask meanwhile.
	if o := runProgram(t.Context(), engine, job.Program{Language: job.Python, Code: "import time; time.sleep(0.3)"}, nil); o.Status != job.Completed {
		t.Error(o.summary())
	}
	if more := index.asked.Load() - asked; more > 1 {
		t.Errorf("its build asked %d times after the run had ended", more)
	}
}
