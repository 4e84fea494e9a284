package server

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/deno"
	"rillbox/pyodide"
	"rillbox/server/stdio"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/wasm"
)

var update = flag.Bool("update", false, "write the golden files anew")

// serveStray makes the test binary a server whose engine prints to stdout.
const serveStray = "RILLBOX_TEST_SERVE_STRAY"

func TestMain(m *testing.M) {
	if os.Getenv(serveStray) != "" {
		stray := scripted{run: func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
			fmt.Println("a stray line")
			return job.Result{Status: job.Completed}, nil
		}}
		if err := stdio.Run(context.Background(), newServer(stray, nil), slog.New(slog.DiscardHandler)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// scripted is a toolchain whose runs are Go functions: here the mapping to MCP
// is under test, not an engine.
type scripted struct {
	run      func(context.Context, job.Program, func(job.Event)) (job.Result, error)
	install  func(context.Context, []string, func(job.Event)) ([]job.Package, error)
	describe func() job.Description
	stdin    func(io.Reader) // hears of each run's
}

func (s scripted) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	if s.stdin != nil {
		s.stdin(streams.Stdin)
	}
	return s.run(ctx, p, streams.Emit)
}

func (s scripted) Install(ctx context.Context, p job.Program, emit func(job.Event)) ([]job.Package, error) {
	return s.install(ctx, p.Packages, emit)
}

func (s scripted) Describe() job.Description {
	if s.describe != nil {
		return s.describe()
	}
	return job.Description{
		Languages: slices.Concat(deno.Languages, pyodide.Languages, wasm.Languages),
		Versions:  map[string]string{"deno": "2.9.6", "python": "3.14.2"},
		Ready:     true,
		Wall:      "namespaces",
	}
}

func (s scripted) Prepare(context.Context, func(job.Event), ...job.Language) error { return nil }
func (s scripted) Close()                                                          {}

// says is a run that ends at once with r.
func says(r job.Result) scripted {
	return scripted{run: func(context.Context, job.Program, func(job.Event)) (job.Result, error) {
		return r, nil
	}}
}

// hangs is a run that tells its id and then waits for its end.
func hangs(started chan<- string) scripted {
	return scripted{run: func(ctx context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
		started <- p.ID
		<-ctx.Done()
		return job.Result{Status: job.Cancelled, ExitCode: 130, Error: &job.GuestError{Name: "Cancelled", Message: "the execution was cancelled"}}, nil
	}}
}

// testLimits do not depend on the machine.
func testLimits() job.Limits {
	l := job.DefaultLimits()
	l.Running = 4
	return l
}

func newServer(t scripted, change func(*Options)) *Server {
	log := slog.New(slog.DiscardHandler)
	o := Options{
		Supervisor: supervisor.New(testLimits(), log, t),
		Version:    "1.2.3",
		Log:        log,
	}
	if change != nil {
		change(&o)
	}
	return New(o)
}

// The protocol's two eras: with a handshake and a session, and without.
const (
	handshakeEra   = "2025-11-25"
	sessionlessEra = "2026-07-28"
)

// dial connects a client of the SDK to the server over pipes, in the newest era.
func dial(t *testing.T, s *Server, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	return dialEra(t, s, o, sessionlessEra)
}

func dialEra(t *testing.T, s *Server, o *mcp.ClientOptions, era string) *mcp.ClientSession {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- stdio.Serve(context.Background(), s, in, out, s.o.Log)
		out.Close()
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	session, err := client.Connect(context.Background(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		toServer.Close()
		if err := <-ended; err != nil {
			t.Errorf("serve ended with %v", err)
		}
		session.Close()
	})
	return session
}

// call calls a tool and returns its answer; args are JSON.
func call(t *testing.T, session *mcp.ClientSession, tool, args string) *mcp.CallToolResult {
	t.Helper()
	res, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	return res
}

func text(t *testing.T, res *mcp.CallToolResult) string {
	t.Helper()
	if len(res.Content) != 1 {
		t.Fatalf("%d parts of content, want 1", len(res.Content))
	}
	return res.Content[0].(*mcp.TextContent).Text
}

// structured decodes the structured result.
func structured[T any](t *testing.T, res *mcp.CallToolResult) T {
	t.Helper()
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A call has an end, whatever it waits for, and the next is answered.
func TestACallHasAnEnd(t *testing.T) {
	first := true
	s := newServer(scripted{run: func(ctx context.Context, _ job.Program, _ func(job.Event)) (job.Result, error) {
		if !first {
			return job.Result{Status: job.Completed}, nil
		}
		first = false
		<-ctx.Done()
		return job.Result{}, context.Cause(ctx)
	}}, func(o *Options) { o.CallTime = 20 * time.Millisecond })
	session := dial(t, s, nil)
	program := `{"language":"python","code":"1"}`
	if res := call(t, session, "run_code", program); !res.IsError || !strings.Contains(text(t, res), "the call took longer than 20ms, waiting included") {
		t.Errorf("it is answered: %s", text(t, res))
	}
	if res := call(t, session, "run_code", program); res.IsError {
		t.Errorf("the next is answered: %s", text(t, res))
	}
}

func TestPanicIsAnErrorOfOneCall(t *testing.T) {
	var log strings.Builder
	var mu sync.Mutex
	calls := 0
	s := newServer(scripted{describe: func() job.Description {
		if calls++; calls > 20 {
			panic("out of cheese")
		}
		return job.Description{Languages: pyodide.Languages}
	}, run: func(context.Context, job.Program, func(job.Event)) (job.Result, error) {
		return job.Result{Status: job.Completed}, nil
	}}, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(locked{&mu, &log}, nil))
	})
	session := dial(t, s, nil)
	calls = 20
	res := call(t, session, "list_runtimes", `{}`)
	if !res.IsError || !strings.Contains(text(t, res), "internal error") {
		t.Errorf("a panic gave %q", text(t, res))
	}
	if res := call(t, session, "run_code", `{"language":"python","code":"1"}`); res.IsError {
		t.Errorf("the next call failed: %s", text(t, res))
	}
	mu.Lock()
	defer mu.Unlock()
	if got := log.String(); !strings.Contains(got, "out of cheese") || !strings.Contains(got, "describe") && !strings.Contains(got, "server_test.go") {
		t.Errorf("the log does not tell of the panic and where it was:\n%s", got)
	}
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func TestCancelledNotificationEndsTheRun(t *testing.T) {
	for _, era := range []string{handshakeEra, sessionlessEra} {
		t.Run(era, func(t *testing.T) {
			started, ended := make(chan string, 1), make(chan struct{})
			run := hangs(started)
			inner := run.run
			run.run = func(ctx context.Context, p job.Program, emit func(job.Event)) (job.Result, error) {
				defer close(ended)
				return inner(ctx, p, emit)
			}
			session := dialEra(t, newServer(run, nil), nil, era)
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				<-started
				cancel() // the SDK's client sends notifications/cancelled
			}()
			params := &mcp.CallToolParams{Name: "run_code", Arguments: json.RawMessage(anyRun)}
			if _, err := session.CallTool(ctx, params); err == nil {
				t.Error("the cancelled call gave a result")
			}
			await(t, ended, "the run's end")
			if _, err := session.ListTools(context.Background(), nil); err != nil {
				t.Errorf("the session did not survive: %v", err)
			}
		})
	}
}

