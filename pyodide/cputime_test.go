//go:build !windows

package pyodide

import (
	"testing"
	"time"

	"rillbox/supervisor/job"
)

// What waits does not use a processor, and each cell has the whole of its time.
func TestProcessorTimeIsLimited(t *testing.T) {
	limits := job.DefaultLimits()
	limits.CPUTime = 500 * time.Millisecond
	e := newEngine(t, func(o *Options) { o.Limits = limits })
	const reason = " used more than its 0.5 s of processor time"
	r := run1(t, e, python("print('on', flush=True)\nwhile True: pass"))
	if r.Status != job.TimedOut || r.Stdout.String() != "on\n" || r.Error == nil || r.Error.Message != "the program"+reason {
		t.Errorf("%s, stdout %q, %+v", r.Status, r.Stdout, r.Error)
	}
	completed(t, e, python("import asyncio\nawait asyncio.sleep(1)"))
	s := open(t, e, job.SessionOptions{})
	for range 5 {
		gives(t, s, "import time\nend = time.time() + 0.15\nwhile time.time() < end: pass\n1", "1")
	}
	r = in(t, s, python("kept = 7\nwhile True: pass"))
	if r.Status != job.TimedOut || r.State != job.StateKept || r.Error.Message != "the cell"+reason+": the cell was interrupted, the session's state is kept" {
		t.Errorf("%s %s %+v", r.Status, r.State, r.Error)
	}
	gives(t, s, "kept", "7")
}
