package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rillbox/cache/egress"
)

// raw sends bytes to the gateway as they are, and returns the status of the
// answer (0 when the connection was closed without one) and the answer.
func raw(t testing.TB, g *Gateway, request string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", g.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, request) }() // the answer may come before all is sent
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: strings.Fields(request + " x")[0]})
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	var head strings.Builder
	_ = resp.Header.Write(&head)
	return resp.StatusCode, head.String() + "\n" + string(body)
}

func TestHostileRequests(t *testing.T) {
	index, content, sum := demoIndex(t)
	index.bytes("/secret", []byte("the index's secret"))
	index.bytes("/simple/secret", []byte("the index's secret"))
	g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}, CDN: index.URL + "/cdn/", Lock: lockOf("demo", "1.0", demoWheel, sum)})
	pretend(t, g, map[string]*site{"inside.example.com": nil})
	mine, other := newGrant(g), newGrant(g)
	other.Allow([]File{{Name: "demo", Version: "1.0", Filename: demoWheel, URL: index.URL + demoFile, SHA256: sum, Source: "index"}})
	closed := newGrant(g)
	closed.Close()

	host := "Host: " + g.Addr() + "\r\n"
	get := func(path string, headers ...string) string {
		return "GET /" + mine.token + "/" + path + " HTTP/1.1\r\n" + host + strings.Join(headers, "") + "Connection: close\r\n\r\n"
	}
	at := func(path string) string { return "GET " + path + " HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n" }
	byURL := func(u string) string { return get("url/" + url.QueryEscape(u)) }

	for _, tc := range []struct {
		name, request string
		status        int
	}{
		// The harmless ones show that the others fail for the reason that they name.
		{"harmless page", get("simple/demo/"), 200},
		{"harmless page without slash", get("simple/demo"), 200},
		{"harmless file", get("file/" + sum + "/" + demoWheel), 200},
		{"range is not looked at", get("file/"+sum+"/"+demoWheel, "Range: bytes=0-1\r\n"), 200},
		{"range nonsense", get("file/"+sum+"/"+demoWheel, "Range: bytes=-9999999999999999999,5-2,,x\r\n"), 200},
		{"a thousand ranges", get("file/"+sum+"/"+demoWheel, "Range: bytes="+strings.Repeat("0-,", 1000)+"\r\n"), 200},
		{"condition", get("simple/demo/", "If-None-Match: *\r\n", "If-Modified-Since: Sat, 01 Jan 2050 00:00:00 GMT\r\n"), 200},
		{"harmless HEAD", strings.Replace(get("file/"+sum+"/"+demoWheel), "GET", "HEAD", 1), 200},

		{"no token", at("/"), 404},
		{"no token but a route", at("/simple/demo/"), 404},
		{"token of none", at("/" + strings.Repeat("A", 43) + "/simple/demo/"), 404},
		{"empty token", at("//simple/demo/"), 404},
		{"closed token", at("/" + closed.token + "/simple/demo/"), 404},
		{"token, other case", at("/" + strings.ToLower(mine.token) + "/simple/demo/"), 404},
		{"start of a token", at("/" + mine.token[:42] + "/simple/demo/"), 404},
		{"escaped token", at("/%" + fmt.Sprintf("%x", mine.token[0]) + mine.token[1:] + "/simple/demo/"), 404},
		{"way up to another", get("../" + other.token + "/file/" + sum + "/" + demoWheel), 404},
		{"way up, escaped", get("%2e%2e/" + other.token + "/file/" + sum + "/" + demoWheel), 404},
		{"way up, slash escaped", get("..%2f" + other.token), 404},
		{"grant alone", get(""), 404},
		{"unknown route", get("etc/passwd"), 404},
		{"route, other case", get("Simple/demo/"), 404},
		{"double slash", get("/simple/demo/"), 404},
		{"double slash within", get("simple//demo/"), 404},
		{"page below a page", get("simple/demo/x/"), 404},
		{"page, way up", get("simple/../secret"), 404},
		{"page, way up escaped", get("simple/..%2fsecret/"), 404},
		{"page, dots escaped", get("simple/%2e%2e/"), 404},
		{"page, backslash", get("simple/..%5csecret/"), 404},
		{"page, escaped twice", get("simple/%252e%252e%252fsecret/"), 404},
		{"page, NUL", get("simple/demo%00/"), 404},
		{"page, newline", get("simple/demo%0d%0aX:%20y/"), 404},
		{"page, query smuggled", get("simple/demo%3fx=1/"), 404},
		{"page, fragment smuggled", get("simple/demo%23x/"), 404},
		{"page, other host smuggled", get("simple/%40evil.example/"), 404},
		{"page, not ASCII", get("simple/d%c3%a9mo/"), 404},
		{"page, bad UTF-8", get("simple/d%ff/"), 404},
		{"page, bad escape", get("simple/d%zz/"), 400},
		{"page, long name", get("simple/" + strings.Repeat("a", 5000) + "/"), 404},
		{"page, empty", get("simple/"), 404},
		{"file, no digest", get("file/" + demoWheel), 404},
		{"file, another digest", get("file/" + sumA + "/" + demoWheel), 404},
		{"file, digest in upper case", get("file/" + strings.ToUpper(sum) + "/" + demoWheel), 404},
		{"file, another name", get("file/" + sum + "/demo-9.0-py3-none-any.whl"), 404},
		{"file, way up", get("file/" + sum + "/..%2f..%2fsecret"), 404},
		{"file, absolute", get("file/" + sum + "/%2fetc%2fpasswd"), 404},
		{"file, metadata that isn't told of", get("file/" + sum + "/" + demoWheel + ".metadata"), 404},
		{"file, metadata of metadata", get("file/" + sum + "/" + demoWheel + ".metadata.metadata"), 404},
		{"file, no-sha256", get("file/" + noHash + "/" + demoWheel), 404},
		{"file, deeper", get("file/" + sum + "/" + demoWheel + "/x"), 404},
		{"cdn, not in the lock", get("cdn/secret"), 404},
		{"cdn, way up", get("cdn/..%2fsecret"), 404},
		{"cdn, way up in the open", get("cdn/../secret"), 404},
		{"cdn, nothing", get("cdn/"), 404},

		{"URL, http", byURL("http://inside.example.com/" + demoWheel), 403},
		{"URL, file", byURL("file:///etc/" + demoWheel), 403},
		{"URL, data", byURL("data:," + demoWheel), 403},
		{"URL, ftp", byURL("ftp://example.com/" + demoWheel), 403},
		{"URL, relative", byURL("/" + demoWheel), 403},
		{"URL, no scheme", byURL("//example.com/" + demoWheel), 403},
		{"URL, no host", byURL("https:///" + demoWheel), 403},
		{"URL, password", byURL("https://a:b@example.com/" + demoWheel), 403},
		{"URL, not a wheel", byURL("https://example.com/secret"), 403},
		{"URL, wheel in the query", byURL("https://example.com/secret?x=" + demoWheel), 403},
		{"URL, wheel in the fragment", byURL("https://example.com/secret#" + demoWheel), 403},
		{"URL, bad digest", byURL("https://example.com/" + demoWheel + "#sha256=zz"), 403},
		{"URL, too long", byURL("https://example.com/" + strings.Repeat("a", 3000) + "/" + demoWheel), 400},
		{"URL, nothing", get("url/"), 403},
		{"URL, private name", byURL("https://inside.example.com/" + demoWheel), 403},
		{"URL, private address", byURL("https://127.0.0.66/" + demoWheel), 403},
		{"URL, private address as one number", byURL("https://2130706498/" + demoWheel), 504},
		{"URL, private address in IPv6", byURL("https://[::ffff:127.0.0.66]/" + demoWheel), 403},
		{"URL, the index itself", byURL(strings.Replace(index.URL, "http:", "https:", 1) + "/" + demoWheel), 504},

		{"POST", strings.Replace(get("simple/demo/"), "GET", "POST", 1), 405},
		{"PUT", strings.Replace(get("file/"+sum+"/"+demoWheel), "GET", "PUT", 1), 405},
		{"DELETE", strings.Replace(get("simple/demo/"), "GET", "DELETE", 1), 405},
		{"OPTIONS", strings.Replace(get("simple/demo/"), "GET", "OPTIONS", 1), 405},
		{"TRACE", strings.Replace(get("simple/demo/"), "GET", "TRACE", 1), 405},
		{"own method", strings.Replace(get("simple/demo/"), "GET", "EVIL", 1), 405},
		{"CONNECT", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", 405},
		{"proxy request", "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n", 421},
		{"proxy request to ourselves", "GET http://" + g.Addr() + "/" + mine.token + "/simple/demo/ HTTP/1.1\r\n" + host + "\r\n", 421},
		{"rebound host", strings.Replace(get("simple/demo/"), host, "Host: evil.example\r\n", 1), 421},
		{"rebound host with our port", strings.Replace(get("simple/demo/"), "127.0.0.1:", "evil.example:", 1), 421},
		{"localhost", strings.Replace(get("simple/demo/"), "127.0.0.1:", "localhost:", 1), 421},
		{"two hosts", get("simple/demo/", "Host: evil.example\r\n"), 400},
		{"no host", strings.Replace(get("simple/demo/"), host, "", 1), 400},
		{"HTTP/1.0 without a host", "GET /" + mine.token + "/simple/demo/ HTTP/1.0\r\n\r\n", 421},
		{"a web page's request", get("simple/demo/", "Origin: https://evil.example\r\n"), 403},
		{"a web page's navigation", get("simple/demo/", "Sec-Fetch-Site: cross-site\r\n"), 403},
		{"body", get("simple/demo/", "Content-Length: 3\r\n") + "abc", 400},
		{"chunked body", get("simple/demo/", "Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n0\r\n\r\n", 400},
		{"smuggled request", get("simple/demo/", "Content-Length: 4\r\n", "Transfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
		{"web socket", get("simple/demo/", "Upgrade: websocket\r\n"), 400},
		{"huge header", get("simple/demo/", "X-A: "+strings.Repeat("a", 64<<10)+"\r\n"), 431},
		{"many headers", get("simple/demo/", strings.Repeat("X-A: a\r\n", 10000)), 431},
		{"huge path", get("simple/" + strings.Repeat("a", 64<<10)), 431},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 405},
		{"not HTTP", "\x16\x03\x01 hello\r\n\r\n", 400},
		{"star", "GET * HTTP/1.1\r\n" + host + "\r\n", 421},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, answer := raw(t, g, tc.request)
			// Some resolvers take a number for an address, which is then refused.
			if status != tc.status && !(status == 403 && strings.HasSuffix(tc.name, "as one number")) {
				t.Errorf("%d %.400s; want %d", status, answer, tc.status)
			}
			if status >= 300 && status < 400 || strings.Contains(answer, "Location:") {
				t.Errorf("a redirect was passed on: %s", answer)
			}
			if strings.Contains(answer, "secret") && !strings.Contains(tc.request, "secret") || strings.Contains(answer, "the index's secret") {
				t.Errorf("a secret got out: %s", answer)
			}
			if tc.status == http.StatusOK && strings.HasPrefix(tc.name, "range") && !strings.HasSuffix(answer, string(content)) {
				t.Error("not the whole file")
			}
		})
	}
	for path := range index.asked {
		if path != demoPage && path != demoFile {
			t.Errorf("the index was asked for %s", path)
		}
	}
	if status, _ := ask(t, mine, "simple/demo/"); status != http.StatusOK {
		t.Errorf("afterwards the gateway answers %d", status)
	}
}

