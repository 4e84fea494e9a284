package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"rillbox/server"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestOneClientsSessionsEndNoOthers: where there is no room, one of the client's goes
// that has most, first those without a request, of them the one not used for longest.
// TestASessionThatDoesNotOpenIsNotKept: nor is its context, while its token holds.
func TestASessionThatDoesNotOpenIsNotKept(t *testing.T) {
	var s sessions
	s.init(nil)
	of := newSession(sender{&client{name: "x"}, t.Context(), 0, server.ToolList{}, false}, false)
	s.endUnlessOpen(of)
	if of.ended.Err() == nil {
		t.Error("its context goes on")
	}
	open := newSession(sender{&client{name: "x"}, t.Context(), 0, server.ToolList{}, false}, false)
	open.id = "1"
	s.endUnlessOpen(open)
	if open.ended.Err() != nil {
		t.Error("an open one was ended")
	}
}

func TestOneClientsSessionsEndNoOthers(t *testing.T) {
	now := time.Now()
	s := sessions{byID: map[string]*session{}}
	add := func(client, id string, users int, ago time.Duration) {
		s.byID[id] = &session{id: id, client: client, users: users, used: now.Add(-ago)}
	}
	add("small", "small-old", 0, 50*time.Minute)
	add("flood", "flood-reads", 1, 30*time.Minute)
	add("flood", "flood-old", 0, 10*time.Minute)
	if oldest := s.oldest(); oldest != nil {
		t.Errorf("%s goes while there is room", oldest.id)
	}
	for i := len(s.byID); i < maxSessions-1; i++ {
		add("flood", fmt.Sprint("flood-", i), 0, time.Minute)
	}
	add("flood", "flood-last", 1, 0)
	if oldest := s.oldest(); oldest == nil || oldest.id != "flood-old" {
		t.Errorf("%v goes", oldest)
	}
	for _, one := range s.byID {
		if one.client == "flood" {
			one.users = 1
		}
	}
	if oldest := s.oldest(); oldest == nil || oldest.id != "flood-reads" {
		t.Errorf("%v goes when all of its client's are in use", oldest)
	}
}

// TestAnIdleSessionCostsLittle: of memory, when its client has said hello and nothing
// since.
func TestAnIdleSessionCostsLittle(t *testing.T) {
	const most = 40 << 10 // bytes
	h := open(t, Options{Requests: 1_000_000})
	const body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"idle","version":"1"}}}`
	hello := func(times int) {
		for range times {
			r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Fatal(w.Code, w.Body)
			}
		}
	}
	used := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	hello(100)
	before := used()
	const count = 500
	hello(count)
	if each := (used() - before) / count; each > most {
		t.Errorf("each takes %d bytes, and may take %d", each, most)
	}
}
