package supervisor

import (
	"context"
	"errors"
	"maps"
	"math"
	"regexp"
	"slices"
	"sync"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
	"rillbox/workspace"
)

// SessionRequest says what session a client wants.
type SessionRequest struct {
	Client string
	// ID is a handle of the client's choice; empty for one that is made up.
	ID string
	// Language, if any, is that of cells that name none, and has a process at once.
	Language job.Language
	// Permissions narrow what the operator granted to each language, as
	// Program.Permissions do.
	Permissions []string
	// Packages are installed for Language before the first cell.
	Packages []string
	// Idle is how long the session lasts without a call; zero means
	// Limits.SessionIdle.
	Idle time.Duration
}

// SessionInfo is what its client can know of a session.
type SessionInfo struct {
	ID string
	// Language is that of a cell that names none; empty before the first one that
	// does.
	Language job.Language
	// Languages have a process now.
	Languages     []job.Language
	Created, Used time.Time
	// Idle is how long it lasts after Used.
	Idle time.Duration
	// Running says that a cell is running now.
	Running bool
	// Memory is what its processes use, in bytes.
	Memory   int64
	Files    workspace.Usage
	Packages []job.Package
}

// sessionKey is a client's handle: two clients may choose the same.
type sessionKey struct{ client, id string }

// Shared is a directory of the operator's own that is the workspace of every
// session and program.
type Shared struct {
	Path     string // its real path
	ReadOnly bool
}

// openSession is one session of one client's, from its creation to its end: a
// workspace, and a process for each language that a cell was in.
type openSession struct {
	id      string
	request SessionRequest
	// options are those that its processes are opened with; files is the same
	// workspace, and own says that it goes with the session.
	options job.SessionOptions
	files   *workspace.Dir
	own     bool
	created time.Time
	ctx     context.Context // ends with the session
	end     context.CancelCauseFunc

	turn *admission // of one place: whoever has it may use the processes and told
	told []string   // what of the manifests in its workspace is not honoured

	mu        sync.Mutex   // of what follows
	language  job.Language // of a cell that names none
	processes map[job.Language]*process
	expiry    *time.Timer
	used      time.Time
	users     int // calls that go on or wait
}

// maxWaitingCells is how many calls of one session may wait for one another.
const maxWaitingCells = 16

// DefaultHandle is that of the session that every client has, made when it is first
// wanted.
const DefaultHandle = "default"

// chosenHandle is the form of handles that clients choose; madeHandle, which NewID
// makes, is none: what looks like it was made here, and has ended.
var (
	chosenHandle = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	madeHandle   = regexp.MustCompile(`^[a-z2-7]{26}$`)
)

var (
	errExpired   = errors.New("nobody used the session for too long")
	errDestroyed = errors.New("the session was destroyed")
	errGone      = errors.New("the session's client has gone")
	errReset     = errors.New("the session was reset")
)

// Share makes a directory of the operator's own the workspace of everything
// that runs from now on.
func (s *Supervisor) Share(shared Shared) { s.shared = &shared }

// Shared is the directory of the operator's own, nil when there is none.
func (s *Supervisor) Shared() *Shared { return s.shared }

// noSession is the error of a handle that is not the client's. It is the same
// whether the session is another's, has ended or never was.
func noSession(id string) error {
	if id == DefaultHandle {
		return job.Refuse("you have no default session yet, or it has ended: write_file makes it, and run_code with session_id %s", DefaultHandle)
	}
	return job.Refuse("there is no session %.80q of yours: it has ended (after its idle time, or destroyed), or it never was; create_session makes a new one, and run_code and write_file make one of a name of your choice (letters, digits, dots, dashes, underscores)", id)
}

// CreateSession makes a session. One of a language has its process, with its packages,
// when CreateSession returns.
func (s *Supervisor) CreateSession(ctx context.Context, r SessionRequest, emit func(job.Event)) (SessionInfo, error) {
	if r.Language == "" && len(r.Packages) > 0 {
		return SessionInfo{}, job.Refuse("packages are a language's: name the language, too")
	}
	s.making.Lock()
	o, err := s.newSession(r)
	s.making.Unlock()
	if err != nil {
		return SessionInfo{}, err
	}
	if r.Language == "" {
		return o.info(), nil
	}
	call := Call{Client: r.Client, Session: o.id, Streams: job.Streams{Emit: emit}, onlyOpen: len(r.Packages) == 0}
	result, err := s.runIn(ctx, job.Program{Language: r.Language, Packages: r.Packages}, call, o)
	if err == nil && result.Error != nil {
		err = job.Refuse("%s: %s", result.Error.Name, result.Error.Message)
	}
	if err != nil {
		s.endSession(o, err)
		return SessionInfo{}, err
	}
	return o.info(), nil
}

