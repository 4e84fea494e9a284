package wire

import (
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// TestReportsAreHeldBack: V8's report of a full heap is not emitted, however it is
// cut, and all else is, at once; so is what only looks like one.
func TestReportsAreHeldBack(t *testing.T) {
	const report = "\n<--- Last few GCs --->\n\n[1:0x55] 67 ms\n\n\n#\n# Fatal JavaScript out of memory: Reached heap limit\n#\n /rillbox/deno(+0x28) [0x55]\n"
	full := job.Result{Status: job.OutOfMemory}
	hold := func(pieces []string, result job.Result) (live, all string) {
		var out strings.Builder
		held, end := HoldReport(func(e job.Event) { out.Write(e.Data) })
		for _, piece := range pieces {
			held(job.Event{Kind: job.Stderr, Data: []byte(piece)})
		}
		live = out.String()
		end(result)
		return live, out.String()
	}
	for at := range len("mine" + report) {
		text := "mine" + report
		live, all := hold([]string{text[:at], text[at:]}, full)
		if live != all || strings.Contains(all, "67 ms") || strings.Contains(all, "/rillbox") || !strings.HasPrefix(all+"mine", "mine") {
			t.Errorf("cut at %d: %q, %q", at, live, all)
		}
		if _, all := hold([]string{text[:at], text[at:]}, job.Result{Status: job.Completed}); all != text {
			t.Errorf("forged, cut at %d: %q", at, all)
		}
	}
	if live, _ := hold([]string{report[strings.Index(report, "\n#"):]}, full); strings.TrimSpace(live) != "" {
		t.Errorf("without its first part: %q", live)
	}
	for _, text := range []string{"#", "# Fatal", "<---", "\n<--- Last", "a <--- Last few GCs --->\n", "#\n", "password: "} {
		if live, _ := hold([]string{text}, full); live != text {
			t.Errorf("%q is held back: %q", text, live)
		}
	}
	flood := report + strings.Repeat("x", maxReport)
	if live, all := hold([]string{report, strings.Repeat("x", maxReport), "on"}, full); live != all || all != flood+"on" {
		t.Errorf("a flood: %d, %d of %d bytes", len(live), len(all), len(flood)+2)
	}
}
