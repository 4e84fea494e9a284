// Package server is the MCP surface of Rillbox. Tool calls come in and become
// job.Programs; job.Events go out as progress and log notifications while a run lasts,
// and its job.Result as the answer of the tool.
//
// It promises:
//
//   - initialize is answered at once: nothing here waits for a runtime, a
//     package or the network before a tool asks for it.
//   - A wrong argument, a busy supervisor and a panic are errors of one call.
//   - A slow client does not slow its runs: events wait in bounded buffers, and
//     what does not fit is left out and counted.
//   - A run ends with its call (notifications/cancelled), with its client (EOF)
//     and with the server; only the client that started it can cancel it.
//
// Clients come in through doors, server/stdio for one, which name them: what a
// client owns is kept under that name, never under its connection.
//
// decodeArgs checks tools' arguments by hand, and not the SDK with its schemas: its
// errors tell a model which argument is wrong and what to send.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// Options are what a Server needs.
type Options struct {
	Supervisor *supervisor.Supervisor
	// Version is Rillbox's own.
	Version string
	// Name is what the server calls itself; empty means Rillbox.
	Name string
	// Instructions are the operator's, which come before the server's own.
	Instructions string
	// Tools says which tools clients may use.
	Tools ToolList
	// Lookups, if any, are the cache's hits and misses.
	Lookups func() (hits, misses int64)
	// Offline says that nothing is fetched, only used from the cache.
	Offline bool
	// Conformance adds what the conformance suite wants of a server (conformance.go).
	Conformance bool
	// CallTime is how long a tool call may take in all, waiting included; 0 means as long
	// as its parts may.
	CallTime time.Duration
	// Log receives what an operator should know; nil discards it.
	Log *slog.Logger
	// Ended, if any, hears of each tool call that has ended. It must not wait.
	Ended func(Record)
}

// Server answers MCP clients.
type Server struct {
	o           Options
	limits      job.Limits
	self        *mcp.Implementation
	options     *mcp.ServerOptions
	tools       []tool
	workspaces  workspaces
	pictures    pictures
	outputs     outputs
	connections sync.Map // the SDK's server of each → its client
	endpoints   endpoints
	greeted     chan struct{} // closed when the first request was handled
	greet       func()        // closes it

	// stop cancels all calls. Each holds working for reading until its work has ended.
	stop    context.Context
	stopNow context.CancelFunc
	working sync.RWMutex
	// lastWait is how long Stop waits for working.
	lastWait time.Duration
}

// New returns a Server for the supervisor's languages.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		o:          o,
		limits:     o.Supervisor.Limits(),
		workspaces: o.Supervisor,
		outputs:    outputs{kept: map[string][]output{}},
		endpoints:  endpoints{byClient: map[string]*mcp.Server{}},
	}
	s.greeted, s.lastWait = make(chan struct{}), lastWait
	s.greet = sync.OnceFunc(func() { close(s.greeted) })
	s.stop, s.stopNow = context.WithCancel(context.Background())
	s.options = &mcp.ServerOptions{
		Instructions:      joined(o.Instructions, s.instructions()),
		Logger:            slog.New(quiet{o.Log.Handler()}),
		CompletionHandler: s.complete,
		// What a client may see is its own: its tools, its resources.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		// The tools never change while the server runs, so no listChanged.
		Capabilities: &mcp.ServerCapabilities{
			//lint:ignore SA1019 deprecated as of 2026-07-28, yet what today's clients have
			Logging:   &mcp.LoggingCapabilities{},
			Tools:     &mcp.ToolCapabilities{},
			Resources: &mcp.ResourceCapabilities{ListChanged: true},
		},
	}
	if o.Conformance {
		s.options.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
		s.options.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	}
	s.self = &mcp.Implementation{Name: "rillbox", Title: "Rillbox", Version: o.Version}
	if o.Name != "" {
		s.self.Name, s.self.Title = o.Name, o.Name
	}
	s.addTools()
	o.Supervisor.OnExpiry(s.filesChanged)
	return s
}

// endpoint makes the SDK's server of one connection. Each has its own, for the SDK tells
// all clients of a server when its resources change.
func (s *Server) endpoint() *mcp.Server {
	e := mcp.NewServer(s.self, s.options)
	e.AddReceivingMiddleware(s.receive)
	for _, t := range s.tools {
		e.AddTool(t.Tool, t.handle)
	}
	e.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: outputsTemplate,
		Name:        "outputs",
		Title:       "Long outputs",
		Description: "What a run printed (stdout, stderr) or gave (result) that was too long for its answer, whole.",
	}, s.readResource)
	s.addTemplate(e)
	if s.o.Conformance {
		addFixtures(e)
	}
	return e
}

