package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"rillbox/cache"
	"rillbox/cache/egress"
)

const (
	connectWait = 4 * time.Second  // to reach a server: name, TCP, TLS, or the answer on an old connection
	answerWait  = 20 * time.Second // for the headers, once it is reached
	idleWait    = 30 * time.Second // between two reads of a body
	downFor     = 8 * time.Second  // that an unreachable server is not tried again
	retryUntil  = 2 * time.Second  // after the start, that another attempt may begin
	maxRedirect = 10
)

// source is a URL to fetch, and what it may lead to.
type source struct {
	url *url.URL
	// home is an origin that the operator configured: it alone may be on a
	// private address, speak plain http, and gets home's user and password.
	// Nil for URLs that a guest or a foreign page named.
	home *url.URL
	// host refuses hosts; it is asked for each hop that does not lead home.
	host func(host string) error
}

// fetcher is the HTTP client of the gateway. It is not cache.Download, because
// every hop's address must be checked at the time it is dialled, after its
// name was resolved: a check before that would be of another resolution.
type fetcher struct {
	home   *http.Transport // reaches any address; honours proxies
	public *http.Transport // reaches public addresses alone; no proxy
	now    func() time.Time
	// reachable says which addresses URLs without a home may lead to.
	reachable func(netip.Addr) bool

	mu   sync.Mutex
	down map[string]downUntil // by origin
}

type downUntil struct {
	until time.Time
	err   error
}

// refusedError says that a URL is not one that we fetch.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// unreachableError says that a server gave no answer.
type unreachableError struct {
	host string
	err  error
}

func (e *unreachableError) Error() string { return fmt.Sprintf("%s: %v", e.host, e.err) }
func (e *unreachableError) Unwrap() error { return e.err }

// statusError is a server's answer that is of no use to us.
type statusError struct {
	host string
	code int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s answered %d %s", e.host, e.code, http.StatusText(e.code))
}

var errNoAnswer = errors.New("no answer in time")

func newFetcher() *fetcher {
	f := &fetcher{now: time.Now, reachable: egress.IsPublic, down: map[string]downUntil{}}
	transport := func() *http.Transport {
		return &http.Transport{
			DialContext:            (&net.Dialer{Timeout: connectWait}).DialContext,
			TLSHandshakeTimeout:    connectWait,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: 256 << 10,
		}
	}
	f.home = transport()
	f.home.Proxy = http.ProxyFromEnvironment
	f.public = transport()
	f.public.DialContext = (&net.Dialer{Timeout: connectWait, Control: f.checkDial}).DialContext
	return f
}

func (f *fetcher) close() {
	f.home.CloseIdleConnections()
	f.public.CloseIdleConnections()
}

// checkDial refuses an address that a guest may not reach. It sees the address
// that is connected to, whatever name led there.
func (f *fetcher) checkDial(_, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusedError{fmt.Sprintf("%s is not an address", address)}
	}
	return f.checkAddr(addr.Addr())
}

func (f *fetcher) checkAddr(addr netip.Addr) error {
	if !f.reachable(addr) {
		return &refusedError{fmt.Sprintf("%s is a private or reserved address, which is never fetched from for a guest", addr)}
	}
	return nil
}

// hop sends one request of a chain, whose source it knows.
type hop struct {
	f    *fetcher
	from source
}

// RoundTrip checks where a request leads, also when it is a redirect's.
func (h hop) RoundTrip(req *http.Request) (*http.Response, error) {
	u, host := req.URL, req.URL.Hostname()
	if sameOrigin(u, h.from.home) {
		return h.f.home.RoundTrip(req)
	}
	if err := h.from.host(host); err != nil {
		return nil, err
	}
	if u.Scheme != "https" {
		return nil, &refusedError{fmt.Sprintf("%s leads to a %s URL, and only https is followed", h.from.url.Host, u.Scheme)}
	}
	proxy, err := http.ProxyFromEnvironment(req)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return h.f.public.RoundTrip(req)
	}
	// The proxy resolves the name again, and is the one to keep its network's
	// secrets; what we can see of the address is checked all the same.
	if err := h.f.checkName(req.Context(), host); err != nil {
		return nil, err
	}
	return h.f.home.RoundTrip(req)
}

