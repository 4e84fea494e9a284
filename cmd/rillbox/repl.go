//go:build !windows

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"rillbox/cmd/rillbox/terminal"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

func newReplCommand(a *app) *cobra.Command {
	f := &programFlags{}
	cmd := &cobra.Command{
		Use:   "repl [-l LANG]",
		Short: "Run a language's statements as you type them",
		Long: `Run statements one after the other in a session that keeps its variables,
functions, imports and files: Python, unless -l names another language.

At a terminal, lines are edited and kept in a history (of each language one, in
$XDG_STATE_HOME/rillbox or ~/.local/state/rillbox), Tab completes the session's
names, and what is unfinished goes on in the next line. Ctrl-C interrupts what
runs and keeps the state, Ctrl-D ends; .help lists the commands. Packages are
found by imports, as in ` + "`rillbox run`" + `. Pictures are shown where the terminal can
(kitty, iTerm2, sixel), else kept in the current directory as display-1.png and
so on. There is no time limit, unless --timeout or a setting gives one.

The session has a directory of its own for files, which ends with it, or, with
--workspace DIR, that one; with DIR:ro it can be read only. Beside it the session
has no files, no network and no environment, unless --permissions,
DENO_PERMISSION_ARGS or PYODIDE_PERMISSION_ARGS grant them.

Piped input is run statement by statement, also after one that fails; values are
printed, without prompts and history. The exit status is that of the last one
that failed, and of exit() and its like; others are those of ` + "`rillbox run`" + `.`,
		Example: `  rillbox repl
  rillbox repl -l ts --workspace ./data
  rillbox repl -p polars -p 'pandas<3'
  echo 'import math; math.tau' | rillbox repl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.repl(cmd, f)
		},
	}
	set := cmd.Flags()
	f.bind(set, defaultLanguage)
	a.config.bindFlags(set, ofRun, "timeout", "memory", "workspace")
	timeout := set.Lookup("timeout")
	timeout.Usage, timeout.DefValue = "time for each statement; without it, there is no limit", ""
	return cmd
}

// unlimited is longer than anybody waits.
const unlimited = 365 * 24 * time.Hour

// repl is one session and the person or the pipe that it serves.
type repl struct {
	a        *app
	engines  *engines
	language job.LanguageInfo
	id       string // of the session
	typed    bool   // cells are typed at a terminal
	out      *terminal.Output
	pictures *terminal.Gallery
	ran      []string // the cells that ran without an error
	status   error    // of the last cell that failed
}

func (a *app) repl(cmd *cobra.Command, f *programFlags) error {
	language, err := languageNamed(f.language)
	if err != nil {
		return usageError{err}
	}
	if language.Prompt == "" {
		return usageError{fmt.Errorf("%s keeps nothing between two programs, so it has no REPL: `rillbox run` runs a program, with --watch again at each change", language.Title)}
	}
	if cmd.Flags().Changed("permissions") {
		a.config.permit(language.Name, f.permissions)
	}
	limits := &a.config.Limits
	if a.config.from("timeout") == "default" {
		limits.Timeout, limits.MaxTimeout = unlimited, unlimited
	}
	limits.SessionIdle, limits.MaxSessionIdle = unlimited, unlimited // a person may think
	a.config.Engine.Warm = 0                                         // no other program follows

	r := &repl{a: a, language: language, typed: terminal.Is(os.Stdin) && terminal.Is(os.Stdout) && os.Getenv("TERM") != "dumb"}
	ending := []os.Signal{syscall.SIGTERM, syscall.SIGHUP}
	if r.typed {
		state, err := term.GetState(int(os.Stdin.Fd()))
		if err != nil {
			return fmt.Errorf("cannot look at the terminal: %w", err)
		}
		defer func() { _ = term.Restore(int(os.Stdin.Fd()), state) }() // as it was, whatever the editor was doing
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)           // ends a cell, never us
	} else {
		ending = append(ending, os.Interrupt)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), ending...)
	defer stop()
	engines, err := a.open()
	if err != nil {
		return err
	}
	defer engines.Close()
	r.engines, r.out = engines, terminal.NewOutput(a.quiet)
	r.pictures = &terminal.Gallery{Dir: ".", Name: "display", Session: true}
	defer r.out.End()
	asked, err := f.asked()
	if err == nil && len(asked.constraints)+len(asked.lock.Python) > 0 {
		err = errors.New("digests, and constraints of packages that are not named, hold for `rillbox run` only: give the REPL a file without them")
	}
	if err != nil {
		return usageError{err}
	}
	tell(asked.notes, a.quiet)
	if err := r.open(ctx, asked.packages); err != nil {
		return err
	}
	if r.typed {
		r.greet()
	}
	cells, err := r.source(ctx)
	if err != nil {
		return err
	}
	return r.loop(ctx, cells)
}

// open opens the session.
func (r *repl) open(ctx context.Context, packages []string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	info, err := r.engines.CreateSession(ctx, supervisor.SessionRequest{Language: r.language.Name, Packages: packages}, r.out.Emit)
	r.out.Clear()
	if err != nil && ctx.Err() != nil {
		return exitStatus(statusCancelled)
	}
	r.id = info.ID
	return err
}

// unfinished says whether text waits for another line, as the session sees it.
func (r *repl) unfinished(ctx context.Context, text string) bool {
	waits, err := r.engines.Unfinished(ctx, "", r.id, text)
	return err == nil && waits // the cell says what is wrong with the session
}

func (r *repl) source(ctx context.Context) (source, error) {
	unfinished := func(text string) bool { return r.unfinished(ctx, text) }
	if !r.typed {
		return &piped{lines: bufio.NewReader(os.Stdin), limit: int(r.a.config.Limits.Code), unfinished: unfinished,
			continues: r.language.Continues, typed: terminal.Is(os.Stdin)}, nil
	}
	names := func(text string) []string {
		ctx, cancel := context.WithTimeout(ctx, completeTime)
		defer cancel()
		names, _ := r.engines.Complete(ctx, "", r.id, text) // the next cell says what is wrong with the session
		return names
	}
	return terminal.NewEditor(string(r.language.Name), r.language.Prompt, r.language.More, names,
		func(text string) bool { return !isCommand(text) && unfinished(text) })
}

// completeTime is how long a person waits for a list of names.
const completeTime = 2 * time.Second

// errEnded says that the session's code asked for the end.
var errEnded = errors.New("ended")

// loop runs cell after cell. Its error holds the exit status.
func (r *repl) loop(ctx context.Context, cells source) error {
	for {
		cell, err := r.read(ctx, cells)
		switch {
		case errors.Is(err, terminal.ErrAborted):
			continue
		case errors.Is(err, io.EOF):
			if r.typed {
				fmt.Println()
				return nil
			}
			return r.status
		case err != nil:
			return err
		}
		switch {
		case strings.TrimSpace(cell) == "":
		case r.typed && (isCommand(cell) || r.isExit(cell)):
			err = r.command(ctx, strings.TrimSpace(cell))
		default:
			err = r.run(ctx, cell, "")
		}
		switch {
		case errors.Is(err, errEnded):
			return r.status
		case ctx.Err() != nil:
			return exitStatus(statusCancelled)
		case err != nil && !r.typed:
			return err
		case err != nil:
			terminal.PrintError(err)
		}
	}
}

// read waits for the next cell, or until we are told to end.
func (r *repl) read(ctx context.Context, cells source) (cell string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		cell, err = cells.Next()
	}()
	select {
	case <-done:
		return cell, err
	case <-ctx.Done():
		return "", exitStatus(statusCancelled)
	}
}

// run runs one cell. Its error is errEnded when the code asked for the end, and
// else ours.
func (r *repl) run(ctx context.Context, code, name string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	p := job.Program{Language: r.language.Name, Code: code, Name: name, Echo: true}
	call := supervisor.Call{Session: r.id, Streams: job.Streams{Emit: r.out.Emit}}
	if r.typed && r.language.ReadsLines {
		call.Stdin = terminal.Keyboard{Context: ctx}
	}
	result, err := r.engines.Run(ctx, p, call)
	interrupted := ctx.Err() != nil
	stop()
	r.out.End()
	if r.out.Failed != nil {
		return r.out.Failed
	}
	if err != nil {
		return err
	}
	err = statusOf(result)
	if result.Error == nil && (err != nil || result.State == job.StateLost) {
		result.Notes, r.status = nil, err // there is no next cell to tell of
		r.tell(result, false)
		return errEnded
	}
	r.tell(result, interrupted)
	if err != nil {
		r.status = err
	} else {
		r.ran = append(r.ran, code)
	}
	return nil
}

// tell shows what came of a cell beside its own output.
func (r *repl) tell(result job.Result, interrupted bool) {
	if interrupted && r.typed {
		fmt.Println() // after the terminal's ^C
		if e := result.Error; e != nil && result.State == job.StateKept && e.Traceback == "" {
			e.Traceback = "Interrupted"
		}
	}
	r.out.Display(r.pictures, result.Displays)
	r.out.Report(result)
	r.out.EndLine(os.Stdout)
}
