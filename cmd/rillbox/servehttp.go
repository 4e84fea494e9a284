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
}

// defaultPort is that of `serve --http`, unless one is named.
const defaultPort = "8848"

// serveHTTP serves MCP over HTTP until ctx ends.
func (a *app) serveHTTP(ctx context.Context, srv *server.Server) error {
	h := a.config.HTTP
	o := web.Options{Path: h.Path, Hosts: h.Hosts, Origins: h.Origins, Requests: h.Requests, Window: h.Window, Log: a.log}
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
	return web.New(srv, o).Serve(ctx, listener, h.Grace)
}

// listen opens the address, if what is set is enough for whoever can reach it.
func (h httpSettings) listen(o web.Options) (net.Listener, error) {
	host, port, err := net.SplitHostPort(h.Address)
	if err != nil {
		host, port = h.Address, defaultPort
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	address, err := netip.ParseAddr(host)
	switch {
	case host == "":
		address = netip.IPv6Unspecified()
	case err != nil:
		return nil, usageError{fmt.Errorf("http: %q is no address: want one of this machine's, such as 127.0.0.1:%s", h.Address, defaultPort)}
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

// namesOf are the hosts that a certificate is for.
func namesOf(c tls.Certificate) []string {
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		return nil
	}
	return leaf.DNSNames
}
