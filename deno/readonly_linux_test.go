package deno

import (
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/supervisor/job"
)

// TestAReadOnlyCacheRunsWhatIsInIt: Deno, Node's modules, and a package that was
// fetched before.
func TestAReadOnlyCacheRunsWhatIsInIt(t *testing.T) {
	p := job.Program{Code: `import fs from "node:fs"; import odd from "npm:is-odd@3.0.1"; export default odd(fs.constants.O_RDWR + 1)`}
	completed(t, warmEngine(t, 0), p)
	e, err := New(Options{Cache: cachetest.ReadOnly(t), Limits: job.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	if r := completed(t, e, p); string(r.Value) != "true" {
		t.Errorf("value %s", r.Value)
	}
}
