package web

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/deno"
	"rillbox/server"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// echo is a toolchain whose programs answer with their code; those whose code is "wait"
// go on until they are cancelled.
type echo struct{ ended chan string }

func (echo) Describe() job.Description                                       { return job.Description{Languages: deno.Languages} }
func (echo) Prepare(context.Context, func(job.Event), ...job.Language) error { return nil }
func (echo) Close()                                                          {}
func (echo) Install(context.Context, job.Program, func(job.Event)) ([]job.Package, error) {
	return nil, nil
}

func (e echo) Run(ctx context.Context, p job.Program, s job.Streams) (job.Result, error) {
	if p.Code == "wait" {
		s.Emit(job.Event{Kind: job.Stdout, Data: []byte("begun\n")})
		<-ctx.Done()
		e.ended <- p.ID
		return job.Result{Status: job.Cancelled}, nil
	}
	value, err := json.Marshal(p.Code)
	return job.Result{Status: job.Completed, Value: value}, err
}

// house is a door with what is behind it.
type house struct {
	*Door
	url   string
	sup   *supervisor.Supervisor
	ended chan string // IDs of programs that waited and were cancelled
}

func open(t *testing.T, o Options) house {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return openOn(t, o, listener)
}

func openOn(t *testing.T, o Options, listener net.Listener) house {
	t.Helper()
	h := house{ended: make(chan string, 16)}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	sup := supervisor.New(job.DefaultLimits(), log, echo{h.ended})
	if set, ok := o.Tokens.(*TokenSet); ok {
		sup.SetTerms(set.Terms)
	}
	s := server.New(server.Options{Supervisor: sup, Version: "test", Log: log})
	o.Path, o.Log = "/mcp", cmp.Or(o.Log, log)
	if o.Requests == 0 {
		o.Requests, o.Window = 1000, time.Minute
	}
	h.Door, h.sup = New(s, o), sup
	h.url = "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ctx, listener, 0) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		sup.Close()
	})
	return h
}

// identified are tokens that say whose they are: "a" and "b".
type identified map[string]bool

func (i identified) Identify(_ context.Context, token string) (Identity, bool) {
	return Identity{Name: token}, i[token]
}

// client connects in an era of the protocol, with a token.
func (h house) client(t *testing.T, version, token string, heard func(string)) *mcp.ClientSession {
	t.Helper()
	var options mcp.ClientOptions
	if heard != nil {
		options.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { heard(r.Params.Message) }
	}
	transport := &mcp.StreamableClientTransport{Endpoint: h.url + "/mcp", HTTPClient: &http.Client{Transport: bearing(token)}}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &options).Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // a test may have
	return c
}

// bearing sends requests with a token.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

const older, newer = "2025-11-25", "2026-07-28"

func use(ctx context.Context, t *testing.T, c *mcp.ClientSession, tool string, arguments map[string]any) (text string, isError bool) {
	t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken("p")
	r, err := c.CallTool(ctx, params)
	if err != nil {
		return err.Error(), true
	}
	return r.Content[0].(*mcp.TextContent).Text, r.IsError
}

func TestClientsOfBothEras(t *testing.T) {
	h := open(t, Options{})
	for _, version := range []string{older, newer, "2025-06-18", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			c := h.client(t, version, "", nil)
			if got := c.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("the version is %s", got)
			}
			if (c.ID() == "") != (version == newer) {
				t.Errorf("the session is %q", c.ID())
			}
			if text, wrong := use(t.Context(), t, c, "run_code", map[string]any{"language": "js", "code": "hello " + version}); wrong || !strings.Contains(text, "hello "+version) {
				t.Errorf("%s", text)
			}
		})
	}
}

