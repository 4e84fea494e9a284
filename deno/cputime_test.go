package deno_test

import (
	"testing"
	"time"

	"rillbox/deno"
	"rillbox/supervisor/job"
)

// What waits does not use a processor, and each cell has the whole of its time.
func TestProcessorTimeIsLimited(t *testing.T) {
	e := newEngine(t, "", func(o *deno.Options) { o.Limits.CPUTime = 500 * time.Millisecond })
	const reason = " used more than its 0.5 s of processor time"
	r := run(t, e, job.Program{Code: "console.log(1); for (;;);"})
	if r.Status != job.TimedOut || r.Stdout.String() != "1\n" || r.Error == nil || r.Error.Message != "the program"+reason {
		t.Errorf("%s, stdout %q, %+v", r.Status, r.Stdout, r.Error)
	}
	if r := run(t, e, job.Program{Code: "await new Promise((r) => setTimeout(r, 1000))"}); r.Status != job.Completed {
		t.Errorf("waiting: %s %+v", r.Status, r.Error)
	}
	s := openSession(t, e, job.JavaScript)
	burn := code("const end = Date.now() + 150; while (Date.now() < end); 1")
	loop := step{program: code("let kept = 7; for (;;);"), status: job.TimedOut, state: job.StateKept,
		err: "TimeoutError: the cell" + reason + ": the cell was interrupted, the session's state is kept"}
	var steps []step
	for range 5 {
		steps = append(steps, step{program: burn, value: "1"})
	}
	s.play(append(steps, loop, step{program: code("kept"), value: "7"}))
}
