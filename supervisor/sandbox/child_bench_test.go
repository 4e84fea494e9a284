package sandbox

import (
	"syscall"
	"testing"
	"time"

	"rillbox/supervisor/job"
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
			before := processorTime(b)
			for b.Loop() {
				dir, err := NewRunDir()
				if err != nil {
					b.Fatal(err)
				}
				c, err := Start(Command{Path: "/bin/true", Dir: dir, Cwd: "/", Wall: row.wall}, job.DefaultLimits())
				if err != nil {
					b.Fatal(err)
				}
				c.Attach(b.Context(), func(job.Event) {})
				_ = c.Stdin().Close()
				if exit := c.Wait(); exit.Status != job.Completed {
					b.Fatalf("%+v", exit)
				}
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1e3/float64(b.N), "CPU-ms/op")
		})
	}
}

// processorTime is ours and that of the children that have ended.
func processorTime(b *testing.B) (sum time.Duration) {
	b.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}
