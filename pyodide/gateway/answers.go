package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"rillbox/cache"
	"rillbox/cache/egress"
)

// httpError is a response with an error status and text.
type httpError struct {
	status int
	text   string
	cause  error // or nil
}

func (e *httpError) Error() string { return e.text }
func (e *httpError) Unwrap() error { return e.cause }

func answerf(status int, format string, args ...any) error {
	return &httpError{status: status, text: fmt.Sprintf(format, args...)}
}

var (
	errTooMany = answerf(http.StatusTooManyRequests, "too many requests at once; wait for some of them to end")
	errNoPath  = answerf(http.StatusNotFound, "nothing is here")
)

// explain turns an error into one for the guest, about what it requested.
func (gr *Grant) explain(what string, err error) error {
	var (
		refused     *egress.RefusedError
		private     *egress.PrivateError
		large       *egress.TooLargeError
		denied      *egress.DeniedError
		unreachable *egress.UnreachableError
		status      *egress.StatusError
		mismatch    *egress.MismatchError
	)
	switch {
	case errors.As(err, &denied), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, errNoProject):
		return answerf(http.StatusNotFound, "%s: %v; check the spelling of the name", what, err)
	case errors.Is(err, cache.ErrMiss) && gr.policy.NoFetch:
		return answerf(http.StatusGatewayTimeout, "%s is not in the cache, and the operator turned fetching off", what)
	case errors.Is(err, cache.ErrMiss), errors.Is(err, egress.ErrOffline):
		return answerf(http.StatusGatewayTimeout, "%s is not in the cache, and the network is not reachable (offline)", what)
	case errors.As(err, &unreachable):
		return answerf(http.StatusGatewayTimeout, "%s is not in the cache, and the network is not reachable (%v)", what, unreachable)
	case errors.As(err, &refused), errors.As(err, &private), errors.As(err, &large):
		return answerf(http.StatusForbidden, "%s is refused: %v", what, err)
	case errors.As(err, &mismatch):
		return answerf(http.StatusBadGateway, "%s as %s sent it has sha256 %s, and the index or lock file says %s: it was thrown away", what, mismatch.Host, mismatch.Got, mismatch.Want)
	case errors.As(err, &status):
		return answerf(http.StatusBadGateway, "cannot fetch %s: %v", what, status)
	}
	return &httpError{http.StatusBadGateway, fmt.Sprintf("cannot fetch %s: %v", what, err), err}
}

// fail sends an error as text.
func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusInternalServerError, "the package gateway failed; its log says why"
	var answer *httpError
	var denied *egress.DeniedError
	switch {
	case errors.As(err, &answer):
		status, text = answer.status, answer.text
	case errors.As(err, &denied):
		status, text = http.StatusForbidden, denied.Error()
	case r.Context().Err() != nil, errors.Is(err, context.Canceled):
		panic(http.ErrAbortHandler) // nobody waits for it
	default:
		g.log.Error("the package gateway failed", "err", err)
	}
	g.log.Debug("a package request was not served", "status", status, "why", text)
	h := w.Header()
	if status == http.StatusMethodNotAllowed {
		h.Set("Allow", "GET, HEAD")
	}
	if status == http.StatusBadRequest || status == http.StatusMethodNotAllowed {
		h.Set("Connection", "close") // a body may follow, which is not read
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // a guest that went away
}
