//go:build !windows

package hostile

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// tryInSessions runs rows once more, as cells of sessions. Rows with the same
// grants share a session as long as it lives, so that hundreds of them take
// seconds; so do their controls, in the same order, which shows that no row has
// broken another. What ran before or meanwhile is a cell of another client's
// session.
func tryInSessions(t *testing.T, attacks []attack) {
	t.Helper()
	t.Run("in sessions", func(t *testing.T) {
		t.Parallel()
		house := &rowHouse{sessions: map[string]*rowSession{}}
		t.Cleanup(house.end)
		for _, a := range attacks {
			t.Run(strings.ReplaceAll(a.name, "/", "|"), func(t *testing.T) {
				if a.linux && runtime.GOOS != "linux" {
					t.Skip("this attack exists on Linux alone")
				}
				needWall(t)
				if a.language == "" {
					a.language = job.JavaScript
				}
				if a.noControl+a.noCellControl == "" && !a.bare && a.bareFlags == nil {
					onceShown(t, func() {
						s := newScene(t, a)
						a.checkControl(t, s, a.runCell(t, s, house, s.fill(a.grantedControl()), noWall))
					})
				}
				if a.waits {
					a.timeout, a.ends = time.Second, append(a.ends, job.TimedOut)
				}
				for _, level := range a.levels(true) {
					s := newScene(t, a)
					a.checkBounded(t, level, s, a.runCell(t, s, house, s.fill(a.grants), level))
				}
			})
		}
	})
}

func (a attack) runCell(t *testing.T, s *scene, house *rowHouse, grants []string, wall launcher.Level) outcome {
	t.Helper()
	if a.narrowed != nil { // a session of the row's own, whose permissions are those of all of its cells
		own, err := house.open(t, "one", newEngine(t, a.language, grants, wall), supervisor.SessionRequest{Language: a.language, Permissions: s.fill(a.narrowed)})
		if err != nil {
			return outcome{err: err}
		}
		a.narrowed = nil
		return a.run(t, s, own, own)
	}
	own := house.session(t, "one", a.language, grants, wall)
	other := own
	if a.earlier != "" || a.meanwhile != "" {
		other = house.session(t, "another", a.language, grants, wall)
	}
	if strings.Contains(a.code, "import.meta") || strings.Contains(a.code, "mainModule") { // a cell is no file
		own.write(t, "cell.ts", a.code)
	}
	o := a.run(t, s, own, other)
	late := o.Error != nil && strings.HasSuffix(o.Error.Message, "before this cell began")
	if late || o.State == job.StateLost && o.Status == job.Completed && o.events == "" { // an earlier row's process has ended late
		o = a.run(t, s, own, other)
	}
	if a.spoils {
		own.reset(t)
	} else {
		own.mend(t)
	}
	return o
}

// bothWays tests an engine, and a session of the engine's: what holds a program
// must hold a cell.
func bothWays(t *testing.T, language job.Language, engine job.Toolchain, test func(t *testing.T, engine job.Engine)) {
	t.Helper()
	t.Run("program", func(t *testing.T) { test(t, engine) })
	t.Run("cell", func(t *testing.T) { test(t, ownSession(t, language, engine)) })
}

// ownSession makes a session of an engine's for one test.
func ownSession(t *testing.T, language job.Language, engine job.Toolchain) *rowSession {
	t.Helper()
	needWall(t)
	var house rowHouse
	t.Cleanup(house.end)
	return house.sessionOf(t, "one", language, engine)
}

// rowHouse holds the sessions that a table's rows share, by client, language and grants.
type rowHouse struct {
	sessions map[string]*rowSession
	all      []*rowSession
}

// rowSession is a session of one client's, as an engine of programs.
type rowSession struct {
	supervisor *supervisor.Supervisor
	client, id string
	language   job.Language
}

var rowClients atomic.Int64

func (h *rowHouse) session(t *testing.T, client string, language job.Language, grants []string, wall launcher.Level) *rowSession {
	t.Helper()
	key := fmt.Sprint(client, language, grants, wall)
	if h.sessions[key] == nil {
		h.sessions[key] = h.sessionOf(t, client, language, newEngine(t, language, grants, wall))
	}
	return h.sessions[key]
}

// sessionOf makes a session of an engine.
func (h *rowHouse) sessionOf(t *testing.T, client string, language job.Language, engine job.Toolchain) *rowSession {
	t.Helper()
	r, err := h.open(t, client, engine, supervisor.SessionRequest{Language: language})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (h *rowHouse) open(t *testing.T, client string, engine job.Toolchain, q supervisor.SessionRequest) (*rowSession, error) {
	t.Helper()
	limits := job.DefaultLimits()
	limits.SessionIdle = limits.MaxSessionIdle
	r := &rowSession{
		supervisor: supervisor.New(limits, slog.New(slog.DiscardHandler), engine),
		client:     fmt.Sprint(client, rowClients.Add(1)), language: q.Language,
	}
	q.Client = r.client
	info, err := r.supervisor.CreateSession(t.Context(), q, func(job.Event) {})
	if err != nil {
		return nil, err
	}
	r.id = info.ID
	h.all = append(h.all, r)
	return r, nil
}

// end ends the sessions, and leaves the engines, which others use.
func (h *rowHouse) end() {
	for _, r := range h.all {
		r.supervisor.EndClient(r.client)
	}
}

// Run runs a program as a cell; a session that was lost begins again.
func (r *rowSession) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	return r.supervisor.Run(ctx, p, supervisor.Call{Client: r.client, Session: r.id, Streams: streams})
}

// write makes a file in the session's workspace.
func (r *rowSession) write(t *testing.T, name, text string) {
	t.Helper()
	files, err := r.supervisor.Workspace(t.Context(), r.client, r.id)
	if err == nil {
		_, err = files.Write(name, []byte(text))
	}
	if err != nil {
		t.Error(err)
	}
}

// mend gives the session a new child when the last row has left it unusable.
func (r *rowSession) mend(t *testing.T) {
	t.Helper()
	const patience = 3 * time.Second // on a machine that is busier than that, it gets a new child for nothing
	o := runProgram(t.Context(), r, job.Program{Language: r.language, Code: "6 * 7", Timeout: patience}, nil)
	if o.err == nil && o.Status == job.Completed && string(o.Value) == "42" {
		return
	}
	t.Logf("the session is of no more use: %s", o.summary())
	r.reset(t)
}

func (r *rowSession) reset(t *testing.T) {
	t.Helper()
	if _, err := r.supervisor.ResetSession(t.Context(), r.client, r.id, supervisor.Reset{Variables: true}); err != nil {
		t.Error(err)
	}
}
