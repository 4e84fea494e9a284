package deno

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	netproxy "golang.org/x/net/proxy"

	"rillbox/cache"
	"rillbox/cache/egress"
	"rillbox/supervisor"
)

// proxy is the network of one fetching process: an HTTP proxy on loopback that
// decides of each connection, redirects and what modules import included, when
// it is made. A program names the URLs that are fetched for it, so nothing leads
// to a private address but what the operator named: registries, hosts of
// allow_import, proxies.
type proxy struct {
	policy cache.Policy
	// named are hosts (with ports) that may be on private addresses.
	named []string
	// registryFirst says that the first host asked for is npm's registry, which is
	// then named too: a machine's npm configuration need not name the default one.
	registryFirst bool
	// failed is called once, when a connection is refused or can't be made.
	failed func()
	// upstream is the operator's own proxy for a URL, if any.
	upstream func(*url.URL) (*url.URL, error)

	// answer and connection are how many bytes one answer, and one connection whose
	// answers can't be told apart, may bring.
	answer, connection int64

	user   *url.Userinfo
	server http.Server
	stop   context.CancelFunc
	open   http.Transport // for named hosts
	public http.Transport // for all others

	mu       sync.Mutex
	registry string // the first host, where that is npm's registry
	fault    *connectError
	closed   bool
	jobs     sync.WaitGroup // requests; added to under mu
}

// begin says that a request begins that close waits for, unless it was called; done
// must be called at its end.
func (p *proxy) begin() (done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false
	}
	p.jobs.Add(1)
	return p.jobs.Done, true
}

// connectError says why a connection was not made.
type connectError struct {
	host string
	err  error
}

func (e *connectError) Error() string { return e.host + ": " + e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// privateError says that an address is not one to connect to for a program.
type privateError struct{ address netip.Addr }

func (e *privateError) Error() string {
	return fmt.Sprintf("%s is a private or reserved address, which is never fetched from for a program; the operator can name the host in allow_import", e.address)
}

// The bounds of what is fetched, in bytes: of one answer, as for a wheel, and of an
// encrypted connection, over which there may come many.
const (
	maxAnswer     = 512 << 20
	maxConnection = 1 << 30
)

// tooMuchError says that a host did not come to an end.
type tooMuchError struct{ most int64 }

func (e *tooMuchError) Error() string {
	return fmt.Sprintf("it sent more than the %d MiB that may come at once", e.most>>20)
}

// bounded is what a host sends, as far as it may.
type bounded struct {
	io.Reader
	left    int64
	tooMuch func() error
}

func (b *bounded) Read(buffer []byte) (int, error) {
	n, err := b.Reader.Read(buffer)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.tooMuch()
	}
	return n, err
}

// bound bounds what comes from a host.
func (p *proxy) bound(from io.Reader, host string, most int64) *bounded {
	return &bounded{from, most, func() error {
		err := &tooMuchError{most}
		p.blame(host, err)
		return err
	}}
}

// noLog drops what net/http would log of connections that end early.
var noLog = log.New(io.Discard, "", 0)

// newProxy makes a proxy, which the caller closes.
func newProxy(policy cache.Policy, named []string, failed func()) *proxy {
	p := &proxy{policy: policy, named: named, failed: sync.OnceFunc(failed), upstream: upstreamProxy}
	p.answer, p.connection = maxAnswer, maxConnection
	p.user = url.UserPassword("rillbox", rand.Text())
	p.open.DialContext = (&net.Dialer{Timeout: connectTime}).DialContext
	p.public.DialContext = (&net.Dialer{Timeout: connectTime, Control: checkPublic}).DialContext
	p.open.Proxy = func(r *http.Request) (*url.URL, error) { return p.upstream(r.URL) }
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.server.Handler, p.server.ErrorLog = p, noLog
	p.server.ReadHeaderTimeout = 10 * time.Second
	p.server.BaseContext = func(net.Listener) context.Context { return ctx }
	return p
}

