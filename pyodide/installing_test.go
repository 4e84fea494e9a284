//go:build !windows

package pyodide

import "testing"

func TestAResultSaysHowLongItsPackagesTook(t *testing.T) {
	e := newEngine(t, withLibraries(t))
	if r := completed(t, e, python("import pandas")); r.Installing <= 0 {
		t.Errorf("packages took %v", r.Installing)
	}
	if r := completed(t, e, python("1")); r.Installing != 0 {
		t.Errorf("no packages took %v", r.Installing)
	}
}
