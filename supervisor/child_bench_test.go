//go:build !windows

package supervisor

import (
	"testing"

	"rillbox/supervisor/launcher"
)

// BenchmarkChild is what a child costs beside its own work, from Start to the
// end of Wait: pipes, cgroup, fork, second wall, keeper, watching, removal.
func BenchmarkChild(b *testing.B) {
	places := []launcher.Place{{Path: "/bin/true", Access: launcher.Read | launcher.Execute}}
	for _, row := range []struct {
		name string
		wall *launcher.Wall
	}{
		{"without wall", nil},
		{"landlock", &launcher.Wall{Level: launcher.Landlock, Places: places}},
		{"namespaces", &launcher.Wall{Level: launcher.Namespaces, Places: places}},
		{"namespaces but the network", &launcher.Wall{Level: launcher.Namespaces, Places: places, Network: true}},
	} {
		b.Run(row.name, func(b *testing.B) {
			if row.wall != nil && row.wall.Level > launcher.Offered().Level {
				b.Skip(launcher.Offered().Detail)
			}
			for b.Loop() {
				dir, err := NewRunDir()
				if err != nil {
					b.Fatal(err)
				}
				c, err := Start(Command{Path: "/bin/true", Dir: dir, Cwd: "/", Wall: row.wall}, DefaultLimits())
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