// A guest that holds connections and asks all the time doesn't keep another
// from its packages.
func TestOneGuestDoesNotStarveAnother(t *testing.T) {
	index, content, sum := demoIndex(t)
	stuck := make(chan struct{})
	defer close(stuck)
	index.on("/simple/slow/", func(http.ResponseWriter, *http.Request) { <-stuck })
	g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}})
	greedy, modest := newGrant(g), newGrant(g)
	for range 2 * maxIdleConns { // connections that say nothing
		conn, err := net.Dial("tcp", g.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	refused := make(chan struct{}, 1)
	for range queued + 64 { // requests that wait for the index
		conn, err := net.Dial("tcp", g.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /%s/simple/slow/ HTTP/1.1\r\nHost: %s\r\n\r\n", greedy.token, g.Addr())
		go func() {
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil && resp.StatusCode == http.StatusTooManyRequests {
				select {
				case refused <- struct{}{}:
				default:
				}
			}
		}()
	}
	<-refused
	// The index never answers the greedy one, so that whoever waited for that would
	// wait for ever.
	askPage(t, modest, "demo")
	if status, body := ask(t, modest, "file/"+sum+"/"+demoWheel); status != http.StatusOK || string(body) != string(content) {
		t.Errorf("file: %d", status)
	}
}

// TestNothingGoesOnAfterClose: not even the fetching of a page whose guest has hung
// up, which would write into a cache that is closed.
func TestNothingGoesOnAfterClose(t *testing.T) {
	index, _, _ := demoIndex(t)
	g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}})
	fetched, store := make(chan bool, 10), make(chan bool)
	g.now = func() time.Time { // it is asked for when the page has come
		fetched <- true
		<-store
		return time.Now()
	}
	gr := newGrant(g)
	go func() {
		if resp, err := http.Get(gr.BaseURL() + "simple/demo/"); err == nil {
			resp.Body.Close()
		}
	}()
	<-fetched
	gr.Close() // nobody waits for the page any more
	var ending atomic.Bool
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		g.Close()
		if !ending.Load() {
			t.Error("Close returned while a page was being fetched")
		}
	}()
	time.Sleep(50 * time.Millisecond) // for what does not wait to return
	ending.Store(true)
	close(store)
	<-closed
}

