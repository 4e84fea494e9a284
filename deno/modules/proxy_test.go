package modules

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rillbox/cache/egress"
	"rillbox/deno/permission"
)

// site is a server on loopback, with TLS if secure.
func site(t *testing.T, secure bool) (*httptest.Server, *url.URL) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the proxy's password was passed on")
		}
		_, _ = io.WriteString(w, "hello "+r.URL.Path)
	}))
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s, u
}

// listening gives the address of a proxy that listens on the machine's loopback.
func listening(t *testing.T, p *proxy) string {
	t.Helper()
	address, err := p.reachable(&permission.Surroundings{})
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// through is a client of the proxy.
func through(t *testing.T, p *proxy, trusted *httptest.Server) *http.Client {
	t.Helper()
	address, err := url.Parse(listening(t, p))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(address), TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool()}}
	if trusted.TLS != nil {
		transport.TLSClientConfig.RootCAs.AddCert(trusted.Certificate())
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func start(t *testing.T, policy egress.Policy, named []string) (p *proxy, failed *atomic.Int32) {
	t.Helper()
	failed = new(atomic.Int32)
	p = newProxy(policy, named, func() { failed.Add(1) })
	t.Cleanup(func() { p.close() })
	p.network.Proxy = func(*url.URL) (*url.URL, error) { return nil, nil }
	return p, failed
}

func TestProxyConnectsToNamedHostsAlone(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s, u := site(t, secure)
		for name, row := range map[string]struct {
			policy egress.Policy
			named  []string
			works  bool
		}{
			"named":                     {egress.Policy{}, []string{u.Host}, true},
			"named without its port":    {egress.Policy{}, []string{"127.0.0.1"}, true},
			"named by its network":      {egress.Policy{}, []string{"127.0.0.0/8"}, true},
			"not named":                 {egress.Policy{}, nil, false},
			"another port named":        {egress.Policy{}, []string{"127.0.0.1:1"}, false},
			"a wildcard":                {egress.Policy{}, []string{"*"}, false},
			"named, and denied by name": {egress.Policy{Deny: []string{"host:127.*"}}, []string{u.Host}, false},
		} {
			p, failed := start(t, row.policy, row.named)
			resp, err := through(t, p, s).Get(s.URL + "/x")
			text := ""
			if err == nil {
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				text = string(body)
			}
			if works := text == "hello /x"; works != row.works || (failed.Load() == 0) != row.works {
				t.Errorf("%s (TLS %v): %q %v, %d failures told", name, secure, text, err, failed.Load())
			}
			if fault := p.close(); (fault == nil) != row.works || fault != nil && fault.host != u.Host {
				t.Errorf("%s (TLS %v): the fault is %v", name, secure, fault)
			}
		}
	}
}

