//go:build !windows

package deno

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/coder/websocket"

	"rillbox/supervisor/sandbox"
	"rillbox/supervisor/wire"
)

// inspector is our end of a child's inspector, which speaks the Chrome DevTools
// Protocol over a WebSocket on loopback: calls with an ID, answers with the same
// ID, notifications without one, each a JSON text. The address has 122 random bits
// that nobody else knows. The guest can write to its process's end of the
// connection, since Deno asks no permission for an open descriptor: messages are
// claims, as frames are, and a guest can lie only about itself.
//
// The answer to a call whose context has ended is dropped.
type inspector struct {
	socket *websocket.Conn
	conn   net.Conn // below socket
	limit  int      // of a message, in bytes
	notify func(notification)

	mu      sync.Mutex
	last    int
	waiting map[int]chan<- reply
	ended   chan struct{} // closed when the connection has ended
}

// notification is news from the child. notify is called from one goroutine, in
// order with the answers, and must not call the inspector.
type notification struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// message is what comes from the child, one or the other.
type message struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	notification
}

type reply struct {
	result json.RawMessage
	err    error
}

// errInspectorEnded is the error of calls when the connection has ended.
var errInspectorEnded = errors.New("the inspector's connection has ended")

// largeError is the error of a call whose answer is larger than the limit.
type largeError struct{ head string } // how it begins

func (e *largeError) Error() string { return "the answer is too large" }

// refusedError is an answer that says why there is none.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// dialTime is how long a connection on loopback may take.
const dialTime = 5 * time.Second

// dialInspector connects to the inspector at address ("ws://127.0.0.1:…").
func dialInspector(ctx context.Context, child *sandbox.Child, address string, limit int, notify func(notification)) (*inspector, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	var conn net.Conn
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err == nil {
			conn, err = child.Dial(ctx, to.Port())
		}
		return conn, err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	socket, _, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		return nil, fmt.Errorf("connect to the session's process: %w", err)
	}
	socket.SetReadLimit(-1) // read has one of its own, which ends no connection
	i := &inspector{socket: socket, conn: conn, limit: limit, notify: notify, waiting: map[int]chan<- reply{}, ended: make(chan struct{})}
	go i.read()
	return i, nil
}

// call calls a method and decodes its result, unless result is nil.
func (i *inspector) call(ctx context.Context, method string, params, result any) error {
	return i.send(method, params)(ctx, result)
}

// send calls a method. wait waits for the answer, and decodes its result unless result
// is nil; where nobody waits, the answer is dropped.
func (i *inspector) send(method string, params any) (wait func(ctx context.Context, result any) error) {
	answer := make(chan reply, 1)
	i.mu.Lock()
	i.last++
	id := i.last
	i.waiting[id] = answer
	i.mu.Unlock()
	text, err := json.Marshal(struct {
		ID     int    `json:"id"`
		Method string `json:"method"`
		Params any    `json:"params,omitempty"`
	}{id, method, params})
	if err != nil {
		err = fmt.Errorf("encode a call of %s: %w", method, err)
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), dialTime) // the other side may have been stopped
		defer cancel()
		if i.socket.Write(ctx, websocket.MessageText, text) != nil {
			err = errInspectorEnded
		}
	}
	return func(ctx context.Context, result any) error {
		if err != nil {
			return err
		}
		var r reply
		select {
		case r = <-answer:
		case <-i.ended:
			select {
			case r = <-answer: // it came before the end
			default:
				return errInspectorEnded
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if r.err != nil || result == nil {
			return r.err
		}
		if err := json.Unmarshal(r.result, result); err != nil {
			return fmt.Errorf("%w: read the answer of %s: %w", wire.ErrProtocol, method, err)
		}
		return nil
	}
}

// usualMessage is how long a message may be, in bytes, for which room is kept.
const usualMessage = 64 << 10

// read reads messages until the connection ends or the protocol is broken.
func (i *inspector) read() {
	defer close(i.ended)
	defer i.close()
	var buffer bytes.Buffer
	for {
		_, message, err := i.socket.Reader(context.Background())
		if err != nil {
			return
		}
		buffer.Reset()
		for _, until := range []int{usualMessage, i.limit + 1} {
			buffer.Grow(max(until-buffer.Len(), 0) + bytes.MinRead) // at once: growing bit by bit takes three times as much
			if _, err := buffer.ReadFrom(io.LimitReader(message, int64(until-buffer.Len()))); err != nil {
				return
			}
			if buffer.Len() < until {
				break
			}
		}
		text := buffer.Bytes()
		tooLarge := len(text) > i.limit
		if tooLarge {
			text = bytes.Clone(text[:min(len(text), 256)])
			buffer = bytes.Buffer{}
			if _, err := io.Copy(io.Discard, message); err != nil {
				return
			}
		}
		if err := i.take(text, tooLarge); err != nil {
			return
		}
		acknowledge(i.conn)
		if buffer.Cap() > 2*usualMessage {
			buffer = bytes.Buffer{}
		}
	}
}

// take gives a message to whom it is for. Of one that is too large there is the
// beginning, in which V8 puts the ID.
func (i *inspector) take(text []byte, tooLarge bool) error {
	var m message
	r := reply{err: &largeError{string(text)}}
	if tooLarge {
		if _, err := fmt.Sscanf(string(text), `{"id":%d,`, &m.ID); err != nil {
			return nil // a notification
		}
	} else {
		var err error
		if m, err = decodeMessage(text); err != nil {
			return err
		}
		r = reply{result: m.Result}
		if m.Error != nil {
			r.err = &refusedError{m.Error.Message}
		}
	}
	if m.ID == 0 {
		i.notify(m.notification)
		return nil
	}
	i.mu.Lock()
	answer := i.waiting[m.ID]
	delete(i.waiting, m.ID)
	i.mu.Unlock()
	if answer != nil {
		answer <- r
	}
	return nil
}

func decodeMessage(text []byte) (message, error) {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: read message %.80q: %w", wire.ErrProtocol, text, err)
	}
	if (m.ID == 0) == (m.Method == "") || m.ID < 0 {
		return m, fmt.Errorf("%w: message %.80q is neither an answer nor a notification", wire.ErrProtocol, text)
	}
	m.Result, m.Params = bytes.Clone(m.Result), bytes.Clone(m.Params)
	return m, nil
}

// close ends the connection; calls fail from here on.
func (i *inspector) close() { _ = i.conn.Close() }
