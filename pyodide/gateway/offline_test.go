package gateway

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rillbox/cache"
	"rillbox/cache/egress"
)

// What ran once runs again with the network gone or forbidden, in another
// process, and with an index before it that lacks the project.
func TestRerunWithoutNetwork(t *testing.T) {
	dir := t.TempDir()
	first := newSite(t)
	index, content, sum := demoIndex(t)
	metadata := []byte("Metadata-Version: 2.1\n")
	index.json(demoPage, file(demoWheel, demoFile, sum, "core-metadata", map[string]string{"sha256": index.bytes(demoFile+".metadata", metadata)}))
	lock := lockOf("other", "2.0", "other-2.0-py3-none-any.whl", index.bytes("/cdn/other-2.0-py3-none-any.whl", wheel(t, "other", "2.0")))
	options := func(o cache.Options, p egress.Policy) Options {
		return Options{
			Cache: openCache(t, dir, o), IndexURLs: []string{first.URL, index.URL + "/simple"},
			CDN: index.URL + "/cdn/", Lock: lock, Policy: p,
		}
	}
	run := func(t *testing.T, g *Gateway) {
		gr := newGrant(g)
		p := askPage(t, gr, "demo")
		if status, body := askURL(t, gr, p.Files[0].URL); status != http.StatusOK || !bytes.Equal(body, content) {
			t.Errorf("file: %d %.200s", status, body)
		}
		if status, body := askURL(t, gr, p.Files[0].URL+".metadata"); status != http.StatusOK || !bytes.Equal(body, metadata) {
			t.Errorf("metadata: %d %.200s", status, body)
		}
		if status, body := ask(t, gr, "cdn/other-2.0-py3-none-any.whl"); status != http.StatusOK {
			t.Errorf("cdn: %d %.200s", status, body)
		}
		if len(gr.Served()) != 2 {
			t.Errorf("served %+v", gr.Served())
		}
	}
	run(t, newGateway(t, options(cache.Options{}, egress.Policy{})))
	first.Close()
	index.Close()

	for name, tc := range map[string]struct {
		options cache.Options
		policy  egress.Policy
		says    string
	}{
		"network gone": {cache.Options{}, egress.Policy{}, "is not in the cache, and the network is not reachable"},
		"offline":      {cache.Options{Offline: true}, egress.Policy{}, "is not in the cache, and the network is not reachable"},
		"no fetch":     {cache.Options{}, egress.Policy{NoFetch: true}, "is not in the cache, and the operator turned fetching off"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, options(tc.options, tc.policy))
			g.now = func() time.Time { return time.Now().Add(48 * time.Hour) } // the pages are stale
			run(t, g)
			gr := newGrant(g)
			if err := gr.Allow([]File{{Name: "demo", Filename: "demo-2.0-py3-none-any.whl", SHA256: sumA, URL: index.URL + demoFile, Source: "index"}}); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"simple/absent/", "file/" + sumA + "/demo-2.0-py3-none-any.whl", "url/" + url.QueryEscape("https://missing.invalid/"+demoWheel)} {
				start := time.Now()
				status, body := ask(t, gr, path)
				if status != http.StatusGatewayTimeout || !strings.Contains(string(body), tc.says) {
					t.Errorf("%s: %d %s; want %q", path, status, body, tc.says)
				}
				if took := time.Since(start); took > 5*time.Second {
					t.Errorf("%s took %v", path, took)
				}
			}
		})
	}
}

// A server that takes connections and says nothing is given up within 5 s, and
// not tried again at once; nor is one that takes none.
func TestUnreachableCDN(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for name, cdn := range map[string]string{"silent": "https://" + silent.Addr().String() + "/", "gone": "http://" + gone.Addr().String() + "/"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gr := newGrant(newGateway(t, Options{CDN: cdn, Lock: lockOf("demo", "1.0", demoWheel, sumA)}))
			start := time.Now()
			status, body := ask(t, gr, "cdn/"+demoWheel)
			if status != http.StatusGatewayTimeout || !strings.Contains(string(body), demoWheel+" is not in the cache, and the network is not reachable") {
				t.Errorf("%d %s", status, body)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			start = time.Now()
			if status, _ := ask(t, gr, "cdn/"+demoWheel); status != http.StatusGatewayTimeout {
				t.Errorf("again: %d", status)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("again, it took %v", took)
			}
		})
	}
}

