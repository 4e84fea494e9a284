//go:build !windows

package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/cache"
	"rillbox/deno"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
)

// TestNarrowingShowsNothingMore: a run names, within what was granted, what the
// grant leaves out: our own directories, the kernel's, and files by way of programs
// that may be run.
func TestNarrowingShowsNothingMore(t *testing.T) {
	cat := func(path string) string {
		return `console.log(new TextDecoder().decode(new Deno.Command("cat", { args: ["` + path + `"] }).outputSync().stdout));`
	}
	script := func(t *testing.T, s *scene) {
		if err := os.WriteFile(s.words["%GRANTED%"]+"/tool", []byte("#!/bin/sh "+s.dir()+"/secret.txt "+s.dir()+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	try(t, []attack{
		{name: "reading other runs", grants: []string{"--allow-read"}, narrowed: []string{"--allow-read=%RUNS%"},
			code: `console.log("runs", [...Deno.readDirSync("%RUNS%")].length > 0);`, evidence: says("runs true")},
		{name: "reading the cache", grants: []string{"--allow-read"}, narrowed: []string{"--allow-read=%CACHE%"},
			code: `console.log("entries", [...Deno.readDirSync("%CACHE%")].length > 0);`, evidence: says("entries true")},
		{name: "writing to the cache", grants: []string{"--allow-read", "--allow-write"}, narrowed: []string{"--allow-write=%CACHE%/deno"},
			code: `Deno.writeTextFileSync("%CACHE%/deno/mark-%SERVER%", "x"); console.log("writ" + "ten"); Deno.removeSync("%CACHE%/deno/mark-%SERVER%");`, evidence: says("written"),
			noControl: "the engine itself denies writing there, also without a wall"},
		{name: "the machine's processes", grants: []string{"--allow-read", "--allow-run"}, narrowed: []string{"--allow-read=/proc", "--allow-run=cat"},
			code: cat("/proc/%SERVER%/environ"), linux: true, noControl: "no run is given it; TestProgramsSeeTheirRootAlone has the attack"},
		{name: "a file as a program", grants: []string{"--allow-run"}, narrowed: []string{"--allow-run=%DIR%/secret.txt,cat"}, code: cat("%DIR%/secret.txt")},
		{name: "a script as a program", grants: []string{"--allow-run"}, narrowed: []string{"--allow-run=%DIR%/run.sh,cat"}, code: cat("%DIR%/run.sh")},
		{name: "what a script's first line names", grants: []string{"--allow-run=cat,%GRANTED%/tool"}, prepare: script, code: cat("%DIR%/secret.txt")},
	})
}

// TestTheWayToTheCacheStays: a guest that may change the directory that holds the
// cache can't move it away, and put another one in its place.
func TestTheWayToTheCacheStays(t *testing.T) {
	needWall(t)
	for _, level := range (attack{workspace: true}).levels(false) {
		t.Run(level.String(), func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(dir, ",") {
				t.Fatal("no permission flag can hold a comma")
			}
			store, err := cache.Open(filepath.Join(dir, "a", "b", "cache"), cache.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			permissions, err := permission.Parse([]string{"--allow-read=" + dir, "--allow-write=" + dir})
			if err != nil {
				t.Fatal(err)
			}
			engine, err := deno.New(deno.Options{Cache: store, DenoPath: denoBinary(t), Permissions: permissions, Limits: job.DefaultLimits(), Wall: level})
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			o := runProgram(t.Context(), engine, job.Program{Language: job.JavaScript, Code: `
const dir = "` + dir + `", told = [];
for (const [name, attempt] of Object.entries({
  beside: () => Deno.writeTextFileSync(dir + "/a/beside", "x"),
  cache: () => Deno.renameSync(dir + "/a/b/cache", dir + "/moved"),
  parent: () => Deno.renameSync(dir + "/a/b", dir + "/moved"),
  grandparent: () => Deno.renameSync(dir + "/a", dir + "/moved"),
  remove: () => Deno.removeSync(dir + "/a", { recursive: true }),
  inside: () => Deno.writeTextFileSync(dir + "/a/b/cache/new", "x"),
})) try { attempt(); told.push(name); } catch {}
export default told.join();`}, nil)
			if got := string(o.Value); got != `"beside"` && got != `""` { // Landlock has directories on the way as they are
				t.Errorf("it could: %s", o.summary())
			}
			if o = runProgram(t.Context(), engine, job.Program{Language: job.JavaScript, Code: `export default 1`}, nil); string(o.Value) != "1" {
				t.Errorf("after it: %s", o.summary())
			}
		})
	}
}

// TestNoFileOfAGuestsRunsAsUs: a guest's file never has the bits that would have it
// run as its owner, whoever that is on the disk.
func TestNoFileOfAGuestsRunsAsUs(t *testing.T) {
	needWall(t)
	o := ownSession(t, job.JavaScript, newEngine(t, job.JavaScript, nil, 0))
	mark := newSecret()
	result := runProgram(t.Context(), o, job.Program{Language: job.JavaScript, Code: `
Deno.writeTextFileSync("` + mark + `", "x"); Deno.mkdirSync("d");
for (const attempt of [
  () => Deno.chmodSync("` + mark + `", 0o4755), () => Deno.chmodSync("` + mark + `", 0o2755), () => Deno.chmodSync("d", 0o2777),
  () => Deno.writeTextFileSync("made", "x", { mode: 0o6755 }), () => Deno.openSync("opened", { create: true, write: true, mode: 0o4755 }),
  () => require("fs").fchmodSync(require("fs").openSync("` + mark + `", "r+"), 0o6755), () => require("fs").mkdirSync("e", { mode: 0o6777 }),
  () => require("fs").writeFileSync("node", "x", { mode: 0o4711 }),
]) try { attempt(); } catch {}
Deno.chmodSync("` + mark + `", 0o755); "done"`}, nil)
	if string(result.Value) != `"done"` {
		t.Fatal(result.summary())
	}
	dir, _ := whereItIs(t, mark)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 2 {
		t.Fatal(entries, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			t.Errorf("%s: %v %v", entry.Name(), info.Mode(), err)
		}
	}
}
