package web

import (
	"encoding/json"
	"net/http"
)

// serveStatus tells an identity how the server is. An admin may know all, and so may the
// only one of a server without tokens.
func (d *Door) serveStatus(w http.ResponseWriter, r *http.Request) {
	refused := d.checkOrigin(w, r)
	var from sender
	if refused == nil {
		from, refused = d.admit(w, r)
	}
	if refused != nil {
		refused.write(w)
		return
	}
	text, err := json.Marshal(d.s.Status(from.name, from.admin || d.o.Tokens == nil && d.o.OAuth == nil))
	if err != nil {
		refuse(http.StatusInternalServerError, "the status can't be told: %v", err).write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(text, '\n')) // who has gone needs no answer
}
