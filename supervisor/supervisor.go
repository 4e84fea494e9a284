// Package supervisor takes programs to their engines: admission in shares, sessions
// and their owners, cancelling, limits.
//
// What flows through it: a job.Program comes to Supervisor.Run, waits for its turn,
// goes to the engine of its language, which starts one fresh child for it; events
// come up while it lasts, and one result at the end.
//
// It promises that a run always ends, with its whole process group: at its
// deadline, when it is cancelled, when its client or we go away (also when we
// are killed); that every limit ends in a Result and not in a dead server; and
// that what a Result says of the run was measured here, not told by the guest.
package supervisor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// Supervisor takes programs to their engines. It is safe for concurrent use.
type Supervisor struct {
	toolchains []job.Toolchain
	languages  []job.LanguageInfo
	byLanguage map[job.Language]job.Toolchain
	limits     job.Limits
	admission  *admission
	log        *slog.Logger

	shared *Shared
	terms  func(client string) Terms
	making sync.Mutex // held while a session is looked for, and made

	mu      sync.Mutex
	running map[string]execution // by execution ID
	begun   int
	open    map[sessionKey]*openSession
	expired func(client string) // is told whose session has ended for its idle time
	closed  bool
	work    sync.WaitGroup // runs, installations and ends of sessions; added to under mu
}

type execution struct {
	client   string
	language job.Language
	session  *openSession // nil for a program on its own
	cancel   context.CancelCauseFunc
	number   int // in the order of their begin
}

// New makes a supervisor of the toolchains; each serves the languages that it
// describes. It removes what servers that were killed left behind.
func New(limits job.Limits, log *slog.Logger, toolchains ...job.Toolchain) *Supervisor {
	sandbox.RemoveLeftovers()
	s := &Supervisor{
		toolchains: toolchains,
		byLanguage: map[job.Language]job.Toolchain{},
		limits:     limits,
		log:        log,
		running:    map[string]execution{},
		open:       map[sessionKey]*openSession{},
	}
	s.admission = newAdmission(limits)
	s.admission.most = s.mostOf
	for _, t := range toolchains {
		for _, language := range t.Describe().Languages {
			s.byLanguage[language.Name] = t
			s.languages = append(s.languages, language)
		}
	}
	return s
}

// Limits are those in force.
func (s *Supervisor) Limits() job.Limits { return s.limits }

// Toolchains are those that the supervisor was made of.
func (s *Supervisor) Toolchains() []job.Toolchain { return s.toolchains }

// Toolchain is the one that serves a language.
func (s *Supervisor) Toolchain(language job.Language) (job.Toolchain, bool) {
	t, ok := s.byLanguage[language]
	return t, ok
}

// ErrCancelled is the cause of a run that was cancelled by Cancel or Close.
var ErrCancelled = errors.New("the execution was cancelled")

// NewID makes an execution's ID: unguessable, so that no client can name
// another's.
func NewID() string { return strings.ToLower(rand.Text()) }

// Call says who asks for a run, where, and what is connected to it.
type Call struct {
	// Client is the identity of who asks, as its door gave it, for fairness and for
	// cancelling: only the same client can cancel an execution.
	Client string
	// Session is the handle of the client's session whose cell the program is; empty
	// for a run on its own.
	Session string
	job.Streams
	// Known, if any, is called when Cancel knows the program by its ID, and before all else.
	Known func()
	// Begin, if any, is called when it is the program's turn, and its error refuses the
	// program; End when it has ended. Meanwhile no other cell of its session runs.
	Begin func() error
	End   func()

	// onlyOpen wants the session's process to be there, and no cell run.
	onlyOpen bool
}

// Run runs a program, and returns when no process of the run is left, save for the
// memory that the kernel may still free.
// An error means that the program could not be run: it is not well-formed
// (ProgramError), there is no room (BusyError), or we failed.
func (s *Supervisor) Run(ctx context.Context, p job.Program, c Call) (job.Result, error) {
	if c.Session != "" {
		return s.runCell(ctx, p, c)
	}
	return s.run(ctx, p, c, nil)
}

