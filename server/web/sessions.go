package web

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/server"
	"rillbox/supervisor"
)

// sessions are the protocol's, by their IDs. Those of the SDK are looked up here first:
// one of another identity does not exist.
type sessions struct {
	s    *server.Server
	mu   sync.Mutex
	byID map[string]*session
}

// session is one connection of the protocol's, which lasts over many requests.
type session struct {
	id     string // empty before the client has said hello
	client string
	handle string // of the session that "default" means
	json   bool   // its answers are no streams
	ended  context.Context
	end    context.CancelFunc // of its calls, and of itself

	users int // requests; sessions.mu guards it and used
	used  time.Time
}

func (s *sessions) init(of *server.Server) { s.s, s.byID = of, map[string]*session{} }

// newSession is one that is about to begin: add takes it in once the client has said
// hello.
func newSession(of sender, json bool) *session {
	s := &session{client: of.name, json: json, handle: supervisor.DefaultHandle + "-" + strings.ToLower(rand.Text()[:10])}
	s.ended, s.end = context.WithCancel(of.revoked)
	return s
}

// add takes a session in, until its connection ends.
func (s *sessions) add(of *session, sdk *mcp.ServerSession) {
	s.mu.Lock()
	of.id, of.used = sdk.ID(), time.Now()
	if oldest := s.oldest(); oldest != nil {
		delete(s.byID, oldest.id)
		oldest.end()
	}
	s.byID[of.id] = of
	s.mu.Unlock()
	context.AfterFunc(of.ended, func() { _ = sdk.Close() }) // it waits for the calls
	go func() {
		_ = sdk.Wait() // how it ended does not matter
		s.mu.Lock()
		delete(s.byID, of.id)
		s.mu.Unlock()
		of.end()
		s.s.EndSession(of.client, of.handle)
	}()
}

// endUnlessOpen ends a session whose client did not say hello as it should: its context
// would be kept for as long as its identity lasts.
func (s *sessions) endUnlessOpen(of *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.id == "" {
		of.end()
	}
}

// oldest is the session that goes for another one; nil while there is room. It is of the
// client that has most of them, so that nobody's hellos end another's sessions, and if it
// can be, one without a request. The caller holds mu.
func (s *sessions) oldest() (oldest *session) {
	if len(s.byID) < maxSessions {
		return nil
	}
	counts, most := map[string]int{}, ""
	for _, one := range s.byID {
		if counts[one.client]++; counts[one.client] > counts[most] {
			most = one.client
		}
	}
	for _, one := range s.byID {
		if one.client == most && (oldest == nil || one.before(oldest)) {
			oldest = one
		}
	}
	return oldest
}

// before says that a session goes before another one does.
func (s *session) before(other *session) bool {
	if (s.users == 0) != (other.users == 0) {
		return s.users == 0
	}
	return s.used.Before(other.used)
}

// use finds a client's session for one request; leave must be called after it.
func (s *sessions) use(client, id string) (found *session, leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found = s.byID[id]
	if found == nil || found.client != client || found.ended.Err() != nil {
		return nil, nil, false
	}
	found.users++
	return found, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		found.users--
		found.used = time.Now()
	}, true
}

// endIdle ends sessions that nobody has used for long.
func (s *sessions) endIdle() {
	s.closeWhere(func(one *session) bool { return one.users == 0 && time.Since(one.used) > sessionTime })
}

// has says whether a client has a session.
func (s *sessions) has(client string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.byID {
		if one.client == client {
			return true
		}
	}
	return false
}

func (s *sessions) closeAll() { s.closeWhere(func(*session) bool { return true }) }

func (s *sessions) closeWhere(is func(*session) bool) {
	s.mu.Lock()
	var gone []*session
	for _, one := range s.byID {
		if is(one) {
			gone = append(gone, one)
		}
	}
	s.mu.Unlock()
	for _, one := range gone {
		one.end()
	}
}
