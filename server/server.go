// Package server is the MCP surface of Rillbox. Tool calls come in and become
// supervisor.Programs; supervisor.Events go out as progress and log
// notifications while a run lasts, and its supervisor.Result as the tool's
// answer.
//
// It promises:
//
//   - initialize is answered at once: nothing here waits for a runtime, a
//     package or the network before a tool asks for it.
//   - A wrong argument, a busy supervisor and a panic are errors of one call;
//     a line that is not JSON-RPC is an error of that line.
//   - Nothing that a client does, or fails to do, slows a run: events wait in
//     bounded buffers, and what does not fit is left out and counted.
//   - A run ends with its call (notifications/cancelled), with its client (EOF)
//     and with the server; only the client that started it can cancel it.
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
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
	// Offline says that nothing is fetched, only used from the cache.
	Offline bool
	// Workspaces are where files are; without it there are no tools and no
	// resources for them.
	Workspaces Workspaces
	// Log receives what an operator should know; nil discards it.
	Log *slog.Logger
}

// Server answers MCP clients.
type Server struct {
	supervisor *supervisor.Supervisor
	version    string
	offline    bool
	limits     supervisor.Limits
	log        *slog.Logger
	mcp        *mcp.Server
	tools      []string // their names
	clients    clients
	workspaces Workspaces
	pictures   pictures
	outputs    outputs
	unheard    unheard
	greeted    chan struct{} // closed when the first request was handled

	// stop ends all that runs, which holds working for reading.
	stop    context.Context
	stopNow context.CancelFunc
	working sync.RWMutex
	// lastWait is how long the end waits for working.
	lastWait time.Duration
}

// New returns a Server for the supervisor's languages.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		supervisor: o.Supervisor,
		version:    o.Version,
		offline:    o.Offline,
		limits:     o.Supervisor.Limits(),
		log:        o.Log,
		workspaces: o.Workspaces,
	}
	s.clients.ended = func(client string) {
		o.Supervisor.EndClient(client)
		s.outputs.forget(client)
	}
	s.greeted, s.lastWait = make(chan struct{}), lastWait
	s.stop, s.stopNow = context.WithCancel(context.Background())
	options := &mcp.ServerOptions{
		Instructions: joined(o.Instructions, s.instructions()),
		Logger:       slog.New(quiet{o.Log.Handler()}),
		// The tools never change while the server runs, so no listChanged.
		Capabilities: &mcp.ServerCapabilities{
			//lint:ignore SA1019 deprecated as of 2026-07-28, yet what today's clients have
			Logging: &mcp.LoggingCapabilities{},
			Tools:   &mcp.ToolCapabilities{},
		},
	}
	options.Capabilities.Resources = &mcp.ResourceCapabilities{ListChanged: o.Workspaces != nil}
	if o.Workspaces != nil {
		options.CompletionHandler = s.complete
	}
	self := &mcp.Implementation{Name: "rillbox", Title: "Rillbox", Version: o.Version}
	if o.Name != "" {
		self.Name, self.Title = o.Name, o.Name
	}
	s.mcp = mcp.NewServer(self, options)
	s.mcp.AddReceivingMiddleware(tellPlaced, s.recoverPanics, s.noteFirst(), s.ownResourcesOnly)
	s.mcp.AddSendingMiddleware(s.tellOwnChanges)
	s.addTools()
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: outputsTemplate,
		Name:        "outputs",
		Title:       "Long outputs",
		Description: "What a run printed (stdout, stderr) or gave (result) that was too long for its answer, whole.",
	}, s.readOutput)
	if o.Workspaces != nil {
		s.addFileTools()
		s.addTemplate()
		o.Supervisor.OnExpiry(s.filesChanged)
	}
	return s
}

// goodbye is how long RunStdio waits, once all runs have ended, for the last
// answers to be taken by a client that may have stopped reading.
const goodbye = time.Second

