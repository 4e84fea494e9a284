//go:build !windows

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"rillbox/workspace"
)

// SessionRequest says what session a client wants.
type SessionRequest struct {
	Client   string
	Language Language
	// Permissions narrow what the operator granted, as Program.Permissions do.
	Permissions []string
	// Packages are installed before the first cell.
	Packages []string
	// Idle is how long the session lasts without a call; zero means
	// Limits.SessionIdle.
	Idle time.Duration
}

// SessionInfo is what its client can know of a session.
type SessionInfo struct {
	ID       string
	Language Language
	// Default says that it is the one that DefaultSession gives.
	Default       bool
	Created, Used time.Time
	// Idle is how long it lasts after Used.
	Idle time.Duration
	// Running says that a cell is running now.
	Running bool
	// Memory is what its child uses, in bytes; 0 when it has none.
	Memory   int64
	Files    workspace.Usage
	Packages []Package
}

// sessions are those of all clients, by handle.
type sessions struct {
	mu     sync.Mutex
	open   map[string]*openSession
	shared *Shared
	// expired, if any, is told whose session has ended for its idle time.
	expired func(client string)
	closed  bool
	ending  sync.WaitGroup // sessions that are being ended
	// defaults is held while a default session is looked for, and made.
	defaults sync.Mutex
}

// Shared is a directory of the operator's own that is the workspace of every
// session and program.
type Shared struct {
	Path     string // its real path
	ReadOnly bool
}

// openSession is one session of one client's, from its creation to its end.
type openSession struct {
	id      string
	request SessionRequest
	opener  SessionOpener
	// options are those that its child is opened with; files is the same
	// workspace, and own says that it goes with the session.
	options   SessionOptions
	files     *workspace.Dir
	own       bool
	isDefault bool
	created   time.Time
	ctx       context.Context // ends with the session
	end       context.CancelCauseFunc

	turn *admission // of one place: whoever has it may use session
	// session is the child; nil when there is none yet, or none any more.
	session Session
	lost    string // why the last child is gone, until the client was told

	mu       sync.Mutex // of what follows
	expiry   *time.Timer
	used     time.Time
	users    int // calls that go on or wait
	running  bool
	memory   func() int64
	packages []Package
}

// maxWaitingCells is how many calls of one session may wait for one another.
const maxWaitingCells = 16

// DefaultHandle stands for a client's default session.
const DefaultHandle = "default"

var (
	errExpired   = errors.New("nobody used the session for too long")
	errDestroyed = errors.New("the session was destroyed")
	errGone      = errors.New("the session's client has gone")
	errReset     = errors.New("the session was reset")
)

// Share makes a directory of the operator's own the workspace of everything
// that runs from now on.
func (s *Supervisor) Share(shared Shared) { s.sessions.shared = &shared }

// Shared is the directory of the operator's own, nil when there is none.
func (s *Supervisor) Shared() *Shared { return s.sessions.shared }

// noSession is the error of a handle that is not the client's. It is the same
// whether the session is another's, has ended or never was.
func noSession(id string) error {
	return &ProgramError{fmt.Sprintf("there is no session %.80q of yours: it has ended (after its idle time, or destroyed), or it never was; create_session makes a new one", id)}
}

// CreateSession opens a session and installs its packages.
func (s *Supervisor) CreateSession(ctx context.Context, r SessionRequest, emit func(Event)) (SessionInfo, error) {
	o, err := s.newSession(r, false)
	if err != nil {
		return SessionInfo{}, err
	}
	result, err := s.runIn(ctx, o, Program{Client: r.Client, Language: r.Language, Packages: r.Packages, onlyOpen: len(r.Packages) == 0}, emit)
	if err == nil && result.Error != nil {
		err = &ProgramError{fmt.Sprintf("%s: %s", result.Error.Name, result.Error.Message)}
	}
	if err != nil {
		s.endSession(o, err)
		return SessionInfo{}, err
	}
	return o.info(), nil
}

