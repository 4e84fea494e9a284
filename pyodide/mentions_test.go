package pyodide

import (
	"slices"
	"strings"
	"testing"
)

func TestMentionsStayInTheProgramsDirectory(t *testing.T) {
	for _, row := range []struct{ file, code, want string }{
		{"main.py", "import a", "a.py"},
		{"main.py", "import x as y, a.b.c", "a/b/c.py"},
		{"main.py", "import a.b", "a/__init__.py"},
		{"main.py", "if x: import a\\\n, b", "b.py"},
		{"main.py", "from a import (  # all\n  b,\n  c as d)", "a/c.py"},
		{"main.py", "from a import *", "a/__init__.py"},
		{"p/q/m.py", "from . import n", "p/q/n.py"},
		{"p/q/m.py", "from .. import n", "p/n.py"},
		{"p/q/m.py", "from ..r.s import n", "p/r/s.py"},
		{"p/q/m.py", "import a", "a.py"},
		{"main.py", "import größe", "größe.py"},
		{"main.py", "from .. import n", ""},
		{"p/m.py", "from ... import n", ""},
		{"main.py", "important = 1", ""},
	} {
		files := mentions(row.file, row.code)
		if row.want == "" && len(files) > 0 || row.want != "" && !slices.Contains(files, row.want) {
			t.Errorf("%s in %s mentions %q, want %q", row.code, row.file, files, row.want)
		}
		if slices.ContainsFunc(files, func(file string) bool { return strings.HasPrefix(file, "..") || strings.HasPrefix(file, "/") }) {
			t.Errorf("%s in %s mentions %q", row.code, row.file, files)
		}
	}
}
