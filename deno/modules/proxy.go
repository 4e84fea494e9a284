package modules

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"rillbox/cache"
	"rillbox/cache/egress"
	"rillbox/deno/permission"
	"rillbox/supervisor/sandbox"
)

// proxy is the network of one fetching process: an HTTP proxy on loopback that connects
// through package egress. Programs name the URLs that are fetched for them, so only
// registries and hosts of allow_import, which the operator named, may have private
// addresses.
type proxy struct {
	network *egress.Client
	route   egress.Route
	// named are hosts (with ports) that may be on private addresses.
	named []string
	// registryFirst means that the first host requested is npm's registry, and counts
	// as named: the machine's npm configuration need not name the default one.
	registryFirst bool
	// failed is called once, when a connection is refused or can't be made.
	failed func()

	// answer and connection bound, in bytes, one plain response and one tunnel.
	answer, connection int64

	user   *url.Userinfo
	server http.Server
	stop   context.CancelFunc

	requests sync.RWMutex // held for reading by each request; close waits for it

	mu       sync.Mutex
	registry string // the first host, where that is npm's registry
	fault    *connectError
}

// connectError says why a connection was not made, or was cut.
type connectError struct {
	host string
	err  error
}

func (e *connectError) Error() string { return e.host + ": " + e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// Bounds in bytes: of one plain response, as for a wheel, and of a tunnel, which may
// carry many encrypted ones.
const (
	maxAnswer     = 512 << 20
	maxConnection = 1 << 30
)

// bound bounds what comes from a host, and blames it if it sends more.
func (p *proxy) bound(from io.ReadCloser, host string, most int64) io.ReadCloser {
	return egress.Bound(from, most, func(err error) { p.blame(host, err) })
}

// noLog drops what net/http would log of connections that end early.
var noLog = log.New(io.Discard, "", 0)

// newProxy makes a proxy, which the caller closes.
func newProxy(policy egress.Policy, named []string, failed func()) *proxy {
	p := &proxy{network: egress.New(policy), named: named, failed: sync.OnceFunc(failed)}
	// Plain http needs a host of allow_import, or that this is all hosts.
	p.route = egress.Route{Named: p.isNamed, PlainHTTP: true}
	p.answer, p.connection = maxAnswer, maxConnection
	p.user = url.UserPassword("rillbox", rand.Text())
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
func (p *proxy) reachable(around *permission.Surroundings) (string, error) {
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
func (p *proxy) serve(child *sandbox.Child) error {
	listeners, err := child.Listeners()
	for _, listener := range listeners {
		go func() { _ = p.server.Serve(listener) }() // ends with close
	}
	return err
}

// url is the proxy's address for a process's environment.
func (p *proxy) url(host string) string {
	return (&url.URL{Scheme: "http", User: p.user, Host: host}).String()
}

// close ends all connections, waits for their handlers, and returns the first fault,
// or nil.
func (p *proxy) close() *connectError {
	p.stop()
	_ = p.server.Close() // nobody needs its listeners any more
	p.network.Close()
	p.requests.Lock()
	defer p.requests.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// ServeHTTP makes a tunnel, or passes a plain request on.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests.RLock()
	defer p.requests.RUnlock()
	if r.Context().Err() != nil { // also after close
		panic(http.ErrAbortHandler)
	}
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
	host := egress.HostPort(r.URL)
	forward := httputil.ReverseProxy{
		Rewrite:   func(*httputil.ProxyRequest) {}, // the URL is whole already
		Transport: p.network.RoundTripper(p.route),
		ErrorLog:  noLog,
		ModifyResponse: func(r *http.Response) error {
			if r.ContentLength > p.answer {
				return &egress.TooLargeError{Limit: p.answer}
			}
			r.Body = p.bound(r.Body, host, p.answer)
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
	remote, err := p.network.Dial(r.Context(), p.route, target)
	if err != nil {
		p.fail(w, r, egress.HostPort(target), err)
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
	_, _ = io.Copy(local, p.bound(remote, egress.HostPort(target), p.connection))
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

// fail sends an error and records it, unless the process hung up.
func (p *proxy) fail(w http.ResponseWriter, r *http.Request, host string, err error) {
	if r.Context().Err() != nil {
		return
	}
	p.blame(host, err)
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// blame records the first fault, and calls failed.
func (p *proxy) blame(host string, err error) {
	p.mu.Lock()
	if p.fault == nil {
		p.fault = &connectError{host, err}
	}
	p.mu.Unlock()
	p.failed()
}

// isNamed reports whether the operator named the host of u, other than by a wildcard.
func (p *proxy) isNamed(u *url.URL) bool {
	host := egress.HostPort(u)
	p.mu.Lock()
	registry := p.registry
	p.mu.Unlock()
	if registry != "" && permission.HostCovers(registry, host) {
		return true
	}
	return slices.ContainsFunc(p.named, func(name string) bool {
		return !strings.HasPrefix(name, "*") && permission.HostCovers(name, host)
	})
}

// namedHosts are those that the operator named: in allow_import, and as
// registries of npm and JSR.
func namedHosts(imports []string) []string {
	named := slices.Clone(imports)
	for _, address := range append(cache.NPMRegistries(), os.Getenv("JSR_URL")) {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			named = append(named, egress.HostPort(u))
		}
	}
	return named
}
