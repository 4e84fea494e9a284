// Package web is the door for many clients, over HTTP. A request is identified, judged
// and held within bounds here; go-sdk's handlers of Streamable HTTP then make MCP
// messages of it. The package knows messages, not tools.
//
// What comes to the endpoint is of one of two eras. Up to 2025-11-25 a client says hello
// and gets a session of the protocol's, which its later requests name; since 2026-07-28
// each request stands for itself.
//
// It promises:
//
//   - Who calls is known before anything else is looked at: what a request makes belongs
//     to its identity, and another identity's session does not exist for it.
//   - A page of another site can't call: the Host and the Origin of each request are
//     names that the operator expects.
//   - A request that can't be served gets one status and one sentence that says what to
//     do (docs/http.md has the table).
//   - What an identity holds here is bounded: requests in a window, bytes under way,
//     protocol sessions. Who sends or reads too slowly is cut off.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/server"
	"rillbox/server/web/page"
)

// Options are what a Door needs.
type Options struct {
	// Path is where MCP is, such as /mcp.
	Path string
	// Hosts are the names that requests may be addressed to, beside those of loopback.
	Hosts []string
	// Origins are those of the pages that may call, such as https://chat.example.com. A page
	// of this server may always.
	Origins []string
	// Proxies are the addresses whose X-Forwarded headers are believed. Where there are any
	// and no TLS, requests of others than these and this machine are refused: they are not
	// encrypted.
	Proxies []netip.Prefix
	// Tokens and OAuth identify requests; where both are nil, all are of one identity.
	Tokens Tokens
	OAuth  *OAuth
	// Requests is how many an identity may send in a Window.
	Requests int
	Window   time.Duration
	// TLS encrypts; nil means that nothing is encrypted.
	TLS *tls.Config
	// Log receives what an operator should know.
	Log *slog.Logger
	// Trace, if any, begins the span of a request to the endpoint, and end ends it.
	Trace func(r *http.Request) (end func(status int))
	// Answered, if any, hears of each request that was answered.
	Answered func(method string, status int, took time.Duration)
	// Ready, if any, says why no program can be run now.
	Ready func() error
	// Metrics, if any, answers GET /metrics.
	Metrics http.Handler
}

// What one identity may hold at a time, and for how long a request may hold anything.
const (
	// maxUnderWay is how many bytes of requests wait for their answers.
	maxUnderWay = 64 << 20
	// maxBody is the size of the largest request, in bytes.
	maxBody = 10 << 20
	// maxParams is the size of the largest parameters of a message that calls no tool, in
	// bytes: a protocol session keeps those of some for its life.
	maxParams = 16 << 10
	// maxHeader is the size of the largest header, in bytes.
	maxHeader = 64 << 10
	// maxSessions is how many protocol sessions may be open, of all clients. One of the
	// client that has most goes when another is wanted: the one not used for longest.
	maxSessions = 6000
	// headerTime is how long a header may take to come, bodyTime a body, and writeTime
	// what is written to be taken.
	headerTime = 10 * time.Second
	bodyTime   = 30 * time.Second
	writeTime  = 30 * time.Second
	// idleTime is how long a connection stays open without a request.
	idleTime = 2 * time.Minute
	// sessionTime is how long a protocol session stays without a request.
	sessionTime = time.Hour
	// retryTime is what a client is told that comes too often, or too late.
	retryTime = 2 * time.Second
)

// Door serves MCP over HTTP.
type Door struct {
	s        *server.Server
	o        Options
	hosts    map[string]bool
	origins  map[string]bool
	clients  clients
	sessions sessions
	single   kinds // requests that stand for themselves
	lasting  kinds // those of protocol sessions
	closing  atomic.Bool
	ready    readiness
	mux      http.ServeMux
}

// kinds are handlers by what a client takes.
type kinds struct{ stream, json http.Handler }

