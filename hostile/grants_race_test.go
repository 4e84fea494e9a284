//go:build !windows

package hostile

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/supervisor/job"
)

// TestGrantsUnderAttack: while guests move a granted directory away and put a link
// in its place, others with the same grants start with permissions that name it.
// They see the directory or are refused, and never what the link leads to.
func TestGrantsUnderAttack(t *testing.T) {
	needWall(t)
	for _, level := range (attack{workspace: true}).levels(false) {
		t.Run(level.String(), func(t *testing.T) {
			a := attack{
				name: "grants under attack", language: job.JavaScript, grants: []string{"--allow-read=%GRANTED%", "--allow-write=%GRANTED%"},
				narrowed: []string{"--allow-read=%GRANTED%/sub", "--allow-write=%GRANTED%/sub"},
				meanwhile: strings.ReplaceAll(linkByWASI, "Deno.cwd()", `"%GRANTED%"`) + `
const sub = "%GRANTED%/sub", away = "%GRANTED%/away" + Deno.pid + Math.random();
console.log("at work");
for (;;) {
  try { Deno.renameSync(sub, away); } catch {}
  calls.path_symlink(4096, put(4096, "%DIR%"), 3, 8192, put(8192, "sub"));
  try { Deno.removeSync(sub); } catch {}
  try { Deno.renameSync(away, sub); } catch {}
  calls.path_symlink(4096, put(4096, "../outside"), 3, 8192, put(8192, "sub"));
  try { if (Deno.lstatSync(sub).isSymlink) Deno.removeSync(sub); } catch {}
  try { Deno.mkdirSync(sub); } catch {}
  if (Math.random() < 0.3) await new Promise((go) => setTimeout(go, 20));
}`,
				code: `const sub = "%GRANTED%/sub";
for (const attempt of [
  () => Deno.readTextFileSync(sub + "/secret.txt"),
  () => [...Deno.readDirSync(sub + "/names")].map((e) => e.name),
  () => Deno.writeTextFileSync(sub + "/made", "x"),
  () => Deno.chmodSync(sub + "/run.sh", 0),
  () => Deno.removeSync(sub + "/secret.txt"),
  () => Deno.utimeSync(sub, 1, 1),
]) try { console.log(attempt()); } catch {}
console.log("ran");`,
				prepare: func(t *testing.T, s *scene) {
					if err := os.Mkdir(s.words["%GRANTED%"]+"/sub", 0o755); err != nil {
						t.Fatal(err)
					}
				},
			}
			s := newScene(t, a)
			engine := newEngine(t, a.language, s.fill(a.grants), level)
			for range 2 {
				defer runMeanwhile(t, engine, job.Program{Language: a.language, Code: s.fillText(a.meanwhile), Timeout: job.DefaultLimits().MaxTimeout})()
			}
			// A round counts when its program has run; most find nothing to run in and are
			// refused at once, all of them while the guests that attack are not at work. Until
			// one is refused, nothing was raced.
			wanted := int32(cachetest.Rounds(50, 80, 1000))
			var ran, refused atomic.Int32
			var workers sync.WaitGroup
			for range 3 {
				workers.Go(func() {
					for (ran.Load() < wanted || refused.Load() == 0 && ran.Load() < 20*wanted) && !t.Failed() {
						o := runProgram(t.Context(), engine, job.Program{Language: a.language, Code: s.fillText(a.code), Permissions: s.fill(a.narrowed)}, nil)
						program := (*job.ProgramError)(nil)
						switch {
						case errors.As(o.err, &program):
							refused.Add(1)
						case o.err != nil:
							t.Errorf("an error of ours: %v", o.err)
						case strings.Contains(o.Stdout.String(), "ran"):
							ran.Add(1)
						}
						if strings.Contains(o.text(), s.secret) {
							t.Errorf("the secret came out: %s", o.text())
						}
					}
				})
			}
			workers.Wait()
			if found := s.evidenceOf(outcome{}); len(found) > 0 {
				t.Errorf("behind %v the attack got through: %q", level, found)
			}
			t.Logf("%d ran, %d were refused", ran.Load(), refused.Load())
			if refused.Load() == 0 {
				t.Errorf("%d ran and none was refused: nothing was raced", ran.Load())
			}
		})
	}
}
