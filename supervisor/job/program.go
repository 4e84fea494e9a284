// Package job is the domain: what a program, a run, its events and its result are,
// what bounds them, what an engine and its languages are. Everything else speaks of
// these; it holds no process and no state.
package job

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Program is what a client asks to run: plain data, which can be written as JSON and
// read back. Who asks, and the streams, are beside it.
type Program struct {
	// ID names the execution; Supervisor.Run makes one when it is empty.
	ID       string   `json:"id,omitempty"`
	Language Language `json:"language"`
	// Name is the file name that tracebacks show ("main.ts"); a base name with
	// its extension, which for JavaScript and TypeScript also says how the
	// program is parsed (.cjs, .jsx, …). Empty means the language's own default.
	Name string `json:"name,omitempty"`
	// Code is the program's text, UTF-8.
	Code string `json:"code"`
	// Files are modules of the program beside its own file, by their paths from there:
	// "lib/x.ts". Those that it imports are part of it.
	Files map[string][]byte `json:"files,omitempty"`
	// Folder is the one that its user has the program's file in, from the current one:
	// "src". It may be empty.
	Folder string `json:"folder,omitempty"`
	// Path is where the program's file is in its workspace, "src/main.ts", so that what it
	// imports and finds by its own place is there; empty if it is not in it.
	Path string `json:"path,omitempty"`
	// Command is a package's command to run in place of Code: the package, with a version
	// or without one, and the command's name if it has several: "eslint@9", "httpie/http".
	Command string `json:"command,omitempty"`
	// URL is where the program was fetched from, if it was: what it imports relative to
	// itself is there.
	URL string `json:"url,omitempty"`
	// Check has its types checked before it runs, where its language has such.
	Check bool `json:"check,omitempty"`
	// Manifest is what the program's project says of its packages.
	Manifest Manifest `json:"manifest,omitzero"`
	// Args reach the program as Deno.args, process.argv or sys.argv[1:].
	Args []string `json:"args,omitempty"`
	// Packages are wanted before the program starts: npm:, jsr: and https:
	// specifiers or bare npm names for JavaScript and TypeScript, PEP 508
	// requirements or wheel URLs for Python.
	Packages []string `json:"packages,omitempty"`
	// Permissions are Deno permission flags that narrow what the operator
	// granted; nil means all that was granted, empty and not nil means none.
	Permissions []string `json:"permissions"`
	// Most are the most permissions that its client may have, as Deno flags; nil means all
	// that the operator granted. Permissions narrow them.
	Most []string `json:"-"`
	// Policy narrows which packages its client may use.
	Policy PackagePolicy `json:"-"`
	// Workspace is a directory, by its real path, that becomes the program's
	// current one, which it may read and, unless ReadOnly, write; empty means
	// that it has none.
	Workspace string `json:"workspace,omitempty"`
	ReadOnly  bool   `json:"read_only,omitempty"`
	// Echo asks a session's cell to show its value also where it has no form but
	// its text, as the language's own REPL prints it: as the last of the displays.
	Echo bool `json:"echo,omitempty"`
	// Combined makes one stream of stdout and stderr, in the order in which they were
	// written: Result.Stdout. A session's cells can't have it.
	Combined bool `json:"combined,omitempty"`
	// FetchOnly has what it needs fetched, and nothing of it run: the result has Lock.
	FetchOnly bool `json:"fetch_only,omitempty"`
	// Timeout bounds the time that the guest's own code runs, package
	// installation apart. Zero means Limits.Timeout.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// PackagePolicy is what a client may use of the packages that the operator allows. Its
// parts mean what the settings of these names do, and the zero value narrows nothing.
type PackagePolicy struct {
	AllowPackages, DenyPackages []string
	MinReleaseAge               time.Duration
	CacheOnly                   bool // as fetch_packages = false
}

// Streams are what a program is connected to while it runs.
type Streams struct {
	// Stdin is the guest's standard input; nil means none (immediate EOF).
	Stdin io.Reader
	// Emit hears of what happens. It is called from one goroutine at a time, and not
	// after the run has ended.
	Emit func(Event)
	// Beside runs another program as a part of this one, judged as any, in its place: one
	// at a time. It is set by who admits programs, and nil for a program that runs beside
	// another.
	Beside func(ctx context.Context, p Program, s Streams) (Result, error)
}

// Status is how a run ended.
type Status string

// The ways a run ends.
const (
	Completed   Status = "completed"     // the program ended with exit code 0
	Failed      Status = "failed"        // an uncaught error or another exit code
	TimedOut    Status = "timed_out"     // its time was up
	OutOfMemory Status = "out_of_memory" // it used more memory than it may
	Cancelled   Status = "cancelled"     // the client asked for it, or went away
	Crashed     Status = "crashed"       // a signal or a broken runtime ended it
)

// ErrorName names the error of a run that was ended from outside.
func (s Status) ErrorName() string {
	return map[Status]string{TimedOut: "TimeoutError", OutOfMemory: "OutOfMemory", Cancelled: "Cancelled", Crashed: "Crashed"}[s]
}

// Exit codes of what was interrupted or killed: 128 and the number of SIGINT or SIGKILL.
const (
	InterruptedCode = 130
	KilledCode      = 137
)

// CancelledBefore is the result of a program that was cancelled before it began; state
// is that of its session, if it has one.
func CancelledBefore(state State) Result {
	return Result{Status: Cancelled, ExitCode: InterruptedCode, State: state, Error: &GuestError{
		Name: Cancelled.ErrorName(), Message: "the execution was cancelled before it started",
	}}
}

// Result is what became of a run. Everything but Value, Displays, Error and the
// bytes of the two streams is measured or decided by the supervisor; those are
// the guest's claims.
type Result struct {
	ExecutionID string
	// Language is the program's; of a cell that named none, its session's.
	Language Language
	Status   Status
	// ExitCode is the child's exit status; 128+n when signal n ended it.
	ExitCode int
	// Stdout and Stderr are what was kept of the guest's streams. Combined says that
	// they are one, Stdout.
	Stdout, Stderr Captured
	Combined       bool
	// Value is the program's value as JSON (Python's last expression, the
	// default export of JavaScript and TypeScript); nil when there is none.
	// A value with no JSON form is its printed form, as a JSON string.
	Value json.RawMessage
	// Displays are what the program showed (display(), figures) and its value's
	// richer forms, in order.
	Displays []Display
	// State says, of a session's cell that did not end by itself, whether the
	// session's state is still there; empty otherwise.
	State State
	// Lock is the content of a lock file, where the program asked for that.
	Lock []byte
	// Error is set when the program failed by an error, and when it was ended
	// from outside, where it says why and what to do.
	Error *GuestError
	// Duration is the wall-clock time of the guest's own code.
	Duration time.Duration
	// Waited is how long it waited for its turn, Installing how long its packages
	// took.
	Waited, Installing time.Duration
	// Fetching is how much of that went into downloads, by what the run said it was doing.
	Fetching time.Duration
	// CPU is the processor time of the whole child, its start included.
	CPU time.Duration
	// PeakMemory is the largest resident size that the child had, in bytes.
	PeakMemory int64
	// Packages are those that the program's imports and requests resolved to.
	Packages []Package
	// Notes tell what was chosen on the program's behalf, or left out, one
	// sentence each.
	Notes []string
}

// Errors is the stream to which the guest's runtime writes its own errors.
func (r *Result) Errors() *Captured {
	if r.Combined {
		return &r.Stdout
	}
	return &r.Stderr
}

// GuestError is an error of the guest's program.
type GuestError struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	// Traceback shows the guest's frames only, in the language's own form;
	// empty when there is none (a timeout, say).
	Traceback string `json:"traceback,omitempty"`
}

