package gateway

import (
	"strings"
	"testing"

	"rillbox/cache/egress"
)

func TestWheelName(t *testing.T) {
	for _, tc := range []struct{ file, project, version string }{
		{"six-1.17.0-py2.py3-none-any.whl", "six", "1.17.0"},
		{"Flask_Cors-5.0-py3-none-any.whl", "flask-cors", "5.0"},
		{"zope.interface-7.2-cp314-cp314-pyemscripten_2026_0_wasm32.whl", "zope-interface", "7.2"},
		{"a-1!2.0+cpu.1-3b-py3-none-any.whl", "a", "1!2.0+cpu.1"},
		{"six-1.17.0.tar.gz", "", ""},
		{"six-1.17.0-none-any.whl", "", ""},
		{"six-1-2-3-py3-none-any.whl", "", ""},
		{"six-1.0-x1-py3-none-any.whl", "", ""},
		{"-1.0-py3-none-any.whl", "", ""},
		{"six--py3-none-any.whl", "", ""},
		{"../six-1.0-py3-none-any.whl", "", ""},
		{"six\x00-1.0-py3-none-any.whl", "", ""},
		{"six-1.0-py3-none-any.whl\n", "", ""},
		{"six_-1.0-py3-none-any.whl", "", ""},
		{strings.Repeat("a", 300) + "-1.0-py3-none-any.whl", "", ""},
		{"", "", ""},
	} {
		project, version, ok := wheelName(tc.file)
		if project != tc.project || version != tc.version || ok != (tc.project != "") {
			t.Errorf("wheelName(%q) = %q, %q, %v; want %q, %q", tc.file, project, version, ok, tc.project, tc.version)
		}
	}
}

func FuzzWheelName(f *testing.F) {
	for _, seed := range []string{"six-1.17.0-py2.py3-none-any.whl", "a-1!2.0+cpu.1-3b-py3-none-any.whl", "a-1-2-3-4.whl", "-----.whl", "é-1-py3-none-any.whl"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		project, version, ok := wheelName(file)
		if !ok {
			return
		}
		if project == "" || version == "" || project != egress.NormalizePython(project) || !isProjectName(project) {
			t.Errorf("%q: project %q, version %q", file, project, version)
		}
		if strings.ContainsAny(file, "/\\%?#\x00\r\n ") || strings.HasPrefix(file, ".") {
			t.Errorf("%q passed as a file name", file)
		}
	})
}