// TestTheEndWaitsForNoCallForEver: one that reads what never answers can't be ended.
func TestTheEndWaitsForNoCallForEver(t *testing.T) {
	started, never := make(chan bool), make(chan bool)
	defer close(never)
	s := newServer(scripted{run: func(context.Context, job.Program, func(job.Event)) (job.Result, error) {
		started <- true
		<-never
		return job.Result{}, nil
	}}, nil)
	s.lastWait = time.Millisecond
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- stdio.Serve(ctx, s, in, out, s.o.Log) }()
	w := newWire(t, toServer, fromServer)
	w.open()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"python","code":"1"}}}`)
	<-started
	go io.Copy(io.Discard, fromServer)
	end()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "does not end") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
}

func TestCancelExecution(t *testing.T) {
	started := make(chan string, 1)
	s := newServer(hangs(started), nil)
	owner, other := dial(t, s, nil), dial(t, s, nil)

	answer := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := owner.CallTool(context.Background(), &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": "python", "code": "1"}})
		if err != nil {
			t.Error(err)
		}
		answer <- res
	}()
	args := fmt.Sprintf(`{"execution_id":%q}`, <-started)
	if res := call(t, other, "cancel_execution", args); !res.IsError {
		t.Errorf("another client could cancel: %s", text(t, res))
	}
	if res := call(t, owner, "cancel_execution", args); res.IsError || !structured[cancelOutput](t, res).Cancelled {
		t.Errorf("its own client could not cancel: %s", text(t, res))
	}
	res := <-answer
	if out := structured[runOutput](t, res); !res.IsError || out.Status != "cancelled" {
		t.Errorf("the run answered %+v", out)
	}
	if res := call(t, owner, "cancel_execution", args); !res.IsError || !strings.Contains(text(t, res), "has ended") {
		t.Errorf("cancelling what has ended gave %q", text(t, res))
	}
}

func TestEOFEndsRuns(t *testing.T) {
	started := make(chan string, 1)
	s := newServer(hangs(started), nil)
	in, toServer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- stdio.Serve(context.Background(), s, in, io.Discard, s.o.Log) }()
	conversation := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"python","code":"1"}}}
`
	if _, err := io.WriteString(toServer, conversation); err != nil {
		t.Fatal(err)
	}
	<-started
	toServer.Close()
	if err := awaitValue(t, ended, "the end of serve"); err != nil {
		t.Errorf("EOF gave %v", err)
	}
}

func TestServerStopEndsRunsThoughTheClientDoesNotRead(t *testing.T) {
	started := make(chan string, 1)
	s := newServer(hangs(started), nil)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe() // read for initialize only
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- stdio.Serve(ctx, s, in, out, s.o.Log) }()
	go func() {
		io.WriteString(toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
		io.WriteString(toServer, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","_meta":{"progressToken":1},"arguments":{"language":"python","code":"1"}}}`+"\n")
	}()
	if _, err := fromServer.Read(make([]byte, 64<<10)); err != nil {
		t.Fatal(err)
	}
	<-started
	cancel()
	if err := awaitValue(t, ended, "the end of serve"); err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

// patience is far more than anything here takes; it only makes a hang a failure.
const patience = 20 * time.Second

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("no sign of %s", what)
	}
}

func awaitValue[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no sign of %s", what)
		panic("unreachable")
	}
}
