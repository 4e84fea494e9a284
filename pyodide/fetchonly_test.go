package pyodide

import (
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// TestFetchOnly: what a program needs is fetched, and nothing of it runs.
func TestFetchOnly(t *testing.T) {
	e := newEngine(t)
	p := python("print('it runs')\nimport six\nraise SystemExit(3)")
	needIndex(t, run1(t, e, p))
	p.FetchOnly = true
	for range 2 { // the second may have an image of it
		r := completed(t, e, p)
		if len(r.Stdout.String()) > 0 || len(r.Packages) != 1 || r.Packages[0].Name != "six" {
			t.Errorf("%+v", r)
		}
	}
	p.Code = "import this_is_no_package_xyz\nprint(1)"
	if r := completed(t, e, p); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "this_is_no_package_xyz") {
		t.Errorf("an import that can't be had: %+v", r)
	}
	p.Code = "this is no Python"
	if r := run1(t, e, p); r.Status != job.Failed || r.Error.Name != "SyntaxError" {
		t.Errorf("%+v", r)
	}
}
