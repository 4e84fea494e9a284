package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
)

// Caller is the client at the other end of a connection, as its door knows it.
type Caller struct {
	// Client owns all that its calls make: no other client can name, see or cancel it.
	Client string
	// Default is the handle of the session that the name "default" means. It is empty
	// where a connection lasts for one call, and such a session would be everybody's.
	Default string
	// Tools says which of the tools that all may use it may use.
	Tools ToolList
	// Placed, if any, is called when the message after a tool call may come: a door that
	// keeps the order of calls has it.
	Placed func()
	// Ended, if any, cancels the calls.
	Ended context.Context
	// Opened, if any, is called when the client has said hello, with its connection.
	Opened func(*mcp.ServerSession)
}

type callerKey struct{}

// WithCaller gives a context for the SDK's handling of what a caller sends.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(ctx context.Context) Caller { return ctx.Value(callerKey{}).(Caller) }

// clientOf is the client whose call has the context.
func clientOf(ctx context.Context) string { return callerOf(ctx).Client }

// handleOf is the handle of the session that a call names.
func handleOf(ctx context.Context, named string) (string, error) {
	if named != supervisor.DefaultHandle {
		return named, nil
	}
	if handle := callerOf(ctx).Default; handle != "" {
		return handle, nil
	}
	return "", errors.New(`this connection lasts for one call and has no session "default": give session_id a name of your choice`)
}

// Connect answers a client until its connection ends; then all that belongs to it
// ends too.
func (s *Server) Connect(ctx context.Context, client string, placed func(), t mcp.Transport) (*mcp.ServerSession, error) {
	e := s.endpoint()
	s.connections.Store(e, client)
	session, err := e.Connect(WithCaller(ctx, Caller{Client: client, Default: supervisor.DefaultHandle, Placed: placed}), t, nil)
	if err != nil {
		s.connections.Delete(e)
		return nil, err
	}
	go func() {
		session.Wait()
		s.connections.Delete(e)
		s.EndClient(client)
	}()
	return session, nil
}

// endpoints are the SDK's servers of clients that have any number of connections.
type endpoints struct {
	mu       sync.Mutex
	byClient map[string]*mcp.Server
}

// Endpoint is the SDK's server for all connections of one client, whose calls have a
// context of WithCaller.
func (s *Server) Endpoint(client string) *mcp.Server {
	s.endpoints.mu.Lock()
	defer s.endpoints.mu.Unlock()
	e, ok := s.endpoints.byClient[client]
	if !ok {
		e = s.endpoint()
		s.endpoints.byClient[client] = e
		s.connections.Store(e, client)
	}
	return e
}

// EndClient ends all that belongs to a client, which may come again.
func (s *Server) EndClient(client string) {
	s.endpoints.mu.Lock()
	if e, ok := s.endpoints.byClient[client]; ok {
		delete(s.endpoints.byClient, client)
		s.connections.Delete(e)
	}
	s.endpoints.mu.Unlock()
	s.o.Supervisor.EndClient(client)
	s.outputs.forget(client)
}

// LongestIdle is how long a session or a run of a client's may go on without a call of
// its.
func (s *Server) LongestIdle() time.Duration {
	return max(s.limits.MaxSessionIdle, s.limits.MaxTimeout+s.limits.InstallTimeout)
}

// EndSession ends the session that a connection's end leaves without a name.
func (s *Server) EndSession(client, handle string) {
	if s.o.Supervisor.DestroySession(client, handle) == nil {
		s.filesChanged(client)
	}
}
