package web

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// after gives the events after a number as one text.
func after(t *testing.T, s *replayStore, session, stream string, index int) (string, error) {
	t.Helper()
	var events []string
	for event, err := range s.After(t.Context(), session, stream, index) {
		if err != nil {
			return "", err
		}
		events = append(events, string(event))
	}
	return strings.Join(events, " "), nil
}

func TestEventsAreKeptWithinBounds(t *testing.T) {
	s := newReplayStore()
	add := func(session, stream string, events ...string) {
		t.Helper()
		err := s.Open(t.Context(), session, stream)
		for _, event := range events {
			err = errors.Join(err, s.Append(t.Context(), session, stream, []byte(event)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(session, stream string, index int, want string) {
		t.Helper()
		got, err := after(t, s, session, stream, index)
		if want == "purged" {
			if !errors.Is(err, mcp.ErrEventsPurged) {
				t.Errorf("%s/%s after %d: %.20q, %v", session, stream, index, got, err)
			}
		} else if err != nil || got != want {
			t.Errorf("%s/%s after %d: %.20q, %v, want %.20q", session, stream, index, got, err, want)
		}
	}
	add("a", listenStream, "l0")
	add("a", "1", "p", "q", "r")
	add("b", "1", "other")
	want("a", "1", -1, "p q r")
	want("a", "1", 1, "r")
	want("a", "1", 2, "")
	want("b", "1", 0, "")
	want("a", "2", -1, "purged")
	want("c", "1", -1, "purged")

	// A session's flood costs nobody else an event, and streams are forgotten.
	for i := range 40 {
		add("a", fmt.Sprint("flood", i), strings.Repeat("x", 1<<20))
	}
	want("b", "1", -1, "other")
	want("a", "1", -1, "purged")
	if n := len(s.sessions["a"].streams); n > 6 || s.sessions["a"].bytes > replaySessionBytes {
		t.Errorf("%d streams are kept, %d bytes", n, s.sessions["a"].bytes)
	}
	// One that was forgotten counts on elsewhere: no later event passes for an earlier one.
	if err := s.Append(t.Context(), "a", "1", []byte("late")); err != nil {
		t.Fatal(err)
	}
	want("a", "1", -1, "purged")
	want("a", listenStream, -1, "purged")
	add("a", listenStream, "l1")
	want("a", listenStream, 0, "l1")

	// All sessions together have a bound too, and events without data count.
	for i := range 1000 {
		add(fmt.Sprint("s", i), "1", strings.Repeat("y", 64<<10))
	}
	for i := range 200_000 {
		add("empty", fmt.Sprint(i), "")
	}
	want("b", "1", -1, "purged")
	if s.bytes > replayBytes || s.order.Len() > replayBytes/eventBytes {
		t.Errorf("%d bytes and %d events are kept", s.bytes, s.order.Len())
	}
	// The newest is kept, whatever its size.
	large := strings.Repeat("z", replayBytes+1)
	add("large", "1", large)
	want("large", "1", -1, large)
	for session := range s.sessions {
		if err := s.SessionClosed(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	}
	if s.bytes != 0 || s.order.Len() != 0 || len(s.sessions) != 0 {
		t.Errorf("%d bytes, %d events and %d sessions are left", s.bytes, s.order.Len(), len(s.sessions))
	}
}