// Package is one resolved package.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Source is where it came from: "npm", "jsr", "url", "pyodide", "index",
	// or "built": here, of the source that the index has.
	Source string `json:"source"`
	// Cached says that nothing had to be fetched for it.
	Cached bool `json:"cached"`
}

// EventKind says what an Event tells.
type EventKind int

// The kinds of events.
const (
	Stage  EventKind = iota // Text says what is being done
	Stdout                  // Data was written to the guest's stdout
	Stderr                  // Data was written to the guest's stderr
)

// FetchingStage begins the text of a stage that downloads something.
const FetchingStage = "fetching "

// Event is news of a run while it lasts.
type Event struct {
	Kind EventKind
	// Text is a stage in words for people: "fetching numpy", "installing". One that
	// downloads something begins with FetchingStage.
	Text string
	// Done and Total count bytes of the stage; Total is 0 when unknown.
	Done, Total int64
	// Data holds the guest's bytes; the receiver must not keep or change it.
	Data []byte
}

// Engine runs one program in one fresh child process.
// An error means that we failed; a guest's failure is a Result.
type Engine interface {
	Run(ctx context.Context, p Program, s Streams) (Result, error)
}

// Toolchain is an engine with what belongs to it beside running: its own
// set-up, its packages, and what can be said of it.
type Toolchain interface {
	Engine
	// Prepare fetches and makes all that a later offline run needs. Of an engine whose
	// languages are fetched one by one, these are those that are named.
	Prepare(ctx context.Context, emit func(Event), languages ...Language) error
	// Install fetches a program's Packages into the cache, within its Most and its Policy,
	// and says what they resolved to.
	Install(ctx context.Context, p Program, emit func(Event)) ([]Package, error)
	// Describe says what the engine is, without fetching or waiting.
	Describe() Description
	// Close ends what the engine keeps running (warm children, listeners).
	Close()
}

// Description says what an engine is and whether it could run at once.
type Description struct {
	Languages []LanguageInfo
	// Versions maps a component's name ("deno", "v8", "typescript",
	// "python", "pyodide") to its exact version.
	Versions map[string]string
	// Ready says that all of the engine is on this machine.
	Ready bool
	// Missing are the languages of which their first program fetches something.
	Missing []Language
	// Warm is how many children wait for a program.
	Warm int
	// Permissions are the Deno flags that the operator granted.
	Permissions []string
	// Wall is the level of the wall around programs, as launcher.Level names it;
	// "none" where they have every permission or the operator gave the wall up.
	Wall string
}

// ProgramError says what is wrong with a program that can't be run as it is.
type ProgramError struct{ Text string }

func (e *ProgramError) Error() string { return e.Text }

// Refuse makes a ProgramError.
func Refuse(format string, args ...any) error { return &ProgramError{fmt.Sprintf(format, args...)} }