// DefaultSession gives the handle of the one session that a client has of a
// language without having asked for it; it is made when it is first wanted.
func (s *Supervisor) DefaultSession(client string, language Language) (string, error) {
	s.sessions.defaults.Lock()
	defer s.sessions.defaults.Unlock()
	for _, o := range s.sessionsOf(client) {
		if o.isDefault && o.request.Language == language {
			return o.id, nil
		}
	}
	o, err := s.newSession(SessionRequest{Client: client, Language: language}, true)
	if err != nil {
		return "", err
	}
	return o.id, nil
}

// newSession makes a session without a child.
func (s *Supervisor) newSession(r SessionRequest, isDefault bool) (*openSession, error) {
	t, ok := s.byLanguage[r.Language]
	opener, can := t.(SessionOpener)
	if !ok || !can {
		return nil, &ProgramError{fmt.Sprintf("language %q has no sessions", r.Language)}
	}
	switch {
	case r.Idle == 0:
		r.Idle = s.limits.SessionIdle
	case r.Idle < 0 || r.Idle > s.limits.MaxSessionIdle:
		return nil, &ProgramError{fmt.Sprintf("an idle timeout of %v is not between 0 and %v, the most that this server allows", r.Idle, s.limits.MaxSessionIdle)}
	}
	o := &openSession{
		id: NewID(), request: r, opener: opener, isDefault: isDefault,
		options: SessionOptions{Language: r.Language, Permissions: r.Permissions},
		created: time.Now(), used: time.Now(),
		turn:   newAdmission(Limits{Running: 1, Waiting: math.MaxInt}), // use bounds them
		memory: func() int64 { return 0 },
	}
	o.ctx, o.end = context.WithCancelCause(context.Background())
	if err := o.openFiles(s.sessions.shared, s.limits); err != nil {
		return nil, err
	}
	o.expiry = time.AfterFunc(r.Idle, func() { s.expire(o) })
	if err := s.sessions.add(o, s.limits); err != nil {
		o.expiry.Stop()
		o.end(err)
		o.closeFiles()
		return nil, err
	}
	return o, nil
}

// openFiles gives the session its workspace.
func (o *openSession) openFiles(shared *Shared, limits Limits) error {
	options := workspace.Options{Bytes: limits.FileBytes, Files: limits.Files}
	if shared != nil {
		o.options.Workspace, o.options.ReadOnly = shared.Path, shared.ReadOnly
		options = workspace.Options{ReadOnly: shared.ReadOnly}
	} else {
		dir, err := NewRunDir()
		if err != nil {
			return err
		}
		o.options.Workspace, o.own = dir, true
	}
	files, err := workspace.Open(o.options.Workspace, options)
	if err != nil {
		if o.own {
			removeRunDir(o.options.Workspace)
		}
		return err
	}
	o.files = files
	return nil
}

// add takes a session in, within the limits.
func (all *sessions) add(o *openSession, limits Limits) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed {
		return ErrCancelled
	}
	of := 0
	for _, other := range all.open {
		if other.request.Client == o.request.Client {
			of++
		}
	}
	switch {
	case of >= limits.Sessions:
		return &ProgramError{fmt.Sprintf("you have %d sessions, which is all that one client may have: destroy one with destroy_session (list_sessions names them)", of)}
	case len(all.open) >= limits.AllSessions:
		return &ProgramError{fmt.Sprintf("this server has %d sessions open, which is all that it takes: try again later, or run without a session", len(all.open))}
	}
	if all.open == nil {
		all.open = map[string]*openSession{}
	}
	all.open[o.id] = o
	return nil
}

// find gives a client's session; DefaultHandle stands for the default one that was
// used last.
func (s *Supervisor) find(client, id string) (*openSession, error) {
	if id == DefaultHandle {
		return s.lastDefault(client)
	}
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	o := s.sessions.open[id]
	if o == nil || o.request.Client != client {
		return nil, noSession(id)
	}
	return o, nil
}

