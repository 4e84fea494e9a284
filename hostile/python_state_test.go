//go:build !windows

package hostile

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rillbox/pyodide"
	"rillbox/supervisor/job"
)

// What one run leaves behind is not there for the next, whose child is a warm
// one that was started meanwhile. The control shows that each look finds what is
// there: both halves in one program.
func TestPythonState(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, leave, look string }{
		{"a builtin", `import builtins; builtins.left = "%SECRET%"`, `import builtins; print(builtins.left)`},
		{"a builtin replaced", `import builtins; builtins.breakpoint = lambda: "%SECRET%"`, `print(breakpoint())`},
		{"a module", `import sys, types; sys.modules["left"] = types.SimpleNamespace(text="%SECRET%")`, `import left; print(left.text)`},
		{"an attribute of a module of the snapshot's", `import json; json.left = "%SECRET%"`, `import json; print(json.left)`},
		{"a global of __main__", `import __main__; __main__.left = "%SECRET%"`, `import __main__; print(__main__.left)`},
		{"a variable of the environment", `import os; os.environ["LEFT"] = "%SECRET%"`, `import os; print(os.environ["LEFT"])`},
		{"a file in the home directory", `import pathlib; (pathlib.Path.home() / "left").write_text("%SECRET%")`, `import pathlib; print((pathlib.Path.home() / "left").read_text())`},
		{"a file in /tmp", `open("/tmp/left", "w").write("%SECRET%")`, `print(open("/tmp/left").read())`},
		{"a module in site-packages", `import site; open(site.getsitepackages()[0] + "/left_there.py", "w").write("text = '%SECRET%'")`, `import left_there; print(left_there.text)`},
		{"a module beside the program", `open("left_here.py", "w").write("text = '%SECRET%'")`, `import left_here; print(left_here.text)`},
		{"an import hook", `
import sys
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name == "hooked":
            print("%SECRET%")
sys.meta_path.insert(0, Hook())`, `import hooked`},
		{"an exit function", `import atexit; atexit.register(print, "%SECRET%")`, `pass`},
		{"an audit hook", `import sys; sys.addaudithook(lambda event, _: event == "left" and print("%SECRET%"))`, `import sys; sys.audit("left")`},
		{"a global of JavaScript", `import js; js.globalThis.left = "%SECRET%"`, `import js; print(js.left)`},
		{"a property of every JavaScript object", `import js; js.Object.prototype.left = "%SECRET%"`, `import js; print(js.Object.new().left)`},
		{"a module of JavaScript", `
import js, pyodide_js
pyodide_js.registerJsModule("left_of_js", js.JSON.parse('{"text":"%SECRET%"}'))`, `import left_of_js; print(left_of_js.text)`},
		{"js.sessionStorage", `import js; js.sessionStorage.setItem("left", "%SECRET%")`, `import js; print(js.sessionStorage.getItem("left"))`},
		{"a timer", `
import js
from pyodide.ffi import create_proxy
js.setInterval(create_proxy(lambda: print("%SECRET%")), 1)`, `import asyncio; await asyncio.sleep(0.1)`},
		{"a worker", `
from pyodide.code import run_js
run_js("new Worker('data:text/javascript,setInterval(() => console.log(\"%SECRET%\"), 1)', { type: 'module' })")`, `import asyncio; await asyncio.sleep(0.3)`},
		{"Python's own memory", `import ctypes, sys; sys.left_memory = ctypes.create_string_buffer(b"%SECRET%" * 1000)`, `
import pyodide_js
from pyodide.code import run_js
run_js("""(module, digest) => {
  const { createHash } = process.getBuiltinModule("node:crypto");
  const memory = process.getBuiltinModule("node:buffer").Buffer.from(module.HEAPU8.buffer);
  for (let at = -1; (at = memory.indexOf("secret", at + 1)) >= 0;) {
    const found = memory.toString("latin1", at, at + 32);
    if (createHash("sha256").update(found).digest("hex") === digest) console.log(found);
  }
}""")(pyodide_js._module, "%DIGEST%")`},
	}
	type part struct {
		Name string `json:"name"`
		Code string `json:"code"`
	}
	var leaves, looks []part
	secrets := make([]string, len(rows))
	for i, row := range rows {
		secrets[i] = newSecret()
		fill := strings.NewReplacer("%SECRET%", secrets[i], "%DIGEST%", fmt.Sprintf("%x", sha256.Sum256([]byte(secrets[i])))).Replace
		leaves = append(leaves, part{"leave " + row.name, fill(row.leave)})
		looks = append(looks, part{"look for " + row.name, fill(row.look)})
	}
	engine := pythonEngine(t, func(o *pyodide.Options) { o.Warm = 1 })
	run := func(parts ...part) outcome {
		table, err := json.Marshal(parts)
		if err != nil {
			t.Fatal(err)
		}
		o := runProgram(t.Context(), engine, job.Program{Language: job.Python, Code: rowsPython, Args: []string{string(table)}}, nil)
		if ended, _, _ := sections(o.Stdout.String()); len(ended) != len(parts) {
			t.Errorf("%d of %d parts ran: %s", len(ended), len(parts), o.text())
		}
		return o
	}
	control := run(slices.Concat(leaves, looks)...)
	run(leaves...)
	next := run(looks...)
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if !strings.Contains(control.text(), secrets[i]) {
				t.Error("the look finds nothing where there is something, so it shows nothing")
			}
			if strings.Contains(next.text(), secrets[i]) {
				t.Errorf("the next run found it: %s", next.summary())
			}
		})
	}
}
