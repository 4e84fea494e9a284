package gateway

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"rillbox/cache"
	"rillbox/cache/cachetest"
)

// site is a local server whose answers a test sets by path, and which counts
// what it is asked for.
type site struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string]http.HandlerFunc
	asked   map[string]int
}

func newSite(t *testing.T) *site {
	s := &site{answers: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func newTLSSite(t *testing.T) *site {
	s := &site{answers: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked[r.URL.Path]++
	answer := s.answers[r.URL.Path]
	s.mu.Unlock()
	if answer == nil {
		http.NotFound(w, r)
		return
	}
	answer(w, r)
}

func (s *site) on(path string, answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = answer
}

func (s *site) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

// bytes sets a path's content, and returns its SHA-256.
func (s *site) bytes(path string, content []byte) string {
	s.on(path, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	})
	return digestHex(content)
}

// json sets a path to an index page.
func (s *site) json(path string, files ...map[string]any) {
	s.on(path, func(w http.ResponseWriter, _ *http.Request) { writePage(w, files) })
}

func writePage(w http.ResponseWriter, files []map[string]any) {
	w.Header().Set("Content-Type", simpleJSON)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"meta": map[string]string{"api-version": "1.1"}, "name": "x", "files": files,
	})
}

// file is one file of an index page.
func file(name, url, sum string, more ...any) map[string]any {
	f := map[string]any{"filename": name, "url": url, "hashes": map[string]string{}}
	if sum != "" {
		f["hashes"] = map[string]string{"sha256": sum}
	}
	for i := 0; i+1 < len(more); i += 2 {
		f[more[i].(string)] = more[i+1]
	}
	return f
}

func digestHex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// wheel is a small real wheel.
func wheel(t testing.TB, project, version string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := zip.NewWriter(&buf)
	info := project + "-" + version + ".dist-info/"
	for name, text := range map[string]string{
		project + "/__init__.py": "version = '" + version + "'\n",
		info + "METADATA":        "Metadata-Version: 2.1\nName: " + project + "\nVersion: " + version + "\n",
		info + "WHEEL":           "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":          "",
	} {
		w, err := zw.Create(name)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func openCache(t testing.TB, dir string, o cache.Options) *cache.Cache {
	t.Helper()
	o.Log = cachetest.Logger(t)
	c, err := cache.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// newGateway starts a gateway for a test; its cache is empty unless o has one.
func newGateway(t testing.TB, o Options) *Gateway {
	t.Helper()
	if o.Cache == nil {
		o.Cache = openCache(t, t.TempDir(), cache.Options{})
	}
	o.Log = cachetest.Logger(t)
	o.CDN = cmp.Or(o.CDN, "https://cdn.example/full/")
	if o.Lock == nil {
		o.Lock = []byte("{}")
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// privateAddr stands for every private address in tests, where loopback is
// what is public.
var privateAddr = netip.MustParseAddr("127.0.0.66")

// pretend makes public hosts of the sites in hosts, as by DNS. A nil site is a
// host with a private address.
func pretend(t testing.TB, g *Gateway, hosts map[string]*site) {
	t.Helper()
	g.network.IsPublic = func(addr netip.Addr) bool { return addr != privateAddr }
	checked := g.network.Public.DialContext
	g.network.Public.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if s, ok := hosts[host]; ok && s != nil {
			address = s.Listener.Addr().String()
		} else if ok {
			address = netip.AddrPortFrom(privateAddr, 443).String()
		}
		return checked(ctx, network, address)
	}
	for _, s := range hosts {
		if s != nil {
			// All of them have httptest's certificate, for example.com and *.example.com.
			g.network.Public.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			break
		}
	}
}

// ask requests a path below a grant and returns the status and body.
func ask(t testing.TB, gr *Grant, path string) (int, []byte) {
	t.Helper()
	resp, err := http.Get(gr.BaseURL() + path)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return resp.StatusCode, body
}

// newGrant is a grant of a guest that has the machine's network.
func newGrant(g *Gateway) *Grant { return g.Grant(g.Addr(), g.network.Policy) }

// servedPage is an index page as a guest reads it.
type servedPage struct {
	Name     string
	Versions []string
	Files    []struct {
		Filename     string
		URL          string
		Hashes       map[string]string
		Size         int64
		Yanked       any
		Requires     string            `json:"requires-python"`
		CoreMetadata map[string]string `json:"core-metadata"`
	}
}

func askPage(t testing.TB, gr *Grant, project string) servedPage {
	t.Helper()
	status, body := ask(t, gr, "simple/"+project+"/")
	if status != http.StatusOK {
		t.Fatalf("page of %s: %d %s", project, status, body)
	}
	var p servedPage
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("page of %s: %v in %s", project, err, body)
	}
	return p
}

// askURL requests an absolute URL of a page.
func askURL(t testing.TB, gr *Grant, url string) (int, []byte) {
	t.Helper()
	path, ok := strings.CutPrefix(url, gr.BaseURL())
	if !ok {
		t.Fatalf("%s does not lead to the gateway", url)
	}
	return ask(t, gr, path)
}

// lockOf is a Pyodide lock file with one package.
func lockOf(name, version, filename, sum string) []byte {
	return fmt.Appendf(nil, `{"info":{},"packages":{%q:{"name":%q,"version":%q,"file_name":%q,"sha256":%q}}}`,
		name, name, version, filename, sum)
}