// proxyPort is where a child with a network of its own finds its proxy.
const proxyPort = 8080

// reachable gives the address at which a child with these surroundings reaches
// the proxy: in its own network, where serve listens once it has been started, or
// on the machine's loopback, where the proxy listens from here on.
func (p *proxy) reachable(around *Surroundings) (string, error) {
	if around.OwnNetwork() {
		around.Listen(proxyPort)
		return p.url(fmt.Sprintf("127.0.0.1:%d", proxyPort)), nil
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("start the proxy for fetching packages: %w", err)
	}
	go func() { _ = p.server.Serve(listener) }() // ends with close
	around.Connect(uint16(listener.Addr().(*net.TCPAddr).Port))
	return p.url(listener.Addr().String()), nil
}

// serve listens in the network of a child, where that has one of its own.
func (p *proxy) serve(child *supervisor.Child) error {
	listeners, err := child.Listeners()
	for _, listener := range listeners {
		go func() { _ = p.server.Serve(listener) }() // ends with close
	}
	return err
}

// upstreamProxy is the proxy of our environment for a URL, as for our own
// downloads.
func upstreamProxy(u *url.URL) (*url.URL, error) {
	return http.ProxyFromEnvironment(&http.Request{URL: u})
}

// url is the proxy's address for a process's environment.
func (p *proxy) url(host string) string {
	return (&url.URL{Scheme: "http", User: p.user, Host: host}).String()
}