// EnsureSession makes the client's session of that handle, DefaultHandle or one of the
// client's choice, if there is none. It says whether it did.
func (s *Supervisor) EnsureSession(client, id string) (made bool, err error) {
	s.making.Lock()
	defer s.making.Unlock()
	_, err = s.find(client, id)
	if err == nil || !chosenHandle.MatchString(id) || madeHandle.MatchString(id) {
		return false, err
	}
	_, err = s.newSession(SessionRequest{Client: client, ID: id})
	return err == nil, err
}

// newSession makes a session without a process. The caller holds making.
func (s *Supervisor) newSession(r SessionRequest) (*openSession, error) {
	switch {
	case r.Idle == 0:
		r.Idle = s.limits.SessionIdle
	case r.Idle < 0 || r.Idle > s.limits.MaxSessionIdle:
		return nil, job.Refuse("an idle timeout of %v is not between 0 and %v, the most that this server allows", r.Idle, s.limits.MaxSessionIdle)
	}
	if r.ID == "" {
		r.ID = NewID()
	} else if !chosenHandle.MatchString(r.ID) || madeHandle.MatchString(r.ID) {
		return nil, job.Refuse("%.80q can't name a session: use up to 64 letters, digits, dots, dashes and underscores", r.ID)
	}
	o := &openSession{
		id: r.ID, request: r, language: r.Language,
		options: job.SessionOptions{Permissions: r.Permissions},
		created: time.Now(), used: time.Now(),
		turn:      newAdmission(job.Limits{Running: 1, Waiting: math.MaxInt}), // use bounds them
		processes: map[job.Language]*process{},
	}
	o.ctx, o.end = context.WithCancelCause(context.Background())
	if err := s.openFiles(o, s.quota(r.Client)); err != nil {
		return nil, err
	}
	o.expiry = time.AfterFunc(r.Idle, func() { s.expire(o) })
	if err := s.add(o); err != nil {
		o.expiry.Stop()
		o.end(err)
		o.closeFiles()
		return nil, err
	}
	return o, nil
}

// languageOf is the language of a cell: the one that it names, which is from then on
// that of cells that name none.
func (s *Supervisor) languageOf(o *openSession, named job.Language) (job.Language, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if named == "" && o.language == "" {
		return "", job.Refuse("session %q has had no cell yet that named its language: name one, %s", o.id, s.languageList())
	}
	if named != "" {
		if _, ok := s.byLanguage[named].(job.SessionOpener); !ok {
			return "", job.Refuse("language %q has no sessions", named)
		}
		o.language = named
	}
	return o.language, nil
}

// openFiles gives the session its workspace.
func (s *Supervisor) openFiles(o *openSession, quota *workspace.Quota) error {
	options := workspace.Options{Bytes: s.limits.Disk, Files: s.limits.Files, Quota: quota}
	if s.shared != nil {
		o.options.Workspace, o.options.ReadOnly = s.shared.Path, s.shared.ReadOnly
		options = workspace.Options{ReadOnly: s.shared.ReadOnly}
	} else {
		dir, err := sandbox.NewRunDir()
		if err != nil {
			return err
		}
		o.options.Workspace, o.own = dir, true
	}
	files, err := workspace.Open(o.options.Workspace, options)
	if err != nil {
		if o.own {
			sandbox.RemoveRunDir(o.options.Workspace)
		}
		return err
	}
	o.files = files
	return nil
}

// quota is that of a client's sessions; nil when all of them, each full, hold no more.
func (s *Supervisor) quota(client string) *workspace.Quota {
	if int64(s.limits.Sessions) <= s.limits.ClientDisk/s.limits.Disk {
		return nil
	}
	if all := s.sessionsOf(client); len(all) > 0 {
		return all[0].files.Options().Quota
	}
	return workspace.NewQuota(s.limits.ClientDisk)
}

