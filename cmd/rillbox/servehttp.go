//go:build !windows

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"time"

	"rillbox/server"
	"rillbox/server/metrics"
	"rillbox/server/web"
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
	Token            string
	Grace            time.Duration
	Metrics, Profile string // addresses of their own
}

// defaultPort is that of `serve --http`, unless one is named.
const defaultPort = "8848"

// serveHTTP serves MCP over HTTP until ctx ends.
func (a *app) serveHTTP(ctx context.Context, srv *server.Server, m *metrics.Metrics) error {
	h := a.config.HTTP
	o := web.Options{Path: h.Path, Hosts: h.Hosts, Origins: h.Origins, Requests: h.Requests, Window: h.Window, Log: a.log, Answered: m.Answered, Metrics: m.Handler()}
	if h.Token != "" {
		o.Tokens = web.OneToken(h.Token)
	}
	for _, proxy := range h.Proxies {
		prefix, err := netip.ParsePrefix(proxy)
		if err != nil {
			return usageError{fmt.Errorf("behind_proxy: %w: want addresses such as 10.0.0.0/8", err)}
		}
		o.Proxies = append(o.Proxies, prefix)
	}
	if h.Certificate != "" || h.Key != "" {
		certificate, err := tls.LoadX509KeyPair(h.Certificate, h.Key)
		if err != nil {
			return usageError{fmt.Errorf("tls_cert and tls_key: %w", err)}
		}
		o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		o.Hosts = append(o.Hosts, namesOf(certificate)...)
	}
	listener, err := h.listen(o)
	if err != nil {
		return err
	}
	scheme := "http"
	if o.TLS != nil {
		scheme = "https"
	}
	a.log.Info("serving MCP over HTTP", "url", fmt.Sprintf("%s://%s%s", scheme, listener.Addr(), h.Path), "authentication", o.Tokens != nil)
	door := web.New(srv, o)
	m.Watch("identities", "Identities that sent a request lately.", func() float64 { return float64(door.Identities()) })
	m.Watch("protocol_sessions", "Sessions of MCP's that are open.", func() float64 { return float64(door.Sessions()) })
	return door.Serve(ctx, listener, h.Grace)
}

// listen opens the address, if what is set is enough for whoever can reach it.
func (h httpSettings) listen(o web.Options) (net.Listener, error) {
	host, port, address, err := parseAddress("http", h.Address, defaultPort)
	if err != nil {
		return nil, err
	}
	if !address.Unmap().IsLoopback() && !h.Insecure {
		switch {
		case o.Tokens == nil:
			return nil, usageError{fmt.Errorf("http: others can reach %s, and whoever does could run programs here: set RILLBOX_AUTH_TOKEN, or listen on 127.0.0.1", h.Address)}
		case o.TLS == nil && len(o.Proxies) == 0:
			return nil, usageError{fmt.Errorf("http: others can reach %s, and tokens would travel unencrypted: set tls_cert and tls_key, or behind_proxy for a proxy that encrypts", h.Address)}
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	return listener, nil
}

// parseAddress reads an address to listen on, of the setting key.
func parseAddress(key, text, port string) (host, _ string, address netip.Addr, err error) {
	host, named, err := net.SplitHostPort(text)
	if err != nil {
		host = text
	} else {
		port = named
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if host == "" {
		return host, port, netip.IPv6Unspecified(), nil
	}
	if address, err = netip.ParseAddr(host); err != nil {
		return "", "", address, usageError{fmt.Errorf("%s: %q is no address: want one of this machine's, such as 127.0.0.1:%s", key, text, port)}
	}
	return host, port, address, nil
}

// namesOf are the hosts that a certificate is for.
func namesOf(c tls.Certificate) []string {
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		return nil
	}
	return leaf.DNSNames
}
