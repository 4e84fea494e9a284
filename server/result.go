package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"rillbox/supervisor/job"
)

// runOutput is run_code's structured result.
type runOutput struct {
	Status          job.Status      `json:"status"`    // How the run ended; anything but completed also sets isError
	ExitCode        int             `json:"exit_code"` // The program's exit code; 128 + n when signal n ended it
	*Streams                        // Absent with output combined
	Output          *string         `json:"output,omitempty"`     // Both streams as one, with output combined
	Truncated       *truncated      `json:"truncated,omitempty"`  // How many bytes were left out of the middle of each stream; absent when none were
	Result          json.RawMessage `json:"result,omitempty"`     // The program's value: Python's last expression, in JavaScript and TypeScript the default export, or in a session the last expression; absent when there is none. A value with no JSON form is its printed form, as a string
	Error           *job.GuestError `json:"error,omitempty"`      // What went wrong; absent when nothing did
	DurationMS      int64           `json:"duration_ms"`          // Wall-clock time of the program itself
	CPUMS           int64           `json:"cpu_ms"`               // Processor time, the runtime's start included
	PeakMemoryBytes int64           `json:"peak_memory_bytes"`    // The most memory that was in use at once, the runtime's own included
	Packages        []job.Package   `json:"packages"`             // The packages that the program's imports and the packages argument resolved to
	ExecutionID     string          `json:"execution_id"`         // Names this run
	SessionID       string          `json:"session_id,omitempty"` // The session that it was a cell of; absent when it was none
	State           job.State       `json:"state,omitempty"`      // Whether the session's state was kept or lost when the cell was ended from outside; absent when the cell ended by itself
	Displays        []displayInfo   `json:"displays,omitempty"`   // What the program showed (display(), figures, a value's richer forms), in order; absent when nothing
	Files           []changedFile   `json:"files,omitempty"`      // Files that the program made or changed in its current directory; absent when it has none, or changed none
	Notes           []string        `json:"notes,omitempty"`      // What was chosen on the program's behalf
}

// Streams are what the program wrote.
type Streams struct {
	Stdout string `json:"stdout"` // To standard output
	Stderr string `json:"stderr"` // To standard error
}

type changedFile struct {
	Path      string `json:"path"`                // The file's path in the current directory
	SizeBytes int64  `json:"size_bytes"`          // Its size
	MIMEType  string `json:"mime_type,omitempty"` // What its name or its content says that it is
	Change    string `json:"change"`              // created or changed
	URI       string `json:"uri,omitempty"`       // The file as an MCP resource, in a session
	Text      string `json:"text,omitempty"`      // Its content, of a run without a session, when it is text
	Base64    string `json:"base64,omitempty"`    // Its content, of a run without a session, when it is no text
}

type truncated struct {
	Stdout int64 `json:"stdout,omitempty"` // Bytes left out of stdout
	Stderr int64 `json:"stderr,omitempty"` // Bytes left out of stderr
	Output int64 `json:"output,omitempty"` // Bytes left out of both as one
}

// installOutput is install_packages' structured result.
type installOutput struct {
	Packages   []job.Package `json:"packages"`    // What the request resolved to, dependencies included
	DurationMS int64         `json:"duration_ms"` // How long it took
}

// cancelOutput is cancel_execution's structured result.
type cancelOutput struct {
	ExecutionID string `json:"execution_id"` // The execution that is being ended
	Cancelled   bool   `json:"cancelled"`    // True when it was running; its own call then answers with the status cancelled
}

// maxValueDepth is how deep a program's value may nest. Clients' JSON parsers
// give up at some depth (pydantic's at 200) and with it on the whole message.
const maxValueDepth = 64

// runOutputOf gives the structured form of a run's result, displays and files
// left out.
func runOutputOf(r job.Result) runOutput {
	stdout, stderr := textOf(r.Stdout), textOf(r.Stderr)
	out := runOutput{
		Status:          r.Status,
		ExitCode:        r.ExitCode,
		DurationMS:      r.Duration.Milliseconds(),
		CPUMS:           r.CPU.Milliseconds(),
		PeakMemoryBytes: r.PeakMemory,
		Packages:        listed(r.Packages),
		ExecutionID:     r.ExecutionID,
		State:           r.State,
		Error:           r.Error,
		Notes:           slices.Clip(r.Notes),
	}
	left := truncated{Stdout: stdout.omitted, Stderr: stderr.omitted}
	if r.Combined {
		left = truncated{Output: stdout.omitted}
		out.Output = &stdout.text
	} else {
		out.Streams = &Streams{stdout.text, stderr.text}
	}
	if left != (truncated{}) {
		out.Truncated = &left
	}
	for i, n := range []int64{stdout.replaced, stderr.replaced} {
		if n > 0 {
			name := []string{outName(r.Combined), "stderr"}[i]
			out.note("%d bytes of %s are not UTF-8; each is shown as \uFFFD.", n, name)
		}
	}
	if len(r.Value) > 0 {
		var note string
		if out.Result, note = value(r.Value); note != "" {
			out.Notes = append(out.Notes, note)
		}
	}
	return out
}