func TestProxyTrustsTheRegistryOfNPM(t *testing.T) {
	registry, _ := site(t, true)
	elsewhere, _ := site(t, true)
	p, failed := start(t, egress.Policy{}, nil)
	p.registryFirst = true
	client := through(t, p, registry)
	client.Transport.(*http.Transport).TLSClientConfig.RootCAs.AddCert(elsewhere.Certificate())
	for _, address := range []string{registry.URL, registry.URL + "/again", elsewhere.URL} {
		resp, err := client.Get(address)
		if err == nil {
			resp.Body.Close()
		}
		if works := err == nil; works != strings.HasPrefix(address, registry.URL) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if failed.Load() != 1 {
		t.Errorf("%d failures told", failed.Load())
	}
}

func TestProxyIsForOneProcess(t *testing.T) {
	s, u := site(t, false)
	p, failed := start(t, egress.Policy{}, []string{u.Host})
	address, err := url.Parse(listening(t, p))
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []*url.Userinfo{nil, url.UserPassword("rillbox", "guess"), url.User("rillbox")} {
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", User: user, Host: address.Host})}}
		resp, err := client.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusProxyAuthRequired {
			t.Errorf("%v: %s", user, resp.Status)
		}
	}
	if fault := p.close(); fault != nil || failed.Load() != 0 {
		t.Errorf("a stranger made the fetching fail: %v", fault)
	}
	if _, err := net.Dial("tcp", address.Host); err == nil {
		t.Error("the proxy still listens")
	}
}

func TestProxyGoesThroughTheOperatorsProxy(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s, u := site(t, secure)
		outer, failed := start(t, egress.Policy{}, []string{u.Host})
		upstream, err := url.Parse(listening(t, outer))
		if err != nil {
			t.Fatal(err)
		}
		p, _ := start(t, egress.Policy{}, []string{u.Host})
		var asked atomic.Int32
		p.network.Proxy = func(*url.URL) (*url.URL, error) { asked.Add(1); return upstream, nil }
		resp, err := through(t, p, s).Get(s.URL + "/x")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "hello /x" || asked.Load() == 0 || failed.Load() != 0 {
			t.Errorf("TLS %v: %q", secure, body)
		}
		// What can be seen to be private is refused before the other is asked.
		strict, _ := start(t, egress.Policy{}, nil)
		strict.network.Proxy = p.network.Proxy
		if resp, err := through(t, strict, s).Get(strings.Replace(s.URL, "127.0.0.1", "localhost", 1)); err == nil {
			resp.Body.Close()
		}
		var private *egress.PrivateError
		if fault := strict.close(); fault == nil || !errors.As(fault, &private) || !private.Address.IsLoopback() {
			t.Errorf("TLS %v: the fault is %v", secure, fault)
		}
		if fault := outer.close(); fault != nil {
			t.Errorf("TLS %v: the operator's proxy was asked for it: %v", secure, fault)
		}
	}
}

func TestProxyTellsOfAnUnreachableHost(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := listener.Addr().String()
	listener.Close()
	p, failed := start(t, egress.Policy{}, []string{host})
	s, _ := site(t, true)
	if _, err := through(t, p, s).Get("https://" + host); err == nil {
		t.Error("it answered")
	}
	var op *net.OpError
	if fault := p.close(); fault == nil || fault.host != host || !errors.As(fault, &op) || failed.Load() != 1 {
		t.Errorf("the fault is %v", fault)
	}
}

// TestProxyBoundsWhatComes: a host that never comes to an end is cut off and blamed.
func TestProxyBoundsWhatComes(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for _, told := range []bool{false, true} {
			s, u := site(t, secure)
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if told {
					w.Header().Set("Content-Length", "10000000000")
				}
				for part := make([]byte, 64<<10); ; {
					if _, err := w.Write(part); err != nil {
						return
					}
				}
			})
			p, failed := start(t, egress.Policy{}, []string{u.Host})
			p.answer, p.connection = 1<<20, 1<<20
			resp, err := through(t, p, s).Get(s.URL + "/x")
			if err == nil {
				var n int64
				n, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if told && !secure && resp.StatusCode == http.StatusBadGateway {
					err = errors.New("refused")
				}
				if n > 1<<20 {
					t.Errorf("TLS %v: %d bytes came", secure, n)
				}
			}
			var tooMuch *egress.TooLargeError
			fault := p.close()
			if err == nil || failed.Load() != 1 || fault == nil || fault.host != u.Host || !errors.As(fault, &tooMuch) {
				t.Errorf("TLS %v, length told %v: %v, %d failures told, the fault is %v", secure, told, err, failed.Load(), fault)
			}
		}
	}
}

// TestNothingOfAProxyGoesOnAfterClose: neither a request nor a tunnel.
func TestNothingOfAProxyGoesOnAfterClose(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s, u := site(t, secure)
		p, _ := start(t, egress.Policy{}, []string{u.Host})
		asked, answer := make(chan bool, 10), make(chan bool)
		p.network.Proxy = func(*url.URL) (*url.URL, error) {
			asked <- true
			<-answer
			return nil, nil
		}
		client := through(t, p, s)
		go func() {
			if resp, err := client.Get(s.URL + "/x"); err == nil {
				resp.Body.Close()
			}
		}()
		<-asked
		var ending atomic.Bool
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			p.close()
			if !ending.Load() {
				t.Errorf("TLS %v: close returned while a request went on", secure)
			}
		}()
		time.Sleep(50 * time.Millisecond) // for what does not wait to return
		ending.Store(true)
		close(answer)
		<-closed
	}
}