// sessionsOf gives a client's sessions, the oldest first.
func (s *Supervisor) sessionsOf(client string) []*openSession {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	var of []*openSession
	for _, o := range s.sessions.open {
		if o.request.Client == client {
			of = append(of, o)
		}
	}
	slices.SortFunc(of, func(a, b *openSession) int { return a.created.Compare(b.created) })
	return of
}

// RunCell runs a program as a cell of a session of its client's. Cells of one
// session run one after the other.
func (s *Supervisor) RunCell(ctx context.Context, id string, p Program, emit func(Event)) (Result, error) {
	o, err := s.find(p.Client, id)
	if err != nil {
		return Result{}, err
	}
	if p.Language == "" {
		p.Language = o.request.Language
	}
	if p.Language != o.request.Language {
		return Result{}, &ProgramError{fmt.Sprintf("the session is one of %s, the cell is in %s: use a session of each language", o.request.Language, p.Language)}
	}
	if p.Permissions != nil {
		return Result{}, &ProgramError{"permissions are a session's, not a cell's: give them to create_session"}
	}
	return s.runIn(ctx, o, p, emit)
}

func (s *Supervisor) runIn(ctx context.Context, o *openSession, p Program, emit func(Event)) (Result, error) {
	if err := o.use(); err != nil {
		return Result{}, err
	}
	defer o.leave()
	return s.run(ctx, p, o, emit)
}

// takeTurn waits until no other call uses the session's child.
func (o *openSession) takeTurn(ctx context.Context) (giveBack func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.ctx, cancel)()
	giveBack, err = o.turn.enter(ctx, o.request.Client)
	if o.ctx.Err() == nil {
		return giveBack, err
	}
	if err == nil {
		giveBack()
	}
	return nil, noSession(o.id)
}

// run runs one cell, in a new child if there is none. The caller has the turn.
func (o *openSession) run(ctx context.Context, p Program, emit func(Event)) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(o.ctx, func() { cancel(context.Cause(o.ctx)) })()
	var notes []string
	if o.session != nil {
		select {
		case <-o.session.Ended(): // while nobody was looking
			o.drop("its process ended between two cells")
		default:
		}
	}
	if o.session == nil {
		session, err := o.opener.OpenSession(ctx, o.options, emit)
		if err != nil && ctx.Err() != nil {
			return cancelledBefore(ctx, o), nil
		}
		if err != nil {
			return Result{}, err
		}
		o.session = session
		o.set(true, session.Memory)
		if o.lost != "" {
			notes = append(notes, fmt.Sprintf("the session's state was lost (%s): this cell began in an empty session; its files are as they were", o.lost))
			o.lost = ""
		}
	} else {
		o.set(true, o.session.Memory)
	}
	if p.onlyOpen {
		o.set(false, o.session.Memory)
		return Result{Status: Completed}, nil
	}
	result, err := o.session.Run(ctx, p, emit)
	o.set(false, o.session.Memory)
	o.keep(result.Packages)
	ended := false
	select {
	case <-o.session.Ended():
		ended = true
	default:
	}
	why := context.Cause(o.ctx) // it is over
	if why == nil && errors.Is(context.Cause(ctx), errReset) {
		why = errReset
	}
	switch {
	case err != nil:
		o.drop("Rillbox failed: " + err.Error())
	case why != nil:
		result.State = StateLost
		if result.Error != nil {
			result.Error = &GuestError{Name: result.Error.Name, Message: "the cell was cancelled: " + why.Error()}
		}
	case ended || result.State == StateLost:
		result.State = StateLost
		reason := string(result.Status)
		if result.Error != nil {
			reason = result.Error.Message
		}
		o.drop(reason)
		o.lost = "" // it is told now
		notes = append(notes, "the session's state is lost: the next cell begins in an empty session, with the files as they are")
	}
	result.Notes = append(notes, result.Notes...)
	return result, err
}

// drop ends the child, for a reason that the next cell tells.
func (o *openSession) drop(reason string) {
	o.session.Close()
	o.session, o.lost = nil, reason
	o.set(false, func() int64 { return 0 })
	o.mu.Lock()
	o.packages = nil
	o.mu.Unlock()
}

