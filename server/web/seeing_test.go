package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

var told = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "figures") })

// What a server does is told to who has a token; where there are none, to this machine
// and to no page of another's.
func TestMetricsAreNotForEverybody(t *testing.T) {
	for _, row := range []struct {
		name, from, token, header, value string
		tokens                           Tokens
		want                             int
	}{
		{name: "this machine", from: "127.0.0.1:1", want: 200},
		{name: "this machine by IPv6", from: "[::1]:1", want: 200},
		{name: "another machine", from: "192.0.2.1:1", want: 403},
		{name: "another machine, by a proxy here", from: "127.0.0.1:1", header: "X-Forwarded-For", value: "192.0.2.1", want: 403},
		{name: "a page of another site", from: "127.0.0.1:1", header: "Origin", value: "https://evil.example", want: 403},
		{name: "another name", from: "127.0.0.1:1", header: "Host", value: "evil.example", want: 403},
		{name: "this machine without a token", from: "127.0.0.1:1", tokens: identified{"a": true}, want: 401},
		{name: "a token that does not hold", from: "127.0.0.1:1", tokens: identified{"a": true}, token: "b", want: 401},
		{name: "a token", from: "192.0.2.1:1", tokens: identified{"a": true}, token: "a", want: 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := open(t, Options{Tokens: row.tokens, Metrics: told})
			r := httptest.NewRequest("GET", "http://localhost/metrics", nil)
			r.RemoteAddr = row.from
			if row.token != "" {
				r.Header.Set("Authorization", "Bearer "+row.token)
			}
			switch row.header {
			case "":
			case "Host":
				r.Host = row.value
			default:
				r.Header.Set(row.header, row.value)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != row.want || (strings.Contains(w.Body.String(), "figures") != (row.want == 200)) {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		})
	}
}

func TestReadinessIsNotAskedForEachRequest(t *testing.T) {
	asked := 0
	h := open(t, Options{Ready: func() error { asked++; return errors.New("the disk is full") }})
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/readyz", nil))
		if w.Code != 503 || !strings.Contains(w.Body.String(), "the disk is full") || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	}
	if asked != 1 {
		t.Errorf("it was found out %d times", asked)
	}
}

func TestWhatIsAsideAnswersForNoOtherName(t *testing.T) {
	s := Aside([]string{"rillbox.internal"}, told)
	for host, want := range map[string]int{"127.0.0.1:9464": 200, "localhost:9464": 200, "rillbox.internal:9464": 200, "evil.example:9464": 403} {
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, httptest.NewRequest("GET", "http://"+host+"/metrics", nil))
		if w.Code != want {
			t.Errorf("%s: %d", host, w.Code)
		}
	}
}

// A request's ID is in its answer and in each line about it, with whose it is; nothing of
// the token or of what it sent is.
func TestARequestIsOneLineOfTheLog(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	var counted []int
	h := open(t, Options{
		Tokens: identified{"alice": true}, Answered: func(_ string, status int, _ time.Duration) { counted = append(counted, status) },
		Log: slog.New(slog.NewJSONHandler(lockedWriter{&mu, &log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	const hello = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"secret","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, row := range []struct {
		name, id, token, body string
		keeps                 bool
		status                int
		identity              string
	}{
		{name: "answered", id: "req-1.a_B", token: "alice", body: hello, keeps: true, status: 200, identity: "alice"},
		{name: "refused", id: "req-2", token: "alice", body: "secret", keeps: true, status: 400, identity: "alice"},
		{name: "nobody's", id: "req-3", token: "secret", body: hello, keeps: true, status: 401},
		{name: "an ID with a line of its own", id: "x\n{\"forged\":1}", token: "alice", body: hello, status: 200, identity: "alice"},
		{name: "a long ID", id: strings.Repeat("x", 65), token: "alice", body: hello, status: 200, identity: "alice"},
		{name: "no ID", token: "alice", body: hello, status: 200, identity: "alice"},
	} {
		t.Run(row.name, func(t *testing.T) {
			mu.Lock()
			log.Reset()
			mu.Unlock()
			r := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(row.body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("MCP-Protocol-Version", newer)
			r.Header.Set("Mcp-Method", "server/discover")
			r.Header.Set("Authorization", "Bearer "+row.token)
			if row.id != "" {
				r.Header["X-Request-Id"] = []string{row.id}
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			id := w.Header().Get("X-Request-Id")
			if w.Code != row.status || (id == row.id) != row.keeps || !plainID.MatchString(id) {
				t.Fatalf("%d, its ID is %q: %s", w.Code, id, w.Body)
			}
			var line struct {
				Request, Identity, Why string
				Status                 int
			}
			if err := json.Unmarshal(log.Bytes(), &line); err != nil {
				t.Fatalf("%v: %s", err, log.String())
			}
			if line.Request != id || line.Identity != row.identity || line.Status != row.status || (line.Why != "") != (row.status >= 400) {
				t.Errorf("the line is %s", log.String())
			}
			if strings.Contains(log.String(), "secret") {
				t.Errorf("the line has a secret: %s", log.String())
			}
			if counted[len(counted)-1] != row.status {
				t.Errorf("it counted %v", counted)
			}
		})
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	to io.Writer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
