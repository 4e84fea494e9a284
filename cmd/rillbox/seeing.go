//go:build !windows

package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"

	"rillbox/server/metrics"
	"rillbox/server/web"
)

// serveAside serves what has an address of its own, metrics and profiles, until end.
func (a *app) serveAside(m *metrics.Metrics) (end func(), err error) {
	var servers []*http.Server
	end = func() {
		for _, s := range servers {
			_ = s.Close() // nobody waits for these
		}
	}
	h := a.config.HTTP
	serve := func(key, address string, mayBeReached bool, hosts []string, mux *http.ServeMux) {
		if address == "" || err != nil {
			return
		}
		var listener net.Listener
		if listener, err = listenAside(key, address, mayBeReached); err != nil {
			return
		}
		s := web.Aside(hosts, mux)
		servers = append(servers, s)
		a.log.Info("serving "+key, "address", listener.Addr().String())
		go func() {
			if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				a.log.Error("no longer serving "+key, "err", err)
			}
		}()
	}
	counted := http.NewServeMux()
	counted.Handle("GET /metrics", m.Handler())
	serve("metrics_address", h.Metrics, h.Insecure, h.Hosts, counted)
	profiles := http.NewServeMux()
	profiles.HandleFunc("/debug/pprof/", pprof.Index)
	profiles.HandleFunc("/debug/pprof/profile", pprof.Profile)
	profiles.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	profiles.HandleFunc("/debug/pprof/trace", pprof.Trace)
	serve("pprof_address", h.Profile, false, nil, profiles)
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// listenAside opens an address that only this machine reaches, unless mayBeReached.
func listenAside(key, text string, mayBeReached bool) (net.Listener, error) {
	host, port, address, err := parseAddress(key, text, "")
	switch {
	case err != nil:
		return nil, err
	case port == "":
		return nil, usageError{fmt.Errorf("%s: %q has no port: want one, such as %s", key, text, net.JoinHostPort(host, "9464"))}
	case !address.Unmap().IsLoopback() && !mayBeReached:
		return nil, usageError{fmt.Errorf("%s: others can reach %s: want an address of this machine alone, such as 127.0.0.1:%s", key, text, port)}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return listener, nil
}
