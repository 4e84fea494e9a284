package server

import (
	"context"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// How many bytes of answers and news may wait for a client to read them, and how many
// of its calls for their answers, before no further call of it is read.
const (
	maxUnwritten  = 16 << 20
	maxUnanswered = 1000
)

// messageCost is what a message that waits costs beside its own bytes.
const messageCost = 16 << 10

// unwritten counts what waits to be written.
type unwritten struct {
	bytes   atomic.Int64
	open    atomic.Int64  // requests that the SDK has and did not answer
	written chan struct{} // holds a token when something was
	closed  chan struct{}
}

// awaitRoom waits until there is room for another call's answer, or the connection
// is closed.
func (u *unwritten) awaitRoom() {
	for u.bytes.Load() > maxUnwritten || u.open.Load() >= maxUnanswered {
		select {
		case <-u.written:
		case <-u.closed:
			return
		}
	}
}

// counted is a transport whose messages count as unwritten until they are written:
// the SDK keeps all that its client does not read.
type counted struct {
	mcp.Transport
	*unwritten
}

func (c counted) Connect(ctx context.Context) (mcp.Connection, error) {
	connection, err := c.Transport.Connect(ctx)
	return countedConnection{connection, c.unwritten}, err
}

type countedConnection struct {
	mcp.Connection
	*unwritten
}

func (c countedConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	size := int64(messageCost)
	if answer, ok := message.(*jsonrpc.Response); ok {
		answer.Error = inPlainWords(answer.Error)
		size += int64(len(answer.Result))
	}
	c.bytes.Add(size)
	defer func() {
		c.bytes.Add(-size)
		select {
		case c.written <- struct{}{}:
		default:
		}
	}()
	return c.Connection.Write(ctx, message)
}
