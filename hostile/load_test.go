//go:build !windows

package hostile

import (
	"context"
	crypto "crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/deno"
	"rillbox/pyodide"
	"rillbox/server"
	"rillbox/server/web"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// bearers are tokens that are the names of their identities.
type bearers struct{}

func (bearers) Identify(_ context.Context, token string) (web.Identity, bool) {
	return web.Identity{Name: token}, token != ""
}

func (bearers) Challenge(*http.Request) string { return "Bearer" }

// bearing sends requests with a token.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestAFloodDelaysNobodyElse: while one identity hangs, floods and disconnects, clients of
// another get their own answers, each as soon as a place is free. scripts/load is the
// long form.
func TestAFloodDelaysNobodyElse(t *testing.T) {
	const (
		hangs = "0.5" // seconds
		flood = 32    // programs that hang at a time
		most  = 12    // of them that end while half of the calls are answered; who waits for all sees 28
		calls = 6     // of each client
	)
	store, limits := openShared(t), job.DefaultLimits()
	limits.Running = 4
	scripts, err := deno.New(deno.Options{Cache: store, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	python, err := pyodide.New(pyodide.Options{Options: deno.Options{Cache: store, Limits: limits, Warm: 1}})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	super := supervisor.New(limits, log, scripts, python)
	defer super.Close()
	door := web.New(server.New(server.Options{Supervisor: super, Version: "test"}), web.Options{Path: "/mcp", Tokens: bearers{}, Requests: 100_000, Window: time.Minute, Log: log})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String() + "/mcp"
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	over := make(chan error, 1)
	go func() { over <- door.Serve(ctx, listener, 0) }()
	defer func() {
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	}()

	flooding, end := context.WithCancel(t.Context())
	var bad sync.WaitGroup
	hung := make(chan struct{}, flood)
	var ended atomic.Int64
	defer func() {
		end()
		bad.Wait()
		close(hung)
	}()
	for i := range flood {
		bad.Go(func() {
			for flooding.Err() == nil {
				hung <- struct{}{}
				send(flooding, url, `run_code`, `{"language":"javascript","code":"while (true);","timeout_seconds":`+hangs+`}`)
				ended.Add(1)
			}
		})
		if i%8 != 0 {
			continue
		}
		bad.Go(func() {
			for flooding.Err() == nil {
				send(flooding, url, "write_file", `{"session_id":"s","path":"x","text":"`+strings.Repeat("x", 1<<20)+`"}`)
				send(flooding, url, "install_packages", `{"language":"javascript","packages":["file:///etc/passwd"]}`)
				send(flooding, url, "run_code", `{"language":"javascript","code":"`+strings.Repeat("x", 11<<20)+`"}`)
				short, cancel := context.WithTimeout(flooding, 100*time.Millisecond)
				send(short, url, "run_code", `{"language":"python","code":"while True: pass"}`)
				cancel()
			}
		})
	}
	for range flood {
		<-hung
	}
	go func() {
		for range hung { // nobody waits for the later ones
		}
	}()

	programs := []struct{ language, code string }{
		{"javascript", `console.log("%[1]s"); export default "%[1]s";`},
		{"python", "print('%[1]s')\n'%[1]s'"},
		{"typescript", `const own: string = "%[1]s"; console.log(own); export default own;`},
	}
	var good sync.WaitGroup
	var mu sync.Mutex
	var before []int64 // how many that hang ended while a call was answered
	for i, version := range []string{"2025-11-25", "2026-07-28"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "good", Version: "1"}, nil)
		transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearing("good")}}
		c, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		good.Go(func() {
			for n := range calls {
				token, p := crypto.Text(), programs[(n+i)%len(programs)]
				start := ended.Load()
				r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": p.language, "code": fmt.Sprintf(p.code, token)}})
				if err != nil {
					t.Errorf("a call was lost: %v", err)
					return
				}
				var out struct{ Stdout, Result string }
				text, _ := json.Marshal(r.StructuredContent)
				if err := json.Unmarshal(text, &out); err != nil || out.Stdout != token+"\n" || out.Result != token {
					t.Errorf("the answer is not its own: %s", text)
				}
				mu.Lock()
				before = append(before, ended.Load()-start)
				mu.Unlock()
			}
		})
	}
	good.Wait()
	slices.Sort(before)
	t.Log(before)
	if len(before) > 0 && before[len(before)/2] > most {
		t.Errorf("more than %d programs that hang ended before half of the calls were answered: %v", most, before)
	}
}

// send calls a tool as the identity that misbehaves. What comes of it does not matter.
func send(ctx context.Context, url, tool, arguments string) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"bad","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, arguments)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
		r.Header.Set(name, value)
	}
	answer, err := bearing("bad").RoundTrip(r)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
}
