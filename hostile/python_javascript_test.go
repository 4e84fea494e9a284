//go:build !windows

package hostile

import "testing"

// Python reaches all JavaScript of its process: only what that process may do
// holds it.
func TestPythonReachesJavaScript(t *testing.T) {
	t.Parallel()
	// A function that is made from this text reads the file that it is given.
	const read = `"path", "return Deno.readTextFileSync(path)"`
	tryTogether(t, []attack{
		{name: "js.Deno.readTextFileSync", code: `import js; print(js.Deno.readTextFileSync("%DIR%/secret.txt"))`},
		{name: "js.Deno.readTextFile", code: `import js; print(await js.Deno.readTextFile("%DIR%/secret.txt"))`},
		{name: "js.Deno.openSync and its descriptor", code: `
import js
buffer = js.Uint8Array.new(100)
js.Deno.openSync("%DIR%/secret.txt").readSync(buffer)
print(bytes(buffer.to_py()))`},
		{name: "js.Deno.readDirSync", code: `
import js
for entry in js.Deno.readDirSync("%DIR%/names"): print(entry.name)`},
		{name: "pyodide.code.run_js", code: `
from pyodide.code import run_js
print(run_js('Deno.readTextFileSync("%DIR%/secret.txt")'))`},
		{name: "js.eval", code: `import js; print(js.eval('Deno.readTextFileSync("%DIR%/secret.txt")'))`},
		{name: "js.Function", code: `import js; print(js.Function.new(` + read + `)("%DIR%/secret.txt"))`},
		{name: "js.Reflect.construct", code: `
import js
from pyodide.ffi import to_js
print(js.Reflect.construct(js.Function, to_js([` + read + `]))("%DIR%/secret.txt"))`},
		{name: "js.globalThis by another name", code: `
import js
print(getattr(getattr(js, "self"), "De" + "no").readTextFileSync("%DIR%/secret.txt"))`},
		{name: "constructor of pyodide_js", code: `
import pyodide_js
print(pyodide_js.constructor.constructor(` + read + `)("%DIR%/secret.txt"))`},
		{name: "constructor of a list's to_js", code: `
from pyodide.ffi import to_js
print(to_js([]).constructor.constructor(` + read + `)("%DIR%/secret.txt"))`},
		{name: "constructor of a dict's to_js", code: `
from pyodide.ffi import to_js
print(to_js({"a": 1}).constructor.constructor(` + read + `)("%DIR%/secret.txt"))`},
		{name: "constructor of Python's file system", code: `
import pyodide_js
print(pyodide_js.FS.constructor.constructor(` + read + `)("%DIR%/secret.txt"))`},
		{name: "constructor of an error that was caught", code: `
import js
from pyodide.ffi import JsException
try:
    js.JSON.parse("{")
except JsException as error:
    print(error.constructor.constructor(` + read + `)("%DIR%/secret.txt"))`},
		{name: "constructor of a Python function seen from JavaScript", code: `
from pyodide.code import run_js
from pyodide.ffi import create_proxy
print(run_js("(f, path) => f.constructor.constructor('path', 'return Deno.readTextFileSync(path)')(path)")(
    create_proxy(print), "%DIR%/secret.txt"))`},
		{name: "constructor of an async function's prototype", code: `
import js
from pyodide.code import run_js
make = js.Object.getPrototypeOf(run_js("async () => {}")).constructor
print(await make("path", "return await Deno.readTextFile(path)")("%DIR%/secret.txt"))`},
		{name: "constructor of a generator's prototype", code: `
import js
from pyodide.code import run_js
make = js.Object.getPrototypeOf(run_js("(function* () {})")).constructor
print(make("path", "yield Deno.readTextFileSync(path)")("%DIR%/secret.txt").next().value)`},
		{name: "a Python callback that JavaScript calls", code: `
import js
await js.Promise.resolve("%DIR%/secret.txt").then(lambda path: print(js.Deno.readTextFileSync(path)))`},
		{name: "an object made from another's class", code: `
import js
from pyodide.code import run_js
print(run_js("class Own extends Function {}; new Own('path', 'return Deno.readTextFileSync(path)')")("%DIR%/secret.txt"))`},
		{name: "the library of C: emscripten_run_script_string", code: `
import ctypes
run = ctypes.CDLL(None).emscripten_run_script_string
run.restype = ctypes.c_char_p
print(run(b'Deno.readTextFileSync("%DIR%/secret.txt")'))`},
		{name: "the library of C: emscripten_run_script", code: `
import ctypes
ctypes.CDLL(None).emscripten_run_script(b'Deno.writeTextFileSync("%DIR%/made", "")')`},
		{name: "permission asked for at run time", code: `
from pyodide.code import run_js
print(await run_js("""(async (path) => {
  await Deno.permissions.request({ name: "read" });
  await Deno.permissions.request({ name: "read", path });
  return Deno.readTextFileSync(path);
})""")("%DIR%/secret.txt"))`},
		{name: "permission's answer forged", code: `
from pyodide.code import run_js
print(await run_js("""(async (path) => {
  Deno.permissions.query = Deno.permissions.request = async () => ({ state: "granted" });
  Deno.permissions.querySync = Deno.permissions.requestSync = () => ({ state: "granted" });
  globalThis.prompt = globalThis.confirm = () => true;
  return Deno.readTextFileSync(path);
})""")("%DIR%/secret.txt"))`},
		{name: "dots to climb out of Pyodide's directory", code: `
import js
print(js.Deno.readTextFileSync(js.Deno.args[0] + "/.." * 30 + "%DIR%/secret.txt"))`},
	})
}