// TestOutputStreams: what a program prints comes while it runs, in both eras.
func TestOutputStreams(t *testing.T) {
	h := open(t, Options{})
	for _, version := range []string{older, newer} {
		t.Run(version, func(t *testing.T) {
			begun := make(chan struct{}, 1)
			c := h.client(t, version, "", func(message string) {
				if strings.Contains(message, "begun") {
					begun <- struct{}{}
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answer := make(chan string, 1)
			go func() {
				text, _ := use(ctx, t, c, "run_code", map[string]any{"language": "js", "code": "wait"})
				answer <- text
			}()
			<-begun
			cancel() // a notification in one era, the end of the request in the other
			<-h.ended
			<-answer
		})
	}
}

// TestIdentitiesDoNotMeet: another identity's protocol session, session and execution do
// not exist.
func TestIdentitiesDoNotMeet(t *testing.T) {
	h := open(t, Options{Tokens: identified{"a": true, "b": true}})
	a, b := h.client(t, older, "a", nil), h.client(t, older, "b", nil)
	if text, wrong := use(t.Context(), t, a, "write_file", map[string]any{"session_id": "work", "path": "x.txt", "text": "secret"}); wrong {
		t.Fatal(text)
	}
	if text, wrong := use(t.Context(), t, b, "read_file", map[string]any{"session_id": "work", "path": "x.txt"}); !wrong || !strings.Contains(text, "no session") {
		t.Errorf("b reads: %s", text)
	}
	again := h.client(t, newer, "a", nil)
	if text, wrong := use(t.Context(), t, again, "read_file", map[string]any{"session_id": "work", "path": "x.txt"}); wrong || !strings.Contains(text, "secret") {
		t.Errorf("another connection of a's, in the other era: %s", text)
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		r, _ := http.NewRequestWithContext(t.Context(), method, h.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		r.Header.Set("Mcp-Session-Id", a.ID())
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := (&http.Client{Transport: bearing("b")}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("b's %s to a's session: %s", method, answer.Status)
		}
		_ = answer.Body.Close()
	}
}

// TestDefaultIsTheConnections: two connections of one identity have each its own default
// session, which ends with it; a connection of one call has none.
func TestDefaultIsTheConnections(t *testing.T) {
	h := open(t, Options{})
	one, two, single := h.client(t, older, "", nil), h.client(t, older, "", nil), h.client(t, newer, "", nil)
	for _, c := range []*mcp.ClientSession{one, two} {
		if text, wrong := use(t.Context(), t, c, "write_file", map[string]any{"path": "x.txt", "text": c.ID()}); wrong {
			t.Fatal(text)
		}
	}
	for _, c := range []*mcp.ClientSession{one, two} {
		if text, wrong := use(t.Context(), t, c, "read_file", map[string]any{"path": "x.txt"}); wrong || !strings.Contains(text, c.ID()) {
			t.Error(text)
		}
	}
	if text, wrong := use(t.Context(), t, single, "read_file", map[string]any{"path": "x.txt"}); !wrong || !strings.Contains(text, "name of your choice") {
		t.Error(text)
	}
	count := func() int {
		text, _ := use(t.Context(), t, single, "list_sessions", nil)
		return strings.Count(text, "default-")
	}
	if n := count(); n != 2 {
		t.Errorf("%d default sessions", n)
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(10 * time.Second); count() != 1; time.Sleep(10 * time.Millisecond) { // nobody is told
		if time.Now().After(end) {
			t.Fatal("its session is left")
		}
	}
}

// TestDeleteEndsWhatGoesOn: also a call that would go on for long.
func TestDeleteEndsWhatGoesOn(t *testing.T) {
	h := open(t, Options{})
	begun := make(chan struct{}, 1)
	c := h.client(t, older, "", func(message string) {
		if strings.Contains(message, "begun") {
			begun <- struct{}{}
		}
	})
	go use(t.Context(), t, c, "run_code", map[string]any{"language": "js", "code": "wait"})
	<-begun
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.url+"/mcp", nil)
	r.Header.Set("Mcp-Session-Id", c.ID())
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusNoContent {
		t.Errorf("%v %v", answer, err)
	}
	<-h.ended
	again, err := http.DefaultClient.Do(r)
	if err != nil || again.StatusCode != http.StatusNotFound {
		t.Errorf("%v %v", again, err)
	}
}

// TestALostStreamIsTakenUpAgain: an older client whose connection broke asks for what it
// missed, and its program went on.
func TestALostStreamIsTakenUpAgain(t *testing.T) {
	h := open(t, Options{})
	c := h.client(t, older, "", nil)
	send := func(ctx context.Context, method, body, last string) *http.Response {
		t.Helper()
		r, _ := http.NewRequestWithContext(ctx, method, h.url+"/mcp", strings.NewReader(body))
		for name, value := range map[string]string{"Mcp-Session-Id": c.ID(), "MCP-Protocol-Version": older, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Last-Event-ID": last} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	ctx, cut := context.WithCancel(t.Context())
	answer := send(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"js","code":"wait"},"_meta":{"progressToken":1}}}`, "")
	text, id := "", ""
	for !strings.Contains(text, "begun") {
		part := make([]byte, 4096)
		n, err := answer.Body.Read(part)
		if text += string(part[:n]); err != nil {
			t.Fatalf("%v after %s", err, text)
		}
	}
	if !strings.HasPrefix(text, "id: ") || strings.Contains(text, "event: prime") {
		t.Errorf("the stream begins with what clients don't know: %s", text)
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(value)
		}
		if value, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(value, "started execution") {
			text = value
		}
	}
	cut()
	_, execution, _ := strings.Cut(text, "started execution ")
	if said, wrong := use(t.Context(), t, c, "cancel_execution", map[string]any{"execution_id": execution[:26]}); wrong {
		t.Errorf("it ended with its connection: %s", said)
	}
	<-h.ended
	rest := send(t.Context(), http.MethodGet, "", id)
	all, err := io.ReadAll(rest.Body)
	if err != nil || !strings.Contains(string(all), `"id":9`) || !strings.Contains(string(all), "cancelled") {
		t.Errorf("%v: %s", err, all)
	}
}

// TestJSONForWhoWantsNoStream: in both eras.
func TestJSONForWhoWantsNoStream(t *testing.T) {
	h := open(t, Options{})
	post := func(body string, headers ...string) (*http.Response, string) {
		t.Helper()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer, string(text)
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"js","code":"hi there"}%s}}`
	answer, _ := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	session := answer.Header.Get("Mcp-Session-Id")
	post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session)
	answer, text := post(strings.Replace(call, "%s", "", 1), "Mcp-Session-Id", session)
	if answer.Header.Get("Content-Type") != "application/json" || !strings.Contains(text, "hi there") {
		t.Errorf("%v %s", answer.Header, text)
	}
	meta := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	answer, text = post(strings.Replace(call, "%s", meta, 1), "MCP-Protocol-Version", newer, "Mcp-Method", "tools/call", "Mcp-Name", "run_code")
	if answer.Header.Get("Content-Type") != "application/json" || !strings.Contains(text, "hi there") {
		t.Errorf("%v %s", answer.Header, text)
	}
}

// TestTheEndDoesNotWaitForListeners: who listens to a server for what may come runs no
// program, and has no end of its own.
func TestTheEndDoesNotWaitForListeners(t *testing.T) {
	h := open(t, Options{})
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/mcp", strings.NewReader(listen))
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": newer, "Mcp-Method": listenMethod} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("%s, %s", answer.Status, kind)
	}
	waited := make(chan struct{})
	go func() {
		h.clients.awaitCalls(time.Hour)
		close(waited)
	}()
	select {
	case <-waited:
	case <-time.After(10 * time.Second):
		t.Error("it is waited for")
	}
}

// TestTheEndAnswersItsCalls: a server that ends refuses new calls, and answers those that
// it cancels.
func TestTheEndAnswersItsCalls(t *testing.T) {
	ended := make(chan string, 1)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	sup := supervisor.New(job.DefaultLimits(), log, echo{ended})
	d := New(server.New(server.Options{Supervisor: sup, Version: "test", Log: log}), Options{Path: "/mcp", Log: log, Requests: 100, Window: time.Minute})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := house{Door: d, url: "http://" + listener.Addr().String()}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- d.Serve(ctx, listener, time.Hour) }()
	begun := make(chan struct{}, 1)
	c := h.client(t, newer, "", func(message string) {
		if strings.Contains(message, "begun") {
			begun <- struct{}{}
		}
	})
	answer := make(chan string, 1)
	go func() {
		text, _ := use(t.Context(), t, c, "run_code", map[string]any{"language": "js", "code": "wait"})
		answer <- text
	}()
	<-begun
	stop()
	for d.closing.Load() == false {
		time.Sleep(time.Millisecond)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/readyz", nil)
	r.Host = "localhost"
	d.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("readiness is %d", w.Code)
	}
	if text, wrong := use(t.Context(), t, c, "run_code", map[string]any{"language": "js", "code": "1"}); !wrong || !strings.Contains(text, "Service Unavailable") {
		t.Errorf("a new call: %s", text)
	}
	sup.Close() // what an operator's second signal does
	if text := <-answer; !strings.Contains(text, "cancelled") {
		t.Errorf("the answer is %q", text)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}
