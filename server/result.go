package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
)

// runOutput is run_code's structured result.
type runOutput struct {
	Status          string          `json:"status" jsonschema:"How the run ended; anything but completed also sets isError."`
	ExitCode        int             `json:"exit_code" jsonschema:"The program's exit code; 128 + n when signal n ended it."`
	Stdout          string          `json:"stdout" jsonschema:"What the program wrote to standard output."`
	Stderr          string          `json:"stderr" jsonschema:"What the program wrote to standard error."`
	Truncated       *truncated      `json:"truncated,omitempty" jsonschema:"How many bytes were left out of the middle of each stream; absent when none were."`
	Result          json.RawMessage `json:"result,omitempty" jsonschema:"The program's value: Python's last expression, in JavaScript and TypeScript the default export, or in a session the last expression; absent when there is none. A value with no JSON form is its printed form, as a string."`
	Error           *guestError     `json:"error,omitempty" jsonschema:"What went wrong; absent when nothing did."`
	DurationMS      int64           `json:"duration_ms" jsonschema:"Wall-clock time of the program itself."`
	CPUMS           int64           `json:"cpu_ms" jsonschema:"Processor time, the runtime's start included."`
	PeakMemoryBytes int64           `json:"peak_memory_bytes" jsonschema:"The most memory that was in use at once, the runtime's own included."`
	Packages        []packageInfo   `json:"packages" jsonschema:"The packages that the program's imports and the packages argument resolved to."`
	ExecutionID     string          `json:"execution_id" jsonschema:"Names this run."`
	SessionID       string          `json:"session_id,omitempty" jsonschema:"The session that it was a cell of; absent when it was none."`
	State           string          `json:"state,omitempty" jsonschema:"Whether the session's state was kept or lost when the cell was ended from outside; absent when the cell ended by itself."`
	Displays        []displayInfo   `json:"displays,omitempty" jsonschema:"What the program showed (display(), figures, a value's richer forms), in order; absent when nothing."`
	Files           []changedFile   `json:"files,omitempty" jsonschema:"Files that the program made or changed in its current directory; absent when it has none, or changed none."`
	Notes           []string        `json:"notes,omitempty" jsonschema:"What was chosen on the program's behalf."`
}

type changedFile struct {
	Path      string `json:"path" jsonschema:"The file's path in the current directory."`
	SizeBytes int64  `json:"size_bytes" jsonschema:"Its size."`
	MIMEType  string `json:"mime_type,omitempty" jsonschema:"What its name or its content says that it is."`
	Change    string `json:"change" jsonschema:"created or changed."`
	URI       string `json:"uri,omitempty" jsonschema:"The file as an MCP resource, in a session."`
	Text      string `json:"text,omitempty" jsonschema:"Its content, of a run without a session, when it is text."`
	Base64    string `json:"base64,omitempty" jsonschema:"Its content, of a run without a session, when it is no text."`
}

type truncated struct {
	Stdout int64 `json:"stdout,omitempty" jsonschema:"Bytes left out of stdout."`
	Stderr int64 `json:"stderr,omitempty" jsonschema:"Bytes left out of stderr."`
}

type guestError struct {
	Name      string `json:"name" jsonschema:"The error's class, or what ended the run."`
	Message   string `json:"message" jsonschema:"What it says."`
	Traceback string `json:"traceback,omitempty" jsonschema:"Where in the program it happened."`
}

type packageInfo struct {
	Name    string `json:"name" jsonschema:"The package's name."`
	Version string `json:"version" jsonschema:"Its exact version."`
	Source  string `json:"source" jsonschema:"Where it came from: npm, jsr, url, pyodide or index."`
	Cached  bool   `json:"cached" jsonschema:"True when nothing had to be fetched for it."`
}

// installOutput is install_packages' structured result.
type installOutput struct {
	Packages   []packageInfo `json:"packages" jsonschema:"What the request resolved to, dependencies included."`
	DurationMS int64         `json:"duration_ms" jsonschema:"How long it took."`
}

// cancelOutput is cancel_execution's structured result.
type cancelOutput struct {
	ExecutionID string `json:"execution_id" jsonschema:"The execution that is being ended."`
	Cancelled   bool   `json:"cancelled" jsonschema:"True when it was running; its own call then answers with the status cancelled."`
}

// maxValueDepth is how deep a program's value may nest. Clients' JSON parsers
// give up at some depth (pydantic's at 200) and with it on the whole message.
const maxValueDepth = 64

