//go:build !windows

package hostile

import (
	"os"
	"path/filepath"
	"testing"

	"rillbox/supervisor/job"
)

// workerFile puts a module beside the secret that a worker may be started on.
func workerFile(t *testing.T, s *scene) {
	write(t, filepath.Join(s.dir(), "worker.mjs"), `postMessage("`+s.secret+`")`)
}

// secretWheel puts a wheel beside the secret whose module holds it.
func secretWheel(project string) func(*testing.T, *scene) {
	return func(t *testing.T, s *scene) {
		content := zipOf(t, wheelFiles(project, `secret = "`+s.secret+`"`)...)
		write(t, filepath.Join(s.dir(), wheelName(project)), string(content))
	}
}

func TestPythonFiles(t *testing.T) {
	t.Parallel()
	const mount = "import os, pyodide_js\nfrom pyodide.code import run_js\nos.mkdir('/' + __name__)\n"
	tryTogether(t, []attack{
		{name: "mountNodeFS", code: mount + `
pyodide_js.mountNodeFS("/" + __name__, "%DIR%")
print(open("/" + __name__ + "/secret.txt").read())`},
		{name: "mountNodeFS to write", code: mount + `
pyodide_js.mountNodeFS("/" + __name__, "%DIR%")
open("/" + __name__ + "/made", "w").write("x")`},
		{name: "mountNodeFS to delete", code: mount + `
pyodide_js.mountNodeFS("/" + __name__, "%DIR%")
os.remove("/" + __name__ + "/secret.txt")`},
		{name: "mountNodeFS to link", code: mount + `
pyodide_js.mountNodeFS("/" + __name__, "%DIR%")
os.symlink("/etc/passwd", "/" + __name__ + "/made")`},
		{name: "mountNodeFS of Pyodide's directory and out of it", code: mount + `
import js
pyodide_js.mountNodeFS("/" + __name__, js.Deno.args[0] + "/.." * 30)
print(open("/" + __name__ + "%DIR%/secret.txt").read())`},
		{name: "FS.mount NODEFS", code: mount + `
pyodide_js.FS.mount(pyodide_js.FS.filesystems.NODEFS, run_js("({ root: '%DIR%' })"), "/" + __name__)
print(open("/" + __name__ + "/secret.txt").read())`},
		{name: "NODEFS of the module inside", code: mount + `
FS = pyodide_js._module.FS
FS.mount(FS.filesystems.NODEFS, run_js("({ root: '/' })"), "/" + __name__)
print(open("/" + __name__ + "%DIR%/secret.txt").read())`},
		{name: "NODEFS, its check of the root taken away", code: mount + `
pyodide_js.FS.filesystems.NODEFS.getMode = run_js("() => 0o40777")
pyodide_js.FS.mount(pyodide_js.FS.filesystems.NODEFS, run_js("({ root: '%DIR%' })"), "/" + __name__)
pyodide_js.FS.filesystems.NODEFS.getMode = run_js("(path) => path.endsWith('.txt') ? 0o100777 : 0o40777")
print(open("/" + __name__ + "/secret.txt").read())`},
		{name: "FS.createPreloadedFile of a path", code: `
import asyncio, pyodide_js
pyodide_js.FS.createPreloadedFile("/", "preloaded1", "%DIR%/secret.txt", True, False)
await asyncio.sleep(0.3)
print(open("/preloaded1").read())`},
		{name: "FS.createPreloadedFile of a file: URL", code: `
import asyncio, pyodide_js
pyodide_js.FS.createPreloadedFile("/", "preloaded2", "file://%DIR%/secret.txt", True, False)
await asyncio.sleep(0.3)
print(open("/preloaded2").read())`},
		{name: "pyfetch of a file: URL", code: `
from pyodide.http import pyfetch
print(await (await pyfetch("file://%DIR%/secret.txt")).string())`},
		{name: "js.fetch of a file: URL", code: `import js; print(await (await js.fetch("file://%DIR%/secret.txt")).text())`},
		{name: "js.fetch of a file: URL with a host", code: `import js; print(await (await js.fetch("file://localhost%DIR%/secret.txt")).text())`},
		{name: "loadPackage of a file: URL", prepare: secretWheel("outside1"), bare: true, code: `
import pyodide_js
await pyodide_js.loadPackage("file://%DIR%/outside1-1.0-py3-none-any.whl")
import outside1
print(outside1.secret)`},
		{name: "loadPackage of a path", prepare: secretWheel("outside2"), bare: true, code: `
import pyodide_js
await pyodide_js.loadPackage("%DIR%/outside2-1.0-py3-none-any.whl")
import outside2
print(outside2.secret)`},
		{name: "micropip of a file: URL", prepare: secretWheel("outside3"), bare: true, code: `
import micropip
await micropip.install("file://%DIR%/outside3-1.0-py3-none-any.whl")
import outside3
print(outside3.secret)`},
		{name: "micropip of a requirement with a file: URL", prepare: secretWheel("outside4"), bare: true, code: `
import micropip
await micropip.install("outside4 @ file://%DIR%/outside4-1.0-py3-none-any.whl")
import outside4
print(outside4.secret)`},
		{name: "/proc/self/root", linux: true, bare: true, code: `import js; print(js.Deno.readTextFileSync("/proc/self/root%DIR%/secret.txt"))`},
		{name: "/proc/self/cwd", linux: true, bare: true, code: `import js; print(js.Deno.readTextFileSync("/proc/self/cwd/" + "../" * 30 + "%DIR%/secret.txt"))`},
		{name: "/dev/fd and up", linux: true, bare: true, code: `import js; print(js.Deno.readTextFileSync("/dev/fd/../root%DIR%/secret.txt"))`},
		{name: "/proc of another process: its directory", linux: true, bare: true, code: `import js; print(js.Deno.readTextFileSync("/proc/%VICTIM%/cwd/secret.txt"))`},
		{name: "/proc of another process: its environment", linux: true, bare: true, code: `import js; print(js.Deno.readTextFileSync("/proc/%VICTIM%/environ"))`},
		{name: "/proc of the server: its environment", linux: true, bare: true, code: `import js; print(js.Deno.readTextFileSync("/proc/%SERVER%/environ"))`},
		{name: "/proc of itself: its command line", linux: true, bare: true,
			code:     `import js; print("line", js.Deno.readTextFileSync("/proc/self/cmdline").replace("\0", " ")[:2000])`,
			evidence: printed("--quiet")},
		{name: "/proc of itself: its memory's map", linux: true, bare: true, code: `import js; print(js.Deno.readTextFileSync("/proc/self/maps")[:10000])`, evidence: printed("rw-p ")},
		{name: "/proc of itself: its memory", linux: true, bare: true, code: `import js; js.Deno.openSync("/proc/self/mem", js.eval("({ write: true, read: true })")); print("memory is open")`,
			evidence: printed("memory is open")},
		{name: "/proc/net", linux: true, bare: true, code: `import js; print(js.Deno.readTextFileSync("/proc/net/tcp")[:500])`, evidence: printed("local_address")},
		{name: "/etc/passwd", code: `import js; print(js.Deno.readTextFileSync("/etc/passwd"))`, evidence: printed("root:")},
		{name: "names in /dev", bare: true, code: `import js; print([entry.name for entry in js.Deno.readDirSync("/dev")])`, evidence: printed("'urandom'")},
		{name: "names in the cache", code: `import js; print([entry.name for entry in js.Deno.readDirSync("%CACHE%")])`, evidence: printed("'blobs'")},
		{name: "a file of the cache opened for writing", bare: true, code: `
import js
js.Deno.openSync(js.Deno.args[1], js.eval("({ write: true })"))
print("a file of the cache can be changed")`, evidence: printed("a file of the cache can be changed")},
		{name: "Pyodide's files opened for writing", bare: true, code: `
import js
js.Deno.openSync(js.Deno.args[0] + "/pyodide.asm.wasm", js.eval("({ write: true })"))
print("Pyodide can be changed")`, evidence: printed("Pyodide can be changed")},
		{name: "write a file", code: `import js; js.Deno.writeTextFileSync("%DIR%/made", "x")`},
		{name: "change a file", code: `import js; js.Deno.writeTextFileSync("%DIR%/secret.txt", "x", js.eval("({ append: true })"))`},
		{name: "delete a file", code: `import js; js.Deno.removeSync("%DIR%/secret.txt")`},
		{name: "make a directory", code: `import js; js.Deno.mkdirSync("%DIR%/made")`},
		{name: "make a symbolic link", code: `import js; js.Deno.symlinkSync("/etc/passwd", "%DIR%/made")`},
		{name: "make a hard link", code: `import js; js.Deno.linkSync("%DIR%/secret.txt", "%DIR%/made")`},
		{name: "rename a file", code: `import js; js.Deno.renameSync("%DIR%/secret.txt", "%DIR%/made")`},
		{name: "copy a file", code: `import js; js.Deno.copyFileSync("%DIR%/secret.txt", "%DIR%/made")`},
		{name: "change a file's mode", code: `import js; js.Deno.chmodSync("%DIR%/secret.txt", 0o777)`},
		{name: "change a file's time", code: `import js; js.Deno.utimeSync("%DIR%/secret.txt", 1, 1)`},
		{name: "make a temporary file", code: `import js; js.Deno.makeTempFileSync(js.eval("({ dir: '%DIR%' })"))`},
		{name: "a file of Python's own at a path of the host", code: `open("%DIR%/secret.txt").read()`,
			noControl: "Python's files are in its own memory: the path leads nowhere without the boundary, too"},
		{name: "urllib of a file: URL", code: `import urllib.request; print(urllib.request.urlopen("file://%DIR%/secret.txt").read())`,
			noControl: "Python's files are in its own memory: the path leads nowhere without the boundary, too"},
	})
}

