//go:build !windows

package deno_test

import (
	"strings"
	"testing"

	"rillbox/deno"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// TestPackagesReadTheirOwnFiles: the code of a package reads what came with it, and
// what came with the others of its plan, by every call that reads, behind every wall.
func TestPackagesReadTheirOwnFiles(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "font", "1.0.0", map[string]string{
		"package.json": `{"name":"font","version":"1.0.0","dependencies":{"glyphs":"1"}}`,
		"a.txt":        "a", "data/b.json": `["b"]`,
		"index.js": `const fs = require("fs"), path = require("path"), glyphs = require("glyphs");
module.exports = (async () => [
	fs.readFileSync(path.join(__dirname, "a.txt"), "utf8"),
	fs.readFileSync(require.resolve("./data/b.json"), "utf8"),
	await fs.promises.readFile(__dirname + "/a.txt", "utf8"),
	fs.readdirSync(__dirname).join(),
	fs.existsSync(__dirname + "/a.txt"), fs.existsSync(__dirname + "/none.txt"),
	fs.statSync(__dirname + "/data").isDirectory(),
	(await new Response(require("stream").Readable.toWeb(fs.createReadStream(__dirname + "/a.txt"))).text()),
	await glyphs,
])();`,
	})
	r.npm(t, "glyphs", "1.0.0", map[string]string{
		"package.json": `{"name":"glyphs","version":"1.0.0","type":"module","main":"index.js"}`,
		"g.txt":        "g",
		"index.js":     `const g = Deno.readTextFile(new URL("./g.txt", import.meta.url)); export { g as "module.exports" };`,
	})
	want := `["a","[\"b\"]","a","a.txt,data,index.js,package.json",true,false,true,"a","g"]`
	dir := t.TempDir()
	for level := launcher.Best; level < launcher.Offered().Level || level == launcher.Best; level++ {
		e := newEngine(t, "", ownCache(t, dir, level != launcher.Best), func(o *deno.Options) { o.Wall = level })
		if got := run(t, e, job.Program{Code: `import font from "font"; export default await font`}); string(got.Value) != want {
			t.Errorf("%v: have %s %+v", level, got.Value, got.Error)
		}
		if got := openSession(t, e, job.JavaScript).cell(`import font from "font"; await font`); string(got.Value) != want {
			t.Errorf("%v, a cell: have %s %+v", level, got.Value, got.Error)
		}
		writes := `import fs from "node:fs"; import font from "font"; import { createRequire } from "node:module";
			const file = createRequire(import.meta.url).resolve("font"); const failed = [];
			for (const path of [file, file + ".new"]) for (const write of [() => fs.writeFileSync(path, ""), () => fs.unlinkSync(path), () => fs.symlinkSync("/etc/passwd", path + "l"), () => fs.chmodSync(path, 0o777), () => fs.utimesSync(path, 1, 1), () => fs.renameSync(path, path + "r")]) {
				try { write(); failed.push(String(write)) } catch {}
			}
			`
		if got := run(t, e, job.Program{Code: writes + `export default failed`}); string(got.Value) != `[]` {
			t.Errorf("%v: these wrote: %s %+v", level, got.Value, got.Error)
		}
	}
	if got := run(t, newEngine(t, "", ownCache(t, dir, true)), job.Program{Code: `import fs from "node:fs"; import "font"; export default fs.readFileSync("/etc/passwd", "utf8")`}); got.Error == nil || !strings.Contains(got.Error.Message, "Requires read access") {
		t.Errorf("the program's own read: %s %+v", got.Value, got.Error)
	}
}
