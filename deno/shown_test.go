//go:build !windows

package deno_test

import (
	"strings"
	"testing"
	"time"

	"rillbox/deno"
	"rillbox/supervisor/job"
)

func TestProgramsShowThings(t *testing.T) {
	e := newEngine(t, "")
	for _, test := range []struct {
		name, code string
		want       []string // of each display: a MIME type and a part of it
		value      string
	}{
		{"nothing", "export default { a: 1 }", nil, `{"a":1}`},
		{"no name of the program's", "export default [\"display\" in globalThis, Object.keys(globalThis).includes(\"display\")]", nil, "[true,false]"},
		{"its value", "export default { [Symbol.for('Jupyter.display')]: () => ({ 'text/html': '<b>ü</b>' }) }", []string{"text/html <b>ü</b>"}, ""},
		{"its value, later", "export default { [Symbol.for('Jupyter.display')]: async () => ({ 'text/html': '<b>' }) }", []string{"text/html <b>"}, ""},
		{"display", "display(1); display({ 'text/html': '<i>' }, { raw: true }); export default 2", []string{"text/plain 1", "text/html <i>"}, "2"},
		{"after the module's end", "setTimeout(() => display('late'), 10); export default 2", []string{"text/plain late"}, "2"},
		{"before an error", "display(1); throw new Error('no')", []string{"text/plain 1"}, ""},
		{"before an exit", "display(1); Deno.exit(3)", []string{"text/plain 1"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := run(t, e, job.Program{Code: test.code})
			if len(r.Displays) != len(test.want) || len(r.Notes) > 0 || test.value != "" && string(r.Value) != test.value {
				t.Fatalf("%s %+v, value %s, displays %v, notes %q", r.Status, r.Error, r.Value, r.Displays, r.Notes)
			}
			for i, want := range test.want {
				kind, part, _ := strings.Cut(want, " ")
				if !strings.Contains(r.Displays[i][kind], part) {
					t.Errorf("display %d is %v, want %s", i, r.Displays[i], want)
				}
			}
		})
	}
}

// TestWhatIsShownIsBounded: more than may be shown is left out and counted, and
// the program goes on.
func TestWhatIsShownIsBounded(t *testing.T) {
	e := newEngine(t, "", func(o *deno.Options) { o.Limits.Displays = 1 << 20 })
	picture := "display({ 'image/png': new Uint8Array(300_000) }, { raw: true });"
	r := run(t, e, job.Program{Code: "for (let i = 0; i < 10; i++) " + picture + "\nexport default 'done'"})
	if len(r.Displays) != 2 || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "8 displays were left out") || string(r.Value) != `"done"` {
		t.Errorf("%d displays, notes %q, value %s", len(r.Displays), r.Notes, r.Value)
	}
	r = run(t, e, job.Program{Code: "for (let i = 0; i < 9; i++) " + picture + "\nfor (;;);", Timeout: 3 * time.Second})
	if r.Status != job.TimedOut || len(r.Displays) != 2 || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "at least 4 displays were left out") {
		t.Errorf("%s, %d displays, notes %q", r.Status, len(r.Displays), r.Notes)
	}
}
