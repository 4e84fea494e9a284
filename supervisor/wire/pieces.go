//go:build !windows

package wire

import (
	"io"
	"sync"
)

// Input is the standard input of a session's cell, which the guest gets piece by piece:
// not more is read than it asks for, since what follows may be for somebody else.
type Input struct {
	from io.Reader // nil is an empty one
	send func(piece any)

	mu                       sync.Mutex
	waits, interrupted, over bool
}

// piece is a part of a cell's standard input, empty at its end; interruption comes in its
// place.
type piece struct {
	Stdin []byte `json:"stdin"`
}

// pieceBytes is how much of the standard input is read at once.
const pieceBytes = 64 << 10

// Pieces makes the input of a cell; send gives the guest a request.
func Pieces(from io.Reader, send func(piece any)) *Input { return &Input{from: from, send: send} }

// Ask answers the guest, which waits for a piece.
func (i *Input) Ask() {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.waits: // a guest's own frame: it gets one answer
	case i.interrupted:
		go i.send(interruption)
	default:
		i.waits = true
		go i.read()
	}
}

func (i *Input) read() {
	next := piece{Stdin: make([]byte, pieceBytes)}
	n := 0
	if i.from != nil {
		n, _ = i.from.Read(next.Stdin) // without a byte, that is its end
	}
	next.Stdin = next.Stdin[:n]
	i.mu.Lock()
	waits := i.waits && !i.over
	i.waits = false
	i.mu.Unlock()
	if waits {
		i.send(next)
	}
}

var interruption = map[string]any{"stdin": nil}

// Interrupt has who waits for a piece, or will, get an interruption in its place.
func (i *Input) Interrupt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.interrupted = true
	if i.waits {
		i.waits = false
		go i.send(interruption)
	}
}

// End says that the cell is over: nothing more is sent.
func (i *Input) End() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
}