func (o *openSession) set(running bool, memory func() int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running, o.memory = running, memory
}

// keep notes what a cell installed.
func (o *openSession) keep(packages []Package) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range packages {
		p.Cached = true
		if !slices.Contains(o.packages, p) {
			o.packages = append(o.packages, p)
		}
	}
}

// use says that a call begins to use the session, which keeps it from expiring;
// it is a BusyError when too many do. leave must be called at its end.
func (o *openSession) use() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil {
		return noSession(o.id)
	}
	if o.users > maxWaitingCells {
		return &BusyError{Running: 1, Waiting: maxWaitingCells, Session: true, RetryAfter: retryAfter}
	}
	o.users++
	o.expiry.Stop()
	return nil
}

func (o *openSession) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used = time.Now()
	if o.users--; o.users == 0 {
		o.renew()
	}
}

// renew gives an unused session its idle time. The caller holds mu.
func (o *openSession) renew() {
	if o.ctx.Err() == nil {
		o.expiry.Reset(o.request.Idle)
	}
}

// expire ends a session that nobody uses. Its time may have been up just before a
// use that has begun since, or come to its end; who comes later finds no session.
func (s *Supervisor) expire(o *openSession) {
	o.mu.Lock()
	expires := o.users == 0 && time.Since(o.used) >= o.request.Idle
	if expires {
		o.end(errExpired)
	}
	o.mu.Unlock()
	if !expires {
		return
	}
	s.endSession(o, errExpired)
	s.sessions.mu.Lock()
	expired := s.sessions.expired
	s.sessions.mu.Unlock()
	if expired != nil {
		expired(o.request.Client)
	}
}

// OnExpiry has told called with the client's name after a session has ended for
// its idle time, which no call of the client's tells it.
func (s *Supervisor) OnExpiry(told func(client string)) {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	s.sessions.expired = told
}

func (o *openSession) info() SessionInfo {
	usage, _ := o.files.Usage() // it was closed: the session has just ended
	o.mu.Lock()
	defer o.mu.Unlock()
	return SessionInfo{
		ID: o.id, Language: o.request.Language, Default: o.isDefault,
		Created: o.created, Used: o.used, Idle: o.request.Idle,
		Running: o.running, Memory: o.memory(), Files: usage,
		Packages: slices.Clone(o.packages),
	}
}

// ListSessions tells of a client's sessions, the oldest first.
func (s *Supervisor) ListSessions(client string) []SessionInfo {
	list := []SessionInfo{}
	for _, o := range s.sessionsOf(client) {
		list = append(list, o.info())
	}
	return list
}

// ResetSession gives a session a new, empty child at its next cell. A cell that
// runs is ended; the files stay.
func (s *Supervisor) ResetSession(ctx context.Context, client, id string) (SessionInfo, error) {
	o, err := s.find(client, id)
	if err != nil {
		return SessionInfo{}, err
	}
	if err := o.use(); err != nil {
		return SessionInfo{}, err
	}
	defer o.leave()
	s.cancelCells(o, errReset)
	giveBack, err := o.takeTurn(ctx)
	if err != nil {
		return SessionInfo{}, err
	}
	defer giveBack()
	if o.session != nil {
		o.drop("")
	}
	o.lost = ""
	return o.info(), nil
}

// cancelCells cancels the calls of a session that run or wait.
func (s *Supervisor) cancelCells(o *openSession, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.running {
		if e.session == o.id {
			e.cancel(why)
		}
	}
}

// DestroySession ends a session of a client's, with its child and its files.
func (s *Supervisor) DestroySession(client, id string) error {
	o, err := s.find(client, id)
	if err != nil {
		return err
	}
	s.endSession(o, errDestroyed)
	return nil
}

// EndClient ends all sessions of a client that has gone.
func (s *Supervisor) EndClient(client string) {
	var all sync.WaitGroup
	for _, o := range s.sessionsOf(client) {
		all.Go(func() { s.endSession(o, errGone) })
	}
	all.Wait()
}

