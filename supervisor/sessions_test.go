package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rillbox/supervisor/job"
)

// cells is a toolchain whose sessions count their cells: a cell's value is its
// number. "die" loses the session, "wait" waits for its context's end.
type cells struct {
	mu     sync.Mutex
	opened []*countedSession
	// opening, where there is one, is told of each session that is being opened, which
	// then takes until it is cancelled.
	opening chan bool
}

func (c *cells) Describe() job.Description {
	return job.Description{Languages: []job.LanguageInfo{{Name: job.Python}, {Name: job.JavaScript}}}
}
func (c *cells) Prepare(context.Context, func(job.Event), ...job.Language) error { return nil }
func (c *cells) Install(context.Context, job.Program, func(job.Event)) ([]job.Package, error) {
	return nil, nil
}
func (c *cells) Close() {}
func (c *cells) Run(context.Context, job.Program, job.Streams) (job.Result, error) {
	return job.Result{Status: job.Completed}, nil
}

func (c *cells) OpenSession(ctx context.Context, o job.SessionOptions, _ func(job.Event)) (job.Session, error) {
	if c.opening != nil {
		c.opening <- true
		<-ctx.Done()
		return nil, errors.New("its process has ended")
	}
	s := &countedSession{options: o, ended: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened = append(c.opened, s)
	return s, nil
}

type countedSession struct {
	options job.SessionOptions
	count   int
	asked   job.Program // the last
	end     sync.Once
	ended   chan struct{}
}

func (s *countedSession) Run(ctx context.Context, cell job.Program, _ job.Streams) (job.Result, error) {
	s.count++
	s.asked = cell
	r := job.Result{Status: job.Completed, Value: []byte(fmt.Sprint(s.count))}
	switch cell.Code {
	case "die":
		s.Close()
		r = job.Result{Status: job.Crashed, State: job.StateLost, Error: &job.GuestError{Name: "Crashed", Message: "it died"}}
	case "wait":
		<-ctx.Done()
		r = job.Result{Status: job.Cancelled, State: job.StateKept, Error: &job.GuestError{Name: "Cancelled", Message: "its state is kept"}}
	}
	for _, name := range cell.Packages {
		r.Packages = append(r.Packages, job.Package{Name: name})
	}
	return r, nil
}
func (s *countedSession) Complete(context.Context, string) ([]string, error) { return nil, nil }
func (s *countedSession) Unfinished(context.Context, string) (bool, error)   { return false, nil }
func (s *countedSession) Memory() int64                                      { return 7 }
func (s *countedSession) Ended() <-chan struct{}                             { return s.ended }
func (s *countedSession) Close()                                             { s.end.Do(func() { close(s.ended) }) }

// quiet are the streams of a run that nobody hears.
var quiet = job.Streams{Emit: func(job.Event) {}}

func withCells(t *testing.T) (*Supervisor, *cells) {
	c := &cells{}
	s := New(job.DefaultLimits(), slog.New(slog.DiscardHandler), c)
	t.Cleanup(s.Close)
	return s, c
}

func create(t *testing.T, s *Supervisor, client string) string {
	t.Helper()
	info, err := s.CreateSession(t.Context(), SessionRequest{Client: client, Language: job.Python}, func(job.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	return info.ID
}

func cell(t *testing.T, s *Supervisor, client, id, code string) job.Result {
	t.Helper()
	r, err := s.Run(t.Context(), job.Program{Language: job.Python, Code: code}, Call{Client: client, Session: id, Streams: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestManifestsOfTheWorkspaceHoldInCells: as the files are when the cell's turn comes; a
// cell that imports nothing needs none.
func TestManifestsOfTheWorkspaceHoldInCells(t *testing.T) {
	s, c := withCells(t)
	id := create(t, s, "a")
	run := func(p job.Program) (job.Result, error) {
		return s.Run(t.Context(), p, Call{Client: "a", Session: id, Streams: quiet})
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(c.opened[0].options.Workspace, "package.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	imports := job.Program{Language: job.JavaScript, Code: `import "ms"`}
	cell(t, s, "a", id, "")
	write(`{"dependencies":{"ms":"2.0.0"},"resolutions":{}}`)
	if r, err := run(imports); err != nil || c.opened[1].asked.Manifest.Imports["ms"] != "npm:ms@2.0.0" || len(r.Notes) != 1 || r.Notes[0] != `package.json: "resolutions" is not honoured` {
		t.Errorf("%v %q %+v", err, r.Notes, c.opened[1].asked)
	}
	write(`{"dependencies":{"ms":"2.1.0"},"resolutions":{}}`)
	if r, err := run(imports); err != nil || c.opened[1].asked.Manifest.Imports["ms"] != "npm:ms@2.1.0" || len(r.Notes) > 0 {
		t.Errorf("changed: %v %q %+v", err, r.Notes, c.opened[1].asked)
	}
	write("{")
	if _, err := run(imports); err == nil || !strings.Contains(err.Error(), "the session's files: package.json is not JSON") {
		t.Errorf("broken: %v", err)
	}
	if r, err := run(job.Program{Language: job.JavaScript, Code: "1"}); err != nil || string(r.Value) != "3" {
		t.Errorf("without an import: %v %+v", err, r)
	}
	own := imports
	own.Manifest.ESM = true
	if _, err := run(own); err != nil || c.opened[1].asked.Manifest.Imports != nil {
		t.Errorf("of the call's own: %v %+v", err, c.opened[1].asked)
	}
	if err := os.Remove(filepath.Join(c.opened[0].options.Workspace, "package.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(c.opened[0].options.Workspace, "package.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := run(imports); err == nil || !strings.Contains(err.Error(), "leads out of the project through a symbolic link") {
		t.Errorf("a link out: %v", err)
	}
}

func TestSessionsKeepTheirState(t *testing.T) {
	s, _ := withCells(t)
	one, other := create(t, s, "a"), create(t, s, "a")
	if len(one) < 26 { // base 32: 130 bits
		t.Errorf("handle %q is short", one)
	}
	for want := 1; want < 4; want++ {
		if r := cell(t, s, "a", one, ""); string(r.Value) != fmt.Sprint(want) {
			t.Errorf("cell %d gave %s", want, r.Value)
		}
	}
	if r := cell(t, s, "a", other, ""); string(r.Value) != "1" {
		t.Errorf("the other session gave %s", r.Value)
	}
}

// A handle is its client's alone, and what is said of another's is what is said
// of none.
func TestSessionsAreBoundToTheirClient(t *testing.T) {
	s, _ := withCells(t)
	id := create(t, s, "a")
	ctx := t.Context()
	calls := map[string]func(id string) error{
		"RunCell": func(id string) error {
			_, err := s.Run(ctx, job.Program{Language: job.Python}, Call{Client: "b", Session: id, Streams: quiet})
			return err
		},
		"ResetSession":   func(id string) error { _, err := s.ResetSession(ctx, "b", id, Reset{Variables: true}); return err },
		"DestroySession": func(id string) error { return s.DestroySession("b", id) },
		"Workspace":      func(id string) error { _, err := s.Workspace(ctx, "b", id); return err },
		"EnsureSession":  func(id string) error { _, err := s.EnsureSession("b", id); return err },
		"Complete":       func(id string) error { _, err := s.Complete(ctx, "b", id, "x"); return err },
	}
	never := NewID()
	for name, call := range calls {
		others, none := call(id), call(never)
		if others == nil || none == nil {
			t.Errorf("%s: %v, %v", name, others, none)
			continue
		}
		if strings.ReplaceAll(others.Error(), id, never) != none.Error() {
			t.Errorf("%s tells another's session from none: %v, %v", name, others, none)
		}
	}
	if list := s.ListSessions("b"); len(list) != 0 {
		t.Errorf("another client sees %v", list)
	}
	if all := s.Workspaces("b"); len(all) != 0 {
		t.Errorf("another client sees %v", all)
	}
	if r := cell(t, s, "a", id, ""); string(r.Value) != "1" {
		t.Errorf("after all that the session gave %s", r.Value)
	}
}

func TestALostSessionRestartsWithItsFiles(t *testing.T) {
	s, c := withCells(t)
	id := create(t, s, "a")
	files, err := s.Workspace(t.Context(), "a", id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.Write("data", []byte("x")); err != nil {
		t.Fatal(err)
	}
	r := cell(t, s, "a", id, "die")
	if r.State != job.StateLost || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "lost") {
		t.Errorf("the cell that died: %+v", r)
	}
	if r := cell(t, s, "a", id, ""); string(r.Value) != "1" {
		t.Errorf("the next cell gave %s", r.Value)
	}
	// One that dies between two cells says so at the next.
	c.opened[1].Close()
	if r := cell(t, s, "a", id, ""); string(r.Value) != "1" || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "between two cells") {
		t.Errorf("after a death between two cells: %+v", r)
	}
	if got, err := files.Read("data", 0, 10); err != nil || string(got.Data) != "x" {
		t.Errorf("the file is %q, %v", got.Data, err)
	}
	if c.opened[0].options.Workspace != c.opened[2].options.Workspace {
		t.Error("the session has another workspace")
	}
}

func TestResetKeepsTheFilesAndTheHandle(t *testing.T) {
	s, c := withCells(t)
	id := create(t, s, "a")
	running := make(chan job.Result)
	go func() { running <- cell(t, s, "a", id, "wait") }()
	for !s.ListSessions("a")[0].Running {
		time.Sleep(time.Millisecond)
	}
	queued := make(chan job.Result)
	go func() { queued <- cell(t, s, "a", id, "") }()
	for cells := 0; cells < 2; time.Sleep(time.Millisecond) { // both can be cancelled
		s.mu.Lock()
		cells = len(s.running)
		s.mu.Unlock()
	}
	if _, err := s.ResetSession(t.Context(), "a", id, Reset{Variables: true}); err != nil {
		t.Fatal(err)
	}
	if r := <-queued; r.Status != job.Cancelled || r.State != job.StateLost {
		t.Errorf("the cell that waited: %+v", r)
	}
	if r := <-running; r.Status != job.Cancelled || r.State != job.StateLost || r.Error.Message != "the cell was cancelled: the session was reset" {
		t.Errorf("the cell that ran: %+v %+v", r, r.Error)
	}
	if r := cell(t, s, "a", id, ""); string(r.Value) != "1" || len(r.Notes) != 0 {
		t.Errorf("after the reset: %+v", r)
	}
	if len(c.opened) != 2 {
		t.Errorf("%d children", len(c.opened))
	}
}

func TestSessionLimits(t *testing.T) {
	s, _ := withCells(t)
	for range s.Limits().Sessions {
		create(t, s, "a")
	}
	_, err := s.CreateSession(t.Context(), SessionRequest{Client: "a", Language: job.Python}, func(job.Event) {})
	if err == nil || !strings.Contains(err.Error(), "destroy_session") {
		t.Errorf("one more gave %v", err)
	}
	create(t, s, "b")
	for _, r := range []SessionRequest{{Language: "cobol"}, {Language: job.Python, Idle: -1}, {Language: job.Python, Idle: 2 * s.Limits().MaxSessionIdle}} {
		if _, err := s.CreateSession(t.Context(), r, func(job.Event) {}); err == nil {
			t.Errorf("%+v made a session", r)
		}
	}
	if err := s.DestroySession("a", s.ListSessions("a")[0].ID); err != nil {
		t.Fatal(err)
	}
	create(t, s, "a")
}

// TestSessionsOfAClientsChoice: the default one, and those of names that a client
// chooses, are made when they are wanted, once, and are its own.
func TestSessionsOfAClientsChoice(t *testing.T) {
	s, _ := withCells(t)
	for _, id := range []string{DefaultHandle, "analysis-1", "A", "2026.11_x", strings.Repeat("a", 64)} {
		for _, client := range []string{"a", "b"} {
			made := make(chan bool)
			for range 20 {
				go func() {
					did, err := s.EnsureSession(client, id)
					if err != nil {
						t.Error(err)
					}
					made <- did
				}()
			}
			times := 0
			for range 20 {
				if <-made {
					times++
				}
			}
			if times != 1 {
				t.Errorf("%s was made %d times", id, times)
			}
		}
		if r := cell(t, s, "a", id, ""); string(r.Value) != "1" {
			t.Errorf("the first cell in %s gave %s", id, r.Value)
		}
		if r := cell(t, s, "b", id, ""); string(r.Value) != "1" {
			t.Errorf("two clients share %s", id)
		}
		if _, err := s.CreateSession(t.Context(), SessionRequest{Client: "a", ID: id}, func(job.Event) {}); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("a second %s: %v", id, err)
		}
		if err := s.DestroySession("a", id); err != nil {
			t.Error(err)
		}
		if err := s.DestroySession("b", id); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"", "a b", "../x", ".x", "ä", strings.Repeat("a", 65), NewID(), "a/b", "x\n"} {
		if made, err := s.EnsureSession("a", id); made || err == nil {
			t.Errorf("%q was made: %v", id, err)
		}
	}
}

// TestASessionHasAProcessOfEachLanguage, all in one workspace, each with its own
// state, and lost, reset and told of apart.
func TestASessionHasAProcessOfEachLanguage(t *testing.T) {
	s, c := withCells(t)
	info, err := s.CreateSession(t.Context(), SessionRequest{Client: "a", Permissions: []string{"--deny-net"}}, func(job.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	run := func(language job.Language, code string) (job.Result, error) {
		return s.Run(t.Context(), job.Program{Language: language, Code: code, Packages: []string{"one"}}, Call{Client: "a", Session: info.ID, Streams: quiet})
	}
	want := func(language job.Language, code, value string) job.Result {
		t.Helper()
		r, err := run(language, code)
		if err != nil || value != string(r.Value) || r.Language == "" || language != "" && r.Language != language {
			t.Errorf("%q %q gave %s %v, want %s", language, code, r.Value, err, value)
		}
		return r
	}
	if len(info.Languages) > 0 || info.Language != "" || len(c.opened) > 0 {
		t.Errorf("a process before a language: %+v", info)
	}
	if _, err := run("", ""); err == nil || !strings.Contains(err.Error(), "no cell yet that named its language") {
		t.Errorf("no language: %v", err)
	}
	if _, err := run("cobol", ""); err == nil {
		t.Error("it speaks cobol")
	}
	want(job.Python, "", "1")
	want(job.JavaScript, "", "1")
	want(job.Python, "", "2")
	want("", "", "3")
	want(job.JavaScript, "", "2")
	want("", "", "3")
	if a, b := c.opened[0].options, c.opened[1].options; len(c.opened) != 2 || a.Language != job.Python || b.Language != job.JavaScript || a.Workspace != b.Workspace || a.Permissions[0] != b.Permissions[0] {
		t.Errorf("%+v and %+v", a, b)
	}
	list := s.ListSessions("a")
	if i := list[0]; len(list) != 1 || fmt.Sprint(i.Languages) != "[javascript python]" || i.Language != job.JavaScript || i.Memory != 14 || fmt.Sprint(i.Packages) != "[{one   true} {one   true}]" {
		t.Errorf("%+v", i)
	}
	if r := want(job.Python, "die", ""); r.State != job.StateLost {
		t.Errorf("%+v", r)
	}
	want(job.JavaScript, "", "4")
	want(job.Python, "", "1")
	if i, err := s.ResetSession(t.Context(), "a", info.ID, Reset{Variables: true, Language: job.JavaScript}); err != nil || fmt.Sprint(i.Languages) != "[python]" {
		t.Errorf("%+v %v", i, err)
	}
	want(job.Python, "", "2")
	want(job.JavaScript, "", "1")
	if i, err := s.ResetSession(t.Context(), "a", info.ID, Reset{Variables: true}); err != nil || len(i.Languages)+len(i.Packages) > 0 || i.Memory != 0 {
		t.Errorf("%+v %v", i, err)
	}
	want(job.Python, "", "1")
	want(job.JavaScript, "", "1")
	if err := s.DestroySession("a", info.ID); err != nil {
		t.Fatal(err)
	}
	for _, o := range c.opened {
		<-o.Ended()
	}
}

// TestResetTakesWhatItIsTold: files, variables or both.
func TestResetTakesWhatItIsTold(t *testing.T) {
	s, c := withCells(t)
	id := create(t, s, "a")
	files, err := s.Workspace(t.Context(), "a", id)
	if err != nil {
		t.Fatal(err)
	}
	for n, r := range []Reset{{Files: true}, {Variables: true}, {Variables: true, Files: true}} {
		if _, err := files.Write("folder/closed/data", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.opened[0].options.Workspace+"/folder/closed", 0); err != nil {
			t.Fatal(err)
		}
		before := cell(t, s, "a", id, "").Value
		info, err := s.ResetSession(t.Context(), "a", id, r)
		if err != nil || (info.Files.Files == 0) != r.Files {
			t.Errorf("%+v: %+v %v", r, info, err)
		}
		if after := cell(t, s, "a", id, "").Value; (string(after) == "1") != r.Variables {
			t.Errorf("%d: %+v: the cell before gave %s, the one after %s", n, r, before, after)
		}
		_ = os.Chmod(c.opened[0].options.Workspace+"/folder/closed", 0o700)
	}
	s.Share(Shared{Path: t.TempDir()})
	shared := create(t, s, "a")
	if _, err := s.ResetSession(t.Context(), "a", shared, Reset{Files: true}); err == nil || !strings.Contains(err.Error(), "operator") {
		t.Errorf("the operator's own: %v", err)
	}
}

// TestCellsHaveTheirTurn: what a caller does before and after its cell comes
// between those of the cells beside it, and not at all for one that is refused.
func TestCellsHaveTheirTurn(t *testing.T) {
	s, _ := withCells(t)
	id := create(t, s, "a")
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	run := func(ctx context.Context, name, code string) (job.Result, error) {
		return s.Run(ctx, job.Program{
			Language: job.Python, Code: code,
		}, Call{
			Client: "a", Session: id, Streams: quiet,
			Begin: func() error { note("before " + name); return nil },
			End:   func() { note("after " + name) },
		})
	}
	first, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _, _ = run(first, "one", "wait") })
	for !s.ListSessions("a")[0].Running {
		time.Sleep(time.Millisecond)
	}
	waits := func(users int) {
		o, err := s.find("a", id)
		if err != nil {
			t.Fatal(err)
		}
		for there := 0; there < users; time.Sleep(time.Millisecond) {
			o.mu.Lock()
			there = o.users
			o.mu.Unlock()
		}
	}
	all.Go(func() { _, _ = run(t.Context(), "two", "") })
	waits(2)
	queued, give := context.WithCancel(t.Context())
	all.Go(func() {
		if r, err := run(queued, "three", ""); err != nil || r.Status != job.Cancelled || r.State != job.StateKept {
			t.Errorf("cancelled in the queue: %+v %v", r, err)
		}
	})
	waits(3)
	give()
	if _, err := s.Run(t.Context(), job.Program{Language: "cobol"}, Call{Client: "a", Session: id, Streams: quiet, Begin: func() error { note("refused"); return nil }}); err == nil {
		t.Error("a cell in an unknown language ran")
	}
	end()
	all.Wait()
	if have, want := fmt.Sprint(order), "[before one after one before two after two]"; have != want {
		t.Errorf("have %s, want %s", have, want)
	}
	unable := errors.New("no room")
	if _, err := s.Run(t.Context(), job.Program{Language: job.Python}, Call{Client: "a", Session: id, Streams: quiet, Begin: func() error { return unable }}); !errors.Is(err, unable) {
		t.Errorf("refused by Before: %v", err)
	}
	if r := cell(t, s, "a", id, ""); string(r.Value) != "3" {
		t.Errorf("the next cell gave %s", r.Value)
	}
}

// Two calls end a session, and between them its client makes another of the name:
// that one stays, counts and ends with its client.
func TestEndingASessionTwiceLeavesTheNextOfItsName(t *testing.T) {
	s, _ := withCells(t)
	if _, err := s.EnsureSession("a", "work"); err != nil {
		t.Fatal(err)
	}
	first, err := s.find("a", "work")
	if err != nil {
		t.Fatal(err)
	}
	s.endSession(first, errDestroyed)
	if made, err := s.EnsureSession("a", "work"); err != nil || !made {
		t.Fatal(made, err)
	}
	s.endSession(first, errExpired)
	if list := s.ListSessions("a"); len(list) != 1 || list[0].ID != "work" {
		t.Errorf("sessions are %+v, want the second one", list)
	}
}

// However a session ends, its child and its files are gone, and its handle is
// of no use.
func TestSessionsEndWithNothingLeft(t *testing.T) {
	ends := map[string]func(t *testing.T, s *Supervisor, id string){
		"destroy": func(t *testing.T, s *Supervisor, id string) {
			if err := s.DestroySession("a", id); err != nil {
				t.Error(err)
			}
		},
		"client": func(_ *testing.T, s *Supervisor, _ string) { s.EndClient("a") },
		"server": func(_ *testing.T, s *Supervisor, _ string) { s.Close() },
		"idle": func(_ *testing.T, s *Supervisor, _ string) {
			time.Sleep(s.Limits().SessionIdle - time.Millisecond)
			synctest.Wait()
			if len(s.ListSessions("a")) != 1 {
				return
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := withCells(t)
				var expired []string
				s.OnExpiry(func(client string) { expired = append(expired, client) })
				id := create(t, s, "a")
				waiting := make(chan job.Result, 1)
				if name != "idle" {
					go func() {
						r, _ := s.Run(context.Background(), job.Program{Language: job.Python, Code: "wait"}, Call{Client: "a", Session: id, Streams: quiet})
						waiting <- r
					}()
					synctest.Wait()
				}
				end(t, s, id)
				if name != "idle" {
					if r := <-waiting; r.Status != job.Cancelled || name != "server" && (r.State != job.StateLost || strings.Contains(r.Error.Message, "kept")) {
						t.Errorf("the cell that ran: %+v %+v", r, r.Error)
					}
				}
				<-c.opened[0].Ended()
				if want := map[bool]string{true: "[a]", false: "[]"}[name == "idle"]; fmt.Sprint(expired) != want {
					t.Errorf("that a session expired was told to %v, want %s", expired, want)
				}
				if dir := c.opened[0].options.Workspace; exists(dir) {
					t.Errorf("the workspace %s is still there", dir)
				}
				time.Sleep(2 * s.Limits().MaxSessionIdle) // the idle time of what has ended does not end
				synctest.Wait()
				if name != "idle" && len(expired) > 0 {
					t.Errorf("later it was told to %v that a session expired", expired)
				}
				_, err := s.Run(t.Context(), job.Program{Language: job.Python}, Call{Client: "a", Session: id, Streams: quiet})
				if wrong := (*job.ProgramError)(nil); !errors.As(err, &wrong) {
					t.Errorf("a cell after the end gave %v", err)
				}
			})
		})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A use, of a cell or of a file, begins the idle time anew.
func TestUseKeepsASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := withCells(t)
		id := create(t, s, "a")
		for i := range 10 {
			time.Sleep(s.Limits().SessionIdle - time.Second)
			if i%2 == 0 {
				cell(t, s, "a", id, "")
			} else if _, err := s.Workspace(t.Context(), "a", id); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(s.Limits().SessionIdle + time.Second)
		synctest.Wait()
		if list := s.ListSessions("a"); len(list) != 0 {
			t.Errorf("still there: %+v", list)
		}
	})
}

// Many calls race to use, reset, destroy and list one session: each ends with a
// result or an error, and nothing is left.
func TestSessionsAreRaced(t *testing.T) {
	s, c := withCells(t)
	var all sync.WaitGroup
	for round := range 20 {
		id := create(t, s, "a")
		for i := range 12 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				switch i % 6 {
				case 0:
					_ = s.DestroySession("a", id)
				case 1:
					_, _ = s.ResetSession(ctx, "a", id, Reset{Variables: true})
				case 2:
					_ = s.ListSessions("a")
				case 3:
					_, _ = s.Run(ctx, job.Program{Language: job.Python, Code: "die"}, Call{Client: "a", Session: id, Streams: quiet})
				case 4:
					if r, err := s.Run(ctx, job.Program{Language: job.Python}, Call{Client: "b", Session: id, Streams: quiet}); err == nil {
						t.Errorf("round %d: another client got %+v", round, r)
					}
				default:
					_, _ = s.Run(ctx, job.Program{Language: job.Python}, Call{Client: "a", Session: id, Streams: quiet})
				}
			})
		}
		all.Wait()
	}
	for _, o := range c.opened {
		<-o.Ended()
		if exists(o.options.Workspace) {
			t.Errorf("the workspace %s is still there", o.options.Workspace)
		}
	}
}

// TestExpiryAndUseAreRaced: a call that comes when the idle time is up either finds no
// session or has it to its end, and one that was just used does not expire.
func TestExpiryAndUseAreRaced(t *testing.T) {
	s, _ := withCells(t)
	for range 300 {
		o, err := s.newSession(SessionRequest{Client: "a", Language: job.Python})
		if err != nil {
			t.Fatal(err)
		}
		cell(t, s, "a", o.id, "")
		s.expire(o) // its timer went off before the cell began
		if r := cell(t, s, "a", o.id, ""); string(r.Value) != "2" {
			t.Fatalf("a session expired that was just used: %+v", r)
		}
		o.mu.Lock()
		o.used = o.used.Add(-o.request.Idle)
		o.mu.Unlock()
		var all sync.WaitGroup
		all.Go(func() { s.expire(o) })
		all.Go(func() {
			r, err := s.Run(t.Context(), job.Program{Language: job.Python}, Call{Client: "a", Session: o.id, Streams: quiet})
			var none *job.ProgramError
			if err == nil && (r.Status != job.Completed || r.State != "") || err != nil && !errors.As(err, &none) {
				t.Errorf("a call that came as the session expired gave %+v %v", r, err)
			}
		})
		all.Wait()
		_ = s.DestroySession("a", o.id)
	}
}

// TestACallCancelledWhileItsSessionOpensIsCancelled: that its process ended is no
// news to who had it ended.
func TestACallCancelledWhileItsSessionOpensIsCancelled(t *testing.T) {
	for name, test := range map[string]struct {
		cancel func(s *Supervisor, call context.CancelFunc, id, execution string)
		state  job.State
	}{
		"by the call's end": {func(_ *Supervisor, call context.CancelFunc, _, _ string) { call() }, job.StateKept},
		"by its name":       {func(s *Supervisor, _ context.CancelFunc, _, execution string) { s.Cancel("a", execution) }, job.StateKept},
		"by a reset": {func(s *Supervisor, _ context.CancelFunc, id, _ string) {
			_, _ = s.ResetSession(t.Context(), "a", id, Reset{Variables: true})
		}, job.StateLost},
		"by the end of both": {func(s *Supervisor, _ context.CancelFunc, id, _ string) { _ = s.DestroySession("a", id) }, job.StateLost},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := withCells(t)
			c.opening = make(chan bool)
			id := DefaultHandle
			if _, err := s.EnsureSession("a", id); err != nil {
				t.Fatal(err)
			}
			ctx, call := context.WithCancel(t.Context())
			defer call()
			execution := NewID()
			go func() {
				<-c.opening
				test.cancel(s, call, id, execution)
			}()
			r, err := s.Run(ctx, job.Program{ID: execution, Language: job.Python}, Call{Client: "a", Session: id, Streams: quiet})
			if err != nil || r.Status != job.Cancelled || r.State != test.state || r.ExecutionID != execution {
				t.Errorf("have %+v %v, want it cancelled and the state %s", r, err, test.state)
			}
		})
	}
}
