//go:build !windows

package deno_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// questions are about the machine; each is a field of the answer.
const questions = `hostname: os.hostname(), text: String(os.hostname), named: hostname(), space: ns.hostname(), homedir: os.homedir(), tmpdir: os.tmpdir(), release: os.release(), version: os.version(),
	user: os.userInfo(), cpus: os.cpus().length > 0, load: os.loadavg(), uptime: os.uptime() < 1000, net: Object.keys(os.networkInterfaces()),
	memory: [os.totalmem(), os.freemem(), process.availableMemory(), process.constrainedMemory()].every((n) => n > 0 && n <= 2 ** 30),
	ids: [process.getuid(), process.geteuid(), process.getgid(), process.getegid(), process.getgroups()], mask: [process.umask(0o77), process.umask(), umask()], env: env.HOME === undefined, report: process.report.getReport().header.platform === process.platform`

const imports = `import os, { hostname } from "node:os"; import * as ns from "os"; import process, { env, umask } from "node:process";`

// TestHarmlessQuestions: what Node tells of the machine is a sandbox's for those that
// may not ask, in a program and in packages of both kinds, and the machine's where it is
// granted.
func TestHarmlessQuestions(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "asks", "1.0.0", map[string]string{
		"package.json": `{"name":"asks","version":"1.0.0","type":"module","main":"index.js"}`,
		"index.js":     imports + `export default { ` + questions + `, deno: [Deno.hostname(), Deno.uid(), Deno.osRelease(), Deno.loadavg(), Deno.systemMemoryInfo().total > 0, Deno.networkInterfaces().length] };`,
	})
	r.npm(t, "asks-cjs", "1.0.0", map[string]string{
		"package.json": `{"name":"asks-cjs","version":"1.0.0"}`,
		"index.js":     `const os = require("os"), ns = os, { hostname } = require("node:os"), { env, umask } = process; module.exports = { ` + questions + ` };`,
	})
	const want = `{"hostname":"localhost","text":"localhost","named":"localhost","space":"localhost","homedir":"/nonexistent","tmpdir":"/tmp","release":"6.0.0","version":"6.0.0",` +
		`"user":{"uid":65534,"gid":65534,"username":"nobody","homedir":"/nonexistent","shell":null},"cpus":true,"load":[0,0,0],"uptime":true,"net":["lo"],"memory":true,` +
		`"ids":[65534,65534,65534,65534,[65534]],"mask":[18,63,63],"env":true,"report":true`
	e := newEngine(t, "", ownCache(t, t.TempDir(), false))
	for name, row := range map[string]struct{ imports, value, more string }{
		"own code":       {imports, "{" + questions + "}", ""},
		"an ESM package": {`import asks from "asks";`, "asks", `,"deno":["localhost",65534,"6.0.0",[0,0,0],true,1]`},
		"a CJS package":  {`import asks from "asks-cjs";`, "asks", ""},
	} {
		want := want + row.more + "}"
		if got := run(t, e, job.Program{Language: job.JavaScript, Code: row.imports + "export default " + row.value}); string(got.Value) != want {
			t.Errorf("%s: have %s %+v\nwant %s", name, got.Value, got.Error, want)
		}
		if got := openSession(t, e, job.JavaScript).cell(row.imports + "(" + row.value + ")"); string(got.Value) != want {
			t.Errorf("%s, a cell: have %s %+v\nwant %s", name, got.Value, got.Error, want)
		}
	}
	if got := run(t, e, job.Program{Code: `import "asks"; Deno.hostname()`}); got.Error == nil || !strings.HasPrefix(got.Error.Message, `Requires sys access to "hostname"`) {
		t.Errorf("Deno's own: %+v", got.Error)
	}

	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	name, _ := json.Marshal([]string{host, host, "/nonexistent"})
	if got := run(t, newEngine(t, "--allow-sys=hostname"), job.Program{Code: imports + `export default [os.hostname(), hostname(), os.homedir()]`}); string(got.Value) != string(name) {
		t.Errorf("granted: have %s %+v, want %s", got.Value, got.Error, name)
	}
}

// TestPackagesRequireModules: a package of CommonJS requires one of several ECMAScript
// modules, which look at the machine too.
func TestPackagesRequireModules(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "modules", "1.0.0", map[string]string{
		"package.json": `{"name":"modules","version":"1.0.0","type":"module","exports":{".":"./index.js","./other":"./other.js","./broken":"./broken.js"}}`,
		"index.js":     `import { name } from "./lib/name.js"; import other from "modules/other"; import os from "node:os"; export default [name, other, os.hostname()];`,
		"lib/name.js":  `export const name = "name";`,
		"other.js":     `export default "other";`,
		"broken.js":    `import "./none.js";`,
	})
	r.npm(t, "requires", "1.0.0", map[string]string{
		"package.json": `{"name":"requires","version":"1.0.0","dependencies":{"modules":"1"}}`,
		"index.js":     `let broken; try { require("modules/broken"); } catch (error) { broken = error instanceof Error; } module.exports = [...require("modules").default, broken, require("os").hostname()];`,
	})
	const want = `["name","other","localhost",true,"localhost","localhost"]`
	const code = `import os, { hostname } from "node:os"; import all from "requires"; `
	e := newEngine(t, "", ownCache(t, t.TempDir(), false))
	if got := run(t, e, job.Program{Language: job.JavaScript, Code: code + `export default [...all, hostname()]`}); string(got.Value) != want {
		t.Errorf("have %s %+v", got.Value, got.Error)
	}
	if got := openSession(t, e, job.JavaScript).cell(code + `[...all, hostname()]`); string(got.Value) != want {
		t.Errorf("a cell: have %s %+v", got.Value, got.Error)
	}
}

