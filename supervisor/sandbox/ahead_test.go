package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// share reads a child's share of the processors, as the kernel tells it.
func share(t *testing.T, c *Child) string {
	t.Helper()
	for _, procs := range c.group.Join() {
		for _, name := range []string{"cpu.shares", "cpu.weight"} {
			if text, err := os.ReadFile(filepath.Join(filepath.Dir(procs), name)); err == nil {
				return strings.TrimSpace(string(text))
			}
		}
	}
	t.Skip("no cgroups with processor time here")
	return ""
}

func TestAChildStartedAheadYieldsUntilItIsAttached(t *testing.T) {
	usual := share(t, start(t, job.DefaultLimits(), nil, "sleep"))
	dir, err := NewRunDir()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Start(Command{Path: self, Args: []string{"child", "sleep"}, Dir: dir, Ahead: true}, job.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	before := share(t, c)
	c.Attach(t.Context(), func(job.Event) {})
	after := share(t, c)
	c.Kill(job.Cancelled, "the test is over")
	c.Wait()
	if before == usual || after != usual {
		t.Errorf("the share of the processors is %s before Attach and %s after, another child's %s", before, after, usual)
	}
}
