package web

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestBehindAProxy: what did not come through it is not encrypted, unless it comes from
// this machine; only its word counts for how the client reached it.
func TestBehindAProxy(t *testing.T) {
	h := open(t, Options{Hosts: []string{"r.example", "*.r.example"}, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for _, test := range []struct {
		from, host, path, origin, proto string
		want                            int
	}{
		{from: "10.1.2.3:9", want: http.StatusOK},
		{from: "[::ffff:10.1.2.3]:9", want: http.StatusOK},
		{from: "127.0.0.1:9", want: http.StatusOK},
		{from: "@", want: http.StatusOK},
		{from: "11.1.2.3:9", want: http.StatusForbidden},
		{from: "11.1.2.3:9", proto: "https", want: http.StatusForbidden},
		{from: "11.1.2.3:9", path: "/healthz", want: http.StatusOK},
		{from: "10.1.2.3:9", proto: "https", origin: "https://r.example", want: http.StatusOK},
		{from: "10.1.2.3:9", proto: "http", origin: "https://r.example", want: http.StatusForbidden},
		{from: "127.0.0.1:9", proto: "https", origin: "https://r.example", want: http.StatusForbidden},
		{from: "10.1.2.3:9", host: "a.r.example", want: http.StatusOK},
		{from: "10.1.2.3:9", host: "a.b.r.example", want: http.StatusForbidden},
	} {
		if test.path == "" {
			test.path = "/status"
		}
		if test.host == "" {
			test.host = "r.example"
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.path, nil)
		r.RemoteAddr, r.Host = test.from, test.host
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		if test.proto != "" {
			r.Header.Set("X-Forwarded-Proto", test.proto)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%+v got %d: %s", test, w.Code, w.Body)
		}
		if test.from == "11.1.2.3:9" && test.want != http.StatusOK && !strings.Contains(w.Body.String(), "use the proxy's address") {
			t.Errorf("%+v is told %s", test, w.Body)
		}
	}
}

func TestPathsOfTheEndpoint(t *testing.T) {
	for path, ok := range map[string]bool{
		"/mcp": true, "/a/b-c_d.e~1": true, "/pages": true, "/metrics2": true,
		"": false, "mcp": false, "/": false, "/mcp/": false, "//mcp": false, "/a/../b": false, "/./a": false, "/a b": false,
		"/{x}": false, "GET /mcp": false, "/mcp?x": false, "/m%63p": false, "host/mcp": false,
		"/healthz": false, "/metrics": false, "/page/page.js": false, "/.well-known/x": false,
	} {
		if err := CheckPath(path); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestNamesOfHosts(t *testing.T) {
	for name, ok := range map[string]bool{
		"r.example": true, "r": true, "*.example": true, "r.example.": true, "a_b-c.example": true,
		"": false, "*": false, "*example": false, "a.*.b": false, "https://r.example": false, "r.example:443": false, "r.example/": false, "a b": false, "a..b": false,
	} {
		if err := CheckHost(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestOriginsOfPages(t *testing.T) {
	for origin, ok := range map[string]bool{
		"https://chat.example.com": true, "http://localhost:3000": true, "https://chat.example.com/": true, "vscode-webview://x": true,
		"": false, "chat.example.com": false, "*": false, "null": false, "https://x/y": false, "https://u@x": false, "https://": false,
		"https://*.example.com": false, "https://x.example:443": false, "http://x.example:80": false, "https://x.example:80": true, "https://x.example:": false,
	} {
		if err := CheckOrigin(origin); (err == nil) != ok {
			t.Errorf("%q: %v", origin, err)
		}
	}
}
