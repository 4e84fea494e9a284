//go:build !windows

package hostile

import "testing"

// What one run leaves or holds is no other's.
func TestOtherRuns(t *testing.T) {
	t.Parallel()
	const noFile = "the code of a cell is in no file"
	const waits = `/* %SECRET% */ console.log("here"); await new Promise((r) => setTimeout(r, 15000));`
	// reads every program in the runs' directories
	const look = `const seen = []; for (const d of Deno.readDirSync("%RUNS%")) { try { for (const f of Deno.readDirSync("%RUNS%/" + d.name + "/program")) if (f.isFile) seen.push(Deno.readTextFileSync("%RUNS%/" + d.name + "/program/" + f.name)); } catch (e) { seen.push(e.message); } } console.log(seen.join("\n"));`
	location := []string{"--location=https://example.com/"}
	try(t, []attack{
		{name: "another run's program", noCellControl: noFile, meanwhile: waits, code: look},
		{name: "another run's program, with a directory granted", noCellControl: noFile, meanwhile: waits, grants: []string{"--allow-read=%GRANTED%"}, code: look},
		{name: "another run's program, by a relative path", noCellControl: noFile, meanwhile: waits, code: swapped(look, "%RUNS%", "..")},
		{name: "another run's program, by import", noCellControl: noFile, meanwhile: waits, prepare: nil,
			code: `for (const d of [...Deno.readDirSync("%RUNS%")].map((d) => d.name)) { try { const t = (await import("file://%RUNS%/" + d + "/program/main.js", { with: { type: "text" } })).default; console.log(t); } catch {} }`},
		{name: "another run's stdin and arguments in /proc", linux: true, meanwhile: waits,
			code:      `for (const d of Deno.readDirSync("/proc")) { if (!/^\d+$/.test(d.name)) continue; let name = ""; try { name = Deno.readTextFileSync("/proc/" + d.name + "/comm"); } catch {} if (name.startsWith("deno")) try { console.log(Deno.readTextFileSync("/proc/" + d.name + "/cwd/program/main.js")); } catch {} }`,
			noControl: "Deno gives /proc only to a process without any denial, which no run of ours is; TestProcAndDev shows /proc itself"},
		{name: "another process's descriptor by /proc", linux: true, bare: true, code: `Deno.writeTextFileSync("/proc/%VICTIM%/fd/1", "forged\n");`, evidence: settle, noControl: "its descriptor is a pipe that only it may open"},
		{name: "localStorage of an earlier run", bareFlags: location, earlier: `localStorage.setItem("k", "%SECRET%");`, code: `console.log(localStorage.getItem("k"));`},
		{name: "sessionStorage of an earlier run", earlier: `sessionStorage.setItem("k", "%SECRET%");`, code: `console.log(sessionStorage.getItem("k"));`,
			noControl: "it ends with its process"},
		{name: "caches of an earlier run", bareFlags: location, earlier: `const c = await caches.open("x"); await c.put("https://example.com/a", new Response("%SECRET%"));`,
			code: `const c = await caches.open("x"); console.log(await (await c.match("https://example.com/a")).text());`},
		{name: "Deno.openKv of an earlier run", bareFlags: []string{"--unstable-kv", "--location=https://example.com/"}, earlier: `const kv = await Deno.openKv(); await kv.set(["k"], "%SECRET%"); kv.close();`,
			code: `const kv = await Deno.openKv(); console.log((await kv.get(["k"])).value); kv.close();`},
		{name: "file in the working directory of an earlier run", bare: true, earlier: `Deno.writeTextFileSync("left", "%SECRET%");`, code: `console.log(Deno.readTextFileSync("left"));`},
		{name: "temporary file of an earlier run", earlier: `Deno.writeTextFileSync("%DIR%/../left", "%SECRET%");`, code: `console.log(Deno.readTextFileSync("%DIR%/../left"));`},
		{name: "environment of an earlier run", earlier: `process.env.LEFT = "%SECRET%"; try { Deno.env.set("LEFT", "%SECRET%"); } catch {}`, grants: []string{"--allow-env"}, code: `console.log(Deno.env.get("LEFT"), process.env.LEFT);`,
			noControl: "it ends with its process"},
		{name: "module registry of an earlier run", earlier: `globalThis.left = "%SECRET%"; (await import("data:text/javascript,export const o = {}")).o.left = "%SECRET%";`,
			code: `console.log(globalThis.left, (await import("data:text/javascript,export const o = {}")).o.left);`, noControl: "it ends with its process"},
		{name: "blob: URL of an earlier run", earlier: `console.log(URL.createObjectURL(new Blob(["%SECRET%"])));`, code: `console.log(await (await fetch("blob:null/0")).text());`, noControl: "it ends with its process"},
		{name: "BroadcastChannel of a run meanwhile", meanwhile: `const c = new BroadcastChannel("x"); setInterval(() => c.postMessage("%SECRET%"), 10); console.log("here"); await new Promise((r) => setTimeout(r, 15000));`,
			code: `const c = new BroadcastChannel("x"); await new Promise((r) => { c.onmessage = (e) => { console.log(e.data); r(); }; setTimeout(r, 300); }); c.close();`, noControl: "Deno's channels do not leave their process"},
		{name: "compiled code of an earlier run in DENO_DIR", bare: true, earlier: `Deno.mkdirSync(Deno.env.get("DENO_DIR") + "/gen", { recursive: true }); Deno.writeTextFileSync(Deno.env.get("DENO_DIR") + "/gen/left", "%SECRET%");`,
			code: `console.log(Deno.readTextFileSync(Deno.env.get("DENO_DIR") + "/gen/left"));`},
	})
}
