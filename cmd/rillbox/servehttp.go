//go:build !windows

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"

	"rillbox/server"
	"rillbox/server/metrics"
	"rillbox/server/web"
	"rillbox/supervisor"
)

// httpSettings are those of `serve --http`.
type httpSettings struct {
	Address          string
	Path             string
	Hosts, Origins   []string
	Requests         int
	Window           time.Duration
	Certificate, Key string
	Proxies          []string
	Insecure         bool
	Token, Tokens    string // a token, and the file of several
	Grace            time.Duration
	Metrics, Profile string // addresses of their own
	OAuth            web.OAuthOptions
}

// defaultPort is that of `serve --http`, unless one is named.
const defaultPort = "8848"

// maxWait is how long a call over HTTP may wait beside its own times.
const maxWait = 10 * time.Minute

// beside is what a server over HTTP has beside its settings.
type beside struct {
	supervisor *supervisor.Supervisor
	metrics    *metrics.Metrics
	ready      func() error     // see web.Options
	sockets    []net.Listener   // that a service manager opened
	hangups    <-chan os.Signal // on which the server does reload
	reload     []func()
	trace      func(*http.Request) (end func(status int)) // nil where nobody wants traces
}

// serveHTTP serves MCP over HTTP until ctx ends.
func (a *app) serveHTTP(ctx context.Context, srv *server.Server, b beside) error {
	h, m := a.config.HTTP, b.metrics
	o := web.Options{Path: h.Path, Hosts: h.Hosts, Origins: h.Origins, Requests: h.Requests, Window: h.Window, Log: a.log, Answered: m.Answered, Metrics: m.Handler(), Ready: b.ready, Trace: b.trace}
	if h.Token != "" || h.Tokens != "" {
		tokens, err := a.openTokens(srv.Tools())
		if err != nil {
			return usageError{err}
		}
		o.Tokens = tokens.set
		b.supervisor.SetTerms(tokens.set.Terms)
		watching, stop := context.WithCancel(ctx)
		defer stop()
		go tokens.watch(watching)
		b.reload = append(b.reload, tokens.ask)
	}
	if value, set := os.LookupEnv("RILLBOX_AUTH_TOKEN"); set && value == "" && h.Token == "" {
		return usageError{errors.New("RILLBOX_AUTH_TOKEN is set and empty: give it a token (`openssl rand -hex 32` makes one), or unset it to serve without")}
	}
	if err := checkToken(h.Token); err != nil {
		return usageError{fmt.Errorf("auth_token: %w", err)}
	}
	for _, host := range h.Hosts {
		if err := web.CheckHost(host); err != nil {
			return usageError{fmt.Errorf("http_hosts: %w", err)}
		}
	}
	if err := web.CheckPath(h.Path); err != nil {
		return usageError{fmt.Errorf("http_path: %w", err)}
	}
	for _, origin := range h.Origins {
		if err := web.CheckOrigin(origin); err != nil {
			return usageError{fmt.Errorf("http_origins: %w", err)}
		}
	}
	if h.OAuth.Issuer != "" {
		h.OAuth.Log = a.log
		var err error
		if o.OAuth, err = web.NewOAuth(h.OAuth); err != nil {
			return usageError{fmt.Errorf("oauth_issuer, oauth_audience, oauth_scopes and oauth_jwks_url: %w", err)}
		}
	} else if h.OAuth.Audience != "" || len(h.OAuth.Scopes) > 0 || h.OAuth.KeysURL != "" {
		return usageError{errors.New("oauth_audience, oauth_scopes and oauth_jwks_url are set, and oauth_issuer is not: set it, or leave them out")}
	}
	for _, proxy := range h.Proxies {
		prefix, err := netip.ParsePrefix(proxy)
		if one, notOne := netip.ParseAddr(proxy); notOne == nil {
			prefix, err = netip.PrefixFrom(one, one.BitLen()), nil
		}
		if err != nil {
			return usageError{fmt.Errorf("behind_proxy: %q is no address: want the proxy's, such as 10.0.0.5, or those of its network, such as 10.0.0.0/8", proxy)}
		}
		o.Proxies = append(o.Proxies, prefix)
	}
	if (h.Certificate == "") != (h.Key == "") {
		return usageError{errors.New("tls_cert and tls_key: only one of them is set: the certificate and its key are two files")}
	}
	if h.Certificate != "" {
		certificate, err := openCertificate(h.Certificate, h.Key, a.log)
		if err != nil {
			return usageError{fmt.Errorf("tls_cert and tls_key: %w", err)}
		}
		o.TLS = &tls.Config{GetCertificate: certificate.forConnection, MinVersion: tls.VersionTLS12}
		o.Hosts = append(o.Hosts, certificate.names()...)
		b.reload = append(b.reload, certificate.reload)
	}
	listener, err := h.listen(o, b.sockets)
	if err != nil {
		return err
	}
	if most := maxConnections(); most > 0 {
		listener = netutil.LimitListener(listener, most)
	}
	scheme := "http"
	if o.TLS != nil {
		scheme = "https"
	}
	a.log.Info("serving MCP over HTTP", "url", fmt.Sprintf("%s://%s%s", scheme, reachedAs(listener.Addr(), o.Hosts), h.Path), "authentication", o.Tokens != nil || o.OAuth != nil)
	door := web.New(srv, o)
	m.Watch("identities", "Identities that sent a request lately.", func() float64 { return float64(door.Identities()) })
	m.Watch("protocol_sessions", "Sessions of MCP's that are open.", func() float64 { return float64(door.Sessions()) })
	go func() {
		for range b.hangups {
			for _, again := range b.reload {
				again()
			}
		}
	}()
	return door.Serve(ctx, listener, h.Grace)
}

