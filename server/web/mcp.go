package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/server"
)

// Headers of the protocol's.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "MCP-Protocol-Version"
)

// firstWithoutSessions is the first version of the protocol in which each request
// stands for itself.
const firstWithoutSessions = "2026-07-28"

// listenMethod is that of a call that lasts for as long as its client listens.
const listenMethod = "subscriptions/listen"

// serveMCP answers a request to the endpoint.
func (d *Door) serveMCP(w http.ResponseWriter, r *http.Request) {
	if d.o.Trace != nil {
		end := d.o.Trace(r)
		defer func() { end(statusOf(w)) }()
	}
	var from sender
	refused := d.checkOrigin(w, r)
	if refused == nil && r.Method == http.MethodOptions {
		answerPreflight(w, r)
		return
	}
	if refused == nil {
		from, refused = d.admit(w, r)
	}
	if refused == nil {
		r = r.WithContext(context.WithValue(r.Context(), senderKey{}, from))
		switch r.Method {
		case http.MethodPost:
			refused = d.post(w, r)
		case http.MethodGet:
			refused = d.listen(w, r)
		case http.MethodDelete:
			refused = d.endSession(w, r)
		default:
			refused = refuse(http.StatusMethodNotAllowed, "MCP knows POST, GET and DELETE here, not %.20s", r.Method).with("Allow", "POST, GET, DELETE")
		}
	}
	if refused != nil {
		refused.write(w)
	}
}

// admit finds out who sends a request, and whether it comes too often.
func (d *Door) admit(w http.ResponseWriter, r *http.Request) (sender, *refusal) {
	from, refused := d.identify(r)
	if refused == nil {
		noteIdentity(w, from.name)
		refused = from.checkRate(1, d.o.Window)
	}
	return from, refused
}

// message is what a body says that decides who handles it.
type message struct {
	id      json.RawMessage
	method  string
	version string // of the protocol, as the message itself has it
	isCall  bool
	hello   bool
	more    int // messages of a batch, beside the first
}

// post takes messages of a client.
func (d *Door) post(w http.ResponseWriter, r *http.Request) *refusal {
	from := senderOf(r.Context())
	kind, more, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" || !strings.EqualFold(cmp.Or(more["charset"], "utf-8"), "utf-8") || r.Header.Get("Content-Encoding") != "" {
		return refuse(http.StatusUnsupportedMediaType, "send JSON in UTF-8, not compressed, with the header Content-Type: application/json")
	}
	asJSON, asStream := accepts(r)
	if !asJSON && !asStream {
		return refuse(http.StatusNotAcceptable, "answers are application/json or text/event-stream: name them in the header Accept")
	}
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	size := r.ContentLength
	if size < 0 { // it comes in chunks, and nobody knows how many
		size = maxBody
	}
	stay, refused := from.enter(size)
	if refused != nil {
		return refused
	}
	defer stay.leave()
	body, refused := readBody(w, r)
	if refused != nil {
		return refused
	}
	stay.resize(int64(len(body)))
	m, refused := look(body)
	if refused == nil && m.more > 0 {
		refused = from.checkRate(m.more, d.o.Window)
	}
	if refused != nil {
		return refused
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Accept", "application/json, text/event-stream") // for the SDK wants both
	if out, ok := w.(*writer); ok {
		out.id, out.last = m.id, len(r.TransferEncoding) > 0
	}
	if m.isCall && m.method != listenMethod {
		defer d.clients.begin()()
	}
	if m.isCall && d.closing.Load() {
		refused = d.shutDown()
	} else {
		refused = d.pass(w, r, m, !asStream)
	}
	if refused != nil {
		refused.id = m.id
	}
	return refused
}

// pass gives a body to the handler of its era.
func (d *Door) pass(w http.ResponseWriter, r *http.Request, m message, asJSON bool) *refusal {
	from := senderOf(r.Context())
	caller := server.Caller{Client: from.name, Ended: from.revoked, Tools: from.tools}
	if max(r.Header.Get(versionHeader), m.version) >= firstWithoutSessions {
		// Its messages have no session; a header that says otherwise is of a client's that
		// mixes the eras up.
		r.Header.Del(sessionHeader)
		d.single.of(asJSON).ServeHTTP(w, r.WithContext(server.WithCaller(r.Context(), caller)))
		return nil
	}
	id := r.Header.Get(sessionHeader)
	switch {
	case m.hello && id != "":
		return refuse(http.StatusBadRequest, "initialize begins a session: send it without the header %s", sessionHeader)
	case m.hello:
		session := newSession(from, asJSON)
		defer d.sessions.endUnlessOpen(session)
		caller.Default, caller.Ended = session.handle, session.ended
		caller.Opened = func(sdk *mcp.ServerSession) { d.sessions.add(session, sdk) }
		d.lasting.of(asJSON).ServeHTTP(w, r.WithContext(server.WithCaller(r.Context(), caller)))
		return nil
	case id == "":
		return refuse(http.StatusBadRequest, "send initialize first, and the %s that it gives in each later request; or %s: %s, which needs no session", sessionHeader, versionHeader, firstWithoutSessions)
	}
	session, leave, ok := d.sessions.use(from.name, id)
	if !ok {
		return noSession(id)
	}
	defer leave()
	d.lasting.of(session.json).ServeHTTP(w, r)
	return nil
}

func noSession(id string) *refusal {
	return refuse(http.StatusNotFound, "there is no session %.80q of yours: it has ended, or it never was; send initialize to begin one", id)
}

