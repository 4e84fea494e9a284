package sandbox

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"rillbox/supervisor/job"
)

func TestCombinedStreamsAreOneInTheOrderWritten(t *testing.T) {
	dir, err := NewRunDir()
	if err != nil {
		t.Fatal(err)
	}
	limits := job.DefaultLimits()
	limits.Stdout, limits.Stderr = 12_000, 8_000 // together what is written
	c, err := Start(Command{Path: os.Args[0], Args: []string{"child", "chatter"}, Dir: dir, Combined: true}, limits)
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	c.Attach(t.Context(), func(e job.Event) {
		if e.Kind == job.Stdout {
			events += len(e.Data)
		}
	})
	c.SetDeadline(20*time.Second, "the test")
	_, _ = io.ReadAll(c.Frames())
	exit := c.Wait()
	want := strings.Repeat(strings.Repeat("o", 99)+"\n"+strings.Repeat("e", 99)+"\n", 100)
	if exit.Stdout.String() != want || exit.Stderr.String() != "" || !exit.Combined || events != len(want) {
		t.Errorf("%s, combined %v, %d bytes of events, stderr %q, stdout\n%.500s", exit.Status, exit.Combined, events, exit.Stderr, exit.Stdout)
	}
}