// close ends all connections, waits until nothing of them goes on, and says what went wrong with the first that
// could not be made, or nil.
func (p *proxy) close() *connectError {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	_ = p.server.Close() // nobody needs its listeners any more
	p.open.CloseIdleConnections()
	p.public.CloseIdleConnections()
	p.jobs.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// ServeHTTP makes a tunnel, or passes a plain request on.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	done, ok := p.begin()
	if !ok {
		panic(http.ErrAbortHandler)
	}
	defer done()
	password, _ := p.user.Password()
	credentials := "Basic " + base64.StdEncoding.EncodeToString([]byte(p.user.Username()+":"+password))
	if r.Header.Get("Proxy-Authorization") != credentials {
		http.Error(w, "this proxy is for one process", http.StatusProxyAuthRequired)
		return
	}
	if p.registryFirst {
		p.mu.Lock()
		if p.registry == "" {
			p.registry = r.Host
		}
		p.mu.Unlock()
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	host := hostPort(r.URL)
	if err := p.check(r.Context(), r.URL); err != nil {
		p.fail(w, r, host, err)
		return
	}
	forward := httputil.ReverseProxy{
		Rewrite:   func(*httputil.ProxyRequest) {}, // the URL is whole already
		Transport: p.transport(r.URL),
		ErrorLog:  noLog,
		ModifyResponse: func(r *http.Response) error {
			if r.ContentLength > p.answer {
				return &tooMuchError{p.answer}
			}
			r.Body = struct {
				io.Reader
				io.Closer
			}{p.bound(r.Body, host, p.answer), r.Body}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { p.fail(w, r, host, err) },
	}
	r.Header.Del("Proxy-Authorization")
	forward.ServeHTTP(w, r)
}

// tunnel connects the process with a host, and carries bytes until both sides
// have ended or the proxy is closed.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	target := &url.URL{Scheme: "https", Host: r.Host}
	remote, err := p.connect(r.Context(), target)
	if err != nil {
		p.fail(w, r, hostPort(target), err)
		return
	}
	defer remote.Close()
	local, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer local.Close()
	defer context.AfterFunc(r.Context(), func() { _, _ = local.Close(), remote.Close() })()
	if _, err := io.WriteString(local, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() { _, _ = io.Copy(remote, buffered); closeWrite(remote) })
	_, _ = io.Copy(local, p.bound(remote, hostPort(target), p.connection))
	closeWrite(local)
	up.Wait()
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}

// fail answers with an error and keeps it, unless the process gave up itself.
func (p *proxy) fail(w http.ResponseWriter, r *http.Request, host string, err error) {
	if r.Context().Err() != nil {
		return
	}
	p.blame(host, err)
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// blame keeps the first thing that went wrong, and says so.
func (p *proxy) blame(host string, err error) {
	p.mu.Lock()
	if p.fault == nil {
		p.fault = &connectError{host, err}
	}
	p.mu.Unlock()
	p.failed()
}

// isNamed says that the operator named the host of u, one by one and not by a
// wildcard.
func (p *proxy) isNamed(u *url.URL) bool {
	host := hostPort(u)
	p.mu.Lock()
	registry := p.registry
	p.mu.Unlock()
	if registry != "" && hostCovers(registry, host) {
		return true
	}
	return slices.ContainsFunc(p.named, func(name string) bool {
		return !strings.HasPrefix(name, "*") && hostCovers(name, host)
	})
}

func (p *proxy) transport(u *url.URL) *http.Transport {
	if upstream, err := p.upstream(u); err != nil || upstream != nil || p.isNamed(u) {
		return &p.open
	}
	return &p.public
}

// check refuses what can be refused before a connection is made. Where it is
// another proxy that connects, that one resolves the name again and has to keep
// its network's secrets; what we can see of the address is checked all the same.
func (p *proxy) check(ctx context.Context, u *url.URL) error {
	if err := p.policy.CheckLink(u.Hostname()); err != nil {
		return err
	}
	upstream, err := p.upstream(u)
	if err != nil || upstream == nil || p.isNamed(u) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return nil // often only the proxy resolves names
	}
	for _, address := range addresses {
		if !egress.IsPublic(address) {
			return &privateError{address}
		}
	}
	return nil
}

// checkPublic refuses addresses that a program may not reach. It sees the
// address that is connected to, whatever name led there.
func checkPublic(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !egress.IsPublic(to.Addr()) {
		return &privateError{to.Addr()}
	}
	return nil
}

// connect connects to the host of u, through the operator's proxy if there is
// one for it.
func (p *proxy) connect(ctx context.Context, u *url.URL) (net.Conn, error) {
	if err := p.check(ctx, u); err != nil {
		return nil, err
	}
	upstream, err := p.upstream(u)
	if err != nil || upstream == nil {
		if err != nil {
			return nil, err
		}
		return p.transport(u).DialContext(ctx, "tcp", hostPort(u))
	}
	dialer := &net.Dialer{Timeout: connectTime}
	if strings.HasPrefix(upstream.Scheme, "socks5") {
		through, err := netproxy.FromURL(upstream, dialer)
		if err != nil {
			return nil, err
		}
		return through.(netproxy.ContextDialer).DialContext(ctx, "tcp", hostPort(u))
	}
	conn, err := dialer.DialContext(ctx, "tcp", hostPort(upstream))
	if err != nil {
		return nil, err
	}
	raw := conn
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	if conn, err = connectVia(conn, upstream, hostPort(u)); err != nil {
		return nil, fmt.Errorf("through the proxy %s: %w", upstream.Host, err)
	}
	return conn, nil
}

// connectVia asks the HTTP proxy at the other end of conn for a tunnel.
func connectVia(conn net.Conn, upstream *url.URL, target string) (net.Conn, error) {
	if upstream.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: upstream.Hostname()})
	}
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if upstream.User != nil {
		password, _ := upstream.User.Password()
		ask.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(upstream.User.Username()+":"+password)))
	}
	_ = conn.SetDeadline(time.Now().Add(2 * connectTime))
	err := ask.Write(conn)
	var answer *http.Response
	if err == nil { // no byte follows the answer before we send one
		answer, err = http.ReadResponse(bufio.NewReader(conn), ask)
	}
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

// namedHosts are those that the operator named: in allow_import, and as
// registries of npm and JSR.
func namedHosts(imports []string) []string {
	named := slices.Clone(imports)
	for _, address := range append(cache.NPMRegistries(), os.Getenv("JSR_URL")) {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			named = append(named, hostPort(u))
		}
	}
	return named
}
