//go:build !windows

package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// withSessions is a toolchain whose cells are run by its run.
type withSessions struct{ scripted }

func (w withSessions) OpenSession(_ context.Context, o job.SessionOptions, _ func(job.Event)) (job.Session, error) {
	return scriptedSession{w.scripted, o.Workspace, make(chan struct{})}, nil
}

type scriptedSession struct {
	scripted
	dir   string
	ended chan struct{}
}

func (s scriptedSession) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	p.Workspace = s.dir
	return s.run(ctx, p, streams.Emit)
}
func (s scriptedSession) Complete(context.Context, string) ([]string, error) { return nil, nil }
func (s scriptedSession) Unfinished(context.Context, string) (bool, error)   { return false, nil }
func (s scriptedSession) Memory() int64                                      { return 0 }
func (s scriptedSession) Ended() <-chan struct{}                             { return s.ended }
func (s scriptedSession) Close()                                             { close(s.ended) }

// TestTheDefaultSessionIsThereAtOnce: a file can be written before any cell ran, and
// the cell that follows needs no language.
func TestTheDefaultSessionIsThereAtOnce(t *testing.T) {
	s := newServer(scripted{}, func(o *Options) {
		o.Supervisor = supervisor.New(testLimits(), o.Log, withSessions{inFiles(func(dir string) job.Result {
			data, err := os.ReadFile(filepath.Join(dir, "in.csv"))
			if err != nil {
				t.Error(err)
			}
			return job.Result{Status: job.Completed, Stdout: kept(string(data))}
		})})
		t.Cleanup(o.Supervisor.Close)
	})
	session := dial(t, s, nil)
	const cell = `{"session_id":"default","code":"open('in.csv').read()"}`
	answers(t, session, "list_files", `{}`, "error: no default session yet")
	answers(t, session, "write_file", `{"path":"in.csv","content":"1,2"}`, "wrote in.csv (3 bytes); session default is new, which run_code has with session_id default")
	if res := call(t, session, "run_code", cell); !res.IsError || !strings.Contains(text(t, res), "no cell yet that named its language: name one, javascript, typescript, python, ") {
		t.Errorf("without a language: %q", text(t, res))
	}
	if out := structured[runOutput](t, call(t, session, "run_code", `{"language":"python",`+cell[1:])); out.Stdout != "1,2" {
		t.Errorf("the first cell has %+v", out)
	}
	if out := structured[runOutput](t, call(t, session, "run_code", cell)); out.Stdout != "1,2" {
		t.Errorf("the cell has %+v", out)
	}
	answers(t, session, "write_file", `{"path":"in.csv","session_id":"default","content":"3"}`, "replaced in.csv (1 byte)")
	if out := structured[sessionsOutput](t, call(t, session, "list_sessions", `{}`)); len(out.Sessions) != 1 || out.Sessions[0].SessionID != "default" || out.Sessions[0].Language != "python" {
		t.Errorf("the sessions are %+v", out.Sessions)
	}
	// One of the client's own choice, and what can't be one.
	answers(t, session, "write_file", `{"path":"x","session_id":"other","content":""}`, "wrote x (0 bytes); session other is new")
	answers(t, session, "write_file", `{"path":"x","session_id":"no name","content":""}`, "error: of a name of your choice (letters")
	answers(t, session, "write_file", `{"path":"x","session_id":"`+supervisor.NewID()+`","content":""}`, "error: there is no session")
	answers(t, session, "create_session", `{"session_id":"other"}`, "error: already")
	answers(t, session, "reset_session", `{"session_id":"other","variables":false}`, "error: resets nothing")
	if res := call(t, session, "reset_session", `{"session_id":"other","variables":false,"files":true}`); res.IsError || structured[sessionInfo](t, res).Files != 0 {
		t.Errorf("its files are there: %s", text(t, res))
	}
}

// What is told of a session is in the words that a person would use.
func TestSessionsAreToldInWords(t *testing.T) {
	info := supervisor.SessionInfo{ID: "s", Languages: []job.Language{job.JavaScript, job.Python, job.TypeScript}}
	info.Files.Files, info.Files.Bytes = 1, 1
	for _, want := range []string{"s: javascript, python, typescript; ", ", 1 file (1 byte)"} {
		if said := sessionText(info); !strings.Contains(said, want) {
			t.Errorf("%q is without %q", said, want)
		}
	}
}
