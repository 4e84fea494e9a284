package server

import (
	"context"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
)

// inOrder is a transport that keeps a client's calls in the order in which they
// came: the SDK handles each in a goroutine of its own, and which of two is sooner
// at its session's queue is chance. So the message after a call is given out when
// that call has its place, or needs none, or was answered.
type inOrder struct {
	mcp.Transport
	conn *orderedConn
}

// connectInOrder connects a client, whose calls' contexts name its connection.
func (s *Server) connectInOrder(ctx context.Context, t mcp.Transport) (*mcp.ServerSession, error) {
	conn := &orderedConn{closed: make(chan struct{})}
	return s.mcp.Connect(context.WithValue(ctx, orderKey{}, conn), &inOrder{t, conn}, nil)
}

type orderKey struct{}

func (t *inOrder) Connect(ctx context.Context) (mcp.Connection, error) {
	var err error
	t.conn.Connection, err = t.Transport.Connect(ctx)
	return t.conn, err
}

type orderedConn struct {
	mcp.Connection
	close  sync.Once
	closed chan struct{}

	mu     sync.Mutex
	call   jsonrpc.ID    // the last that was given out
	placed chan struct{} // nil once it has its place
}

// Read gives the SDK the next message. The SDK reads from one goroutine.
func (c *orderedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	c.mu.Lock()
	placed := c.placed
	c.mu.Unlock()
	if placed != nil {
		select {
		case <-placed:
		case <-c.closed:
		case <-ctx.Done():
		}
	}
	message, err := c.Connection.Read(ctx)
	if r, ok := message.(*jsonrpc.Request); ok && r.Method == "tools/call" && r.IsCall() {
		c.mu.Lock()
		c.call, c.placed = r.ID, make(chan struct{})
		c.mu.Unlock()
	}
	return message, err
}

// Write notes what was answered, perhaps without one of our handlers.
func (c *orderedConn) Write(ctx context.Context, message jsonrpc.Message) error {
	if r, ok := message.(*jsonrpc.Response); ok {
		c.mu.Lock()
		ours := r.ID == c.call
		c.mu.Unlock()
		if ours {
			c.goOn()
		}
	}
	return c.Connection.Write(ctx, message)
}

func (c *orderedConn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Connection.Close()
}

// goOn lets the next message be given out.
func (c *orderedConn) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.placed != nil {
		close(c.placed)
		c.placed = nil
	}
}

// placedTools are those whose order matters: with the cells of a session, or for
// them.
var placedTools = []string{"run_code", "install_packages", "reset_session", "write_file"}

// tellPlaced lets the next message come when a call has its place.
func tellPlaced(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		conn, ok := ctx.Value(orderKey{}).(*orderedConn)
		call, is := req.(*mcp.CallToolRequest)
		if !ok || !is {
			return next(ctx, method, req)
		}
		placed := sync.OnceFunc(conn.goOn)
		defer placed()
		if !slices.Contains(placedTools, call.Params.Name) {
			placed()
		}
		return next(supervisor.OnPlaced(ctx, placed), method, req)
	}
}