// New returns a door to a server.
func New(s *server.Server, o Options) *Door {
	d := &Door{s: s, o: o, hosts: hostSet(o.Hosts), origins: originSet(o.Origins)}
	d.clients.init(o, s.EndClient)
	d.sessions.init(s)
	replay := newReplayStore()
	handler := func(options mcp.StreamableHTTPOptions) http.Handler {
		options.Logger = o.Log
		options.MaxRequestBodyBytes = -1          // it is read and bounded before
		options.DisableLocalhostProtection = true // for checkHost is stricter
		return mcp.NewStreamableHTTPHandler(d.endpoint, &options)
	}
	d.single = kinds{
		handler(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}),
		handler(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, JSONResponse: true}),
	}
	d.lasting = kinds{
		handler(mcp.StreamableHTTPOptions{EventStore: replay}),
		handler(mcp.StreamableHTTPOptions{JSONResponse: true}),
	}
	d.mux.HandleFunc(o.Path, d.serveMCP)
	d.mux.HandleFunc("GET /healthz", d.serveHealth)
	d.mux.HandleFunc("GET /readyz", d.serveReadiness)
	if o.Metrics != nil {
		d.mux.HandleFunc("GET /metrics", d.serveMetrics)
	}
	d.mux.HandleFunc("GET /status", d.serveStatus)
	for path, file := range page.Files(o.Path) {
		d.mux.Handle("GET "+path, file)
	}
	if o.OAuth != nil {
		d.mux.HandleFunc(metadataPath, d.serveMetadata)
		d.mux.HandleFunc(metadataPath+o.Path, d.serveMetadata)
	}
	d.mux.HandleFunc("/", d.serveUnknown)
	return d
}

// endpoint is the SDK's server for a request.
func (d *Door) endpoint(r *http.Request) *mcp.Server {
	return d.s.Endpoint(senderOf(r.Context()).name)
}

// ServeHTTP answers one request.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &writer{ResponseWriter: w, last: r.ContentLength != 0}
	defer d.answered(out, r, time.Now())
	defer out.finish()
	w = out
	nameRequest(w, r)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	refused := d.checkHost(r)
	if refused == nil {
		refused = d.checkWay(r)
	}
	if refused == nil {
		refused = checkOnce(r)
	}
	if refused != nil {
		refused.write(w)
		return
	}
	d.mux.ServeHTTP(w, r)
}

func (d *Door) serveUnknown(w http.ResponseWriter, r *http.Request) {
	refuse(http.StatusNotFound, "there is nothing at %.80q: MCP is at %s", r.URL.Path, d.o.Path).write(w)
}

func (d *Door) serveHealth(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, "ok")
}

// serveReadiness says whether new programs are taken.
func (d *Door) serveReadiness(w http.ResponseWriter, _ *http.Request) {
	if d.closing.Load() {
		d.shutDown().write(w)
		return
	}
	if err := d.checkReady(); err != nil {
		refuse(http.StatusServiceUnavailable, "%v", err).later(retryTime).write(w)
		return
	}
	fmt.Fprintln(w, "ready")
}

// shutDown refuses what comes when the server is about to end.
func (d *Door) shutDown() *refusal {
	return refuse(http.StatusServiceUnavailable, "the server is shutting down: try again in %v", retryTime).later(retryTime)
}

// Serve answers requests that come to a listener, until ctx ends; then no new calls are
// taken, and those that go on have as long as grace to end before they are cancelled.
// They are answered all the same.
func (d *Door) Serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	hs := &http.Server{
		Handler:           d,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		TLSConfig:         d.o.TLS,
		ErrorLog:          slog.NewLogLogger(d.o.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() {
		if d.o.TLS != nil {
			ended <- hs.ServeTLS(listener, "", "")
		} else {
			ended <- hs.Serve(listener)
		}
	}()
	sweeping, stop := context.WithCancel(ctx)
	defer stop()
	go d.sweep(sweeping)
	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP on %v: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	d.closing.Store(true)
	d.clients.awaitCalls(grace)
	err := d.s.Stop()
	d.sessions.closeAll()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), retryTime)
	defer cancel()
	if hs.Shutdown(last) != nil { // a client does not take its answer
		err = errors.Join(err, hs.Close())
	}
	return err
}

// sweep ends what nobody has used for long: protocol sessions, and all that is left of
// clients that came no more for as long as the longest of what they can have lasts.
func (d *Door) sweep(ctx context.Context) {
	every := time.NewTicker(sessionTime / 60)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			d.sessions.endIdle()
			d.clients.forget(max(sessionTime, d.o.Window, d.s.LongestIdle()), d.sessions.has, d.s.EndClient)
		}
	}
}
