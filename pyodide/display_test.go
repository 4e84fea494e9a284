//go:build !windows

package pyodide

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"image/png"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// withLibraries changes an engine's options to those of a distribution that
// serves guest/testdata/libraries: stand-ins, since the real ones are on a CDN that
// can't be had everywhere. The tests of the package rillbox under CPython take
// the real ones where they are installed.
func withLibraries(t *testing.T) func(*Options) {
	t.Helper()
	served := map[string][]byte{}
	lock := map[string]any{}
	for name, module := range map[string]string{"matplotlib": "matplotlib", "pillow": "PIL", "pandas": "pandas"} {
		file := name + "-1.0-py3-none-any.whl"
		served["/full/"+file] = wheelOf(t, name, filepath.Join("guest", "testdata", "libraries"), module)
		lock[name] = lockEntry(name, "1.0", file, served["/full/"+file], []string{module}, nil)
	}
	cdn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(cdn.Close)
	dir := ownDistribution(t, newEngine(t).runtime.pyodide, lock)
	return func(o *Options) { o.Path, o.Mirror = dir, cdn.URL+"/full/" }
}

// wheelOf makes a wheel of one package of modules below dir.
func wheelOf(t *testing.T, name, dir, module string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	add := func(name string, text []byte) {
		part, err := w.Create(name)
		if err == nil {
			_, err = part.Write(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, module, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".py") {
			return err
		}
		text, err := fs.ReadFile(root, path)
		add(path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	info := name + "-1.0.dist-info/"
	add(info+"METADATA", []byte("Metadata-Version: 2.1\nName: "+name+"\nVersion: 1.0\n"))
	add(info+"WHEEL", []byte("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"))
	add(info+"RECORD", nil)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// pictureSize is a display's picture's, in pixels; it fails the test when there is none.
func pictureSize(t *testing.T, d job.Display) (width, height int) {
	t.Helper()
	content, err := base64.StdEncoding.DecodeString(d["image/png"])
	if err != nil {
		t.Fatal(err)
	}
	config, err := png.DecodeConfig(bytes.NewReader(content))
	if err != nil {
		t.Fatalf("%v in %v", err, d)
	}
	return config.Width, config.Height
}

// TestDisplays: displays are made in the same way for a program and for a cell. What
// is done when a program ends with an error, and in its coroutine, is shown by programs.
func TestDisplays(t *testing.T) {
	e := newEngine(t, withLibraries(t))
	s := open(t, e, job.SessionOptions{})
	for _, test := range []struct {
		name, code string
		want       []string // of each display: a MIME type and a part of it
		value      string   // a part
		alone      bool     // as a program
	}{
		{"nothing", "1", nil, "1", false},
		{"HTML", "class T:\n  def _repr_html_(self): return '<b>ü</b>'\nT()", []string{"text/html <b>ü</b>"}, "T object", false},
		{"display", "display('a', 2)\ndisplay({'text/html': '<i>'}, raw=True)\n3", []string{"text/plain 'a'", "text/plain 2", "text/html <i>"}, "3", false},
		{"before an error", "display(1)\n1/0", []string{"text/plain 1"}, "", true},
		{"open figures", "import matplotlib.pyplot as plt\nplt.plot([1])\n_ = plt.subplots()\nplt.figure()", []string{"image/png ", "image/png "}, "<Figure", true},
		{"figures after an error", "import matplotlib.pyplot as plt\nplt.plot([1])\n1/0", []string{"image/png "}, "", true},
		{"show", "import matplotlib.pyplot as plt\nfor i in range(3):\n  plt.plot([i]); plt.show()", []string{"image/png ", "image/png ", "image/png "}, "", false},
		{"a figure in a coroutine", "import matplotlib.pyplot as plt, asyncio\nasync def main():\n  await asyncio.sleep(0)\n  plt.plot([1]); plt.show()\nasyncio.run(main())", []string{"image/png "}, "", true},
		{"picture", "from PIL import Image\nimport matplotlib\nImage.new('L', (20, 10))", []string{"image/png "}, "Image object", false},
		{"frame", "import pandas as pd\npd.DataFrame({'a': range(100)})", []string{"text/plain [100 rows x 1 columns]"}, "DataFrame", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r job.Result
			if test.alone {
				r = run1(t, e, python(test.code))
			} else {
				r = in(t, s, python(test.code))
			}
			if len(r.Displays) != len(test.want) || len(r.Notes) > 0 || !strings.Contains(string(r.Value), test.value) {
				t.Fatalf("%s %+v, value %s, displays %v, notes %q", r.Status, r.Error, r.Value, r.Displays, r.Notes)
			}
			for i, want := range test.want {
				kind, part, _ := strings.Cut(want, " ")
				if !strings.Contains(r.Displays[i][kind], part) || r.Displays[i][kind] == "" {
					t.Errorf("display %d is %v, want %s", i, r.Displays[i], want)
				}
				if kind == "image/png" {
					pictureSize(t, r.Displays[i])
				}
			}
		})
	}
}

// TestDisplaysEndInANote: what is more than may be shown is left out and
// counted; the program goes on.
func TestDisplaysEndInANote(t *testing.T) {
	e := newEngine(t, func(o *Options) {
		o.Limits = job.DefaultLimits()
		o.Limits.Displays = 1 << 20
	})
	r := completed(t, e, python("for _ in range(10):\n  display({'image/png': bytes(300_000)}, raw=True)\n'done'"))
	if len(r.Displays) != 2 || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "8 displays were left out") || string(r.Value) != `"done"` {
		t.Errorf("%d displays, notes %q, value %s", len(r.Displays), r.Notes, r.Value)
	}
	r = completed(t, e, python("for i in range(1000):\n  display(i)"))
	if len(r.Displays) != 100 || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "900 displays were left out") {
		t.Errorf("%d displays, notes %q", len(r.Displays), r.Notes)
	}
	p := python("for i in range(9):\n  display({'image/png': bytes(300_000)}, raw=True)\nwhile True: pass")
	p.Timeout = job.DefaultLimits().Timeout / 10
	if r := run1(t, e, p); r.Status != job.TimedOut || len(r.Displays) != 2 || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "at least 4 displays were left out") {
		t.Errorf("%s, %d displays, notes %q", r.Status, len(r.Displays), r.Notes)
	}
}
