package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/server"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// TestStatusIsOfOnesOwn: an identity learns what it has, and of others only how many
// programs there are.
func TestStatusIsOfOnesOwn(t *testing.T) {
	h := open(t, Options{Tokens: identified{"a": true, "b": true}})
	begun := make(chan string, 10)
	a := h.client(t, newer, "a", func(message string) { begun <- message })
	go use(t.Context(), t, a, "run_code", map[string]any{"language": "js", "code": "wait", "session_id": ""})
	for message := <-begun; message != "stdout: begun\n"; message = <-begun {
	}
	get := func(token, origin string) (int, server.Status) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, h.url+"/status", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var s server.Status
		if w.Code == http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
		}
		return w.Code, s
	}
	if _, s := get("a", h.url); s.Identity != "a" || s.Running != 1 || s.Yours.Programs != 1 || s.All != nil {
		t.Errorf("to who runs it: %+v", s)
	}
	if _, s := get("b", h.url); s.Identity != "b" || s.Running != 1 || s.Yours.Programs != 0 || s.All != nil {
		t.Errorf("to another: %+v", s)
	}
	if code, _ := get("c", h.url); code != http.StatusUnauthorized {
		t.Errorf("to nobody: %d", code)
	}
	if code, _ := get("a", "http://example.com"); code != http.StatusForbidden {
		t.Errorf("to a page of another site: %d", code)
	}
	h.o.Tokens = nil
	if _, s := get("", h.url); len(s.All) != 1 || s.All[0].Name != "a" || s.All[0].Programs != 1 {
		t.Errorf("to the only identity: %+v", s)
	}
}

// TestATokenIsToldItsOwnLimits: by the status as by list_runtimes.
func TestATokenIsToldItsOwnLimits(t *testing.T) {
	set, narrow := &TokenSet{}, tokenOf("a")
	narrow.Identity.Terms = supervisor.Terms{Timeout: 5 * time.Second, Permissions: map[job.Language][]string{"javascript": {"--allow-net=a.example"}}}
	set.Replace([]Token{narrow, tokenOf("b")})
	h := open(t, Options{Tokens: set})
	for name, want := range map[string]string{
		"a": `5 5 ["--allow-net=a.example"]`,
		"b": `30 300 []`,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/status", nil)
		r.Header.Set("Authorization", "Bearer secret-"+name)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		c := h.client(t, newer, "secret-"+name, nil)
		answer, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_runtimes"})
		if err != nil {
			t.Fatal(err)
		}
		listed, _ := json.Marshal(answer.StructuredContent)
		for _, text := range [][]byte{w.Body.Bytes(), listed} {
			var told struct {
				Limits   map[string]float64
				Runtimes []struct{ Permissions json.RawMessage }
			}
			if err := json.Unmarshal(text, &told); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if got := fmt.Sprint(told.Limits["timeout_seconds"], told.Limits["max_timeout_seconds"], " ", string(told.Runtimes[0].Permissions)); got != want {
				t.Errorf("%s is told %s, want %s", name, got, want)
			}
		}
	}
}