// lastWait is how long Stop waits for the calls that it cancelled. A call that hangs in
// a file system can't be cancelled.
const lastWait = 5 * time.Second

// MaxMessage is the size of the largest message, in bytes: a program and its input,
// with escapes, and what is around them.
func (s *Server) MaxMessage() int64 { return 2*(s.limits.Code+s.limits.Stdin) + 1<<20 }

// Stop cancels all calls, and waits for their work.
func (s *Server) Stop() error {
	s.stopNow()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		s.working.Lock()
		//lint:ignore SA2001 it only waits for the readers
		s.working.Unlock()
	}()
	select {
	case <-idle:
		return nil
	case <-time.After(s.lastWait):
		return errors.New("a call does not end; leaving it")
	}
}

// begin makes a context that Stop cancels too. The caller must call done when all that
// it started has ended: Stop waits for that.
func (s *Server) begin(ctx context.Context) (_ context.Context, done func()) {
	s.working.RLock()
	ctx, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(s.stop, cancel)
	return ctx, func() {
		unlink()
		cancel()
		s.working.RUnlock()
	}
}

// placedTools are those whose calls must keep their order: cells, and what prepares
// for cells.
var placedTools = []string{"run_code", "install_packages", "reset_session", "write_file"}

// receive is around the SDK's handling of each request.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer s.greet()
		call, isCall := req.(*mcp.CallToolRequest)
		if isCall {
			var end func(mcp.Result, error)
			ctx, end = s.recorded(ctx, call)
			defer func() { end(res, err) }()
		}
		// The SDK does not recover from panics: one would end the process for all clients.
		defer func() {
			if p := recover(); p != nil {
				res, err = nil, s.panicked(method, p)
			}
		}()
		if isCall {
			if err := checkProgressToken(call.Params.GetProgressToken()); err != nil {
				return nil, err
			}
		}
		from := callerOf(ctx)
		if isCall && from.Placed != nil {
			placed := sync.OnceFunc(from.Placed)
			defer placed()
			if !slices.Contains(placedTools, call.Params.Name) {
				placed()
			}
			ctx = supervisor.OnPlaced(ctx, placed)
		}
		if from.Ended != nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(from.Ended, cancel)()
		}
		switch req := req.(type) {
		case *mcp.ServerRequest[*mcp.InitializeParams]:
			if session, ok := req.GetSession().(*mcp.ServerSession); ok && from.Opened != nil {
				from.Opened(session)
			}
		case *mcp.ReadResourceRequest:
			if s.isFixture(req.Params.URI) {
				break
			}
			if req.Params.URI, err = s.resourceURI(clientOf(ctx), req.Params.URI); err != nil {
				return nil, err
			}
		case *mcp.ListResourcesRequest:
			return s.ownResources(clientOf(ctx), req)
		case *mcp.SubscriptionsListenRequest: // it lasts until it is cancelled or the server stops
			var done func()
			ctx, done = s.begin(ctx)
			defer done()
		}
		res, err = next(ctx, method, req)
		if all, ok := res.(*mcp.ListToolsResult); ok && err == nil {
			return s.allowed(from, all), nil
		}
		var wire *jsonrpc.Error
		if errors.As(err, &wire) && strings.HasPrefix(wire.Message, "unknown tool ") {
			names := slices.DeleteFunc(s.Tools(), func(name string) bool { return !s.may(from, name) })
			err = &jsonrpc.Error{Code: wire.Code, Message: wire.Message + ": the tools are " + strings.Join(names, ", "), Data: wire.Data}
		}
		return res, err
	}
}

// panicked logs a panic, and is what its client gets.
func (s *Server) panicked(method string, panicked any) error {
	s.o.Log.Error("panic in a handler", "method", method, "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
	return fmt.Errorf("internal error in %s: the server's log has the details; other calls are not affected", method)
}

// Greeted is closed after the first request: work that waits for it does not delay the
// answer.
func (s *Server) Greeted() <-chan struct{} { return s.greeted }

// quiet lowers the SDK's routine messages (a session connected, a level set)
// from Info to Debug.
type quiet struct{ slog.Handler }

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelInfo {
		r.Level = slog.LevelDebug
	}
	if !q.Enabled(ctx, r.Level) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}