// checkName refuses a host that has a private address, as far as we can tell.
func (f *fetcher) checkName(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // often only the proxy resolves names
	}
	for _, addr := range addrs {
		if err := f.checkAddr(addr); err != nil {
			return err
		}
	}
	return nil
}

// origin is a URL's scheme, host and port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func sameOrigin(u, home *url.URL) bool { return home != nil && origin(u) == origin(home) }

// get sends a request until the headers of an answer are there, following
// redirects that the source allows. It makes another attempt when a quick one
// failed, and gives up on an unreachable server within 5 s. The caller closes
// the body of the response, whose status may be any.
func (f *fetcher) get(ctx context.Context, from source, header http.Header) (*http.Response, error) {
	if err := f.isDown(from.url); err != nil {
		return nil, err
	}
	start := time.Now()
	for pause := 200 * time.Millisecond; ; pause *= 3 {
		resp, err := f.attempt(ctx, from, header)
		again := (err == nil && transient(resp.StatusCode)) || (err != nil && worthRetrying(err))
		if !again || time.Since(start)+pause > retryUntil {
			if err == nil {
				f.setUp(from.url)
				return resp, nil
			}
			return nil, f.judge(ctx, from.url, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func transient(status int) bool {
	return status == http.StatusTooManyRequests || (status >= 500 && status != http.StatusNotImplemented)
}

// worthRetrying is false for what will not be otherwise in a moment: a refusal
// of ours, a name that does not exist.
func worthRetrying(err error) bool {
	var dns *net.DNSError
	return !isRefusal(err) && !errors.As(err, &dns) && !errors.Is(err, context.Canceled)
}

func isRefusal(err error) bool {
	var refused *refusedError
	var denied *cache.DeniedError
	return errors.As(err, &refused) || errors.As(err, &denied)
}

// judge tells a server that can't be reached from the other reasons to fail,
// and remembers it.
func (f *fetcher) judge(ctx context.Context, u *url.URL, err error) error {
	if isRefusal(err) {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err // without the URL, which may hold a password
	}
	err = &unreachableError{u.Host, err}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down[origin(u)] = downUntil{f.now().Add(downFor), err}
	return err
}

func (f *fetcher) isDown(u *url.URL) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for o, d := range f.down {
		if f.now().After(d.until) {
			delete(f.down, o)
		}
	}
	return f.down[origin(u)].err
}

func (f *fetcher) setUp(u *url.URL) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.down, origin(u))
}

// attempt sends a request once.
func (f *fetcher) attempt(ctx context.Context, from source, header http.Header) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(connectWait, func() { cancel(errNoAnswer) })
	trace := &httptrace.ClientTrace{
		GetConn: func(string) { timer.Reset(connectWait) },
		GotConn: func(info httptrace.GotConnInfo) {
			// An old connection may be dead without our knowing.
			if !info.Reused {
				timer.Reset(answerWait)
			}
		},
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, from.url.String(), nil)
	if err != nil {
		timer.Stop()
		cancel(nil)
		return nil, &refusedError{"it is not a URL that can be asked for"}
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("User-Agent", "rillbox")
	from.authorize(req)
	client := &http.Client{Transport: hop{f, from}, CheckRedirect: from.checkRedirect}
	resp, err := client.Do(req)
	if err != nil {
		timer.Stop()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	timer.Reset(idleWait)
	resp.Body = &timedBody{body: resp.Body, timer: timer, cancel: cancel}
	return resp, nil
}

// authorize gives home, and nobody else, the user and password for it.
func (from source) authorize(req *http.Request) {
	req.URL.User = nil
	req.Header.Del("Authorization")
	if sameOrigin(req.URL, from.home) && from.home.User != nil {
		password, _ := from.home.User.Password()
		req.SetBasicAuth(from.home.User.Username(), password)
	}
}

func (from source) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirect {
		return &refusedError{fmt.Sprintf("%s redirects more than %d times", from.url.Host, maxRedirect)}
	}
	req.Header.Del("Referer")
	from.authorize(req)
	return nil
}

// timedBody is a response's body whose reads may not stall for long.
type timedBody struct {
	body   io.ReadCloser
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func (b *timedBody) Read(p []byte) (int, error) {
	b.timer.Reset(idleWait)
	return b.body.Read(p)
}

func (b *timedBody) Close() error {
	b.timer.Stop()
	err := b.body.Close()
	b.cancel(nil)
	return err
}
