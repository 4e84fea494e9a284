// Package stdio is the door for one client at the other end of two streams, usually
// the process's stdin and stdout. Each line is a JSON-RPC message or a batch of them.
// The package knows messages, not tools.
//
// It replaces go-sdk's mcp.IOTransport. That one ends the session at the first line
// that it cannot decode and at some valid batches, reads on while its client reads no
// answers, and drops the answers that are not written at the end of its input. Here:
//
//   - A line that is no message (not JSON, too long, nested too deep) is answered with
//     a JSON-RPC error, and the session goes on.
//   - A client that does not read its answers is not read from, once enough wait.
//   - Calls begin in the order in which they came.
//   - The answers of calls that the end of the input cancels are still written.
package stdio

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Server answers a client.
type Server interface {
	// Connect answers a client on a transport until that ends. It calls placed when
	// the message after a tool call may be read.
	Connect(ctx context.Context, client string, placed func(), t mcp.Transport) (*mcp.ServerSession, error)
	// MaxMessage is the size of the largest message, in bytes.
	MaxMessage() int64
	// Stop cancels all calls and waits for them. An error says that one goes on.
	Stop() error
}

// goodbye is how long Serve waits, once all calls have ended, for a client that may
// have stopped reading to take the last answers.
const goodbye = time.Second

// Run serves one client on the process's stdin and stdout, until EOF on stdin or the
// end of ctx; then it stops the server and returns. EOF is no error.
//
// From here on os.Stdout is stderr for the rest of the process, so that nothing but
// MCP can reach the client's pipe.
func Run(ctx context.Context, s Server, log *slog.Logger) error {
	out := os.Stdout
	os.Stdout = os.Stderr
	return Serve(ctx, s, os.Stdin, out, log)
}

// Serve is Run on any pair of streams.
func Serve(ctx context.Context, s Server, in io.Reader, out io.Writer, log *slog.Logger) error {
	c := newConn(in, out, s.MaxMessage(), log)
	session, err := s.Connect(ctx, "stdio-"+rand.Text(), c.goOn, c)
	if err != nil {
		return fmt.Errorf("cannot start the MCP session: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err = <-ended:
	case <-c.inputEnded:
		err = c.inputErr
	case <-ctx.Done():
		err = ctx.Err()
	}
	// The SDK's Close waits for its handlers and drops what they answer from then on.
	if err := s.Stop(); err != nil {
		return err
	}
	time.AfterFunc(goodbye, func() { c.Close() })
	c.mu.Lock()
	c.await(func() bool { return c.unanswered == 0 })
	c.mu.Unlock()
	closed := make(chan struct{})
	go func() { defer close(closed); session.Close() }()
	select {
	case <-closed:
	case <-time.After(goodbye):
		log.Warn("the client does not read its last answers; leaving them")
	}
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("the MCP session on stdin and stdout ended: %w", err)
}
