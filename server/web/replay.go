package web

import (
	lists "container/list"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what is kept for clients that lose a stream, in bytes: of all sessions, and of
// one. The newest event is kept whatever its size.
const (
	replayBytes        = 16 << 20
	replaySessionBytes = 4 << 20
	// eventBytes is what an event takes beside its data, and a stream without any.
	eventBytes = 512
)

// replayStore keeps the latest events of streams in memory, the mcp.EventStore of sessions.
// The SDK's own never forgets a stream while its session lasts, and looks at all streams of
// all sessions for each event beyond its bound.
type replayStore struct {
	mu       sync.Mutex
	order    lists.List // of *replayEvent, the oldest first
	sessions map[string]*replaySession
	bytes    int
}

type replaySession struct {
	bytes   int
	streams map[string]*replayStream
	order   lists.List // its part of the store's
}

// replayStream has the events from number first on.
type replayStream struct {
	first  int
	events [][]byte
}

// replayEvent is an event, or the begin of a stream.
type replayEvent struct {
	session, stream string
	size            int
	begins          bool
	all, own        *lists.Element
}

var _ mcp.EventStore = (*replayStore)(nil)

func newReplayStore() *replayStore { return &replayStore{sessions: map[string]*replaySession{}} }

// Open begins a stream.
func (s *replayStore) Open(_ context.Context, session, stream string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.sessions[session]
	if in == nil {
		in = &replaySession{streams: map[string]*replayStream{}}
		s.sessions[session] = in
	}
	if in.streams[stream] == nil {
		in.streams[stream] = &replayStream{}
		s.add(in, &replayEvent{session: session, stream: stream, begins: true, size: eventBytes})
	}
	return nil
}

// Append keeps an event; one of a stream that was forgotten is not kept.
func (s *replayStore) Append(_ context.Context, session, stream string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.sessions[session]
	if in == nil || in.streams[stream] == nil {
		return nil
	}
	of := in.streams[stream]
	of.events = append(of.events, slices.Clone(data))
	s.add(in, &replayEvent{session: session, stream: stream, size: len(data) + eventBytes})
	return nil
}

// add adds an event, and forgets the oldest ones that are too much then.
func (s *replayStore) add(in *replaySession, e *replayEvent) {
	e.all, e.own = s.order.PushBack(e), in.order.PushBack(e)
	s.bytes += e.size
	in.bytes += e.size
	for in.bytes > replaySessionBytes && in.order.Len() > 1 {
		s.forget(in.order.Front().Value.(*replayEvent))
	}
	for s.bytes > replayBytes && s.order.Len() > 1 {
		s.forget(s.order.Front().Value.(*replayEvent))
	}
}

// listenStream is the stream for what belongs to no call. It lasts as its session does.
const listenStream = ""

// forget forgets the oldest event of a session, which is the oldest of its stream. A stream
// goes with the last of its events: others than listenStream have few, and soon.
func (s *replayStore) forget(e *replayEvent) {
	in := s.sessions[e.session]
	s.order.Remove(e.all)
	in.order.Remove(e.own)
	s.bytes -= e.size
	in.bytes -= e.size
	of := in.streams[e.stream]
	if e.begins {
		return
	}
	of.first++
	of.events[0] = nil
	of.events = of.events[1:]
	if len(of.events) == 0 && e.stream != listenStream {
		delete(in.streams, e.stream)
	}
}

// After gives the events of a stream after the one with a number.
func (s *replayStore) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events [][]byte
	var err error
	in := s.sessions[session]
	if in == nil || in.streams[stream] == nil {
		err = fmt.Errorf("the stream is not kept: %w", mcp.ErrEventsPurged)
	} else if of := in.streams[stream]; index+1 < of.first {
		err = fmt.Errorf("its next event is not kept: %w", mcp.ErrEventsPurged)
	} else if from := index + 1 - of.first; from < len(of.events) {
		events = slices.Clone(of.events[from:])
	}
	return func(yield func([]byte, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		for _, event := range events {
			if !yield(event, nil) {
				return
			}
		}
	}
}

// SessionClosed forgets a session.
func (s *replayStore) SessionClosed(_ context.Context, session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.sessions[session]
	if in == nil {
		return nil
	}
	for e := in.order.Front(); e != nil; e = e.Next() {
		s.order.Remove(e.Value.(*replayEvent).all)
	}
	s.bytes -= in.bytes
	delete(s.sessions, session)
	return nil
}
