// Package egress is the one way out to the network. What the cache downloads, what
// the package gateway fetches for programs and what Deno fetches goes through a
// Client, with a Route that says where it may lead:
//
//   - The operator's Policy is asked for every host, that of each redirect included.
//   - A host that the operator did not name is connected to on a public address only,
//     by https. The address is checked when it is dialled, after its name was resolved.
//   - Every wait and every size is bounded, before anything is held in memory.
//   - Failed requests are retried while that may help, and downloads resumed.
//   - The machine's proxies and certificates are honoured. A proxy resolves names by
//     itself; what can be seen of the address here is checked all the same.
package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Timeouts. A missing network is reported within 5 s.
const (
	dialTime    = 3 * time.Second  // to resolve a name and connect
	connectTime = 4 * time.Second  // that and TLS, or the answer on an old connection
	idleTime    = 30 * time.Second // from connecting to the answer, and between two reads of it
	downTime    = 8 * time.Second  // that an unreachable server is not asked again
	lookupTime  = time.Second      // to resolve the name of a host that a proxy connects to
)

const (
	maxRedirects  = 10
	pageTries     = 3 // the caller often has an old page
	downloadTries = 5 // in a row that bring no byte
)

// Client makes connections and requests. It is safe for concurrent use.
type Client struct {
	// Policy says which hosts may be connected to.
	Policy Policy
	// Offline makes Get and Download fail with ErrOffline.
	Offline bool
	// Proxy gives the machine's proxy for a URL, if any.
	Proxy func(*url.URL) (*url.URL, error)
	// IsPublic says which addresses Public may connect to.
	IsPublic func(netip.Addr) bool
	// Public connects to hosts that the operator did not name.
	Public *http.Transport
	// Log gets the reason of each retry; nil discards it.
	Log *slog.Logger

	named *http.Transport // connects to all others, and goes through proxies

	mu   sync.Mutex
	down map[string]outage // by origin
}

type outage struct {
	until time.Time
	err   error
}

// New makes a client that honours the machine's proxies and certificates.
func New(policy Policy) *Client {
	c := &Client{
		Policy: policy, IsPublic: IsPublic, Public: newTransport(), named: newTransport(), down: map[string]outage{},
		Proxy: func(u *url.URL) (*url.URL, error) { return http.ProxyFromEnvironment(&http.Request{URL: u}) },
	}
	c.Public.DialContext = (&net.Dialer{Timeout: dialTime, Control: c.checkAddress}).DialContext
	c.named.Proxy = func(r *http.Request) (*url.URL, error) { return c.Proxy(r.URL) }
	return c
}

// Close closes the connections that nobody uses.
func (c *Client) Close() {
	c.Public.CloseIdleConnections()
	c.named.CloseIdleConnections()
}

func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSClientConfig:        tlsConfig(),
		TLSHandshakeTimeout:    connectTime,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// tlsConfig trusts $SSL_CERT_FILE on macOS too, where Go alone would not. Elsewhere Go
// does, at the first connection: reading all certificates takes 10 ms.
func tlsConfig() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if runtime.GOOS != "darwin" {
		return config
	}
	pem, err := os.ReadFile(os.Getenv("SSL_CERT_FILE"))
	if err != nil {
		return config
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if pool.AppendCertsFromPEM(pem) {
		config.RootCAs = pool
	}
	return config
}

// Route says which hosts a request and its redirects may reach.
type Route struct {
	// Home is an origin that the operator configured. Its user and password, and the
	// request's Authorization header, are sent to this origin alone.
	Home *url.URL
	// Named reports whether the operator named the host of a URL. Such hosts, and Home,
	// may have private addresses and use plain http.
	Named func(*url.URL) bool
	// PlainHTTP allows plain http for other hosts, too.
	PlainHTTP bool
	// Host returns an error for hosts that are refused; nil means Policy.CheckLink.
	Host func(host string) error
}

func (r Route) isNamed(u *url.URL) bool {
	return SameOrigin(u, r.Home) || r.Named != nil && r.Named(u)
}

