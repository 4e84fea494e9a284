package web

import (
	"net/http"
	"strings"
	"time"
)

// writer cuts off who does not take what is written, and gives the SDK's refusals, which
// are plain text, the form of ours.
type writer struct {
	http.ResponseWriter
	begun   bool
	refused *refusal
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if !w.begun && status >= http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.begun, w.refused = true, refuse(status, "")
		return
	}
	w.begun = true
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
	return w.ResponseWriter.Write(p)
}

// Flush is for who asks for it by its name.
func (w *writer) Flush() {
	if w.refused == nil {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the next Write tells of an error
	}
}

// finish writes a refusal of the SDK's.
func (w *writer) finish() {
	if w.refused != nil {
		w.refused.message = strings.TrimSpace(w.refused.message)
		w.refused.write(w.ResponseWriter)
	}
}
