//go:build !windows

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// registry stands before the machine's own npm registry: it passes requests on
// once, keeps the answers, and counts who fetches which tarball. Tarballs leave
// it at a rate that gives a download some length.
type registry struct {
	*httptest.Server
	t        *testing.T
	upstream string
	rate     int // bytes a second

	mu      sync.Mutex
	answers map[string]*answer
	fetched map[string]int // tarballs by file name
}

type answer struct {
	once   sync.Once
	status int
	body   []byte
	err    error
}

// startRegistry starts the fixture; where the machine's registry can't be
// reached, the test is skipped.
func startRegistry(t *testing.T, rate int) *registry {
	t.Helper()
	r := &registry{t: t, rate: rate, answers: map[string]*answer{}, fetched: map[string]int{}}
	r.upstream = npmRegistry(t)
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// npmRegistry is the base URL that the machine's npm configuration names.
func npmRegistry(t *testing.T) string {
	t.Helper()
	found := os.Getenv("NPM_CONFIG_REGISTRY")
	if found == "" {
		out, err := exec.Command("npm", "config", "get", "registry").Output()
		if err != nil {
			t.Fatalf("the tests need npm, or NPM_CONFIG_REGISTRY, to know a registry: %v", err)
		}
		found = strings.TrimSpace(string(out))
	}
	found = strings.TrimRight(found, "/")
	resp, err := http.Head(found)
	if err != nil {
		if os.Getenv("CI") == "" {
			t.Skipf("needs the npm registry: %v", err)
		}
		t.Fatal(err)
	}
	resp.Body.Close()
	return found
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := req.URL.EscapedPath()
	r.mu.Lock()
	a := r.answers[path]
	if a == nil {
		a = &answer{}
		r.answers[path] = a
	}
	tarball := strings.HasSuffix(path, ".tgz")
	if tarball && req.Method == http.MethodGet {
		r.fetched[path[strings.LastIndex(path, "/")+1:]]++
	}
	r.mu.Unlock()
	a.once.Do(func() { a.status, a.body, a.err = r.fetch(path) })
	switch {
	case a.err != nil:
		http.Error(w, a.err.Error(), http.StatusBadGateway)
	case a.status != http.StatusOK:
		http.Error(w, http.StatusText(a.status), a.status)
	case tarball:
		http.ServeContent(w, req, "", time.Time{}, &slowly{bytes.NewReader(a.body), r.rate})
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(a.body) // the client may have been killed
	}
}

// fetch asks upstream; the places of tarballs in its answers become ours.
func (r *registry) fetch(path string) (int, []byte, error) {
	resp, err := http.Get(r.upstream + path)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if !strings.HasSuffix(path, ".tgz") {
		body = bytes.ReplaceAll(body, []byte(r.upstream), []byte(r.URL))
	}
	return resp.StatusCode, body, err
}

// tarballs are those fetched so far, with how often.
func (r *registry) tarballs() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[string]int{}
	for name, n := range r.fetched {
		counts[name] = n
	}
	return counts
}

// slowly reads at a rate.
type slowly struct {
	*bytes.Reader
	rate int
}

func (s *slowly) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	time.Sleep(time.Duration(n) * time.Second / time.Duration(s.rate))
	return n, err
}

// environment is that of a process whose only source of runtimes is the
// registry: upstream's releases are refused, everything else passes.
func (r *registry) environment(cacheDir string) []string {
	env := append(os.Environ(),
		"NPM_CONFIG_REGISTRY="+r.URL,
		"HTTPS_PROXY="+startProxy(r.t, "github.com", "githubusercontent.com", "jsdelivr.net"),
		"NO_PROXY=127.0.0.1,localhost",
		"RILLBOX_CACHE_DIR="+cacheDir,
		"XDG_CONFIG_HOME="+r.t.TempDir(),
	)
	return env
}

// startProxy starts an HTTP proxy that refuses the hosts below the names given,
// and passes other connections on, through the machine's own proxy if it has one.
func startProxy(t *testing.T, refused ...string) (address string) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host := req.URL.Hostname()
		for _, name := range refused {
			if host == name || strings.HasSuffix(host, "."+name) {
				http.Error(w, "refused by the test", http.StatusForbidden)
				return
			}
		}
		if req.Method != http.MethodConnect {
			http.Error(w, "only CONNECT is served", http.StatusMethodNotAllowed)
			return
		}
		up, err := dialThrough(req.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer up.Close()
		down, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer down.Close()
		fmt.Fprint(down, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() { _, _ = io.Copy(up, down); up.Close() }()
		_, _ = io.Copy(down, up) // ends when either side hangs up
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// dialThrough connects to a host and port, through HTTPS_PROXY where it is set.
func dialThrough(address string) (net.Conn, error) {
	via, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	if err != nil || via == nil {
		return net.DialTimeout("tcp", address, 10*time.Second)
	}
	conn, err := net.DialTimeout("tcp", via.Host, 10*time.Second)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address)
	reply := make([]byte, 0, 1024)
	for !bytes.HasSuffix(reply, []byte("\r\n\r\n")) && len(reply) < cap(reply) {
		one := make([]byte, 1)
		if _, err := io.ReadFull(conn, one); err != nil {
			conn.Close()
			return nil, err
		}
		reply = append(reply, one[0])
	}
	if !bytes.Contains(reply, []byte(" 200 ")) {
		conn.Close()
		return nil, fmt.Errorf("the proxy answers %.60q", reply)
	}
	return conn, nil
}
