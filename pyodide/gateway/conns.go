package gateway

import (
	"net"
	"net/http"
	"sync"
)

const maxIdleConns = 256

// idleConns bounds the connections on which no request is being served, by closing the
// oldest. It is not known which child opened one until it sends a request, so refusing
// new ones would let a hostile child keep out all others.
type idleConns struct {
	mu    sync.Mutex
	since map[net.Conn]uint64
	count uint64
}

// connState is the http.Server's hook.
func (w *idleConns) connState(conn net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state != http.StateNew && state != http.StateIdle {
		delete(w.since, conn)
		return
	}
	if w.since == nil {
		w.since = map[net.Conn]uint64{}
	}
	w.count++
	w.since[conn] = w.count
	if len(w.since) <= maxIdleConns {
		return
	}
	oldest := conn
	for c, since := range w.since {
		if since < w.since[oldest] {
			oldest = c
		}
	}
	delete(w.since, oldest)
	_ = oldest.Close() // the server notices
}
