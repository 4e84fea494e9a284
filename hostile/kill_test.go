//go:build !windows

package hostile

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"rillbox/cache/cachetest"
)

// TestAServerKilledDuringRunsLeavesNothing kills `rillbox serve` with SIGKILL,
// every other time at a random instant of its runs' beginning, and looks at what
// is left, and at what the next server finds.
func TestAServerKilledDuringRunsLeavesNothing(t *testing.T) {
	needProc(t)
	t.Parallel()
	kills := cachetest.Rounds(4, 12, 50)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	temp := t.TempDir()
	begin := time.Now()
	var took, swept []time.Duration
	var servers []int
	for i := range kills {
		atRandom := i%2 == 1
		var more []string
		if !atRandom {
			more = []string{"--warm=0"} // nothing is about to start when it is killed
		}
		s := serve(t, temp, more...)
		// The next start is clean: nothing of the last server is there.
		if dirs := s.serverDirs(t); len(dirs) > 0 {
			t.Errorf("after the start there still are %v", dirs)
		}
		hello := map[string]any{"language": "javascript", "code": `export default 6 * 7`}
		if a := s.run(t, hello); a.Status != "completed" || string(a.Result) != "42" {
			t.Errorf("the server answers %+v", a)
		}
		s.noteKeeper(t)
		var runs []*ongoing
		for _, family := range families {
			runs = append(runs, s.start(t, family))
		}
		if !atRandom {
			for _, run := range runs {
				run.awaitReady(t)
			}
			if n := len(s.remains(t)); n < 6*len(families) {
				t.Errorf("only %d processes are there to be left over", n)
			}
		} else {
			time.Sleep(time.Duration(random.Int64N(int64(800 * time.Millisecond))))
		}
		if err := s.process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-s.exited
		servers = append(servers, s.process.Pid)
		killed := time.Now()
		took = append(took, allGone(t, "processes", func() []process { return s.remains(t) }))
		allGone(t, "keeper", s.keeperLeft)
		swept = append(swept, time.Since(killed))
		if !atRandom { // else a child may have been in the making, whose things the next start removes
			if dirs := runDirsIn(t, temp); len(dirs) > 0 {
				t.Errorf("the keeper left %v", dirs)
			}
			if groups := cgroupsOf(t, s.process.Pid); len(groups) > 0 {
				t.Errorf("the keeper left %v", groups)
			}
		}
		for _, run := range runs {
			run.cancel()
		}
		if t.Failed() {
			return
		}
	}
	last := serve(t, temp)
	if dirs := last.serverDirs(t); len(dirs) > 0 {
		t.Errorf("after the last start there still are %v", dirs)
	}
	if groups := cgroupsOf(t, servers...); len(groups) > 0 {
		t.Errorf("after the last start there still are %v", groups)
	}
	slices.Sort(took)
	slices.Sort(swept)
	t.Logf("%d kills in %v: the last process was gone after %v at the median and %v at most, the keeper with all that was left after %v and %v",
		kills, time.Since(begin).Round(time.Second), took[len(took)/2], took[len(took)-1], swept[len(swept)/2], swept[len(swept)-1])
}
