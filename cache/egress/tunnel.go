package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/proxy"
)

// Dial connects to the host of u, through the machine's proxy if there is one for it.
// net/http can't be asked for such a connection, so this speaks to the proxy itself.
func (c *Client) Dial(ctx context.Context, route Route, u *url.URL) (net.Conn, error) {
	transport, through, err := c.transportFor(ctx, route, u)
	if err != nil {
		return nil, err
	}
	if through == nil {
		return transport.DialContext(ctx, "tcp", HostPort(u))
	}
	ctx, cancel := context.WithTimeout(ctx, 2*connectTime)
	defer cancel()
	dialer := &net.Dialer{Timeout: dialTime}
	if strings.HasPrefix(through.Scheme, "socks5") {
		socks, err := proxy.FromURL(through, dialer)
		if err != nil {
			return nil, err
		}
		return socks.(proxy.ContextDialer).DialContext(ctx, "tcp", HostPort(u))
	}
	conn, err := dialer.DialContext(ctx, "tcp", HostPort(through))
	if err != nil {
		return nil, err
	}
	raw := conn
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	if through.Scheme == "https" {
		config := tlsConfig()
		config.ServerName = through.Hostname()
		conn = tls.Client(conn, config)
	}
	err = askTunnel(conn, through, HostPort(u))
	if !stop() && err == nil { // the context ended meanwhile
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("through the proxy %s: %w", through.Host, err)
	}
	return conn, nil
}

// askTunnel asks the HTTP proxy at the other end of conn for a tunnel.
func askTunnel(conn net.Conn, through *url.URL, target string) error {
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if through.User != nil {
		password, _ := through.User.Password()
		basic := &http.Request{Header: http.Header{}}
		basic.SetBasicAuth(through.User.Username(), password)
		ask.Header["Proxy-Authorization"] = basic.Header["Authorization"]
	}
	_ = conn.SetDeadline(time.Now().Add(2 * connectTime))
	if err := ask.Write(conn); err != nil {
		return err
	}
	// No byte follows the answer before we send one.
	answer, err := http.ReadResponse(bufio.NewReader(conn), ask)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", answer.Status)
	}
	_ = conn.SetDeadline(time.Time{})
	return err
}
