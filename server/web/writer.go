package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// writer cuts off who does not take what is written, and gives the SDK's refusals, which
// are plain text, the form of ours.
type writer struct {
	http.ResponseWriter
	begun   bool
	refused *refusal
	id      json.RawMessage // of the message that is handled, if it has one
	// last says that the connection ends with the answer. It does so unless the whole body
	// was read, for net/http would wait for the rest of it before it answers. And it does so
	// when that came in chunks: it may have come with a length too, by which a proxy took
	// what is after the chunks for its end (RFC 9112, 6.1), and net/http does not tell.
	last bool

	status   int    // as it was answered
	why      string // it was refused
	identity string // of who sent it, if that is known
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if !w.begun && status >= http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.begun, w.status, w.refused = true, status, refuse(status, "")
		return
	}
	w.begun = true
	if w.last {
		w.Header().Set("Connection", "close")
	}
	if w.status < http.StatusOK { // what is below is followed by another
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	if w.refused != nil {
		w.refused.message += string(p)
		return len(p), nil
	}
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime)) // a test's recorder has none
	event := bytes.TrimPrefix(p, prime)
	n, err := w.ResponseWriter.Write(event)
	return n + len(p) - len(event), err
}

// prime is how the SDK names the event without data that begins a stream: an ID to go on
// from. The specification gives it no name, and clients complain of events whose name
// they don't know.
var prime = []byte("event: prime\n")

// Flush is for who asks for it by its name.
func (w *writer) Flush() {
	if w.refused == nil {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the next Write tells of an error
	}
}

// finish writes a refusal of the SDK's.
func (w *writer) finish() {
	if refused := w.refused; refused != nil {
		refused.translate()
		refused.id, w.refused, w.why = w.id, nil, refused.message
		refused.write(w)
	}
}

// translations are of what the SDK says without a word of what to do. The first that the
// text has holds.
var translations = []struct {
	has  string
	code int64
	says string // %s is the SDK's text from has on
}{
	{"JSON RPC not handled: ", jsonrpc.CodeMethodNotFound, "there is no such method here: %s"},
	{"JSON RPC invalid request: ", jsonrpc.CodeInvalidRequest, "%s"},
	{"invalid request: ", jsonrpc.CodeInvalidRequest, "%s"},
	{"Unsupported protocol version", codeRefused, "name another version in " + versionHeader + ": %s"},
	{"JSON-RPC batching is not supported", jsonrpc.CodeInvalidRequest, "send each message alone: %s"},
	{"malformed Last-Event-ID", codeRefused, "Last-Event-ID is none that this server gave: send the id of the last event that you got"},
	{"stream replay unsupported", codeRefused, "this session has no streams, for its client wanted none: send GET without Last-Event-ID"},
	{"failed to replay events", codeRefused, "what came after this Last-Event-ID is not kept, or never was: send the request again"},
	{"stream ID conflicts", codeRefused, "another connection has this stream: close that one first"},
	{"can't send Last-Event-ID", codeRefused, "Last-Event-ID is for GET: send the message without it"},
}

// translate says what the SDK says as we would.
func (r *refusal) translate() {
	r.message = strings.TrimSpace(r.message)
	for _, t := range translations {
		if at := strings.Index(r.message, t.has); at >= 0 {
			r.code, r.message = t.code, strings.Replace(t.says, "%s", strings.TrimSuffix(r.message[at:], "\n"), 1)
			return
		}
	}
}