// note tells one thing more.
func (o *runOutput) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// value makes the guest's value fit for any client: JSON that every parser
// takes, whatever the guest wrote.
func value(raw json.RawMessage) (json.RawMessage, string) {
	raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	if !json.Valid(raw) {
		return jsonString(string(raw)), "The program's value is not valid JSON; it is given as a string."
	}
	if d := depth(raw); d > maxValueDepth {
		return jsonString(string(raw)), fmt.Sprintf("The program's value nests %d levels deep; it is given as a string of JSON.", d)
	}
	raw, n := mendSurrogates(raw)
	if n > 0 {
		return raw, "The program's value holds halves of surrogate pairs; each is shown as \uFFFD."
	}
	return raw, ""
}

func jsonString(s string) json.RawMessage {
	quoted, _ := json.Marshal(s) // a string always has a JSON form
	return quoted
}

// listed are packages as a list, never null.
func listed(packages []job.Package) []job.Package {
	return append([]job.Package{}, packages...)
}

// maxNote is how many bytes of a note the text has.
const maxNote = 2 << 10

// text says what the structured result says, for models that are given text
// only.
//
// MCP suggests that the text be the structured result's JSON. It is not, on
// purpose. Some clients give the model the text alone, some the structured
// result alone, and some give it both; a JSON dump would show the last kind the
// same thing twice, and the first kind its output as one escaped line. So the
// text is what a person would read at a terminal: the verdict first, where no
// output of the guest can stand before it, then each stream once, unescaped.
// The execution's id, which only a program needs, is in the structured result.
func (o runOutput) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: exit code %d, %d ms (CPU %d ms, peak memory %s)\n",
		o.Status, o.ExitCode, o.DurationMS, o.CPUMS, size(o.PeakMemoryBytes))
	if e := o.Error; e != nil {
		fmt.Fprintf(&b, "\nerror: %s\n", errorText(e))
	}
	printed := false
	for _, stream := range o.streams() {
		if stream[1] != "" {
			fmt.Fprintf(&b, "\n%s:\n%s", stream[0], ended(stream[1]))
			printed = true
		}
	}
	if o.Result != nil {
		fmt.Fprintf(&b, "\nresult: %s", ended(valueText(o.Result)))
	}
	for i, display := range o.Displays {
		if !display.isResult {
			fmt.Fprintf(&b, "\ndisplay: %s", ended(display.plain(i+1)))
		}
	}
	if o.Status == job.Completed && !printed && o.Result == nil && len(o.Displays) == 0 {
		b.WriteString("\nThe program printed nothing and has no value.\n")
	}
	if len(o.Packages) > 0 {
		fmt.Fprintf(&b, "\npackages: %s\n", packagesText(o.Packages))
	}
	for _, f := range o.Files {
		fmt.Fprintf(&b, "\nfile %s: %s (%s)\n", f.Change, job.ShowName(f.Path), size(f.SizeBytes))
	}
	if o.SessionID != "" {
		fmt.Fprintf(&b, "\nsession: %s%s\n", o.SessionID, map[job.State]string{"kept": ", its state was kept", "lost": ", its state was lost"}[o.State])
	}
	for _, note := range o.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", job.ShowLine(note, maxNote))
	}
	return b.String()
}

// outName is what the first of a run's streams is called.
func outName(isCombined bool) string {
	if isCombined {
		return "output"
	}
	return "stdout"
}

// streams are what the program wrote, by name and text.
func (o runOutput) streams() [][2]string {
	if o.Output != nil {
		return [][2]string{{"output", *o.Output}}
	}
	return [][2]string{{"stdout", o.Stdout}, {"stderr", o.Stderr}}
}

// errorText is the traceback, which in most languages names the error itself, or what
// stands for it.
func errorText(e *job.GuestError) string {
	title := job.ShowName(strings.ToValidUTF8(e.Name, "\uFFFD")) + ": " + e.Message
	traceback := strings.TrimRight(job.ShowNameIn(e.Traceback, e.Name), "\n")
	switch {
	case e.Traceback == "":
		return title
	case strings.Contains(e.Traceback, e.Message):
		return traceback
	default:
		return title + "\n" + traceback
	}
}

// valueText is a value as JSON, or, for a string of several lines, as they are.
func valueText(value json.RawMessage) string {
	var lines string
	if json.Unmarshal(value, &lines) == nil && strings.Contains(lines, "\n") {
		return "a string:\n" + lines
	}
	return string(value)
}

func packagesText(packages []job.Package) string {
	var parts []string
	for _, p := range packages {
		from := job.ShowName(p.Source)
		if p.Cached {
			from += ", cached"
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", job.ShowName(p.Name), job.ShowName(p.Version), from))
	}
	return strings.Join(parts, ", ")
}

// shorten leaves the middle of a long text out.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return textOf(shortened(job.Captured{Head: []byte(s)}, most)).text
}

func ended(s string) string {
	if strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// StructuredResult is run_code's structured content for a run's result, with all
// forms of what the program displayed, which `rillbox run --json` prints.
func StructuredResult(r job.Result) any {
	return struct {
		runOutput
		Displays []job.Display `json:"displays,omitempty"`
	}{runOutputOf(r), r.Displays}
}