// endSession ends a session and returns when nothing is left of it. Ending it
// twice is no error.
func (s *Supervisor) endSession(o *openSession, why error) {
	s.sessions.mu.Lock()
	delete(s.sessions.open, o.id)
	s.sessions.ending.Add(1)
	s.sessions.mu.Unlock()
	defer s.sessions.ending.Done()
	o.mu.Lock()
	o.end(why) // the calls that run or wait end
	o.expiry.Stop()
	o.mu.Unlock()
	if giveBack, err := o.turn.enter(context.Background(), o.request.Client); err == nil { // there is always room
		defer giveBack()
	}
	if o.session != nil {
		o.drop("")
	}
	o.closeFiles()
}

// closeFiles gives up the workspace, which goes if it is the session's own.
func (o *openSession) closeFiles() {
	if err := o.files.Close(); err == nil && o.own {
		removeRunDir(o.options.Workspace)
	}
}

// closeSessions ends all sessions, and lets no new ones begin.
func (s *Supervisor) closeSessions() {
	s.sessions.mu.Lock()
	s.sessions.closed = true
	var left []*openSession
	for _, o := range s.sessions.open {
		left = append(left, o)
	}
	s.sessions.mu.Unlock()
	for _, o := range left {
		go s.endSession(o, ErrCancelled)
	}
	for _, o := range left {
		<-o.ctx.Done()
	}
	s.sessions.ending.Wait()
}

// Workspace gives the workspace of a client's session, with the session's
// handle, and counts as a use of it. It is closed when the session ends. No
// handle, and DefaultHandle, mean the default session that was used last.
func (s *Supervisor) Workspace(_ context.Context, client, id string) (string, *workspace.Dir, error) {
	if id == "" {
		id = DefaultHandle
	}
	o, err := s.find(client, id)
	if err != nil {
		return "", nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil {
		return "", nil, noSession(o.id)
	}
	o.used = time.Now()
	if o.users == 0 {
		o.renew()
	}
	return o.id, o.files, nil
}

// lastDefault gives the client's default session that was used last.
func (s *Supervisor) lastDefault(client string) (*openSession, error) {
	var last *openSession
	for _, o := range s.sessionsOf(client) {
		if o.isDefault && (last == nil || o.lastUsed().After(last.lastUsed())) {
			last = o
		}
	}
	if last == nil {
		return nil, &ProgramError{"you have no default session yet: create_session makes a session, and run_code with session_id " + DefaultHandle + " the default one"}
	}
	return last, nil
}

func (o *openSession) lastUsed() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.used
}

// Workspaces gives the workspaces of all of a client's sessions, by handle.
func (s *Supervisor) Workspaces(client string) map[string]*workspace.Dir {
	all := map[string]*workspace.Dir{}
	for _, o := range s.sessionsOf(client) {
		all[o.id] = o.files
	}
	return all
}

// SessionLanguage is the language of a client's session.
func (s *Supervisor) SessionLanguage(client, id string) (Language, error) {
	o, err := s.find(client, id)
	if err != nil {
		return "", err
	}
	return o.request.Language, nil
}

// Complete gives the names that may stand in place of the last word of text, in
// a session of the client's; none while a cell runs.
func (s *Supervisor) Complete(ctx context.Context, client, id, text string) ([]string, error) {
	o, err := s.find(client, id)
	if err != nil {
		return nil, err
	}
	giveBack, ok := o.turn.tryEnter(client)
	if !ok {
		return nil, nil
	}
	defer giveBack()
	if o.session == nil {
		return nil, nil
	}
	return o.session.Complete(ctx, text)
}

// NewWorkspace makes a workspace for one program, within the limits. The caller
// must call remove when the program has ended.
func (s *Supervisor) NewWorkspace() (path string, files *workspace.Dir, remove func(), err error) {
	o := &openSession{}
	if err := o.openFiles(s.sessions.shared, s.limits); err != nil {
		return "", nil, nil, err
	}
	return o.options.Workspace, o.files, o.closeFiles, nil
}
