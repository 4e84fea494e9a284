package sandbox

import (
	"bufio"
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rillbox/supervisor/job"
)

// TestAPausedChildGetsNoTime: between two cells nothing of a session's runs, and
// it can be ended there.
func TestAPausedChildGetsNoTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell how much time a process has had")
	}
	c := start(t, job.DefaultLimits(), nil, "burn")
	c.Attach(context.Background(), func(job.Event) {})
	uses := func(d time.Duration) bool {
		before, _ := c.Usage()
		time.Sleep(d)
		after, _ := c.Usage()
		return after > before
	}
	for !uses(time.Millisecond) { // until it has begun
	}
	c.Pause()
	for uses(20 * time.Millisecond) { // the signal arrives
	}
	if _, peak := c.Usage(); peak == 0 {
		t.Error("its memory is not known")
	}
	c.Resume()
	for !uses(time.Millisecond) {
	}
	c.Pause()
	c.Kill(job.Cancelled, "enough")
	if exit := c.Wait(); exit.Status != job.Cancelled {
		t.Errorf("it ended as %s", exit.Status)
	}
	if cpu, _ := c.Usage(); cpu == 0 {
		t.Error("the time of an ended child is not known")
	}
	c.Resume()
}

// TestWhatAPausedChildStartedGetsNoTime: also what left its process group.
func TestWhatAPausedChildStartedGetsNoTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell which processes are a child's")
	}
	c := start(t, job.DefaultLimits(), nil, "depart")
	c.Attach(context.Background(), func(job.Event) {})
	line, err := bufio.NewReader(c.Frames()).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if list := (&Child{process: c.process}).processes(); !slices.Equal(list, []int{c.pid(), pid}) {
		t.Errorf("without a cgroup, the child's processes are %v, want %d and %d", list, c.pid(), pid)
	}
	uses := func(d time.Duration) bool {
		before := cpuTime(pid)
		time.Sleep(d)
		return cpuTime(pid) > before
	}
	for !uses(time.Millisecond) { // until it has begun
	}
	c.Pause()
	stops := time.Now().Add(5 * time.Second)
	for uses(50*time.Millisecond) && !t.Failed() {
		if time.Now().After(stops) {
			t.Error("it goes on")
		}
	}
	c.Resume()
	for !t.Failed() && !uses(time.Millisecond) {
	}
}