// SameOrigin says whether two URLs have scheme, host and port in common.
func SameOrigin(u, home *url.URL) bool { return home != nil && origin(u) == origin(home) }

func origin(u *url.URL) string { return u.Scheme + "://" + strings.ToLower(HostPort(u)) }

// HostPort is a URL's host and port, also where that is the scheme's own.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
		if u.Scheme == "http" {
			port = "80"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// checkAddress is called with the resolved address just before it is dialled.
func (c *Client) checkAddress(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse("%s is not an address", address)
	}
	if !c.IsPublic(to.Addr()) {
		return &PrivateError{to.Addr()}
	}
	return nil
}

// transportFor returns the transport that may connect to u, and the proxy that it goes
// through, if any. What can be refused before connecting is refused here.
func (c *Client) transportFor(ctx context.Context, route Route, u *url.URL) (by *http.Transport, proxy *url.URL, err error) {
	host := u.Hostname()
	check := route.Host
	if check == nil {
		check = c.Policy.CheckLink
	}
	if err := check(host); err != nil {
		return nil, nil, err
	}
	named := route.isNamed(u)
	if u.Scheme != "https" && (u.Scheme != "http" || !named && !route.PlainHTTP) {
		return nil, nil, refuse("it leads to a %.20q URL, and only https is followed", u.Scheme)
	}
	if !named && IsNumber(host) {
		return nil, nil, refuse("%s is not the name of a host", host)
	}
	proxy, err = c.Proxy(u)
	switch {
	case err != nil:
		return nil, nil, err
	case named:
		return c.named, proxy, nil
	case proxy == nil:
		return c.Public, nil, nil
	}
	return c.named, proxy, c.checkName(ctx, host)
}

// checkName refuses a host whose name resolves to a private address here. It is for
// proxies, which resolve the name again: often only they can, and it is up to them to
// protect their own network.
func (c *Client) checkName(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, address := range addresses {
		if !c.IsPublic(address) {
			return &PrivateError{address}
		}
	}
	return nil
}

// IsNumber reports whether host is an address in a form that only some resolvers
// understand, such as 2130706433 or 0x7f.1.
func IsNumber(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	last := host[strings.LastIndexByte(host, '.')+1:]
	digits, hexadecimal := strings.CutPrefix(last, "0x")
	return hexadecimal && strings.Trim(digits, "0123456789abcdef") == "" || strings.Trim(last, "0123456789") == ""
}

// RoundTripper sends single requests along a route; it follows no redirects.
func (c *Client) RoundTripper(route Route) http.RoundTripper { return hop{c, route} }

type hop struct {
	c     *Client
	route Route
}

func (h hop) RoundTrip(req *http.Request) (*http.Response, error) {
	transport, _, err := h.c.transportFor(req.Context(), h.route, req.URL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	var connected atomic.Bool
	timer := time.AfterFunc(connectTime, func() {
		if connected.Load() {
			cancel(errSilent)
		} else {
			cancel(errNotConnected)
		}
	})
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if !info.Reused { // an old one may be dead without our knowing
			connected.Store(true)
			timer.Reset(idleTime)
		}
	}}
	resp, err := transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		timer.Stop()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		if errors.As(err, new(x509.UnknownAuthorityError)) {
			err = fmt.Errorf("%w: SSL_CERT_FILE can name a file with the certificate of who signed it", err)
		}
		return nil, err
	}
	connected.Store(true)
	timer.Reset(idleTime)
	resp.Body = &timedBody{resp.Body, ctx, cancel, timer}
	return resp, nil
}

// timedBody is a response's body that fails when no byte comes for idleTime.
type timedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (b *timedBody) Read(p []byte) (int, error) {
	b.timer.Reset(idleTime)
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
		err = &brokenError{err: err}
	}
	return n, err
}