// add takes a session in, within the limits.
func (s *Supervisor) add(o *openSession) error {
	of, most := len(s.sessionsOf(o.request.Client)), s.TermsOf(o.request.Client).Sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrCancelled
	}
	key := sessionKey{o.request.Client, o.id}
	if s.open[key] != nil {
		return job.Refuse("there is a session %q of yours already: use it, or destroy it with destroy_session", o.id)
	}
	switch {
	case of >= most:
		return job.Refuse("you have %d sessions, which is all that you may have: destroy one with destroy_session (list_sessions names them)", of)
	case len(s.open) >= s.limits.AllSessions:
		return job.Refuse("this server has %d sessions open, which is all that it takes: try again later, or run without a session", len(s.open))
	}
	s.open[key] = o
	return nil
}

// find gives a client's session.
func (s *Supervisor) find(client, id string) (*openSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.open[sessionKey{client, id}]; o != nil {
		return o, nil
	}
	return nil, noSession(id)
}

// sessionsOf gives a client's sessions, the oldest first.
func (s *Supervisor) sessionsOf(client string) []*openSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	var of []*openSession
	for _, o := range s.open {
		if o.request.Client == client {
			of = append(of, o)
		}
	}
	slices.SortFunc(of, func(a, b *openSession) int { return a.created.Compare(b.created) })
	return of
}

// runCell runs a program as a cell of a session of its client's: in the process that
// the session has of the program's language, or else of that of the last cell. Cells
// of one session run one after the other.
func (s *Supervisor) runCell(ctx context.Context, p job.Program, c Call) (job.Result, error) {
	o, err := s.find(c.Client, c.Session)
	if err != nil {
		return job.Result{}, err
	}
	if p.Permissions != nil {
		return job.Result{}, job.Refuse("permissions are a session's, not a cell's: give them to create_session")
	}
	return s.runIn(ctx, p, c, o)
}

func (s *Supervisor) runIn(ctx context.Context, p job.Program, c Call, o *openSession) (job.Result, error) {
	if err := o.use(); err != nil {
		return job.Result{}, err
	}
	defer o.leave()
	var err error
	if p.Language, err = s.languageOf(o, p.Language); err != nil {
		return job.Result{}, err
	}
	return s.run(ctx, p, c, o)
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
	s.mu.Lock()
	expired := s.expired
	s.mu.Unlock()
	if expired != nil {
		expired(o.request.Client)
	}
}