// Close ends a request that waits for the index.
func TestCloseEndsRequests(t *testing.T) {
	index := newSite(t)
	arrived, stuck := make(chan struct{}, 1), make(chan struct{})
	defer close(stuck)
	index.on(demoPage, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-stuck })
	gr := newGrant(newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}}))
	ended := make(chan error, 1)
	go func() {
		_, err := http.Get(gr.BaseURL() + "simple/demo/")
		ended <- err
	}()
	<-arrived
	gr.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the request got an answer")
		}
	case <-time.After(30 * time.Second):
		t.Error("the request goes on")
	}
}

func FuzzRequestPath(f *testing.F) {
	for _, seed := range []string{
		"simple/demo/", "file/" + sumA + "/" + demoWheel, "cdn/" + demoWheel, "cdn/../x", "url/https%3A%2F%2Fexample.com%2F" + demoWheel,
		"simple/%2e%2e%2f/", "file/%00/%ff", "url/%25", "", "//", "simple/demo/?x#y", "file/no-sha256/demo-1.0.tar.gz",
	} {
		f.Add(seed)
	}
	content := wheel(f, "demo", "1.0")
	sum := digestHex(content)
	// No index, no CDN, no fetching: whatever is asked, no file can come out but the plan's.
	g := newGateway(f, Options{Lock: lockOf("demo", "1.0", demoWheel, sum), Policy: egress.Policy{NoFetch: true}})
	if _, err := g.cache.Put(f.Context(), WheelKind, digestHex([]byte("secret")), strings.NewReader("secret")); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string) {
		gr := newGrant(g)
		defer gr.Close()
		u, err := url.ParseRequestURI("/" + gr.token + "/" + path)
		if err != nil {
			return // net/http refuses it
		}
		r := &http.Request{Method: http.MethodGet, URL: u, Host: g.Addr(), RequestURI: u.RequestURI(), Header: http.Header{}}
		w := &answer{header: http.Header{}}
		here, err := net.ResolveTCPAddr("tcp", g.Addr())
		if err != nil {
			t.Fatal(err)
		}
		g.serve(w, r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, here)))
		if w.status == http.StatusOK || w.status/100 == 3 || w.status == http.StatusInternalServerError {
			t.Errorf("%q: %d %s", path, w.status, w.body.String())
		}
		if w.status == 0 || w.body.Len() == 0 || w.body.String() == "secret" {
			t.Errorf("%q: %d %q", path, w.status, w.body.String())
		}
	})
}

// answer is a ResponseWriter without a connection.
type answer struct {
	header http.Header
	status int
	body   strings.Builder
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
