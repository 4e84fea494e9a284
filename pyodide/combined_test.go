//go:build !windows

package pyodide

import (
	"fmt"
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// Both streams as one are in the order in which they were written, whatever wrote,
// also where a process was started ahead, whose streams are apart.
func TestCombinedOutputIsInOrder(t *testing.T) {
	e := newEngine(t, func(o *Options) { o.Warm = 1 })
	for len(e.pool.Idle()) == 0 { // a busy machine may start none in the time that a start may take
		e.pool.Warm()
	}
	p := python(`import os, sys, warnings, js
for i in range(300):
    print("print", i)
    print("error", i, file=sys.stderr)
    os.write(1, b"out %d\n" % i)
    os.write(2, b"err %d\n" % i)
    js.console.log("log", i)
    js.console.error("cerr", i)
1 / 0`)
	p.Combined = true
	var want strings.Builder
	for i := range 300 {
		fmt.Fprintf(&want, "print %d\nerror %[1]d\nout %[1]d\nerr %[1]d\nlog %[1]d\ncerr %[1]d\n", i)
	}
	r := run1(t, e, p)
	if r.Status != job.Failed || !r.Combined || r.Stdout.String() != want.String() || r.Stderr.String() != "" || r.Error.Name != "ZeroDivisionError" {
		t.Errorf("%s %+v, stderr %q, stdout\n%.1000s", r.Status, r.Error, r.Stderr, r.Stdout)
	}
}
