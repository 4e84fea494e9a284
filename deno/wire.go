package deno

// The wire between the supervisor (Go) and a child (Deno), protocol 1.
// wire.go and wire.ts are its two ends and share this comment.
//
//	fd 0   one request, then the guest's standard input until EOF
//	fd 1   the guest's standard output, never parsed
//	fd 2   the guest's standard error, never parsed
//	fd 3   frames, from the child to the supervisor, until EOF
//
// A request is the length of a JSON text in bytes, in decimal digits, a newline,
// and the JSON text. The length goes ahead so that the child can read the request
// without taking a byte of what follows it.
//
// A frame is one JSON object on a line of its own, with a "type":
//
//	{"type":"ready","protocol":1}       the first: the child takes a request
//	{"type":"uncaught","error":E}       an error that nobody caught; the process
//	                                    ends because of it
//	{"type":"result","value":V}         the program ran; V is left out when it has
//	                                    no value
//	{"type":"result","error":E}         the program ended by an error
//
// E is {"name":…,"message":…,"stack":…}. There is at most one result. An engine
// may add types of its own. Frames are claims: a guest can write them too, so
// the exit status, times and sizes come from the supervisor alone. A frame that
// is too long, no JSON, of an unknown type, or a second result is a protocol
// error; the supervisor then reads on to EOF and believes nothing more.

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"rillbox/supervisor"
)

// Protocol is the version of the wire that a child must name in its ready frame.
const Protocol = 1

// WireSource is the child's end, a TypeScript module that engines put beside
// their own entry module as WireName.
//
//go:embed wire.ts
var WireSource string

// WireName is the file name that entry modules import WireSource by.
const WireName = "wire.ts"

// The types of frames that every engine has.
const (
	ReadyFrame    = "ready"
	UncaughtFrame = "uncaught"
	ResultFrame   = "result"
)

// Frame is one message of a child.
type Frame struct {
	Type string
	// Protocol is set in a ready frame.
	Protocol int
	// Value is a result's value; nil when there is none.
	Value json.RawMessage
	// Error is a result's or an uncaught frame's error.
	Error *supervisor.GuestError
	// JSON is the whole frame, for types of an engine's own.
	JSON json.RawMessage
}

// ErrProtocol is wrapped by the errors of frames that break the protocol.
var ErrProtocol = errors.New("protocol error")

// WriteRequest writes one request to a child's fd 0.
func WriteRequest(w io.Writer, request any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode the child's request: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%d\n%s", len(text), text); err != nil {
		return fmt.Errorf("send the child its request: %w", err)
	}
	return nil
}

// FrameReader reads a child's frames.
type FrameReader struct {
	lines *bufio.Reader
	left  int64
	types []string
	done  bool // a result was read
}

// NewFrameReader reads frames from r, limit bytes of them in all; more is a
// protocol error. types are those that the engine has beside the common ones.
func NewFrameReader(r io.Reader, limit int64, types ...string) *FrameReader {
	return &FrameReader{lines: bufio.NewReader(r), left: limit, types: types}
}

// SetLimit gives the frames that follow a new limit.
func (f *FrameReader) SetLimit(limit int64) { f.left = limit }

// Next gives the next frame. It returns io.EOF at the end, an error wrapping
// ErrProtocol when the child broke the protocol, and any other error when
// reading failed. After a protocol error, call Drain.
func (f *FrameReader) Next() (Frame, error) {
	line, err := f.line()
	if err != nil {
		return Frame{}, err
	}
	frame, err := decodeFrame(line)
	if err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	switch frame.Type {
	case ReadyFrame:
		if frame.Protocol != Protocol {
			return Frame{}, fmt.Errorf("%w: the child speaks version %d, want %d", ErrProtocol, frame.Protocol, Protocol)
		}
	case ResultFrame:
		if f.done {
			return Frame{}, fmt.Errorf("%w: a second result", ErrProtocol)
		}
		f.done = true
	case UncaughtFrame:
		if frame.Error == nil {
			return Frame{}, fmt.Errorf("%w: an uncaught frame without an error", ErrProtocol)
		}
	default:
		if !slices.Contains(f.types, frame.Type) {
			return Frame{}, fmt.Errorf("%w: unknown type %.40q", ErrProtocol, frame.Type)
		}
	}
	return frame, nil
}

// line reads up to the next newline, within what is left of the limit.
func (f *FrameReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := f.lines.ReadSlice('\n')
		f.left -= int64(len(part))
		if f.left < 0 {
			return nil, fmt.Errorf("%w: the frames are larger than the limit", ErrProtocol)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, fmt.Errorf("%w: the last frame is not complete", ErrProtocol)
		default:
			return nil, err
		}
	}
}

// Drain reads and drops what is left, so that the child does not wait for us.
func (f *FrameReader) Drain() { _, _ = io.Copy(io.Discard, f.lines) }

func decodeFrame(line []byte) (Frame, error) {
	var wire struct {
		Type     string          `json:"type"`
		Protocol int             `json:"protocol"`
		Value    json.RawMessage `json:"value"`
		Error    *struct {
			Name    string `json:"name"`
			Message string `json:"message"`
			Stack   string `json:"stack"`
		} `json:"error"`
	}
	if err := json.Unmarshal(line, &wire); err != nil {
		return Frame{}, fmt.Errorf("read frame %.80q: %w", line, err)
	}
	frame := Frame{Type: wire.Type, Protocol: wire.Protocol, Value: wire.Value, JSON: bytes.Clone(line)}
	if wire.Error != nil {
		frame.Error = &supervisor.GuestError{Name: wire.Error.Name, Message: wire.Error.Message, Traceback: wire.Error.Stack}
	}
	return frame, nil
}
