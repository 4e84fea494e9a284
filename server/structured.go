package server

import "rillbox/supervisor"

// StructuredResult is run_code's structured content for a run's result, which
// `rillbox run --json` prints as well.
func StructuredResult(r supervisor.Result) any { return runResult(r).StructuredContent }