// run runs a program, in a session or, without one, on its own.
func (s *Supervisor) run(ctx context.Context, p job.Program, c Call, in *openSession) (result job.Result, err error) {
	engine, p, err := s.admit(p, s.TermsOf(c.Client))
	if err != nil {
		return job.Result{}, err
	}
	if in != nil {
		if err := checkCell(p); err != nil {
			return job.Result{}, err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended, err := s.begin(p.ID, execution{client: c.Client, language: p.Language, session: in, cancel: cancel})
	if err != nil {
		return job.Result{}, err
	}
	defer ended()
	if c.Known != nil {
		c.Known()
	}

	start := time.Now()
	leave, err := s.enter(ctx, c.Client, in)
	if err == nil && ctx.Err() != nil { // it was cancelled at the moment when its turn came
		leave()
		err = context.Cause(ctx)
	}
	if err != nil {
		if ctx.Err() == nil { // there is no room, or the session has ended
			return job.Result{}, err
		}
		result := cancelledBefore(ctx, in)
		result.ExecutionID, result.Language, result.Waited = p.ID, p.Language, time.Since(start)
		return result, nil
	}
	defer leave()
	waited := time.Since(start)
	if c.Begin != nil {
		if err := c.Begin(); err != nil {
			return job.Result{}, err
		}
	}
	if c.End != nil {
		defer c.End()
	}
	// A panic while one program runs is that run's error, never the server's end.
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("panic during a run", "execution", p.ID, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("run %s: internal error: %v", p.ID, r)
		}
	}()
	var fetching fetchClock
	c.Emit = serialised(fetching.watch(c.Emit))
	c.Beside = s.beside(c.Client)
	if in != nil {
		result, err = in.run(ctx, engine.(job.SessionOpener), p, c)
	} else {
		result, err = engine.Run(ctx, p, c.Streams)
	}
	result.ExecutionID, result.Language, result.Waited = p.ID, p.Language, waited
	result.Fetching = min(fetching.end(), result.Installing)
	s.log.Debug("run", "execution", p.ID, "client", c.Client, "language", p.Language, "status", result.Status,
		"exit_code", result.ExitCode, "duration", result.Duration, "waited_and_ran", time.Since(start), "error", err)
	return result, err
}

// begin notes what Cancel and Close end; ended must be called when it has.
func (s *Supervisor) begin(id string, e execution) (ended func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrCancelled
	}
	if _, taken := s.running[id]; taken {
		return nil, job.Refuse("execution %q is already running; leave the ID empty to get a new one", id)
	}
	s.begun++
	e.number = s.begun
	s.running[id] = e
	s.work.Add(1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, id)
		s.work.Done()
	}, nil
}

// cancelledBefore is the result of a program whose context ended before it began.
func cancelledBefore(ctx context.Context, in *openSession) job.Result {
	switch {
	case in == nil:
		return job.CancelledBefore("")
	case in.ctx.Err() != nil, errors.Is(context.Cause(ctx), errReset):
		return job.CancelledBefore(job.StateLost)
	}
	return job.CancelledBefore(job.StateKept)
}

// Install fetches packages into the cache when there is a place, as for a
// run, and says what they resolved to.
func (s *Supervisor) Install(ctx context.Context, client string, language job.Language, packages []string, emit func(job.Event)) ([]job.Package, error) {
	t, ok := s.byLanguage[language]
	if !ok {
		return nil, s.noLanguage(language)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended, err := s.begin(NewID(), execution{client: client, cancel: cancel})
	if err != nil {
		return nil, err
	}
	defer ended()
	leave, err := s.admission.enter(ctx, client)
	if err != nil {
		return nil, err
	}
	defer leave()
	terms := s.TermsOf(client)
	p := job.Program{Language: language, Packages: packages, Most: terms.Permissions[language], Policy: terms.Policy}
	return t.Install(ctx, p, serialised(emit))
}

func (s *Supervisor) noLanguage(language job.Language) error {
	return job.Refuse("language %q is not one of %s", language, s.languageList())
}

func (s *Supervisor) languageList() string {
	return job.Listed(job.LanguageNames(s.Languages()), "or")
}

// enter waits for the session's turn, so that waiting cells take no other's
// place, and for a place.
func (s *Supervisor) enter(ctx context.Context, client string, in *openSession) (leave func(), err error) {
	giveBack := func() {}
	if in != nil {
		if giveBack, err = in.takeTurn(ctx); err != nil {
			return nil, err
		}
	}
	release, err := s.admission.enter(ctx, client)
	if err != nil {
		giveBack()
		return nil, err
	}
	return func() {
		release()
		giveBack()
	}, nil
}

// serialised lets one goroutine at a time call emit.
func serialised(emit func(job.Event)) func(job.Event) {
	var mu sync.Mutex
	return func(e job.Event) {
		mu.Lock()
		defer mu.Unlock()
		emit(e)
	}
}

// fetchClock measures how long a run downloads something, by its stages. A stage lasts
// until the next event, or the run's end.
type fetchClock struct {
	since time.Time // when the stage began; zero where it is no download
	took  time.Duration
}

func (f *fetchClock) watch(emit func(job.Event)) func(job.Event) {
	return func(e job.Event) {
		f.end()
		if e.Kind == job.Stage && strings.HasPrefix(e.Text, job.FetchingStage) {
			f.since = time.Now()
		}
		emit(e)
	}
}

// end ends the stage, and gives the time of all.
func (f *fetchClock) end() time.Duration {
	if !f.since.IsZero() {
		f.took += time.Since(f.since)
		f.since = time.Time{}
	}
	return f.took
}

// Cancel ends an execution of the client's. It says whether there was one.
func (s *Supervisor) Cancel(client, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.running[id]
	if !ok || e.client != client {
		return false
	}
	e.cancel(ErrCancelled)
	return true
}

// lastWait is how long Close waits for what it has cancelled. What reads a file that
// never answers can't be ended.
const lastWait = 5 * time.Second

// Close cancels every execution, ends every session and what the toolchains keep
// running, and returns when nothing goes on any more.
func (s *Supervisor) Close() {
	s.mu.Lock()
	s.closed = true
	for _, e := range s.running {
		e.cancel(ErrCancelled)
	}
	for _, o := range s.open {
		s.work.Go(func() { s.endSession(o, ErrCancelled) })
	}
	s.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		s.work.Wait()
	}()
	select {
	case <-idle:
	case <-time.After(lastWait):
		s.log.Error("an execution or a session does not end; leaving it")
	}
	for _, t := range s.toolchains {
		t.Close()
	}
}

