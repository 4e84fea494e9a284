package egress

import (
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// anywhere is the route of what the operator named.
var anywhere = Route{Named: func(*url.URL) bool { return true }}

func TestARedirectNeverLeavesHTTPS(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("plain http was asked") }))
	defer plain.Close()
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	secure.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
		}
	})
	c := New(Policy{})
	defer c.Close()
	c.named.TLSClientConfig.RootCAs = x509.NewCertPool()
	c.named.TLSClientConfig.RootCAs.AddCert(secure.Certificate())
	for to, works := range map[string]bool{plain.URL: false, secure.URL + "/x": true, "file:///etc/passwd": false} {
		_, _, err := c.Get(t.Context(), parse(t, secure.URL+"?to="+to), anywhere, nil, 1000)
		var refused *RefusedError
		if (err == nil) != works || err != nil && (!errors.As(err, &refused) || !strings.Contains(err.Error(), "only https")) {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestAnUnknownAuthorityIsSaid(t *testing.T) {
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	c := New(Policy{})
	defer c.Close()
	if _, _, err := c.Get(t.Context(), parse(t, secure.URL), anywhere, nil, 1000); err == nil || !strings.Contains(err.Error(), "SSL_CERT_FILE can name a file") {
		t.Error(err)
	}
}

// TestEveryHopIsJudged: by the policy, by its scheme and by its address, and the
// operator's own hosts are not an exception to the policy.
func TestEveryHopIsJudged(t *testing.T) {
	var asked atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1) }))
	defer inside.Close()
	home := httptest.NewServer(nil)
	defer home.Close()
	home.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
		}
	})
	secure := strings.Replace(inside.URL, "http:", "https:", 1)
	for name, row := range map[string]struct {
		to     string
		policy Policy
		want   string // empty: it works
	}{
		"home":               {"", Policy{}, ""},
		"home, denied":       {"", Policy{Deny: []string{"host:127.*"}}, `the operator denied host "127.0.0.1"`},
		"home again":         {home.URL, Policy{}, ""},
		"private":            {secure, Policy{}, "private or reserved"},
		"private by name":    {strings.Replace(secure, "127.0.0.1", "localhost", 1), Policy{}, "private or reserved"},
		"private by number":  {strings.Replace(secure, "127.0.0.1", "2130706433", 1), Policy{}, "not the name of a host"},
		"private, shortened": {strings.Replace(secure, "127.0.0.1", "127.1", 1), Policy{}, "not the name of a host"},
		"plain http":         {inside.URL, Policy{}, "only https"},
		"denied":             {"https://evil.test", Policy{Deny: []string{"evil.test"}}, `the operator denied host "evil.test"`},
		"denied, otherwise":  {"https://evil。test", Policy{Deny: []string{"evil.test"}}, "can't be judged"},
	} {
		c := New(row.policy)
		u := parse(t, home.URL+"/?to="+url.QueryEscape(row.to))
		_, _, err := c.Get(t.Context(), u, Route{Home: u}, nil, 1000)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want) || !permanent(err)) {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
	}
	if asked.Load() != 0 {
		t.Error("a private host was asked")
	}
}

// TestAProxyIsNotAskedForPrivateHosts: it would connect to them, as it need not know
// that a program asks.
func TestAProxyIsNotAskedForPrivateHosts(t *testing.T) {
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1) }))
	defer proxy.Close()
	c := New(Policy{})
	defer c.Close()
	c.Proxy = func(*url.URL) (*url.URL, error) { return url.Parse(proxy.URL) }
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:10.0.0.1]", "2130706433", "0x7f000001", "127.0.0.1.", "127.0x1", "0x"} {
		u := parse(t, "https://"+host+"/")
		if _, _, err := c.Get(t.Context(), u, Route{}, nil, 1000); !permanent(err) {
			t.Errorf("%s: %v", host, err)
		}
		if conn, err := c.Dial(t.Context(), Route{}, u); err == nil {
			conn.Close()
			t.Errorf("%s was connected to", host)
		}
	}
	if asked.Load() != 0 {
		t.Error("the proxy was asked")
	}
}

func TestPublicSeesTheAddress(t *testing.T) {
	c := New(Policy{})
	for address, public := range map[string]bool{
		"1.1.1.1:443": true, "[2606:4700::1111]:443": true,
		"127.0.0.1:443": false, "[::1]:80": false, "169.254.169.254:80": false, "[fe80::1%lo]:80": false, "nonsense": false,
	} {
		if err := c.checkAddress("tcp", address, nil); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
	if got := (&PrivateError{netip.MustParseAddr("10.0.0.1")}).Error(); !strings.Contains(got, "10.0.0.1") {
		t.Error(got)
	}
}

// TestAPageIsBounded: whether its length is told or not, and before it is read.
func TestAPageIsBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/told" {
			w.Header().Set("Content-Length", "10000000000")
		}
		for part := make([]byte, 64<<10); ; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	c := New(Policy{})
	defer c.Close()
	for _, path := range []string{"/told", "/untold"} {
		_, body, err := c.Get(t.Context(), parse(t, s.URL+path), anywhere, nil, 1<<20)
		var large *TooLargeError
		if !errors.As(err, &large) || len(body) > 1<<20 {
			t.Errorf("%s: %d bytes, %v", path, len(body), err)
		}
	}
}

// TestADownloadIsBounded: also where its length is not told, and not below its limit.
func TestADownloadIsBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 100 {
			_, _ = w.Write(make([]byte, 1000))
			w.(http.Flusher).Flush()
		}
	}))
	defer s.Close()
	c := New(Policy{})
	defer c.Close()
	for limit, fits := range map[int64]bool{5000: false, 99_999: false, 100_000: true} {
		err := c.Download(t.Context(), Source{URL: s.URL, Route: anywhere, MaxBytes: limit}, filepath.Join(t.TempDir(), "file"), nil)
		if large, ok := errors.AsType[*TooLargeError](err); (err == nil) != fits || !fits && (!ok || large.Limit != limit) {
			t.Errorf("%d: %v", limit, err)
		}
	}
}

// TestPartsOfSeveralAnswers: a transfer that breaks off is not taken up again where
// nothing could tell that the parts don't belong together.
func TestPartsOfSeveralAnswers(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write(make([]byte, 100))
		asked.Add(1)
	}))
	defer s.Close()
	c := New(Policy{})
	defer c.Close()
	dst := filepath.Join(t.TempDir(), "file")
	err := c.Download(t.Context(), Source{URL: s.URL, Route: anywhere, NoResume: true}, dst, nil)
	if err == nil || !strings.Contains(err.Error(), "broke off") || asked.Load() != 1 {
		t.Errorf("%v after %d requests", err, asked.Load())
	}
	if left, _ := os.ReadDir(filepath.Dir(dst)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
