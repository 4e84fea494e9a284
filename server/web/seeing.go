package web

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"

	"rillbox/server"
)

// plainID is the form of a request's ID that a client, or a proxy, may choose.
var plainID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// nameRequest gives a request an ID, which is in the answer and in all lines of the log
// that are about it.
func nameRequest(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(server.RequestHeader)
	if len(r.Header.Values(server.RequestHeader)) != 1 || !plainID.MatchString(id) {
		id = strings.ToLower(rand.Text()[:16])
	}
	r.Header.Set(server.RequestHeader, id)
	w.Header().Set(server.RequestHeader, id)
}

// statusOf is the status of an answer.
func statusOf(w http.ResponseWriter) int {
	if out, ok := w.(*writer); ok && out.status != 0 {
		return out.status
	}
	return http.StatusOK
}

func noteIdentity(w http.ResponseWriter, name string) {
	if out, ok := w.(*writer); ok {
		out.identity = name
	}
}

// answered tells of a request that was answered.
func (d *Door) answered(w *writer, r *http.Request, began time.Time) {
	status, took := statusOf(w), time.Since(began)
	if d.o.Answered != nil {
		d.o.Answered(r.Method, status, took)
	}
	if !d.o.Log.Enabled(r.Context(), slog.LevelDebug) {
		return
	}
	line := d.o.Log.With("request", r.Header.Get(server.RequestHeader), "method", r.Method[:min(len(r.Method), 20)], "status", status, "ms", took.Milliseconds())
	if w.identity != "" {
		line = line.With("identity", w.identity)
	}
	if w.why != "" {
		line.Debug("refused a request", "why", w.why)
		return
	}
	line.Debug("answered a request")
}

// Identities is how many identities were seen lately.
func (d *Door) Identities() int { return d.clients.count() }

// Sessions is how many sessions of the protocol's are open.
func (d *Door) Sessions() int { return d.sessions.count() }

func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

func (c *clients) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byName)
}

// readiness is what was found out of it last, for whoever asks has files written.
type readiness struct {
	mu    sync.Mutex
	err   error
	until time.Time
}

// readyTime is for how long readiness is taken to last.
const readyTime = time.Second

// checkReady says why no program can be run now.
func (d *Door) checkReady() error {
	d.ready.mu.Lock()
	defer d.ready.mu.Unlock()
	if d.o.Ready != nil && time.Now().After(d.ready.until) {
		d.ready.err = d.o.Ready()
		d.ready.until = time.Now().Add(readyTime)
	}
	return d.ready.err
}

// serveMetrics answers who has a token; where there are none, this machine.
func (d *Door) serveMetrics(w http.ResponseWriter, r *http.Request) {
	refused := d.checkOrigin(w, r)
	if refused == nil && d.o.Tokens == nil && d.o.OAuth == nil && !isLocal(r) {
		refused = refuse(http.StatusForbidden, "metrics are for this machine, or for requests with a token: set auth_token, or metrics_address for an address of their own")
	}
	if refused == nil {
		_, refused = d.identify(r)
	}
	if refused != nil {
		refused.write(w)
		return
	}
	d.o.Metrics.ServeHTTP(w, r)
}

// isLocal says that a request comes from this machine, and not through a proxy.
func isLocal(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback() && r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Forwarded") == ""
}

// Aside is a handler for an address of its own beside the door's. It answers requests for
// numbers, localhost and those hosts, and for no page's own name.
func Aside(hosts []string, h http.Handler) *http.Server {
	d := &Door{hosts: hostSet(hosts)}
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refused := d.checkHost(r); refused != nil {
				refused.write(w)
				return
			}
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
	}
}