// listen gives a client the stream of what it did not ask for, or the rest of one that it
// lost.
func (d *Door) listen(w http.ResponseWriter, r *http.Request) *refusal {
	id := r.Header.Get(sessionHeader)
	if r.Header.Get(versionHeader) >= firstWithoutSessions {
		return refuse(http.StatusMethodNotAllowed, "in %s there is no stream to GET: POST %s", r.Header.Get(versionHeader), listenMethod).with("Allow", "POST")
	}
	if id == "" {
		return refuse(http.StatusBadRequest, "MCP is spoken here: POST initialize to this address; GET gives the stream of the session that the header %s names", sessionHeader)
	}
	if _, asStream := accepts(r); !asStream {
		return refuse(http.StatusNotAcceptable, "GET gives a stream: send the header Accept: text/event-stream")
	}
	session, leave, ok := d.sessions.use(senderOf(r.Context()).name, id)
	if !ok {
		return noSession(id)
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(session.ended, cancel)()
	d.lasting.of(session.json).ServeHTTP(w, r.WithContext(ctx))
	return nil
}

// endSession ends a session with what goes on in it.
func (d *Door) endSession(w http.ResponseWriter, r *http.Request) *refusal {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		return refuse(http.StatusBadRequest, "DELETE ends a session: name it in the header %s", sessionHeader)
	}
	session, leave, ok := d.sessions.use(senderOf(r.Context()).name, id)
	if !ok {
		return noSession(id)
	}
	defer leave()
	session.end()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (k kinds) of(asJSON bool) http.Handler {
	if asJSON {
		return k.json
	}
	return k.stream
}

// accepts says which answers a client takes; one that does not say takes JSON.
func accepts(r *http.Request) (asJSON, asStream bool) {
	values := r.Header.Values("Accept")
	for _, value := range values {
		for kind := range strings.SplitSeq(value, ",") {
			kind, _, _ = strings.Cut(kind, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "application/json", "application/*":
				asJSON = true
			case "text/event-stream", "text/*":
				asStream = true
			case "*/*":
				asJSON = true
			}
		}
	}
	return asJSON || len(values) == 0, asStream
}

// readBody reads a body within its bounds of size and time.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a test's recorder has none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, "the body did not come within %v: send it again", bodyTime)
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "the body ended early: send it again")
	}
	_ = control.SetReadDeadline(time.Time{})
	return body, nil
}

func tooLarge() *refusal {
	return refuse(http.StatusRequestEntityTooLarge, "a request has %d MiB at most: put data into a file of the session, with several calls of write_file", maxBody>>20)
}

// look decodes a body as far as it decides where that goes.
func look(body []byte) (message, *refusal) {
	var parts []json.RawMessage
	var first envelope // a body may be large: it is looked at once
	var err error
	trimmed := bytes.TrimSpace(body)
	batch := len(trimmed) > 0 && trimmed[0] == '['
	if batch {
		err = json.Unmarshal(body, &parts)
	} else {
		parts, err = []json.RawMessage{body}, first.read(body)
	}
	if err == nil && !utf8.Valid(body) {
		err = errors.New("invalid UTF-8")
	}
	if err != nil {
		refused := refuse(http.StatusBadRequest, "the body can't be read as JSON: %s: send one message of JSON-RPC", strings.TrimPrefix(err.Error(), "json: "))
		refused.code = jsonrpc.CodeParseError
		return message{}, refused
	}
	var m message
	for _, part := range parts {
		decoded, err := jsonrpc.DecodeMessage(part)
		if err != nil {
			return m, invalid("the body is no message of JSON-RPC: send an object with jsonrpc (\"2.0\"), id (a number or a string), method and params")
		}
		request, ok := decoded.(*jsonrpc.Request)
		if !ok {
			continue
		}
		said := first
		if batch {
			said = envelope{}
			_ = said.read(part) // it is JSON
		}
		if len(request.Params) > maxParams && request.Method != "tools/call" {
			return m, refuse(http.StatusRequestEntityTooLarge, "the parameters of %.80q have %d bytes, and may have %d: only a call of a tool may have more", request.Method, len(request.Params), maxParams)
		}
		m.method, m.version = request.Method, max(m.version, said.Params.Meta.Version)
		m.hello = m.hello || request.Method == "initialize"
		if request.IsCall() {
			if !keepsID(said.ID, request.ID) {
				return m, invalid("the id is a number that would come back as another: send a whole one of less than 2^53, or a string")
			}
			m.isCall = true
			m.id, _ = json.Marshal(request.ID.Raw())
		}
	}
	switch {
	case len(parts) == 0:
		return m, invalid("the body is an empty batch: send a message")
	case len(parts) > 1 && m.hello:
		return m, invalid("initialize can't be in a batch: send it alone")
	case len(parts) > 1:
		m.id, m.more = nil, len(parts)-1
	}
	if m.method == "server/discover" && m.version == "" {
		m.version = firstWithoutSessions
	}
	return m, nil
}

// envelope is what is looked at of a message. Whether the rest is right is the SDK's affair.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Params struct {
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// read reads a message; the error says why it is no JSON.
func (e *envelope) read(message []byte) error {
	err := json.Unmarshal(message, e)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return nil
	}
	return err
}

// keepsID says that an answer has the ID that its call has: go-sdk makes an int64 of each
// number, by way of a float64.
func keepsID(said json.RawMessage, id jsonrpc.ID) bool {
	kept, isNumber := id.Raw().(int64)
	if !isNumber {
		return true
	}
	sent, err := strconv.ParseFloat(string(said), 64)
	return err == nil && sent == float64(kept) && -1<<53 < kept && kept < 1<<53
}

func invalid(format string, args ...any) *refusal {
	refused := refuse(http.StatusBadRequest, "%s", fmt.Sprintf(format, args...))
	refused.code = jsonrpc.CodeInvalidRequest
	return refused
}
