package wire

import (
	"bytes"
	"slices"

	"rillbox/supervisor/job"
)

// reportBegins are how V8 begins what it writes when its heap is full, each at the
// begin of a line: addresses and paths of ours follow.
var reportBegins = [][]byte{[]byte("\n<--- Last few GCs --->"), []byte("\n#\n# " + string(heapExhausted))}

// maxReport bounds V8's report, in bytes; it has some two thousand.
const maxReport = 64 << 10

// HoldReport gives emit without what looks like V8's report of a full heap, and what
// is to be called when a run's output has ended: it emits what was held back after
// all, unless the result says that this was the report. All else is emitted at once.
func HoldReport(emit func(job.Event)) (held func(job.Event), end func(job.Result)) {
	var report []byte
	before := []byte("\n") // what was emitted last
	longest := 0
	for _, begin := range reportBegins {
		longest = max(longest, len(begin))
	}
	stderr := func(data []byte) {
		if len(data) > 0 {
			emit(job.Event{Kind: job.Stderr, Data: data})
		}
	}
	held = func(e job.Event) {
		switch {
		case e.Kind != job.Stderr:
			emit(e)
			return
		case report == nil:
			text := slices.Concat(before, e.Data)
			at := reportIn(text)
			if at < 0 {
				emit(e)
				before = text[max(0, len(text)-longest):]
				return
			}
			at = max(at, len(before)) // what is emitted is emitted
			stderr(text[len(before):at])
			report = slices.Clone(text[at:])
		default:
			report = append(report, e.Data...)
		}
		if len(report) > maxReport { // it is none
			stderr(report)
			before, report = report[len(report)-longest:], nil
		}
	}
	return held, func(r job.Result) {
		if r.Status != job.OutOfMemory {
			stderr(report)
		}
		report = nil
	}
}

// reportIn is where V8's report begins in text; -1 when there is none.
func reportIn(text []byte) int {
	first := -1
	for _, begin := range reportBegins {
		if at := bytes.Index(text, begin); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}
