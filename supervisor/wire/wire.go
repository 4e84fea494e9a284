// Package wire is the protocol between us and a child, version 1, for every engine:
// requests go down, frames come up, and an Outcome makes of them, with the child's
// Exit, a Result. guest/wire.ts is the child's end.
//
//	fd 0   one request, then the guest's standard input until EOF
//	fd 1   the guest's standard output, never parsed
//	fd 2   the guest's standard error, never parsed
//	fd 3   frames, from the child to the supervisor, until EOF
//
// A request is the length of a JSON text in bytes, in eight decimal digits, a
// newline, and the JSON text: the child reads it with two reads, and without taking
// a byte of what follows it.
//
// A frame is one JSON object on a line of its own, with a "type":
//
//	{"type":"ready","protocol":1}       the first: the child takes a request
//	{"type":"uncaught","error":E}       an error that nobody caught; the process
//	                                    ends because of it
//	{"type":"result","value":V}         the program ran; V is left out when it has
//	                                    no value
//	{"type":"result","error":E}         the program ended by an error
//	{"type":"display","data":D,"note":S}   something to look at; S, if there is
//	                                    any, says what is missing of it
//	{"type":"display","left_out":N}     N displays so far were too large
//
// E is {"name":…,"message":…,"traceback":…}. There is at most one result. D maps MIME
// types to text, or to base64 where the type is binary. An engine may add types
// of its own. Frames are claims: a guest can write them too, so the exit status,
// times and sizes come from the supervisor alone. A frame that is too long, no
// JSON, of an unknown type, or a second result is a protocol error; the
// supervisor then reads on to EOF and believes nothing more.
package wire

import (
	"bufio"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"rillbox/supervisor/job"
)

// Protocol is the version of the wire that a child must name in its ready frame.
const Protocol = 1

// WireSource holds the child's end, the TypeScript module wire.ts, which engines put
// in supervisor/wire beside that of their own modules.
//
//go:embed guest/wire.ts
var WireSource embed.FS

// The types of frames that every engine has.
const (
	ReadyFrame    = "ready"
	UncaughtFrame = "uncaught"
	ResultFrame   = "result"
	DisplayFrame  = "display"
)

// Frame is one message of a child.
type Frame struct {
	Type string `json:"type"`
	// Cell is the number of the session's cell that it is of; 0 outside of one.
	Cell int `json:"cell"`
	// Protocol is set in a ready frame.
	Protocol int `json:"protocol"`
	// Value is a result's value; nil when there is none.
	Value json.RawMessage `json:"value"`
	// Error is a result's or an uncaught frame's error.
	Error *job.GuestError `json:"error"`
	// JSON is the whole frame, for types of an engine's own.
	JSON json.RawMessage `json:"-"`
}

// ErrProtocol is wrapped by the errors of frames that break the protocol.
var ErrProtocol = errors.New("protocol error")

// maxRequest is the longest request, in bytes, whose length eight digits hold.
const maxRequest = 99_999_999

// WriteRequest writes one request to a child's fd 0.
func WriteRequest(w io.Writer, request any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode the child's request: %w", err)
	}
	if len(text) > maxRequest {
		return fmt.Errorf("the child's request has %d bytes, and may have %d", len(text), maxRequest)
	}
	if _, err := fmt.Fprintf(w, "%08d\n%s", len(text), text); err != nil {
		return fmt.Errorf("send the child its request: %w", err)
	}
	return nil
}

// Feed writes the guest's standard input, which may be nil, to a child's fd 0, and
// closes that. It ends with the input, or when the child has ended and the input
// gives more.
func Feed(to io.WriteCloser, stdin io.Reader) {
	if stdin != nil {
		_, _ = io.Copy(to, stdin) // an error means that nobody reads any more
	}
	_ = to.Close()
}

// FrameReader reads a child's frames.
type FrameReader struct {
	lines    *bufio.Reader
	left     int64 // bytes of frames that may come, displays apart
	displays int64 // and of displays
	types    []string
	cell     int
	done     bool // a result was read
}

// NewFrameReader reads frames from r, limit bytes of them in all; more is a
// protocol error. types are those that the engine has beside the common ones.
// Displays are an error before AllowDisplays.
func NewFrameReader(r io.Reader, limit int64, types ...string) *FrameReader {
	return &FrameReader{lines: bufio.NewReader(r), left: limit, types: types}
}

// SetLimit gives the frames that follow a new limit.
func (f *FrameReader) SetLimit(limit int64) { f.left = limit }

// AllowDisplays lets displays come, limit bytes of them in all beside the other
// frames.
func (f *FrameReader) AllowDisplays(limit int64) { f.displays = limit }

// BeginCell says that the frames of a session's next cell follow, limit bytes of
// them in all. Frames of earlier cells are passed over from here on: only a guest
// that forged a result, and so ended its cell before its end, can have any left.
func (f *FrameReader) BeginCell(limit int64) (cell int) {
	f.cell++
	f.left, f.displays, f.done = limit, 0, false
	return f.cell
}

// Next gives the next frame. It returns io.EOF at the end, an error wrapping
// ErrProtocol when the child broke the protocol, and any other error when
// reading failed. After a protocol error, call Drain.
func (f *FrameReader) Next() (Frame, error) {
	for {
		frame, err := f.next()
		if err != nil || frame.Cell >= f.cell {
			return frame, err
		}
	}
}

func (f *FrameReader) next() (Frame, error) {
	line, err := f.line()
	if err != nil {
		return Frame{}, err
	}
	frame, err := DecodeFrame(line)
	if err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	left := &f.left
	if frame.Type == DisplayFrame && frame.Cell == f.cell {
		left = &f.displays
	}
	if *left -= int64(len(line)) + 1; *left < 0 {
		return Frame{}, errTooLarge
	}
	switch {
	case frame.Cell < f.cell:
		return frame, nil
	case frame.Cell > f.cell:
		return Frame{}, fmt.Errorf("%w: a frame of cell %d in cell %d", ErrProtocol, frame.Cell, f.cell)
	}
	switch frame.Type {
	case DisplayFrame:
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

var errTooLarge = fmt.Errorf("%w: the frames are larger than the limit", ErrProtocol)

// line reads up to the next newline, no more than the largest frame may have.
func (f *FrameReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := f.lines.ReadSlice('\n')
		line = append(line, part...)
		if int64(len(line)) > max(f.left, f.displays) {
			return nil, errTooLarge
		}
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

// DecodeFrame reads a frame from its line, which the frame keeps.
func DecodeFrame(line []byte) (Frame, error) {
	frame := Frame{JSON: line}
	if err := json.Unmarshal(line, &frame); err != nil {
		return Frame{}, fmt.Errorf("read frame %.80q: %w", line, err)
	}
	return frame, nil
}