// TestPackagesFindNothing: what a package may not read is not there, by whichever call
// it looks; a program's own code learns what it may not read, also of what packages
// looked for in its place.
func TestPackagesFindNothing(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	const looks = `const tries = {
	exists: () => fs.existsSync("/etc/os-release"), named: () => readFileSync("/etc/os-release"), stat: () => fs.statSync("/proc/self/status"), lstat: () => fs.lstatSync("/etc/os-release"),
	quiet: () => fs.statSync("/etc/os-release", { throwIfNoEntry: false }) === undefined, access: () => fs.accessSync("/etc/os-release"), read: () => fs.readFileSync("/etc/os-release", "utf8"),
	dir: () => fs.readdirSync("/etc"), opendir: () => fs.opendirSync("/etc"), link: () => fs.readlinkSync("/proc/self/exe"), real: () => fs.realpathSync("/etc"), native: () => fs.realpathSync.native("/etc"), open: () => fs.openSync("/etc/os-release", "r"),
	promise: () => fs.promises.readFile("/etc/os-release"), promised: () => fsp.stat("/etc/os-release"), url: () => fsp.access(new URL("file:///etc/os-release")),
	called: () => new Promise((yes, no) => fs.stat("/etc/os-release", (error, found) => error ? no(error) : yes(found))),
	write: () => fs.writeFileSync("/tmp/x", ""), openToWrite: () => fs.openSync("/tmp/x", "w"),
};
async function look() {
	const found = {};
	for (const [name, act] of Object.entries(tries)) {
		try { found[name] = await act() } catch (error) { found[name] = error.code ?? error.name }
	}
	return found;
}`
	r.npm(t, "looks", "1.0.0", map[string]string{
		"package.json": `{"name":"looks","version":"1.0.0","type":"module","main":"index.js"}`,
		"index.js":     `import fs, { readFileSync } from "node:fs"; import fsp from "fs/promises";` + looks + `export default look; export const load = (path) => readFileSync(path); export const later = (path) => fsp.readFile(path);`,
	})
	r.npm(t, "looks-cjs", "1.0.0", map[string]string{
		"package.json": `{"name":"looks-cjs","version":"1.0.0"}`,
		"index.js":     `const fs = require("fs"), { readFileSync } = fs, fsp = require("node:fs/promises");` + looks + `module.exports = look;`,
	})
	r.npm(t, "looks-within", "1.0.0", map[string]string{
		"package.json": `{"name":"looks-within","version":"1.0.0"}`,
		"index.js":     `const fs = process.getBuiltinModule("fs"), { readFileSync } = fs, fsp = process.getBuiltinModule("node:fs/promises");` + looks + `module.exports = look;`,
	})
	const none, refused = `"ENOENT"`, `"NotCapable"`
	want := func(exists, quiet, read string) string {
		text := `{"exists":` + exists + `,"named":R,"stat":R,"lstat":R,"quiet":` + quiet + `,"access":R,"read":R,"dir":R,"opendir":R,"link":R,"real":R,"native":R,"open":R,"promise":R,"promised":R,"url":R,"called":R,"write":"NotCapable","openToWrite":"NotCapable"}`
		return strings.ReplaceAll(text, "R", read)
	}
	e := newEngine(t, "", ownCache(t, t.TempDir(), false))
	for name, row := range map[string]struct{ imports, value, want string }{
		"an ESM package":                  {`import look from "looks";`, `await look()`, want("false", "true", none)},
		"a CJS package":                   {`import look from "looks-cjs";`, `await look()`, want("false", "true", none)},
		"a package that asks the process": {`import look from "looks-within";`, `await look()`, want("false", "true", none)},
		"own code":                        {`import "looks"; import fs, { readFileSync } from "node:fs"; import fsp from "node:fs/promises";` + looks, `await look()`, want(refused, refused, refused)},
	} {
		if got := run(t, e, job.Program{Language: job.JavaScript, Code: row.imports + "export default " + row.value}); string(got.Value) != row.want {
			t.Errorf("%s: have %s %+v\nwant %s", name, got.Value, got.Error, row.want)
		}
		if got := openSession(t, e, job.JavaScript).cell(row.imports + row.value); string(got.Value) != row.want {
			t.Errorf("%s, a cell: have %s %+v\nwant %s", name, got.Value, got.Error, row.want)
		}
	}
	for _, load := range []string{"load", "later"} {
		got := run(t, e, job.Program{Code: `import { ` + load + ` } from "looks"; await ` + load + `("/srv/data.csv")`})
		if want := `Requires read access to "/srv/data.csv": the operator can allow it with --allow-read`; got.Error == nil || !strings.HasPrefix(got.Error.Message, want) {
			t.Errorf("%s: have %+v, want %s", load, got.Error, want)
		}
	}
}
