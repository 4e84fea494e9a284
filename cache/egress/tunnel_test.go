package egress

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestTunnelsThroughProxies: of each kind that the machine may have.
func TestTunnelsThroughProxies(t *testing.T) {
	const target = "files.test:443"
	secret := url.UserPassword("me", "secret")
	connect := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != target || r.Header.Get("Proxy-Authorization") != "Basic bWU6c2VjcmV0" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		_, _ = io.CopyN(conn, conn, 5)
	})
	plain := httptest.NewServer(connect)
	defer plain.Close()
	socks, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socks.Close()
	go func() {
		conn, err := socks.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.CopyN(io.Discard, conn, 4) // version, two methods
		_, _ = conn.Write([]byte{5, 0})
		asked := make([]byte, 5+len("files.test")+2)
		if _, err := io.ReadFull(conn, asked); err != nil || !strings.Contains(string(asked), "files.test\x01\xbb") {
			t.Errorf("the proxy was asked for %q, %v", asked, err)
		}
		_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		_, _ = io.CopyN(conn, conn, 5)
	}()
	for name, row := range map[string]struct {
		proxy url.URL
		works bool
	}{
		"http":                     {url.URL{Scheme: "http", User: secret, Host: plain.Listener.Addr().String()}, true},
		"http, without password":   {url.URL{Scheme: "http", Host: plain.Listener.Addr().String()}, false},
		"socks5":                   {url.URL{Scheme: "socks5", User: secret, Host: socks.Addr().String()}, true},
		"of a kind not known":      {url.URL{Scheme: "socks5x", Host: socks.Addr().String()}, false},
		"https, which it is not":   {url.URL{Scheme: "https", User: secret, Host: plain.Listener.Addr().String()}, false},
		"one that does not listen": {url.URL{Scheme: "http", Host: "127.0.0.1:1"}, false},
	} {
		c := New(Policy{})
		c.Proxy = func(*url.URL) (*url.URL, error) { return &row.proxy, nil }
		conn, err := c.Dial(t.Context(), Route{}, &url.URL{Scheme: "https", Host: target})
		if (err == nil) != row.works || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		echo := make([]byte, 5)
		if _, err = io.WriteString(conn, "hello"); err == nil {
			_, err = io.ReadFull(conn, echo)
		}
		if err != nil || string(echo) != "hello" {
			t.Errorf("%s: %q %v", name, echo, err)
		}
		conn.Close()
	}
}
