//go:build !windows

package supervisor

import (
	"testing"

	"rillbox/supervisor/launcher"
)

// BenchmarkChild is what a child costs beside its own work, from Start to the
// end of Wait: pipes, cgroup, fork, second wall, keeper, watching, removal.
func BenchmarkChild(b *testing.B) {
	for _, row := range []struct {
		name string
		wall *launcher.Wall
	}{{"with wall", &launcher.Wall{ReadOnly: []string{"/bin/true"}}}, {"without wall", nil}} {
		b.Run(row.name, func(b *testing.B) {
			for b.Loop() {
				dir, err := NewRunDir()
				if err != nil {
					b.Fatal(err)
				}
				c, err := Start(Command{Path: "/bin/true", Dir: dir, Wall: row.wall}, DefaultLimits())
				if err != nil {
					b.Fatal(err)
				}
				c.Attach(b.Context(), func(Event) {})
				_ = c.Stdin().Close()
				if exit := c.Wait(); exit.Status != Completed {
					b.Fatalf("%+v", exit)
				}
			}
		})
	}
}
