//go:build !windows

package terminal

import (
	"io"
	"os"
	"testing"

	"rillbox/supervisor/job"
)

// told is what is printed on stderr of a result.
func told(t *testing.T, r job.Result) string {
	t.Helper()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	before := os.Stderr
	os.Stderr = to
	NewOutput(false).Report(r)
	os.Stderr = before
	_ = to.Close()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// An error that a language has written to standard error itself is not told again; others are.
func TestAnErrorIsToldOnce(t *testing.T) {
	bad := job.GuestError{Name: "Error", Message: "main.lua:1: bad"}
	traced := bad
	traced.Traceback = "Error: main.lua:1: bad\n  in f"
	written := job.Captured{Head: []byte("lua: main.lua:1: bad\n")}
	for name, row := range map[string]struct {
		r    job.Result
		want string
	}{
		"no error":               {job.Result{Status: job.Completed}, ""},
		"one that was written":   {job.Result{Status: job.Failed, Error: &bad, Stderr: written}, ""},
		"in the one stream":      {job.Result{Status: job.Failed, Error: &bad, Combined: true, Stdout: written}, ""},
		"on stdout only":         {job.Result{Status: job.Failed, Error: &bad, Stdout: written}, "Error: main.lua:1: bad\n"},
		"one that was not":       {job.Result{Status: job.Failed, Error: &bad}, "Error: main.lua:1: bad\n"},
		"with a traceback":       {job.Result{Status: job.Failed, Error: &traced, Stderr: written}, "Error: main.lua:1: bad\n  in f\n"},
		"of a run that we ended": {job.Result{Status: job.TimedOut, Error: &bad, Stderr: written}, "Error: main.lua:1: bad\n"},
		"with a note":            {job.Result{Status: job.Failed, Error: &bad, Stderr: written, Notes: []string{"mind"}}, "note: mind\n"},
	} {
		if got := told(t, row.r); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
