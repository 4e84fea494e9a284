package gateway

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// behindProxyEnv marks the process that TestProxy starts, as net/http reads the
// proxy's variables once.
const behindProxyEnv = "RILLBOX_TEST_BEHIND_PROXY"

// TestProxy fetches through the proxy and with the authorities that the
// environment names.
func TestProxy(t *testing.T) {
	files := newTLSSite(t)
	files.bytes("/"+demoWheel, wheel(t, "demo", "1.0"))
	var tunnels atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "files.example.com:443" {
			t.Errorf("the proxy was asked for %s %s", r.Method, r.Host)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		tunnels.Add(1)
		to, err := net.Dial("tcp", files.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		from, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { defer to.Close(); _, _ = io.Copy(to, from) }()
		go func() { defer from.Close(); _, _ = io.Copy(from, to) }()
	}))
	defer proxy.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: files.Certificate().Raw})
	if err := os.WriteFile(authority, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestBehindProxy$", "-test.v")
	cmd.Env = []string{
		behindProxyEnv + "=1", "HTTPS_PROXY=" + proxy.URL, "SSL_CERT_FILE=" + authority, "SSL_CERT_DIR=/nonexistent",
		"HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(),
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestBehindProxy") || tunnels.Load() != 1 {
		t.Errorf("%v, %d tunnels:\n%s", err, tunnels.Load(), out)
	}
}

// TestBehindProxy is the other process of TestProxy.
func TestBehindProxy(t *testing.T) {
	if os.Getenv(behindProxyEnv) == "" {
		t.Skip("run by TestProxy")
	}
	gr := newGrant(newGateway(t, Options{}))
	for u, want := range map[string]int{
		"https://files.example.com/" + demoWheel:      http.StatusOK,
		"https://10.0.0.1/" + demoWheel:               http.StatusForbidden,
		"https://169.254.169.254/" + demoWheel:        http.StatusForbidden,
		"https://[::ffff:192.168.0.1]/" + demoWheel:   http.StatusForbidden,
		"https://localhost/" + demoWheel:              http.StatusForbidden,
		"http://files.example.com/plain/" + demoWheel: http.StatusForbidden,
	} {
		if status, body := ask(t, gr, "url/"+url.QueryEscape(u)); status != want {
			t.Errorf("%s: %d %.300s; want %d", u, status, body, want)
		}
	}
}