func TestPagesAreRevalidated(t *testing.T) {
	index, _, sum := demoIndex(t)
	var whole, same atomic.Int32
	version := "1.0"
	index.on(demoPage, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"`+version+`"`)
		if r.Header.Get("If-None-Match") == `"`+version+`"` {
			same.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		whole.Add(1)
		writePage(w, []map[string]any{file("demo-"+version+"-py3-none-any.whl", demoFile, sum)})
	})
	dir, now := t.TempDir(), time.Now()
	open := func() *Gateway {
		g := newGateway(t, Options{Cache: openCache(t, dir, cache.Options{}), IndexURLs: []string{index.URL + "/simple"}})
		g.now = func() time.Time { return now }
		return g
	}
	g := open()
	for _, step := range []struct {
		name        string
		pass        time.Duration
		version     string
		restart     bool
		want        string
		whole, same int32
	}{
		{"first", 0, "1.0", false, "1.0", 1, 0},
		{"fresh", time.Minute, "1.0", false, "1.0", 1, 0},
		{"fresh in another process", time.Minute, "1.0", true, "1.0", 1, 0},
		{"stale, unchanged", time.Hour, "1.0", false, "1.0", 1, 1},
		{"fresh again", time.Minute, "1.0", false, "1.0", 1, 1},
		{"fresh again in another process", time.Minute, "1.0", true, "1.0", 1, 1},
		{"fresh, though changed", time.Minute, "2.0", false, "1.0", 1, 1},
		{"stale, changed", time.Hour, "2.0", true, "2.0", 2, 1},
		{"the clock was set back", -time.Hour, "2.0", false, "2.0", 2, 2},
		{"fresh by the clock that was set back", time.Minute, "2.0", false, "2.0", 2, 2},
		{"the clock was set back, in another process", -time.Hour, "2.0", true, "2.0", 2, 3},
		{"the clock is right again", 2*time.Hour - time.Minute, "2.0", false, "2.0", 2, 4},
	} {
		now, version = now.Add(step.pass), step.version
		if step.restart {
			g = open()
		}
		p := askPage(t, newGrant(g), "demo")
		if !slices.Equal(p.Versions, []string{step.want}) || whole.Load() != step.whole || same.Load() != step.same {
			t.Errorf("%s: %v after %d whole pages and %d unchanged ones; want %s, %d, %d",
				step.name, p.Versions, whole.Load(), same.Load(), step.want, step.whole, step.same)
		}
	}
}

// A project that appears is seen soon; an index that fails has its old page used.
func TestAbsentAndFailing(t *testing.T) {
	index := newSite(t)
	now := time.Now()
	g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}})
	g.now = func() time.Time { return now }
	gr := newGrant(g)
	for range 2 {
		if status, _ := ask(t, gr, "simple/demo/"); status != http.StatusNotFound {
			t.Errorf("absent: %d", status)
		}
	}
	if n := index.count(demoPage); n != 1 {
		t.Errorf("asked %d times", n)
	}
	index.json(demoPage, file(demoWheel, demoFile, sumA))
	now = now.Add(2 * absentFor)
	askPage(t, gr, "demo")
	now = now.Add(time.Hour)
	for name, fails := range map[string]http.HandlerFunc{
		"error":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"garbage": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "garbage") },
		"login":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
	} {
		index.on(demoPage, fails)
		if p := askPage(t, gr, "demo"); len(p.Files) != 1 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// A file in the cache that is not what its key says is fetched again.
func TestCacheThatLies(t *testing.T) {
	index, content, sum := demoIndex(t)
	c := openCache(t, t.TempDir(), cache.Options{})
	if _, err := c.Put(t.Context(), WheelKind, sum, strings.NewReader("something else")); err != nil {
		t.Fatal(err)
	}
	gr := newGrant(newGateway(t, Options{Cache: c, IndexURLs: []string{index.URL + "/simple"}}))
	p := askPage(t, gr, "demo")
	if status, body := askURL(t, gr, p.Files[0].URL); status != http.StatusOK || !bytes.Equal(body, content) {
		t.Errorf("%d %.200q", status, body)
	}
}

// breaking serves content, and breaks the connection after each quarter of it.
func breaking(content []byte, ranges bool, asked *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Header.Get("Range"))
		start := 0
		if ranges && r.Header.Get("Range") != "" {
			_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &start)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(content)-1, len(content)))
			w.Header().Set("Content-Length", fmt.Sprint(len(content)-start))
			w.WriteHeader(http.StatusPartialContent)
		} else {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		}
		sent := len(content) / 4 * len(*asked)
		if ranges {
			sent = len(content)/4 + 1
		}
		_, _ = w.Write(content[start:min(start+sent, len(content))])
	}
}

func TestBrokenTransfers(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
	for _, ranges := range []bool{true, false} {
		t.Run(fmt.Sprintf("ranges %v", ranges), func(t *testing.T) {
			index := newSite(t)
			var asked []string
			index.on(demoFile, breaking(content, ranges, &asked))
			index.json(demoPage, file(demoWheel, demoFile, digestHex(content)))
			gr := newGrant(newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}}))
			p := askPage(t, gr, "demo")
			status, body := askURL(t, gr, p.Files[0].URL)
			if status != http.StatusOK || !bytes.Equal(body, content) {
				t.Errorf("%d %.200q after %q", status, body, asked)
			}
			if len(asked) != 4 || asked[1] == "" {
				t.Errorf("asked for %q", asked)
			}
		})
	}
	t.Run("by URL, without a digest", func(t *testing.T) {
		files := newTLSSite(t)
		var asked []string
		files.on("/"+demoWheel, breaking(content, true, &asked))
		g := newGateway(t, Options{})
		pretend(t, g, map[string]*site{"example.com": files})
		status, body := ask(t, newGrant(g), "url/"+url.QueryEscape("https://example.com/"+demoWheel))
		if status != http.StatusBadGateway || !strings.Contains(string(body), "broke off") || len(asked) != 1 {
			t.Errorf("%d %s after %q: parts of two answers can't be told apart without a digest", status, body, asked)
		}
	})
}

func TestTransientErrors(t *testing.T) {
	index, content, sum := demoIndex(t)
	index.on(demoFile, func(w http.ResponseWriter, _ *http.Request) {
		if index.count(demoFile) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(content)
	})
	gr := newGrant(newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}}))
	askPage(t, gr, "demo")
	if status, body := ask(t, gr, "file/"+sum+"/"+demoWheel); status != http.StatusOK || !bytes.Equal(body, content) {
		t.Errorf("%d %.200s", status, body)
	}
}

func TestBadOptions(t *testing.T) {
	c := openCache(t, t.TempDir(), cache.Options{})
	for name, o := range map[string]Options{
		"index file":   {IndexURLs: []string{"file:///srv/index"}},
		"index, none":  {IndexURLs: []string{""}},
		"index, bad":   {IndexURLs: []string{"https://me:s3cret@[::1"}},
		"CDN":          {CDN: "cdn/"},
		"lock":         {Lock: []byte("{")},
		"lock entries": {Lock: lockOf("demo", "1.0", "../x.whl", sumA)},
		"policy":       {Policy: egress.Policy{Allow: []string{"[x"}}},
	} {
		o.Cache = c
		g, err := New(o)
		if err == nil {
			g.Close()
			t.Errorf("%s passed", name)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password is in %q", name, err)
		}
	}
}
