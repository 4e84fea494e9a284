package deno_test

import (
	"fmt"
	"strings"
	"testing"

	"rillbox/deno"
	"rillbox/supervisor/job"
)

// Both streams as one are in the order in which they were written, whatever wrote,
// also where a process was started ahead, whose streams are apart.
func TestCombinedOutputIsInOrder(t *testing.T) {
	e := newEngine(t, "", func(o *deno.Options) { o.Warm, o.Limits.Memory = 1, 64<<20 })
	code := `import process from "node:process";
const bytes = (s) => new TextEncoder().encode(s);
for (let i = 0; i < 300; i++) {
  console.log("log", i); console.error("error", i);
  Deno.stdout.writeSync(bytes("out " + i + "\n")); await Deno.stderr.write(bytes("err " + i + "\n"));
  process.stdout.write("node " + i + "\n"); process.stderr.write("nerr " + i + "\n");
}`
	var want strings.Builder
	for i := range 300 {
		fmt.Fprintf(&want, "log %d\nerror %[1]d\nout %[1]d\nerr %[1]d\nnode %[1]d\nnerr %[1]d\n", i)
	}
	r := run(t, e, job.Program{Code: code, Combined: true})
	if r.Status != job.Completed || !r.Combined || r.Stdout.String() != want.String() || r.Stderr.String() != "" {
		t.Errorf("%s %+v, stderr %q, stdout\n%.1000s", r.Status, r.Error, r.Stderr, r.Stdout)
	}
	// What Deno itself says at its end is told as it is of streams that are apart.
	r = run(t, e, job.Program{Code: `console.log("on"); await new Promise(() => {})`, Combined: true})
	if r.Error == nil || r.Error.Message != "Top-level await promise never resolved" || r.Stdout.String() != "on\n" {
		t.Errorf("%s %+v, stdout %q", r.Status, r.Error, r.Stdout)
	}
	r = run(t, e, job.Program{Code: `console.log("on"); const a = []; for (;;) a.push(new Array(1e5).fill(1.5))`, Combined: true})
	if r.Status != job.OutOfMemory || r.Stdout.String() != "on\n" {
		t.Errorf("%s, stdout %q", r.Status, r.Stdout)
	}
}
