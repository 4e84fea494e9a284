package server

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"rillbox/server/stdio"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// noting is a toolchain whose sessions note which cells came, in the order in which
// they ran.
type noting struct {
	scripted
	ran chan string
}

func (n noting) OpenSession(context.Context, job.SessionOptions, func(job.Event)) (job.Session, error) {
	return notingSession(n), nil
}

type notingSession noting

func (n notingSession) Run(_ context.Context, cell job.Program, _ job.Streams) (job.Result, error) {
	n.ran <- cell.Code
	return job.Result{Status: job.Completed}, nil
}
func (notingSession) Complete(context.Context, string) ([]string, error) { return nil, nil }
func (notingSession) Unfinished(context.Context, string) (bool, error)   { return false, nil }
func (notingSession) Memory() int64                                      { return 0 }
func (notingSession) Ended() <-chan struct{}                             { return nil }
func (notingSession) Close()                                             {}

// TestCellsRunInTheOrderOfTheirRequests: a client need not wait for one cell to send
// the next; what else it sends meanwhile, refused calls included, holds nothing up.
func TestCellsRunInTheOrderOfTheirRequests(t *testing.T) {
	n := noting{says(job.Result{Status: job.Completed}), make(chan string, 1000)}
	s := newServer(n.scripted, func(o *Options) {
		o.Supervisor = supervisor.New(testLimits(), o.Log, n)
	})
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- stdio.Serve(t.Context(), s, in, out, s.o.Log) }()
	w := newWire(t, toServer, fromServer)
	w.open()
	id := 0
	call := func(method, params string) string {
		id++
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	}
	for round := range 50 {
		var lines, want []string
		for range 10 {
			code := fmt.Sprint(round, "-", len(want))
			want = append(want, code)
			lines = append(lines,
				call("tools/call", fmt.Sprintf(`{"name":"run_code","arguments":{"language":"python","session_id":"default","code":%q}}`, code)),
				call("ping", `{}`),
				call("tools/call", `{"name":"run_code","arguments":{"language":"python","code":"alone"}}`),
				call("tools/call", `{"name":"run_code","arguments":{"language":"cobol","code":""}}`),
				call("tools/call", `{"name":"no_such_tool","arguments":{}}`),
				call("tools/call", `{"name":7}`),
				call("tools/call", `{"name":"cancel_execution","arguments":{"execution_id":"x"}}`),
			)
		}
		go func() {
			for _, line := range lines {
				w.send(line)
			}
		}()
		for range lines {
			if line := w.read(); !strings.Contains(line, `"id":`) {
				t.Fatalf("not an answer: %s", line)
			}
		}
		var have []string
		for range want {
			have = append(have, <-n.ran)
		}
		if !slices.Equal(have, want) {
			t.Errorf("ran %v, sent %v", have, want)
		}
	}
	toServer.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
