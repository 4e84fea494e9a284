package web

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestClientsThatComeNoMoreAreForgotten: with all that is theirs, while those that have a
// protocol session or a call stay.
func TestClientsThatComeNoMoreAreForgotten(t *testing.T) {
	h := open(t, Options{Tokens: identified{"gone": true, "connected": true, "calls": true}})
	begun := make(chan struct{}, 1)
	gone, connected, calls := h.client(t, newer, "gone", nil), h.client(t, older, "connected", nil), h.client(t, newer, "calls", func(message string) {
		if strings.Contains(message, "begun") {
			begun <- struct{}{}
		}
	})
	if text, wrong := use(t.Context(), t, gone, "write_file", map[string]any{"session_id": "work", "path": "x.txt", "text": "x"}); wrong {
		t.Fatal(text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		use(ctx, t, calls, "run_code", map[string]any{"language": "js", "code": "wait"})
	}()
	<-begun
	endpoint := h.s.Endpoint("gone")
	h.clients.forget(h.s.LongestIdle(), h.sessions.has, h.s.EndClient)
	if len(h.clients.byName) != 3 || h.s.Endpoint("gone") != endpoint {
		t.Error("a client was forgotten that came a moment ago")
	}
	awaitTrue(t, "it is not forgotten", func() bool { // its request ends a moment after its answer
		h.clients.forget(0, h.sessions.has, h.s.EndClient)
		h.clients.mu.Lock()
		defer h.clients.mu.Unlock()
		return h.clients.byName["gone"] == nil
	})
	if h.clients.byName["gone"] != nil || h.clients.byName["connected"] == nil || h.clients.byName["calls"] == nil {
		t.Errorf("left are %v", h.clients.byName)
	}
	if h.s.Endpoint("gone") == endpoint {
		t.Error("the SDK's server of a client that has gone is left")
	}
	if text, wrong := use(t.Context(), t, gone, "read_file", map[string]any{"session_id": "work", "path": "x.txt"}); !wrong || !strings.Contains(text, "no session") {
		t.Errorf("its session is left: %s", text)
	}
	if text, wrong := use(t.Context(), t, connected, "run_code", map[string]any{"language": "js", "code": "hi"}); wrong {
		t.Error(text)
	}
	cancel()
	<-h.ended
	<-ended
}

// awaitTrue waits for what nobody tells of.
func awaitTrue(t *testing.T, or string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(or)
		}
	}
}

// TestNoBoundOnRequests: an operator may set none.
func TestNoBoundOnRequests(t *testing.T) {
	var c clients
	c.init(Options{Window: time.Minute}, func(string) {})
	for range 1000 {
		if refused := c.of(Identity{Name: "x"}).checkRate(7, time.Minute); refused != nil {
			t.Fatal(refused)
		}
	}
}

// TestABatchCountsAsItsMessages: else 2025-03-26 has no bound.
func TestABatchCountsAsItsMessages(t *testing.T) {
	h := open(t, Options{Requests: 10, Window: time.Hour})
	dial := func() net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	_, _, begun := exchange(t, dial(), post(hello), false)
	batch := post("["+strings.Repeat(list5+",", 6)+list5+"]", sessionHeader, begun.Get(sessionHeader), versionHeader, "2025-03-26")
	if status, body, _ := exchange(t, dial(), batch, false); status != http.StatusOK {
		t.Errorf("8 of 10 messages: %d %s", status, body)
	}
	status, body, header := exchange(t, dial(), batch, false)
	if status != http.StatusTooManyRequests || header.Get("Retry-After") == "" {
		t.Errorf("15 of 10 messages: %d %.300s", status, body)
	}
}