// lastWait is how long RunStdio waits until the calls have ended that it has
// cancelled. One that reads a file that never answers can't be.
const lastWait = 5 * time.Second

// RunStdio serves one client on the process's stdin and stdout, until EOF on
// stdin or the end of ctx; then it ends what still runs and returns. EOF is no
// error.
//
// From here on os.Stdout is stderr for the rest of the process, so that nothing
// but MCP can reach the client's pipe.
func (s *Server) RunStdio(ctx context.Context) error {
	out := os.Stdout
	os.Stdout = os.Stderr
	return s.serve(ctx, os.Stdin, out)
}

// serve is RunStdio on any pair of streams.
func (s *Server) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := newLines(in, out, 2*(s.limits.Code+s.limits.Stdin)+1<<20, s.log)
	session, err := s.connectInOrder(ctx, lines.transport())
	if err != nil {
		return fmt.Errorf("cannot start the MCP session: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()

	select {
	case err = <-ended:
	case <-lines.ended:
		err = lines.err
		s.stopNow()
		<-lines.drained
	case <-ctx.Done():
		err = ctx.Err()
		s.stopNow()
		lines.awaitAnswers()
	}
	// The SDK's Close waits for its handlers, so their runs are ended first.
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
	case <-time.After(s.lastWait):
		return errors.New("a call does not end; leaving it")
	}
	closed := make(chan struct{})
	go func() { defer close(closed); session.Close() }()
	select {
	case <-closed:
	case <-time.After(goodbye):
		s.log.Warn("the client does not read its last answers; leaving them")
	}
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("the MCP session on stdin and stdout ended: %w", err)
}

// begin ties a call's work to the server's end; the caller must call done when
// all that the work started has ended.
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

// recoverPanics makes a panic in a handler an error of that one call: the SDK
// has no such guard, and the process would end for everybody.
func (s *Server) recoverPanics(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("panic in a handler", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				err = fmt.Errorf("internal error in %s: the server's log has the details; other calls are not affected", method)
				res = nil
				if method == "tools/call" {
					res, err = toolError(err), nil
				}
			}
		}()
		res, err = next(ctx, method, req)
		return res, s.namingTools(err)
	}
}

// addTool registers a tool.
func (s *Server) addTool(tool *mcp.Tool, handle mcp.ToolHandler) {
	s.tools = append(s.tools, tool.Name)
	s.mcp.AddTool(tool, handle)
}

// Greeted is closed when the first request was handled: what can wait until then
// does not slow the answer.
func (s *Server) Greeted() <-chan struct{} { return s.greeted }

func (s *Server) noteFirst() mcp.Middleware {
	var once sync.Once
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			defer once.Do(func() { close(s.greeted) })
			return next(ctx, method, req)
		}
	}
}

// toolError is the answer of a tool that could not do what it was asked.
func toolError(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		IsError: true,
		Content: []mcp.Content{&mcp.TextContent{Text: supervisor.ShowText(err.Error())}},
	}
}

// clients names each session, for as long as it lasts: the SDK's own id is
// empty on stdio.
type clients struct {
	ended func(name string)

	mu    sync.Mutex
	names map[*mcp.ServerSession]string
}

func (c *clients) name(ss *mcp.ServerSession) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, ok := c.names[ss]
	if !ok {
		name = "client-" + strings.ToLower(rand.Text())
		if c.names == nil {
			c.names = make(map[*mcp.ServerSession]string)
		}
		c.names[ss] = name
		go func() {
			ss.Wait()
			c.mu.Lock()
			delete(c.names, ss)
			c.mu.Unlock()
			c.ended(name)
		}()
	}
	return name
}

// quiet lowers the SDK's routine messages (a session connected, a level set)
// from Info to Debug.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, quietLevel(l))
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = quietLevel(r.Level)
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(as []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(as)} }
func (q quiet) WithGroup(name string) slog.Handler    { return quiet{q.Handler.WithGroup(name)} }

func quietLevel(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}
