package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// refusal is the answer to a request that can't be served.
type refusal struct {
	status  int
	message string
	code    int64             // of JSON-RPC
	id      json.RawMessage   // of the message that is refused, if it has one
	after   time.Duration     // when to come again; 0 says nothing of it
	header  map[string]string // what else to send
}

// codeRefused is JSON-RPC's code for what only HTTP's status tells apart.
const codeRefused = -32000

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, message: fmt.Sprintf(format, args...), code: codeRefused}
}

func (r *refusal) Error() string { return r.message }

// later says when to come again.
func (r *refusal) later(after time.Duration) *refusal {
	r.after = after
	return r
}

// with adds a header.
func (r *refusal) with(name, value string) *refusal {
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header[name] = value
	return r
}

// write answers with a JSON-RPC error, which MCP clients show.
func (r *refusal) write(w http.ResponseWriter) {
	if out, ok := w.(*writer); ok {
		out.why = r.message
	}
	if r.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(r.after.Seconds()+0.999))))
	}
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	id := r.id
	if id == nil {
		id = json.RawMessage("null")
	}
	text, err := json.Marshal(struct { // jsonrpc.Response leaves null out
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, &jsonrpc.Error{Code: r.code, Message: r.message}})
	if err != nil {
		http.Error(w, r.message, r.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_, _ = w.Write(append(text, '\n')) // who has gone needs no answer
}