// maxConnections is how many connections are open at once: half of the files that we may
// open, for whoever can reach us can open connections, and each program needs files, too.
// 0 means that any number can be.
func maxConnections() int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil || files.Cur > 1<<20 {
		return 0
	}
	return int(files.Cur / 2)
}

// leastToken is the length of a token that nobody guesses.
const leastToken = 16

// checkToken refuses a token that no request can have in its header, and one that can be
// guessed.
func checkToken(token string) error {
	switch {
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("it has a space, or a character that a header can't have: `openssl rand -hex 32` makes a token")
	case token != "" && len(token) < leastToken:
		return fmt.Errorf("it can be guessed: want %d characters at least; `openssl rand -hex 32` makes a token", leastToken)
	}
	return nil
}

// reachedAs is how an address is reached: where it is every address of the machine, by a
// name, if there is one.
func reachedAs(at net.Addr, names []string) string {
	tcp, is := at.(*net.TCPAddr)
	named := slices.IndexFunc(names, func(name string) bool { return !strings.HasPrefix(name, "*") })
	if !is || !tcp.IP.IsUnspecified() || named < 0 {
		return at.String()
	}
	return net.JoinHostPort(names[named], strconv.Itoa(tcp.Port))
}

// fromSystemd is the address that means the socket of a service manager.
const fromSystemd = "systemd"

// listen opens the address, or takes the socket that was opened for us, if what is set is
// enough for whoever can reach it.
func (h httpSettings) listen(o web.Options, sockets []net.Listener) (net.Listener, error) {
	if h.Address == fromSystemd || h.Address == "" {
		switch {
		case len(sockets) != 1:
			return nil, usageError{fmt.Errorf("http: a service manager gave %d sockets that can be served on, want 1: see LISTEN_FDS in systemd.socket(5)", len(sockets))}
		case sockets[0] == nil:
			return nil, usageError{errors.New("http: the socket of the service manager does not listen for streams: want ListenStream=")}
		}
		at := sockets[0].Addr()
		if tcp, is := at.(*net.TCPAddr); is {
			return sockets[0], h.checkReach(at.String(), tcp.AddrPort().Addr(), o)
		}
		return sockets[0], nil // a socket of the file system, whose mode says who may connect
	}
	host, port, address, err := parseAddress("http", h.Address, defaultPort)
	if err != nil {
		return nil, err
	}
	if err := h.checkReach(h.Address, address, o); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	return listener, nil
}

// checkReach refuses an address that others can reach, also through a proxy, unless what
// they send is authenticated and encrypted. With insecure it only says so.
func (h httpSettings) checkReach(name string, address netip.Addr, o web.Options) error {
	err := h.exposed(name, address, o)
	if err != nil && h.Insecure {
		o.Log.Warn("INSECURE: serving all the same, for insecure is set", "why", err.Error())
		return nil
	}
	return err
}

func (h httpSettings) exposed(name string, address netip.Addr, o web.Options) error {
	anybody := o.Tokens == nil && o.OAuth == nil
	switch {
	case anybody && len(o.Proxies) > 0:
		return usageError{errors.New("behind_proxy: others can reach this server through the proxy, and whoever does could run programs here: set RILLBOX_AUTH_TOKEN, auth_tokens or oauth_issuer")}
	case address.Unmap().IsLoopback():
	case anybody:
		return usageError{fmt.Errorf("http: others can reach %s, and whoever does could run programs here: set RILLBOX_AUTH_TOKEN, auth_tokens or oauth_issuer, or listen on 127.0.0.1", name)}
	case o.TLS == nil && len(o.Proxies) == 0:
		return usageError{fmt.Errorf("http: others can reach %s, and tokens would travel unencrypted: set tls_cert and tls_key, or behind_proxy for a proxy that encrypts", name)}
	}
	return nil
}

// parseAddress reads an address to listen on, of the setting key.
func parseAddress(key, text, port string) (host, _ string, address netip.Addr, err error) {
	example := "127.0.0.1:" + cmp.Or(port, defaultPort)
	host, named, err := net.SplitHostPort(text)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	} else {
		port = cmp.Or(named, port)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if host == "" {
		return host, port, netip.IPv6Unspecified(), nil
	}
	if address, err = netip.ParseAddr(host); err != nil {
		return "", "", address, usageError{fmt.Errorf("%s: %q is no address: want one of this machine's, such as %s", key, text, example)}
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", "", address, usageError{fmt.Errorf("%s: %q is no port: want a number up to 65535, as in %s", key, port, example)}
	}
	return host, port, address, nil
}
