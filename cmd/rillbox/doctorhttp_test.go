//go:build !windows

package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rillbox/server"
	"rillbox/server/web"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

func TestDoctorOfAServer(t *testing.T) {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	super := supervisor.New(job.DefaultLimits(), log)
	defer super.Close()
	door := func(tokens web.Tokens) http.Handler {
		return web.New(server.New(server.Options{Supervisor: super, Version: "test", Log: log}),
			web.Options{Path: "/mcp", Tokens: tokens, Requests: 100, Window: time.Minute, Log: log})
	}
	answering := func(status int, kind, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "https://elsewhere.example.com/mcp")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})
	}
	once := func(h http.Handler) http.Handler {
		var served atomic.Bool
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if served.Swap(true) {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
	plain := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	encrypted := func(h http.Handler) string {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelInfo)
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL
	}
	secret := &web.TokenSet{}
	secret.Replace([]web.Token{{SHA256: sha256.Sum256([]byte("secret")), Identity: web.Identity{Name: "token"}}})
	few := &web.TokenSet{}
	few.Replace([]web.Token{{SHA256: sha256.Sum256([]byte("few")), Identity: web.Identity{Name: "few", Tools: server.ToolList{Allow: []string{"run_code"}}}}})
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, row := range []struct {
		name, url, token string
		want             []string // all of them
	}{
		{"open", plain(door(nil)), "", []string{"reachable: |http", "TLS: |none, on this machine", "authentication: |none", "MCP 2026-07-28: |rillbox test, ", "MCP 2025-11-25: |rillbox test, "}},
		{"with a token", plain(door(secret)) + "/mcp", "secret", []string{"authentication: |asked for, and the token holds", "MCP 2026-07-28: |rillbox test"}},
		{"a missing token", plain(door(secret)), "", []string{"authentication: it asks for a token|", "set RILLBOX_AUTH_TOKEN"}},
		{"a wrong token", plain(door(secret)), "other", []string{"authentication: the token of RILLBOX_AUTH_TOKEN does not hold"}},
		{"a wrong path", plain(door(nil)) + "/other", "", []string{`MCP: MCP is not at /other: there is nothing at "/other": MCP is at /mcp`}},
		{"no TLS", strings.Replace(plain(door(nil)), "http:", "https:", 1), "", []string{"reachable: the server speaks no TLS, and the URL says https"}},
		{"TLS that is not expected", strings.Replace(encrypted(door(nil)), "https:", "http:", 1), "", []string{"MCP: it speaks TLS, and the URL says http||use https://"}},
		{"a token of few tools", plain(door(few)), "few", []string{"MCP 2026-07-28: |rillbox test, 1 tools", "languages: not told, for list_runtimes is not among its tools"}},
		{"a certificate of nobody's", encrypted(door(nil)), "", []string{"reachable: its certificate is signed by nobody whom this machine trusts"}},
		{"a page", plain(answering(200, "text/html", "<html>")), "", []string{"MCP: what is at /mcp is no MCP server: it answers text/html"}},
		{"escapes", plain(answering(500, "application/json", `{"error":{"message":"\u001b[31mred\nline"}}`)), "", []string{`MCP: it refuses: 500 Internal Server Error: \x1b[31mred`}},
		{"another JSON", plain(answering(200, "application/json", `{"a":1}`)), "", []string{"MCP: what is at /mcp is no MCP server"}},
		{"a redirection", plain(answering(302, "text/html", "")), "", []string{"MCP: it sends you to https://elsewhere.example.com/mcp"}},
		{"an error", plain(answering(503, "text/plain", "no")), "", []string{"MCP: it refuses: 503 Service Unavailable"}},
		{"a hello, and no more", plain(once(answering(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`))), "", []string{"MCP 2026-07-28: it does not answer"}},
		{"nobody", gone.URL, "", []string{"reachable: ", "can't be reached", "refused"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := &app{config: &config{}, log: log}
			a.config.HTTP.Token = row.token
			checks, err := a.examineHTTP(t.Context(), row.url)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, c := range checks {
				fmt.Fprintf(&text, "%s: %s|%s|%s\n", c.Name, c.Problem, c.Detail, c.Advice)
			}
			for _, want := range row.want {
				if !strings.Contains(text.String(), want) {
					t.Errorf("%q is not in:\n%s", want, text.String())
				}
			}
			if strings.Contains(text.String(), "secret") || strings.Contains(text.String(), "other\"|") {
				t.Errorf("the token is in:\n%s", text.String())
			}
		})
	}
	for _, address := range []string{"localhost:8848", "ftp://localhost", "http://", "%"} {
		if _, err := (&app{config: &config{}, log: log}).examineHTTP(t.Context(), address); err == nil || !strings.Contains(err.Error(), "no address of a server") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestDoctorOfEncryption(t *testing.T) {
	now := time.Now()
	state := func(left time.Duration) *tls.ConnectionState {
		return &tls.ConnectionState{Version: tls.VersionTLS13, PeerCertificates: []*x509.Certificate{{NotAfter: now.Add(left)}}}
	}
	for _, row := range []struct {
		url     string
		state   *tls.ConnectionState
		bad     bool
		problem string
	}{
		{"http://127.0.0.1:8848/mcp", nil, false, ""},
		{"http://[::1]:8848/mcp", nil, false, ""},
		{"http://192.0.2.1/mcp", nil, true, "can be read on the way"},
		{"http://example.com/mcp", nil, true, "can be read on the way"},
		{"https://example.com/mcp", state(90 * 24 * time.Hour), false, ""},
		{"https://example.com/mcp", state(24 * time.Hour), false, "its certificate ends on"},
	} {
		u, err := url.Parse(row.url)
		if err != nil {
			t.Fatal(err)
		}
		c := encryption(row.state, u, now)
		if c.bad() != row.bad || !strings.Contains(c.Problem, row.problem) || (row.problem == "") != (c.Problem == "") {
			t.Errorf("%s: %+v", row.url, c)
		}
	}
}