// checkCell refuses what only a run on its own can be asked for.
func checkCell(p job.Program) error {
	switch {
	case p.Check:
		return job.Refuse("the types of a session's cells are not checked: run the program without a session")
	case p.Command != "":
		return job.Refuse("a session runs cells, and no package's command: run that without a session")
	case p.Combined:
		return job.Refuse("the streams of a session's process are apart from its start, so that their order is not known: combined output is for runs without a session")
	}
	return nil
}

// admit checks what can be checked before a child exists, and fills defaults in.
func (s *Supervisor) admit(p job.Program, t Terms) (job.Engine, job.Program, error) {
	engine, ok := s.byLanguage[p.Language]
	if !ok {
		return nil, p, s.noLanguage(p.Language)
	}
	if int64(len(p.Code)) > s.limits.Code {
		return nil, p, job.Refuse("the program has %d bytes, and may have %d: put data into stdin or a package", len(p.Code), s.limits.Code)
	}
	if !utf8.ValidString(p.Code) {
		return nil, p, job.Refuse("the program is not valid UTF-8")
	}
	if p.Check {
		if i := slices.IndexFunc(s.languages, func(l job.LanguageInfo) bool { return l.Name == p.Language }); !s.languages[i].Typed {
			return nil, p, job.Refuse("programs in %s have no types that could be checked before they run", s.languages[i].Title)
		}
	}
	if p.Command != "" {
		switch {
		case p.Check:
			return nil, p, job.Refuse("the types of %q are not checked: it is a package's command", p.Command)
		case p.Code != "" || len(p.Files) > 0:
			return nil, p, job.Refuse("the command of %q is a program of its own, and takes no code", p.Command)
		}
	}
	for _, file := range append(slices.Collect(maps.Keys(p.Files)), cmp.Or(p.Path, ".")) {
		if !filepath.IsLocal(file) {
			return nil, p, job.Refuse("%q leads out of the program's directory", file)
		}
	}
	for _, arg := range p.Args {
		if strings.ContainsRune(arg, 0) {
			return nil, p, job.Refuse("the argument %q has a NUL byte in it, which no program can be given", arg)
		}
	}
	p.Most, p.Policy = t.Permissions[p.Language], t.Policy
	switch {
	case p.Timeout == 0:
		p.Timeout = min(s.limits.Timeout, t.Timeout)
	case p.Timeout < 0 || p.Timeout > t.Timeout:
		return nil, p, job.Refuse("a timeout of %v is not between 0 and %v, the most that this server allows you", p.Timeout, t.Timeout)
	}
	if p.ID == "" {
		p.ID = NewID()
	}
	return engine, p, nil
}

// Load is what goes on now.
type Load struct {
	Running, Waiting int // programs
	Sessions         int
	Children         int   // processes of programs and sessions, and those that wait for one
	Memory           int64 // of these, in bytes
}

// Load is what goes on now.
func (s *Supervisor) Load() (l Load) {
	l.Running, l.Waiting = s.admission.load()
	l.Children, l.Memory = sandbox.Living()
	s.mu.Lock()
	defer s.mu.Unlock()
	l.Sessions = len(s.open)
	return l
}

// Languages are the rows of all that the supervisor has an engine for.
func (s *Supervisor) Languages() []job.LanguageInfo { return s.languages }