// runOutputOf gives the structured form of a run's result, displays and files
// left out.
func runOutputOf(r supervisor.Result) runOutput {
	stdout, stderr := textOf(r.Stdout), textOf(r.Stderr)
	out := runOutput{
		Status:          string(r.Status),
		ExitCode:        r.ExitCode,
		Stdout:          stdout.text,
		Stderr:          stderr.text,
		DurationMS:      r.Duration.Milliseconds(),
		CPUMS:           r.CPU.Milliseconds(),
		PeakMemoryBytes: r.PeakMemory,
		Packages:        packageInfos(r.Packages),
		ExecutionID:     r.ExecutionID,
		State:           string(r.State),
	}
	for _, note := range r.Notes {
		out.Notes = append(out.Notes, valid(note))
	}
	if stdout.omitted > 0 || stderr.omitted > 0 {
		out.Truncated = &truncated{Stdout: stdout.omitted, Stderr: stderr.omitted}
	}
	for name, n := range map[string]int64{"stdout": stdout.replaced, "stderr": stderr.replaced} {
		if n > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("%d bytes of %s are not UTF-8; each is shown as \uFFFD.", n, name))
		}
	}
	if r.Error != nil {
		out.Error = &guestError{Name: valid(r.Error.Name), Message: valid(r.Error.Message), Traceback: valid(r.Error.Traceback)}
	}
	if len(r.Value) > 0 {
		var note string
		if out.Result, note = value(r.Value); note != "" {
			out.Notes = append(out.Notes, note)
		}
	}
	return out
}

// answer makes a tool's answer of it, with more content than its text.
func (o runOutput) answer(more ...mcp.Content) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		IsError:           o.Status != string(supervisor.Completed),
		StructuredContent: o,
		Content:           append([]mcp.Content{&mcp.TextContent{Text: o.text()}}, more...),
	}
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
	quoted, err := json.Marshal(s)
	if err != nil { // cannot happen: a string always has a JSON form
		return json.RawMessage(`""`)
	}
	return quoted
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func packageInfos(packages []supervisor.Package) []packageInfo {
	infos := make([]packageInfo, 0, len(packages)) // a list, never null
	for _, p := range packages {
		infos = append(infos, packageInfo{valid(p.Name), valid(p.Version), valid(p.Source), p.Cached})
	}
	return infos
}

// maxTextPart is how many bytes of a stream or value the text carries.
const maxTextPart = 64 << 10

// maxNote is how many bytes of a note it carries.
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
// Output that is too long to be read is shown by its two ends only; all that
// was kept of it travels once, in the structured result.
func (o runOutput) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: exit code %d, %d ms (CPU %d ms, peak memory %s), execution %s\n",
		o.Status, o.ExitCode, o.DurationMS, o.CPUMS, size(o.PeakMemoryBytes), o.ExecutionID)
	if e := o.Error; e != nil {
		fmt.Fprintf(&b, "\nerror: %s\n", shorten(e.text()))
	}
	if o.Stdout != "" {
		fmt.Fprintf(&b, "\nstdout:\n%s", ended(shorten(o.Stdout)))
	}
	if o.Stderr != "" {
		fmt.Fprintf(&b, "\nstderr:\n%s", ended(shorten(o.Stderr)))
	}
	if o.Result != nil {
		fmt.Fprintf(&b, "\nresult: %s", ended(shorten(valueText(o.Result))))
	}
	for i, display := range o.Displays {
		fmt.Fprintf(&b, "\ndisplay: %s", ended(shorten(display.plain(i+1))))
	}
	if o.Status == string(supervisor.Completed) && o.Stdout == "" && o.Stderr == "" && o.Result == nil && len(o.Displays) == 0 {
		b.WriteString("\nThe program printed nothing and has no value.\n")
	}
	if len(o.Packages) > 0 {
		fmt.Fprintf(&b, "\npackages: %s\n", packagesText(o.Packages))
	}
	for _, f := range o.Files {
		fmt.Fprintf(&b, "\nfile %s: %s (%s)\n", f.Change, supervisor.ShowName(f.Path), size(f.SizeBytes))
	}
	if o.SessionID != "" {
		fmt.Fprintf(&b, "\nsession: %s%s\n", o.SessionID, map[string]string{"kept": ", its state was kept", "lost": ", its state was lost"}[o.State])
	}
	for _, note := range o.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", supervisor.ShowLine(note, maxNote))
	}
	return b.String()
}

// text is the traceback, which in both languages names the error itself, or
// what stands for it.
func (e *guestError) text() string {
	title := supervisor.ShowName(e.Name) + ": " + e.Message
	traceback := strings.TrimRight(supervisor.ShowNameIn(e.Traceback, e.Name), "\n")
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

func packagesText(packages []packageInfo) string {
	var parts []string
	for _, p := range packages {
		from := supervisor.ShowName(p.Source)
		if p.Cached {
			from += ", cached"
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", supervisor.ShowName(p.Name), supervisor.ShowName(p.Version), from))
	}
	return strings.Join(parts, ", ")
}

// shorten leaves the middle of a long text out.
func shorten(s string) string {
	if len(s) <= maxTextPart {
		return s
	}
	const half = maxTextPart / 2
	return textOf(supervisor.Captured{
		Head:    []byte(s[:half]),
		Tail:    []byte(s[len(s)-half:]),
		Omitted: int64(len(s) - maxTextPart),
	}).text
}

func ended(s string) string {
	if strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// installResult makes a tool's answer of what was fetched.
func installResult(packages []supervisor.Package, took time.Duration) *mcp.CallToolResult {
	out := installOutput{Packages: packageInfos(packages), DurationMS: took.Milliseconds()}
	return &mcp.CallToolResult{
		StructuredContent: out,
		Content:           []mcp.Content{&mcp.TextContent{Text: "installed: " + packagesText(out.Packages)}},
	}
}
