//go:build !windows

package deno_test

import (
	"strings"
	"testing"
	"time"

	"rillbox/supervisor/job"
)

// A program is data of the guest's before it is code: parsing it must end, and
// must not be the server's end.
func TestProgramsThatBreakParsersAreResults(t *testing.T) {
	e := newEngine(t, "")
	for _, nest := range []string{"(", "!", "`${", "A<"} {
		for _, language := range []job.Language{job.JavaScript, job.TypeScript} {
			start := time.Now()
			r := run(t, e, job.Program{Language: language, Code: strings.Repeat(nest, 1<<20/len(nest)), Timeout: 5 * time.Second})
			if r.Status == job.Completed || r.Error == nil || time.Since(start) > time.Minute {
				t.Errorf("%s of %q: %s %+v after %v", language, nest, r.Status, r.Error, time.Since(start))
			}
		}
	}
	if r := run(t, e, job.Program{Code: `export default 1`}); string(r.Value) != "1" {
		t.Errorf("the next program: %s %+v", r.Status, r.Error)
	}
}
