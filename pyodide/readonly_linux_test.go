package pyodide

import (
	"testing"

	"rillbox/cache/cachetest"
)

// TestAReadOnlyCacheRunsWhatIsInIt: Python, and a package that was fetched before.
func TestAReadOnlyCacheRunsWhatIsInIt(t *testing.T) {
	whole := newEngine(t)
	p := python("import six; six.__name__")
	p.Packages = []string{"six"}
	completed(t, whole, p)
	e := newEngine(t, func(o *Options) { o.Cache = cachetest.ReadOnly(t) })
	if r := completed(t, e, p); string(r.Value) != `"six"` {
		t.Errorf("value %s", r.Value)
	}
}
