package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lines stands between a client's stream and the SDK's newline-delimited
// transport. The SDK ends the whole session at the first line that it cannot
// decode (not JSON, too long, nested too deep); here such a line is answered
// with a JSON-RPC error, and the session goes on.
type lines struct {
	in   *bufio.Reader
	max  int64
	log  *slog.Logger
	rest []byte // of the line that the SDK is reading

	mu  sync.Mutex // one message at a time on out
	out io.Writer
	batches

	ended chan struct{} // closed at the end of in
	err   error         // why, once ended is closed; io.EOF for a plain end

	answered chan struct{} // holds a token when one was
	unwritten
	closing  sync.Once
	patience time.Duration // how long the end of in waits for them
	drained  chan struct{} // closed when, after the end of in, all are
}

func newLines(in io.Reader, out io.Writer, maxLine int64, log *slog.Logger) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10), out: out, max: maxLine, log: log,
		ended: make(chan struct{}), answered: make(chan struct{}, 1), drained: make(chan struct{}), patience: goodbye,
		unwritten: unwritten{written: make(chan struct{}, 1), closed: make(chan struct{})}}
}

func (l *lines) transport() mcp.Transport {
	return counted{&mcp.IOTransport{Reader: l, Writer: l, MaxLineLength: -1}, &l.unwritten}
}

// Read gives the SDK the next lines that it can decode. It must be called from
// one goroutine.
func (l *lines) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	for len(l.rest) == 0 {
		line, tail, size, err := l.next()
		switch {
		case size == 0:
		case size > l.max:
			l.refuse(line, tail, jsonrpc.CodeInvalidRequest,
				fmt.Sprintf("a message of %d bytes is too large: the most is %d bytes", size, l.max))
		default:
			messages, requests, bad := decodable(line)
			if bad == nil && bytes.HasPrefix(line, []byte("[")) {
				bad = l.begin(requests)
			}
			if bad != nil {
				code := int64(jsonrpc.CodeInvalidRequest)
				if !json.Valid(line) {
					code = jsonrpc.CodeParseError
				}
				l.refuse(line, line, code, bad.Error())
				break
			}
			if len(requests) > 0 {
				l.awaitRoom()
			}
			l.open.Add(int64(len(requests)))
			l.rest = append(bytes.Join(messages, []byte("\n")), '\n')
		}
		if err != nil && len(l.rest) == 0 {
			l.err = err
			close(l.ended)
			l.awaitAnswers()
			close(l.drained)
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// idWindow is how much is kept of each end of a line that is too long, to find
// its id in.
const idWindow = 1 << 10

// next reads one line without its newline. Of a line longer than l.max only the
// two ends are kept.
func (l *lines) next() (line, tail []byte, size int64, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		size += int64(len(part))
		switch {
		case size <= l.max+1:
			line = append(line, part...)
		case tail == nil: // too long from here on
			line = append(line, part...)
			tail = bytes.Clone(line[max(0, len(line)-idWindow):])
			line = bytes.Clone(line[:min(len(line), idWindow)])
		default:
			tail = append(tail, part...)
			tail = append(tail[:0], tail[max(0, len(tail)-idWindow):]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == nil {
			size-- // the newline
		}
		return bytes.TrimSpace(line), bytes.TrimSpace(tail), size, err
	}
}

// awaitAnswers waits, for a moment, until all that was asked is answered: at its
// end, and at that of what it reads, the SDK drops the answers that it has not
// written yet. Runs don't hold it up, for they are ended before.
func (l *lines) awaitAnswers() {
	patience := time.NewTimer(l.patience)
	defer patience.Stop()
	for l.open.Load() > 0 {
		select {
		case <-l.answered:
		case <-patience.C:
			return
		}
	}
	l.tellAnswered() // another may be waiting
}

func (l *lines) tellAnswered() {
	select {
	case l.answered <- struct{}{}:
	default:
	}
}

// decodable gives the messages of a line and the ids of those that want an answer,
// or says why the SDK could not decode it.
func decodable(line []byte) (messages [][]byte, requests []jsonrpc.ID, err error) {
	if len(line) == 0 {
		return nil, nil, nil
	}
	var syntax *json.SyntaxError
	var any json.RawMessage
	if err := json.Unmarshal(line, &any); errors.As(err, &syntax) {
		return nil, nil, fmt.Errorf("not a JSON message: %s (at byte %d)", syntax, syntax.Offset)
	} else if err != nil {
		return nil, nil, fmt.Errorf("not a JSON message: %w", err)
	}
	messages = [][]byte{line}
	if line[0] == '[' {
		var batch []json.RawMessage // json.Unmarshal would write over what messages holds
		if err := json.Unmarshal(line, &batch); err != nil || len(batch) == 0 {
			return nil, nil, errors.New("not a JSON-RPC message: an empty batch")
		}
		messages = messages[:0]
		for _, m := range batch {
			messages = append(messages, m)
		}
	}
	for _, m := range messages {
		message, err := jsonrpc.DecodeMessage(m)
		if err != nil {
			return nil, nil, errors.New(plainWords(fmt.Sprintf("not a JSON-RPC message: %v", err)))
		}
		if r, ok := message.(*jsonrpc.Request); ok && r.ID.IsValid() {
			requests = append(requests, r.ID)
		}
	}
	return messages, requests, nil
}

// A message's id where the two common encoders put it: before its parameters,
// or after them at the very end. Only the fields of the message itself can
// stand there.
var (
	idFirst = regexp.MustCompile(`^\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?\d{1,18}|"[^"\\]*")\s*[,}]`)
	idLast  = regexp.MustCompile(`[,{]\s*"id"\s*:\s*(-?\d{1,18}|"[^"\\]*")\s*(?:,\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*)*\}$`)
)

// refuse answers a line that the SDK will never see, under its id if that can
// be found, so that the client's call does not wait for ever.
func (l *lines) refuse(head, tail []byte, code int64, why string) {
	id := json.RawMessage("null")
	head, tail = head[:min(len(head), idWindow)], tail[max(0, len(tail)-idWindow):]
	if m := idFirst.FindSubmatch(head); m != nil && json.Valid(m[1]) {
		id = m[1]
	} else if m := idLast.FindSubmatch(tail); m != nil && json.Valid(m[1]) {
		id = m[1]
	}
	l.log.Warn("refused a message of the client", "why", why)
	type rpcError struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	}
	answer, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   rpcError        `json:"error"`
	}{"2.0", id, rpcError{code, why}})
	if err != nil {
		l.log.Error("cannot encode the refusal of a message", "error", err)
		return
	}
	l.open.Add(1) // Write takes it off
	if _, err := l.Write(append(answer, '\n')); err != nil {
		l.log.Warn("cannot answer the client", "error", err)
	}
}

// Write writes one whole message: the SDK hands each over in one call.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	whole, answers := p, int64(0)
	if bytes.HasPrefix(p, answerStart) { // we make no requests of our own
		whole, answers = l.answer(p)
	}
	if len(whole) == 0 {
		return len(p), nil
	}
	_, err := l.out.Write(whole)
	if answers > 0 {
		l.open.Add(-answers)
		l.tellAnswered()
	}
	return len(p), err
}

var answerStart = []byte(`{"jsonrpc":"2.0","id":`)

// Close leaves the streams open: they are the process's own.
func (l *lines) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}
