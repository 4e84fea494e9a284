// Package gateway is the only network that a Python child has: an HTTP server
// on loopback, through which index pages and wheels flow from the package
// index, Pyodide's CDN and the cache to children, and nothing flows back.
//
// Each child has a Grant: a path with a secret token. Below it:
//
//	simple/{project}/            index page, as JSON (PEP 691), its links leading to file/
//	file/{sha256}/{name}         a file of such a page or of an install plan
//	file/{sha256}/{name}.metadata   its metadata (PEP 658)
//	cdn/{name}                   a file of Pyodide's lock file
//	built/{sha256}/{name}        what a source archive of such a page is built to, as JSON:
//	                             the file name, sha256 and URL of a wheel
//	url/{URL}                    a wheel by its https URL, percent-encoded whole
//
// It assumes a hostile guest on the other end, and promises:
//
//   - A guest reaches only files that an index page, the lock file or a plan
//     named, or that were built of what a page named, and wheels by https URL on public addresses. Each hop of a redirect
//     is checked when it is dialled (package egress). No redirect is passed on.
//   - No byte of a file is sent before the whole file has the SHA-256 that the
//     index or lock file gave. A file without one is refused.
//   - The policy of a Grant holds for every file, wherever it comes from.
//   - What was fetched once is served offline; what is missing is reported within
//     5 s.
//
// Errors are plain text that says what was requested, why it failed and what to
// do: 403 refused by policy or rule, 404 not named by anything, 429 too many
// requests, 422 no wheel can be built of a source, 502 a bad response from the source, 504 not cached and no network.
package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"rillbox/cache"
	"rillbox/cache/egress"
)

// Options are the choices that a Gateway has; Cache, CDN and Lock are required.
type Options struct {
	Cache *cache.Cache
	// IndexURLs are the package indexes (PEP 503 or 691). A project is taken from
	// the first that has it, and only from there. They may be on private
	// addresses, and may have a user and password.
	IndexURLs []string
	// CDN is the URL below which the files of Lock are; it ends in "/".
	CDN string
	// Mirrored is a directory that they are taken from in place of CDN, without a network.
	Mirrored string
	// Lock is Pyodide's pyodide-lock.json.
	Lock []byte
	// Policy is the operator's, within which that of each Grant is.
	Policy egress.Policy
	// Build builds what there is no wheel of; it is nil for guests that are builds.
	Build Builder
	// Log gets refusals and faults; nil discards them.
	Log *slog.Logger
}

// Gateway serves the children of one server process.
type Gateway struct {
	cache   *cache.Cache
	indexes []*url.URL
	locked  map[string]entry // by file name: Pyodide's lock file
	cdn     *url.URL
	// mirrored is Options.Mirrored.
	mirrored string
	build    Builder
	log      *slog.Logger
	now      func() time.Time // for tests

	network *egress.Client
	pages   pageCache
	flights singleflight.Group // index pages, by URL

	server  *http.Server
	stop    context.CancelFunc
	stopped context.Context

	grants   sync.Map // *Grant by token
	watchers sync.Map // of downloads: *watcher

	mu   sync.Mutex
	addr string // of the listener on the machine's loopback; empty before Addr

	// work is held for reading by each request, and by what it began; Close waits for it.
	work sync.RWMutex
}

// New makes a gateway. It listens where Serve or Addr say.
func New(o Options) (*Gateway, error) {
	g := &Gateway{
		cache: o.Cache, mirrored: o.Mirrored, build: o.Build, log: o.Log, now: time.Now,
		network: egress.New(o.Policy),
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	g.network.Log = g.log
	if err := o.Policy.Validate(); err != nil {
		return nil, fmt.Errorf("package gateway: %w", err)
	}
	for _, index := range o.IndexURLs {
		u, err := operatorURL(index)
		if err != nil {
			return nil, fmt.Errorf("package gateway: package index: %w", err)
		}
		g.indexes = append(g.indexes, u)
	}
	var err error
	if g.cdn, err = operatorURL(o.CDN); err != nil {
		return nil, fmt.Errorf("package gateway: Pyodide's CDN: %w", err)
	}
	if g.locked, err = g.readLock(o.Lock); err != nil {
		return nil, fmt.Errorf("package gateway: Pyodide's lock file: %w", err)
	}
	g.stopped, g.stop = context.WithCancel(context.Background())
	g.server = &http.Server{
		Handler:           http.HandlerFunc(g.serve),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
		ConnState:         new(idleConns).connState,
	}
	return g, nil
}

// operatorURL parses a URL of the configuration. The error does not have its password.
func operatorURL(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return nil, errors.New("its URL is malformed")
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.Opaque != "" {
		return nil, fmt.Errorf("%q is not an http or https URL", u.Redacted())
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// Serve serves a listener in a child's own network until it is closed.
func (g *Gateway) Serve(l net.Listener) { _ = g.server.Serve(l) }

// Addr is the host and port on the machine's loopback for children without a
// network of their own; the gateway listens there from the first call on. It is
// empty if listening failed, and the log says why.
func (g *Gateway) Addr() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.addr == "" && g.stopped.Err() == nil {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			g.log.Error("the package gateway has no port", "err", err)
			return ""
		}
		g.addr = listener.Addr().String()
		go g.Serve(listener)
	}
	return g.addr
}

// Close ends the server and all grants, and waits for their requests and downloads.
func (g *Gateway) Close() {
	g.mu.Lock()
	g.stop()
	g.mu.Unlock()
	_ = g.server.Close() // the listener's error helps nobody now
	g.network.Close()
	for _, grant := range g.grants.Range {
		grant.(*Grant).Close()
	}
	g.work.Lock()
	defer g.work.Unlock()
}

// Grant makes a path for one child, which reaches the gateway at an address (host and
// port). The policy holds for all that it gets.
func (g *Gateway) Grant(address string, policy egress.Policy) *Grant {
	grant := &Grant{
		g: g, address: address, policy: policy, token: rand.Text() + rand.Text(),
		queue: make(chan struct{}, queued), slots: make(chan struct{}, atOnce),
		rate:  rate.NewLimiter(perSecond, burst),
		turn:  make(chan struct{}, 1),
		pages: map[string]*projectPage{}, plan: map[fileKey]entry{},
	}
	grant.closed, grant.close = context.WithCancel(g.stopped)
	g.grants.Store(grant.token, grant)
	return grant
}

// lookup returns the grant of a token, or nil. A guest can't use the time that it
// takes: the token has 260 random bits, and is hashed with a random seed before any
// byte is compared.
func (g *Gateway) lookup(token string) *Grant {
	grant, _ := g.grants.Load(token)
	found, _ := grant.(*Grant)
	return found
}

// noFetch says that only the cache may be asked.
func (gr *Grant) noFetch() bool { return gr.policy.NoFetch || gr.g.cache.Offline() }
