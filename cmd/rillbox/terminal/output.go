//go:build !windows

package terminal

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"rillbox/supervisor/job"
)

// Output is where a program's own bytes go as they come, and the progress of the
// stages before it runs.
type Output struct {
	*Progress
	// stdout and stderr are the guest's; nil drops what it writes.
	stdout, stderr *os.File
	// unfinished are those of the two whose last line has not ended.
	unfinished map[*os.File]bool
	// screens filter what goes to those of the two that are terminals; others get
	// the guest's bytes unchanged.
	screens map[*os.File]*Screen
	// Failed is why something that the guest wrote could not be written. Stop, if
	// any, is called then: the program need not go on.
	Failed error
	Stop   func()
	quiet  bool
}

// NewOutput makes one that writes to stdout and stderr; with quiet, no progress and no
// notes.
func NewOutput(quiet bool) *Output {
	o := &Output{Progress: NewProgress(quiet), quiet: quiet, stdout: os.Stdout, stderr: os.Stderr,
		unfinished: map[*os.File]bool{}, screens: map[*os.File]*Screen{}}
	for _, f := range []*os.File{o.stdout, o.stderr} {
		if Is(f) {
			o.screens[f] = &Screen{To: f}
		}
	}
	return o
}

// Emit is told what happens while a program runs.
func (o *Output) Emit(e job.Event) {
	to := o.stdout
	switch e.Kind {
	case job.Stage:
		o.Show(e)
		return
	case job.Stderr:
		to = o.stderr
	}
	if to != nil && len(e.Data) > 0 {
		_ = o.write(to, e.Data) // it is kept
	}
}

// write writes what is a guest's.
func (o *Output) write(f *os.File, data []byte) error {
	o.Clear()
	var to io.Writer = f
	if s := o.screens[f]; s != nil {
		to = s
	}
	_, err := to.Write(data)
	o.unfinished[f] = data[len(data)-1] != '\n'
	if err != nil && o.Failed == nil {
		o.Failed = fmt.Errorf("cannot write what the program printed: %w", err)
		if o.Stop != nil {
			o.Stop()
		}
	}
	return err
}

// End must be called after a guest's output: it resets what the guest changed of the
// terminal.
func (o *Output) End() {
	o.Clear()
	for _, s := range o.screens {
		_ = s.End() // the terminal is gone
	}
}

// EndLine makes what is written to f next begin on a line of its own.
func (o *Output) EndLine(f *os.File) {
	for g, unfinished := range o.unfinished {
		if unfinished && (g == f || Is(g) && Is(f)) {
			fmt.Fprintln(g)
			o.unfinished[g] = false
		}
	}
}

// note prints a note on stderr, unless quiet.
func (o *Output) note(text string) {
	if !o.quiet {
		fmt.Fprintln(os.Stderr, Paint(os.Stderr, Yellow, "note:"), job.ShowLine(text, maxNote))
	}
}

// maxNote is how many bytes are shown of a note.
const maxNote = 2 << 10

// Report prints notes and the error of a result on stderr.
func (o *Output) Report(result job.Result) {
	if len(result.Notes) > 0 || result.Error != nil {
		o.EndLine(os.Stderr)
	}
	for _, note := range result.Notes {
		o.note(asFlags.Replace(note))
	}
	e := result.Error
	if e == nil {
		return
	}
	if e.Traceback == "" && result.Status == job.Failed && strings.Contains(result.Errors().String(), e.Message) {
		return // its language has told it
	}
	text := job.ShowNameIn(e.Traceback, e.Name)
	switch title := job.ShowName(e.Name) + ": " + e.Message; {
	case text == "":
		text = title
	case result.State != "" && result.Status != job.Cancelled: // where it was, and why it is no more
		text = strings.TrimRight(text, "\n") + "\n" + title
	}
	text = missing.ReplaceAllString(text, "$1: there is none beside the program (--workspace . has those, too, that are imported by computed names)")
	text = asFlags.Replace(operators.ReplaceAllString(text, "allow it with --permissions=$1")) // a person is their own
	fmt.Fprintln(os.Stderr, Paint(os.Stderr, Red, job.ShowText(strings.TrimRight(text, "\n"))))
}

// operators matches what an error tells an MCP client about granting a permission.
var operators = regexp.MustCompile(`[Tt]he operator can allow it with (--allow-\S+) in (?:DENO|PYODIDE)_PERMISSION_ARGS\.?`)

// missing matches what an error tells an MCP client of a module that it did not send: here
// those beside the program came with it.
var missing = regexp.MustCompile(`(Module not found "[^"]*"): the program has no directory of files; files or session_id gives it one`)

// asFlags replaces the arguments of an MCP call in errors by flags.
var asFlags = strings.NewReplacer(
	"; files or session_id gives it one", "; --workspace DIR gives it one",
	"; name it in packages", "; name it with -p",
	"run it with language typescript", "run it with -l typescript",
)
