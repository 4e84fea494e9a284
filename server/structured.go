package server

import "rillbox/supervisor"

// StructuredResult is run_code's structured content for a run's result, with all
// forms of what the program showed, which `rillbox run --json` prints.
func StructuredResult(r supervisor.Result) any {
	return struct {
		runOutput
		Displays []supervisor.Display `json:"displays,omitempty"`
	}{runOutputOf(r), r.Displays}
}
