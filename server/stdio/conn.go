package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxUnwritten is how many bytes of answers and notifications may wait for a
	// client to read them before no further call is read.
	maxUnwritten = 16 << 20
	// messageCost is what a message that waits costs beside its own bytes.
	messageCost = 16 << 10
	// maxUnanswered is how many calls may wait for their answers.
	maxUnanswered = 1000
)

// lastWithBatches is the last protocol version that has batches.
const lastWithBatches = "2025-03-26"

// conn is a client's connection, and the transport that it comes from.
type conn struct {
	in  *bufio.Reader
	max int64 // the bytes of a line
	log *slog.Logger

	writing sync.Mutex // one message at a time on out
	out     io.Writer

	inputEnded chan struct{}
	inputErr   error // once inputEnded is closed; io.EOF for a plain end

	mu         sync.Mutex // guards what follows
	changed    sync.Cond  // any of it
	closed     bool
	queue      []jsonrpc.Message     // of the line that Read is giving out
	unwritten  int64                 // bytes that wait to be written
	unanswered int                   // calls that were read and whose answers were not written
	calls      map[jsonrpc.ID]*batch // of those, without an answer; nil when it came alone
	// The SDK handles each message in a goroutine of its own, so that which of two
	// calls is queued first would be chance. While held, no further message is read.
	held       bool
	call       jsonrpc.ID // that was read last
	initialize jsonrpc.ID // of the request that negotiates the version
	version    string     // that was negotiated
}

// batch collects the answers to a batch: they are written together.
type batch struct {
	answers [][]byte
	want    int
}

func newConn(in io.Reader, out io.Writer, most int64, log *slog.Logger) *conn {
	c := &conn{
		in: bufio.NewReaderSize(in, 64<<10), out: out, max: most, log: log,
		inputEnded: make(chan struct{}), calls: map[jsonrpc.ID]*batch{},
	}
	c.changed.L = &c.mu
	return c
}

// Connect begins to read.
func (c *conn) Connect(context.Context) (mcp.Connection, error) {
	go c.readLines()
	return c, nil
}

// SessionID is for HTTP.
func (c *conn) SessionID() string { return "" }

// Close leaves the streams open: they are the process's own.
func (c *conn) Close() error {
	c.update(func() { c.closed = true })
	return nil
}

// Read gives the SDK the next message. At the end of the input it waits for Close:
// told of the end, the SDK would drop the answers that are still to come.
func (c *conn) Read(context.Context) (jsonrpc.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.await(func() bool { return !c.held && len(c.queue) > 0 })
	if c.closed {
		return nil, io.EOF
	}
	message := c.queue[0]
	c.queue = c.queue[1:]
	if r, ok := message.(*jsonrpc.Request); ok && r.IsCall() {
		c.call, c.held = r.ID, r.Method == "tools/call"
		if r.Method == "initialize" {
			c.initialize = r.ID
		}
	}
	c.changed.Broadcast()
	return message, nil
}

// goOn lets the message after a call be read.
func (c *conn) goOn() { c.update(func() { c.held = false }) }

// Write writes one message, or keeps it until its batch is complete.
func (c *conn) Write(ctx context.Context, message jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	size := int64(messageCost)
	answer, isAnswer := message.(*jsonrpc.Response)
	if isAnswer {
		answer.Error = explained(answer.Error)
		size += int64(len(answer.Result))
	}
	c.update(func() {
		c.unwritten += size
		if isAnswer && answer.ID == c.call { // perhaps without a handler that calls goOn
			c.held = false
		}
	})
	defer c.update(func() { c.unwritten -= size })
	line, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	answers := 0
	if isAnswer {
		line, answers = c.collect(answer, line)
	}
	if line == nil {
		return nil
	}
	err = c.writeLine(line)
	c.update(func() { c.unanswered -= answers })
	return err
}

func (c *conn) writeLine(line []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(line, '\n'))
	return err
}

// begin notes the calls of a line, or says why they are refused. The caller holds mu.
func (c *conn) begin(ids []jsonrpc.ID, isBatch bool) *jsonrpc.Error {
	var b *batch
	switch {
	case !isBatch:
	case c.version == "":
		return invalid("a batch can't come before the answer to initialize: send one message on each line")
	case c.version > lastWithBatches:
		return invalid("the protocol version %s has no batches: send one message on each line", c.version)
	default:
		b = &batch{}
	}
	calls := map[jsonrpc.ID]*batch{}
	for _, id := range ids {
		if _, twice := calls[id]; twice {
			return invalid("two requests of batches have the id %v", id.Raw())
		}
		if _, used := c.calls[id]; used { // the SDK would never answer it
			return invalid("a call with the id %v is not answered yet: give each its own", id.Raw())
		}
		calls[id] = b
	}
	if isBatch {
		b.want = len(calls)
	}
	maps.Copy(c.calls, calls)
	c.unanswered += len(calls)
	return nil
}

// collect returns what to write for an answer, and how many answers that is: itself
// or, for the last one of a batch, all of them; nothing for one before the last.
func (c *conn) collect(answer *jsonrpc.Response, encoded []byte) (line []byte, answers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer.ID == c.initialize && answer.Error == nil {
		var result struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(answer.Result, &result) == nil {
			c.version = result.ProtocolVersion
		}
	}
	b := c.calls[answer.ID]
	delete(c.calls, answer.ID) // before it is written, for then the id can come again
	if b == nil {
		return encoded, 1
	}
	if b.answers = append(b.answers, encoded); len(b.answers) < b.want {
		return nil, 0
	}
	return fmt.Appendf(nil, "[%s]", bytes.Join(b.answers, []byte(","))), b.want
}

// update changes what mu guards and wakes who awaits it.
func (c *conn) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.changed.Broadcast()
}

// await returns when done does, or the connection is closed. The caller holds mu.
func (c *conn) await(done func() bool) {
	for !done() && !c.closed {
		c.changed.Wait()
	}
}