func (b *timedBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// Bound returns a body that fails with a *TooLargeError after limit bytes. The error is
// also passed to tell, which may be nil.
func Bound(body io.ReadCloser, limit int64, tell func(error)) io.ReadCloser {
	return &bounded{body, limit, limit, tell}
}

type bounded struct {
	io.ReadCloser
	left, limit int64
	tell        func(error)
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left >= 0 {
		return n, err
	}
	err = &TooLargeError{b.limit}
	if b.tell != nil {
		b.tell(err)
	}
	return 0, err
}

// send makes one GET request, following redirects that the route allows. The caller
// closes the body of the response, whose status may be any.
func (c *Client) send(ctx context.Context, u *url.URL, route Route, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, refuse("it is not a URL that can be asked for")
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("User-Agent", "rillbox")
	route.authorize(req)
	client := http.Client{Transport: c.RoundTripper(route), CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return refuse("%s redirects more than %d times", u.Host, maxRedirects)
		}
		if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
			return refuse("it redirects from https to a %.20q URL, and only https is followed", req.URL.Scheme)
		}
		req.Header.Del("Referer")
		route.authorize(req)
		return nil
	}}
	resp, err := client.Do(req)
	switch err = withoutURL(err); {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case permanent(err):
		return nil, err
	}
	return nil, &UnreachableError{u.Host, err}
}

func (r Route) authorize(req *http.Request) {
	req.URL.User = nil
	if !SameOrigin(req.URL, r.Home) {
		req.Header.Del("Authorization")
	} else if r.Home.User != nil {
		password, _ := r.Home.User.Password()
		req.SetBasicAuth(r.Home.User.Username(), password)
	}
}

// Get fetches a page of at most limit bytes. The body of the response has been read and
// closed. Its status may be any that a retry would not change.
func (c *Client) Get(ctx context.Context, u *url.URL, route Route, header http.Header, limit int64) (resp *http.Response, body []byte, err error) {
	err = c.retry(ctx, u, pageTries, func() int64 { return 0 }, func() error {
		if resp, err = c.send(ctx, u, route, header); err != nil {
			return err
		}
		defer resp.Body.Close()
		if status := (&StatusError{u.Host, resp.StatusCode}); !status.permanent() {
			return status
		}
		body, err = io.ReadAll(Bound(resp.Body, limit, nil))
		return err
	})
	return resp, body, err
}

// retry calls attempt, with growing pauses, until it succeeds, its error is permanent,
// or most attempts in a row brought no byte. have returns how many bytes there are. An
// unreachable server is not asked again for downTime.
func (c *Client) retry(ctx context.Context, u *url.URL, most int, have func() int64, attempt func() error) error {
	if c.Offline {
		return NotCached(u.Redacted())
	}
	if err := c.outage(u); err != nil {
		return err
	}
	var best int64
	for tries := 1; ; tries++ {
		begun := time.Now()
		err := attempt()
		switch {
		case err == nil:
			c.note(u, nil)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case permanent(err):
			return err
		}
		if now := have(); now > best { // it moves: be patient
			best, tries = now, 1
		}
		switch {
		case best == 0 && errors.As(err, new(*UnreachableError)) && (tries > 1 || time.Since(begun) > time.Second):
			c.note(u, err)
			return err
		case tries >= most:
			return fmt.Errorf("gave up after %d tries: %w", tries, err)
		}
		if c.Log != nil {
			c.Log.Debug("fetching failed, trying again", "url", u.Redacted(), "have", best, "err", err)
		}
		pause := 250 * time.Millisecond << (tries - 1)
		select {
		case <-time.After(pause + rand.N(pause)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// outage returns the error of an attempt in the last downTime that did not reach u's server.
func (c *Client) outage(u *url.URL) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, o := range c.down {
		if time.Now().After(o.until) {
			delete(c.down, at)
		}
	}
	return c.down[origin(u)].err
}

// note records that u's server can't be reached because of err; nil means that it can.
func (c *Client) note(u *url.URL, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.down, origin(u)); err != nil {
		c.down[origin(u)] = outage{time.Now().Add(downTime), err}
	}
}