// TestPythonGrantedFiles leaves what was granted by way of what Python sees of it.
func TestPythonGrantedFiles(t *testing.T) {
	t.Parallel()
	read, more := []string{"--allow-read=%GRANTED%"}, []string{"--allow-read=%GRANTED%,%DIR%"}
	link := func(name, target string) func(*testing.T, *scene) {
		return func(t *testing.T, s *scene) {
			if err := os.Symlink(s.fillText(target), s.fillText("%GRANTED%/"+name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tryTogether(t, []attack{
		{name: "a file outside", grants: read, control: more, code: `print(open("%DIR%/secret.txt").read())`},
		{name: "a file outside by its parent", grants: read, control: more, code: `print(open("%GRANTED%/../outside/secret.txt").read())`},
		{name: "a link that leads out", grants: read, control: more, prepare: link("link", "%DIR%/secret.txt"), code: `print(open("%GRANTED%/link").read())`},
		{name: "a link to the directory outside", grants: read, control: more, prepare: link("link", "../outside"), code: `
import os
print(os.listdir("%GRANTED%/link/names"), open("%GRANTED%/link/secret.txt").read())`},
		{name: "the names outside", grants: read, control: more, code: `import os; print(list(os.walk("/")))`},
		{name: "where a granted directory is, changed", grants: read, control: more, code: `
import pyodide_js
pyodide_js.FS.lookupPath("%GRANTED%").node.path = "%DIR%"
print(open("%GRANTED%/secret.txt").read())`},
		{name: "a file to read, written", grants: []string{"--allow-read=%DIR%"}, control: []string{"--allow-write=%DIR%"}, code: `open("%DIR%/secret.txt", "w").write("x")`},
		{name: "a directory to read, written", grants: []string{"--allow-read=%DIR%"}, control: []string{"--allow-write=%DIR%"}, code: `open("%DIR%/made", "w").write("x")`},
		{name: "a file to read, removed", grants: []string{"--allow-read=%DIR%"}, control: []string{"--allow-write=%DIR%"}, code: `import os; os.remove("%DIR%/secret.txt")`},
		{name: "a file to write, read", grants: []string{"--allow-write=%DIR%"}, control: []string{"--allow-read=%DIR%"}, code: `print(open("%DIR%/secret.txt").read())`},
		{name: "a denied file of a granted directory", grants: []string{"--allow-read=%DIR%", "--deny-read=%DIR%/secret.txt"}, control: more, code: `print(open("%DIR%/secret.txt").read())`},
	})
	try(t, []attack{
		{name: "what a run did not ask for", language: job.Python, grants: more, narrowed: []string{"--allow-read=%GRANTED%"}, noControl: "it is the same without a narrowing", code: `print(open("%DIR%/secret.txt").read())`},
	})
}
