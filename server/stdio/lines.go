package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// readLines gives Read the lines that are messages, and refuses the others.
func (c *conn) readLines() {
	for {
		head, line, size, err := c.nextLine()
		messages, refusal := c.decode(line, size)
		if refusal != nil {
			c.refuse(idIn(head, line), refusal)
		} else if len(messages) > 0 {
			c.give(messages, line[0] == '[')
		}
		if err != nil {
			c.inputErr = err
			close(c.inputEnded)
			return
		}
	}
}

// give hands the messages of a line to Read, once there is room for their answers, and
// returns when it has them.
func (c *conn) give(messages []jsonrpc.Message, isBatch bool) {
	var calls []jsonrpc.ID
	for _, message := range messages {
		if r, ok := message.(*jsonrpc.Request); ok && r.IsCall() {
			calls = append(calls, r.ID)
		}
	}
	c.mu.Lock()
	if len(calls) > 0 {
		c.await(func() bool { return c.unwritten <= maxUnwritten && c.unanswered < maxUnanswered })
	}
	refusal := c.begin(calls, isBatch)
	if refusal == nil {
		c.queue = messages
		c.changed.Broadcast()
		c.await(func() bool { return len(c.queue) == 0 })
	}
	c.mu.Unlock()
	if refusal != nil {
		c.refuse(noID, refusal)
	}
}

// idWindow is how much is kept of each end of a line that is too long, to find
// its id in.
const idWindow = 1 << 10

// nextLine reads one line without its newline. Of a line that is too long only the
// two ends are kept; else head is line.
func (c *conn) nextLine() (head, line []byte, size int64, err error) {
	for {
		part, err := c.in.ReadSlice('\n')
		size += int64(len(part))
		line = append(line, part...)
		if size > c.max+1 {
			if head == nil {
				head = bytes.Clone(line[:min(len(line), idWindow)])
			}
			line = bytes.Clone(line[max(0, len(line)-idWindow):])
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == nil {
			size-- // the newline
		}
		if line = bytes.TrimSpace(line); head == nil {
			head = line
		}
		return bytes.TrimSpace(head), line, size, err
	}
}

// decode gives the messages of a line: none, one, or those of a batch.
func (c *conn) decode(line []byte, size int64) (messages []jsonrpc.Message, _ *jsonrpc.Error) {
	if size > c.max {
		return nil, invalid("a message of %d bytes is too large: the most is %d bytes", size, c.max)
	}
	if len(line) == 0 {
		return nil, nil
	}
	parts := make([]json.RawMessage, 1)
	var target any = &parts[0]
	if line[0] == '[' {
		target = &parts
	}
	if err := json.Unmarshal(line, target); err != nil {
		why := fmt.Sprintf("not a JSON message: %v", err)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			why += fmt.Sprintf(" (at byte %d)", syntax.Offset)
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: why}
	}
	if len(parts) == 0 {
		return nil, invalid("not a JSON-RPC message: an empty batch")
	}
	for _, part := range parts {
		message, err := jsonrpc.DecodeMessage(part)
		if err != nil {
			return nil, invalid("%s", explain(fmt.Sprintf("not a JSON-RPC message: %v", err)))
		}
		if call, ok := message.(*jsonrpc.Request); ok && !keepsID(part, call.ID) {
			return nil, invalid("the id is a number that would come back as another: send a whole one of less than 2^53, or a string")
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// keepsID says that an answer has the ID that its call has: go-sdk makes an int64 of each
// number, by way of a float64.
func keepsID(message []byte, id jsonrpc.ID) bool {
	kept, isNumber := id.Raw().(int64)
	if !isNumber {
		return true
	}
	var sent struct {
		ID float64 `json:"id"`
	}
	err := json.Unmarshal(message, &sent)
	return err == nil && sent.ID == float64(kept) && -1<<53 < kept && kept < 1<<53
}

func invalid(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// A message's id where the two common encoders put it: before its parameters,
// or after them at the very end. Only the fields of the message itself can
// stand there.
var (
	idFirst = regexp.MustCompile(`^\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?[\d.eE+-]{1,40}|"[^"\\]*")\s*[,}]`)
	idLast  = regexp.MustCompile(`[,{]\s*"id"\s*:\s*(-?[\d.eE+-]{1,40}|"[^"\\]*")\s*(?:,\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*)*\}$`)
)

var noID = []byte("null")

// idIn finds the id of a message that can't be decoded, given its two ends.
func idIn(head, tail []byte) []byte {
	if m := idFirst.FindSubmatch(head[:min(len(head), idWindow)]); m != nil && json.Valid(m[1]) {
		return m[1]
	}
	if m := idLast.FindSubmatch(tail[max(0, len(tail)-idWindow):]); m != nil && json.Valid(m[1]) {
		return m[1]
	}
	return noID
}

// refuse answers a line that the SDK will never see, under its id if that was found,
// so that the client's call does not wait for ever.
func (c *conn) refuse(id json.RawMessage, refusal *jsonrpc.Error) {
	c.log.Warn("refused a message of the client", "why", refusal.Message)
	answer, err := json.Marshal(struct { // jsonrpc.Response leaves null out
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, refusal})
	if err == nil {
		err = c.writeLine(answer)
	}
	if err != nil {
		c.log.Warn("cannot answer the client", "error", err)
	}
}