// OnExpiry has told called with the client's name after a session has ended for
// its idle time, which no call of the client's tells it.
func (s *Supervisor) OnExpiry(told func(client string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = told
}

func (o *openSession) info() SessionInfo {
	usage, _ := o.files.Usage() // it was closed: the session has just ended
	o.mu.Lock()
	defer o.mu.Unlock()
	info := SessionInfo{
		ID: o.id, Language: o.language,
		Created: o.created, Used: o.used, Idle: o.request.Idle, Files: usage,
	}
	for _, language := range slices.Sorted(maps.Keys(o.processes)) {
		p := o.processes[language]
		if p.memory != nil {
			info.Languages = append(info.Languages, language)
			info.Memory += p.memory()
		}
		info.Running = info.Running || p.running
		info.Packages = append(info.Packages, p.packages...)
	}
	return info
}

// ListSessions tells of a client's sessions, the oldest first.
func (s *Supervisor) ListSessions(client string) []SessionInfo {
	list := []SessionInfo{}
	for _, o := range s.sessionsOf(client) {
		list = append(list, o.info())
	}
	return list
}

// Reset says what of a session is reset: its variables, which are all that a process
// keeps, those of one language or of all, and its files.
type Reset struct {
	Language         job.Language // empty for all
	Variables, Files bool
}

// ResetSession takes a session's variables, or files, or both. Variables go with
// their process: a cell that runs in it is ended, and the next one has a new process.
func (s *Supervisor) ResetSession(ctx context.Context, client, id string, r Reset) (SessionInfo, error) {
	o, err := s.find(client, id)
	if err != nil {
		return SessionInfo{}, err
	}
	if r.Files && !o.own {
		return SessionInfo{}, job.Refuse("the session's files are in a directory of the operator's own, which is not emptied: delete_file deletes one")
	}
	if err := o.use(); err != nil {
		return SessionInfo{}, err
	}
	defer o.leave()
	if r.Variables {
		s.cancelCells(o, r.Language, errReset)
		ctx = context.WithoutCancel(ctx) // cells were told that it comes
	}
	giveBack, err := o.takeTurn(ctx)
	if err != nil {
		return SessionInfo{}, err
	}
	defer giveBack()
	if r.Variables {
		o.dropAll(r.Language)
	}
	if r.Files {
		err = o.files.Empty()
	}
	return o.info(), err
}

// cancelCells cancels the calls of a session that run or wait, of one language or,
// where it is empty, of all: the last that came first, so that none gets its turn
// from another that was cancelled.
func (s *Supervisor) cancelCells(o *openSession, language job.Language, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cells []execution
	for _, e := range s.running {
		if e.session == o && (language == "" || e.language == language) {
			cells = append(cells, e)
		}
	}
	slices.SortFunc(cells, func(a, b execution) int { return b.number - a.number })
	for _, e := range cells {
		e.cancel(why)
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
	s.mu.Lock()
	if key := (sessionKey{o.request.Client, o.id}); s.open[key] == o { // not one that its client has made since
		delete(s.open, key)
	}
	if !s.closed { // else Close ends it, too
		s.work.Add(1)
		defer s.work.Done()
	}
	s.mu.Unlock()
	o.mu.Lock()
	o.end(why) // the calls that run or wait end
	o.expiry.Stop()
	o.mu.Unlock()
	if giveBack, err := o.turn.enter(context.Background(), o.request.Client); err == nil { // there is always room
		defer giveBack()
	}
	o.dropAll("")
	o.closeFiles()
}

// closeFiles gives up the workspace, which goes if it is the session's own.
func (o *openSession) closeFiles() {
	if err := o.files.Close(); err == nil && o.own {
		sandbox.RemoveRunDir(o.options.Workspace)
	}
}

// Workspace gives the workspace of a client's session, and counts as a use of it. It
// is closed when the session ends.
func (s *Supervisor) Workspace(_ context.Context, client, id string) (*workspace.Dir, error) {
	o, err := s.find(client, id)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil {
		return nil, noSession(o.id)
	}
	o.used = time.Now()
	if o.users == 0 {
		o.renew()
	}
	return o.files, nil
}

// Workspaces gives the workspaces of all of a client's sessions, by handle.
func (s *Supervisor) Workspaces(client string) map[string]*workspace.Dir {
	all := map[string]*workspace.Dir{}
	for _, o := range s.sessionsOf(client) {
		all[o.id] = o.files
	}
	return all
}

// Complete gives the names that may stand in place of the last word of text, in
// the last cell's language; none while a cell runs.
func (s *Supervisor) Complete(ctx context.Context, client, id, text string) (names []string, err error) {
	return ask(s, client, id, func(session job.Session) ([]string, error) { return session.Complete(ctx, text) })
}

// Unfinished says whether text, as it is typed, waits for another line, in the last
// cell's language; no text does while a cell runs.
func (s *Supervisor) Unfinished(ctx context.Context, client, id, text string) (waits bool, err error) {
	return ask(s, client, id, func(session job.Session) (bool, error) { return session.Unfinished(ctx, text) })
}

// ask asks the child of the last cell's language something, if there is one and no
// cell runs.
func ask[Answer any](s *Supervisor, client, id string, question func(job.Session) (Answer, error)) (none Answer, err error) {
	o, err := s.find(client, id)
	if err != nil {
		return none, err
	}
	giveBack, ok := o.turn.tryEnter(client)
	if !ok {
		return none, nil
	}
	defer giveBack()
	o.mu.Lock()
	p := o.processes[o.language]
	o.mu.Unlock()
	if p == nil || p.session == nil {
		return none, nil
	}
	return question(p.session)
}

// NewWorkspace makes a workspace for one program, within the limits. The caller
// must call remove when the program has ended.
func (s *Supervisor) NewWorkspace() (path string, files *workspace.Dir, remove func(), err error) {
	o := &openSession{}
	if err := s.openFiles(o, nil); err != nil {
		return "", nil, nil, err
	}
	return o.options.Workspace, o.files, o.closeFiles, nil
}
