package pyodide

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"rillbox/supervisor/job"
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
		{"main.py", "import \ufb01le", "file.py"}, // Python takes names in their form NFKC
		{"main.py", "importlib.import_module('a.b')", "a/b.py"},
		{"p/m.py", "import_module(\n    name='.n', package=__package__)", "p/n.py"},
		{"main.py", "__import__(\"a\")", "a.py"},
		{"p/m.py", "import_module(f'.{name}', __package__)", "p/*.py"},
		{"main.py", "import_module('p.' + name)", "p/*.py"},
		{"main.py", "import_module(f'p.q.{name}')", "p/q/*.py"},
		{"p/__init__.py", "__all__ = [\n 'a',\n 'b']", "p/b.py"},
		{"p/__init__.py", "__all__: list[str] = ('a',)", "p/a.py"},
		{"p/__init__.py", "__all__ += ['a']", "p/a.py"},
		{"main.py", "import p, pkgutil\npkgutil.iter_modules(p.__path__)", "p/*.py"},
		{"p/__init__.py", "for m in pkgutil.walk_packages(__path__): pass", "p/*/__init__.py"},
		{"main.py", "sys.path.insert(0, 'lib')\nimport a", "lib/a.py"},
		{"main.py", "sys.path.append(os.path.join(os.path.dirname(__file__), 'lib', 'x'))\nimport a", "lib/x/a.py"},
		{"main.py", "HERE = Path(__file__).parent\nLIB = 5\nsys.path[:0] = [str(HERE / 'lib')]\nimport a", "lib/a.py"},
		{"tests/t.py", "sys.path.insert(0, dirname(dirname(__file__)))\nimport a", "a.py"},
		{"tests/t.py", "sys.path.insert(0, dirname(__file__) + '/../lib')\nimport a", "lib/a.py"},
		{"main.py", "runpy.run_path('lib/a.py')", "lib/a.py"},
		{"main.py", "sys.path.insert(0, '../lib')", ""},
		{"main.py", "import_module('..a')", ""},
		{"main.py", "from .. import n", ""},
		{"p/m.py", "from ... import n", ""},
		{"main.py", "important = 1", ""},
		{"main.py", "from x import A; from a import B; print(B)", "a.py"},
		{"main.py", "from x import *; from a.b import c", "a/b/c.py"},
		{"main.py", "try: from x import A as Q; from a import B\nexcept: pass", "a.py"},
		{"main.py", "# from x import (\nfrom a import b\n# )", "a/b.py"},
		{"main.py", "from\fa\fimport\fb", "a/b.py"},
		{"main.py", "import\fa", "a.py"},
		{"p/m.py", "from.import n", "p/n.py"},
		{"main.py", "from a import(b)", "a/b.py"},
	} {
		files := mentions(job.Program{})(row.file, row.code)
		if row.want == "" && len(files) > 0 || row.want != "" && !slices.Contains(files, row.want) {
			t.Errorf("%s in %s mentions %q, want %q", row.code, row.file, files, row.want)
		}
		if slices.ContainsFunc(files, func(file string) bool { return strings.HasPrefix(file, "..") || strings.HasPrefix(file, "/") }) {
			t.Errorf("%s in %s mentions %q", row.code, row.file, files)
		}
	}
}

// TestMentionsGrow: what one file tells of another's imports is told then.
func TestMentionsGrow(t *testing.T) {
	tell := mentions(job.Program{})
	tell("main.py", "import a, p")
	if files := tell("a.py", "sys.path.insert(0, 'lib')"); !slices.Contains(files, "lib/p.py") {
		t.Errorf("a directory on sys.path that is told of late: %q", files)
	}
	if files := tell("lib/p.py", "import b"); !slices.Contains(files, "lib/b.py") || !slices.Contains(files, "b.py") {
		t.Errorf("an import after it: %q", files)
	}
	tell("p/__init__.py", "import pkgutil")
	if files := tell("p/q/__init__.py", ""); !slices.Contains(files, "p/q/*.py") {
		t.Errorf("a package in one that is looked through: %q", files)
	}
}

// TestMentionsAreBounded: a file that names all it can costs no more than its size.
func TestMentionsAreBounded(t *testing.T) {
	tell := mentions(job.Program{})
	var code strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&code, "import m%d\nsys.path.insert(0, 'd%d')\n", i, i)
	}
	for _, file := range []string{"main.py", "a/b.py", "c.py"} {
		if files := tell(file, code.String()); len(files) > 2*(maxRoots+2)*(5000+maxImports) {
			t.Errorf("%s mentions %d files", file, len(files))
		}
	}
}

// FuzzMentions: no path that leads out of the program's directory is ever told.
func FuzzMentions(f *testing.F) {
	f.Add("p/m.py", "from ..r import n\nimport_module('..')\nsys.path += ['../..', Path(__file__).parents[3]]\n__all__=['../x']")
	f.Add("m.py", "import pkgutil, a.b\nsys.path.insert(0, './/lib/../../x')\nimport_module(f'....{x}')\nrun_path('../../a.py')")
	f.Fuzz(func(t *testing.T, file, code string) {
		if !fs.ValidPath(file) || file == "." {
			t.Skip()
		}
		tell := mentions(job.Program{})
		for range 2 {
			for _, name := range tell(file, code) {
				if leadsOut(path.Clean(name)) {
					t.Errorf("%q in %q mentions %q", code, file, name)
				}
			}
		}
	})
}
