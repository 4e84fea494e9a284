package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rillbox/cache/egress"
)

const (
	demoWheel = "demo-1.0-py3-none-any.whl"
	demoFile  = "/files/" + demoWheel
	demoPage  = "/simple/demo/"
)

// demoIndex is an index with one wheel.
func demoIndex(t *testing.T) (index *site, content []byte, sum string) {
	index = newSite(t)
	content = wheel(t, "demo", "1.0")
	sum = index.bytes(demoFile, content)
	index.json(demoPage, file(demoWheel, "../.."+demoFile, sum, "size", len(content)))
	return index, content, sum
}

func TestPageLeadsToVerifiedFile(t *testing.T) {
	index, content, sum := demoIndex(t)
	g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}})
	var stages []string
	gr := newGrant(g)
	gr.SetProgress(func(stage string, done, total int64) {
		stages = append(stages, fmt.Sprintf("%s %d/%d", stage, done, total))
	})
	for _, spelling := range []string{"demo", "Demo", "DEMO"} {
		p := askPage(t, gr, spelling)
		if p.Name != "demo" || !slices.Equal(p.Versions, []string{"1.0"}) || len(p.Files) != 1 || p.Files[0].Hashes["sha256"] != sum {
			t.Fatalf("page: %+v", p)
		}
	}
	link := askPage(t, gr, "demo").Files[0].URL
	for range 2 {
		if status, body := askURL(t, gr, link); status != http.StatusOK || !bytes.Equal(body, content) {
			t.Fatalf("file: %d %.100q", status, body)
		}
	}
	if index.count(demoPage) != 1 || index.count(demoFile) != 1 {
		t.Errorf("the index was asked %d times for the page, %d times for the file", index.count(demoPage), index.count(demoFile))
	}
	want := File{Name: "demo", Version: "1.0", Filename: demoWheel, URL: index.URL + demoFile, SHA256: sum, Source: "index", Size: int64(len(content))}
	if got := gr.Served(); !slices.Equal(got, []File{want}) {
		t.Errorf("served %+v, want %+v", got, want)
	}
	if last := fmt.Sprintf("fetching demo 1.0 %d/%d", len(content), len(content)); !slices.Contains(stages, last) {
		t.Errorf("progress: %q, want %q among them", stages, last)
	}

	other := newGrant(g)
	if status, _ := ask(t, other, strings.TrimPrefix(link, gr.BaseURL())); status != http.StatusNotFound {
		t.Errorf("a file that no page of this grant named: %d", status)
	}
	askURL(t, other, askPage(t, other, "demo").Files[0].URL)
	if got := other.Served(); len(got) != 1 || !got[0].Cached {
		t.Errorf("a second child's file is not told as cached: %+v", got)
	}
	gr.Close()
	if resp, err := http.Get(link); err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("a closed grant: %v, %v", resp, err)
	}
}

func TestHTMLIndex(t *testing.T) {
	index := newSite(t)
	content := wheel(t, "demo", "1.0")
	sum := index.bytes(demoFile, content)
	index.on(demoPage, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<html><a href="%s#sha256=%s" data-requires-python="&gt;=3.9">%s</a></html>`, demoFile, sum, demoWheel)
	})
	gr := newGrant(newGateway(t, Options{IndexURLs: []string{index.URL + "/simple/"}}))
	p := askPage(t, gr, "demo")
	if len(p.Files) != 1 || p.Files[0].Requires != ">=3.9" {
		t.Fatalf("page: %+v", p)
	}
	if status, body := askURL(t, gr, p.Files[0].URL); status != http.StatusOK || !bytes.Equal(body, content) {
		t.Errorf("file: %d %.100q", status, body)
	}
}

func TestFirstIndexThatHasTheProject(t *testing.T) {
	first, second := newSite(t), newSite(t)
	first.json("/simple/ours/", file("ours-1.0-py3-none-any.whl", "x", sumA))
	second.json("/simple/ours/", file("ours-9.0-py3-none-any.whl", "x", sumA))
	second.json(demoPage, file(demoWheel, "x", sumB))
	gr := newGrant(newGateway(t, Options{IndexURLs: []string{first.URL + "/simple", second.URL + "/simple"}}))
	if p := askPage(t, gr, "ours"); !slices.Equal(p.Versions, []string{"1.0"}) || second.count("/simple/ours/") != 0 {
		t.Errorf("ours: %+v", p)
	}
	if p := askPage(t, gr, "demo"); !slices.Equal(p.Versions, []string{"1.0"}) {
		t.Errorf("demo: %+v", p)
	}
	status, body := ask(t, gr, "simple/absent/")
	if status != http.StatusNotFound || !strings.Contains(string(body), "check the spelling") {
		t.Errorf("absent: %d %s", status, body)
	}
	first.on("/simple/secret/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	second.json("/simple/secret/", file("secret-9.0-py3-none-any.whl", "x", sumA))
	if status, _ := ask(t, gr, "simple/secret/"); status != http.StatusBadGateway || second.count("/simple/secret/") != 0 {
		t.Errorf("an index that fails: %d, and the next one was asked %d times", status, second.count("/simple/secret/"))
	}
}

func TestMetadata(t *testing.T) {
	index, _, sum := demoIndex(t)
	metadata := []byte("Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
	digest := index.bytes(demoFile+".metadata", metadata)
	index.json(demoPage,
		file(demoWheel, "../.."+demoFile, sum, "core-metadata", map[string]string{"sha256": digest}),
		file("demo-2.0-py3-none-any.whl", "../.."+demoFile, sum, "core-metadata", true),
		file("demo-3.0-py3-none-any.whl", "../.."+demoFile, sum, "dist-info-metadata", map[string]string{"sha256": sumA}))
	gr := newGrant(newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}}))
	p := askPage(t, gr, "demo")
	if len(p.Files) != 3 || p.Files[0].CoreMetadata["sha256"] != digest || p.Files[1].CoreMetadata != nil {
		t.Fatalf("page: %+v", p)
	}
	if status, body := askURL(t, gr, p.Files[0].URL+".metadata"); status != http.StatusOK || !bytes.Equal(body, metadata) {
		t.Errorf("metadata: %d %s", status, body)
	}
	if status, _ := askURL(t, gr, p.Files[1].URL+".metadata"); status != http.StatusNotFound {
		t.Errorf("metadata without a digest: %d", status)
	}
	if status, body := askURL(t, gr, p.Files[2].URL+".metadata"); status != http.StatusBadGateway {
		t.Errorf("metadata of another digest: %d %s", status, body)
	}
	if len(gr.Served()) != 0 {
		t.Errorf("metadata counts as a package: %+v", gr.Served())
	}
}

func TestCDN(t *testing.T) {
	cdn := newSite(t)
	content := wheel(t, "demo", "1.0")
	sum := cdn.bytes("/v1/full/"+demoWheel, content)
	g := newGateway(t, Options{CDN: cdn.URL + "/v1/full/", Lock: lockOf("Demo", "1.0", demoWheel, sum)})
	gr := newGrant(g)
	for range 2 {
		if status, body := ask(t, gr, "cdn/"+demoWheel); status != http.StatusOK || !bytes.Equal(body, content) {
			t.Fatalf("cdn: %d %.100q", status, body)
		}
	}
	if n := cdn.count("/v1/full/" + demoWheel); n != 1 {
		t.Errorf("the CDN was asked %d times", n)
	}
	if got := gr.Served(); len(got) != 1 || got[0].Source != "pyodide" || got[0].Name != "demo" || got[0].Version != "1.0" {
		t.Errorf("served %+v", got)
	}
	if status, _ := ask(t, gr, "cdn/other-1.0-py3-none-any.whl"); status != http.StatusNotFound {
		t.Errorf("a file that the lock doesn't name: %d", status)
	}

	tampered := newSite(t)
	tampered.bytes("/"+demoWheel, append(content, 'x'))
	gr = newGrant(newGateway(t, Options{CDN: tampered.URL + "/", Lock: lockOf("demo", "1.0", demoWheel, sum)}))
	if status, body := ask(t, gr, "cdn/"+demoWheel); status != http.StatusBadGateway || !strings.Contains(string(body), "sha256") {
		t.Errorf("a tampered file: %d %s", status, body)
	}
}

func TestWheelByURL(t *testing.T) {
	files := newTLSSite(t)
	content := wheel(t, "demo", "1.0")
	sum := files.bytes("/pkg/"+demoWheel, content)
	files.on("/moved/"+demoWheel, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://b.example.com/pkg/"+demoWheel, http.StatusFound)
	})
	g := newGateway(t, Options{})
	pretend(t, g, map[string]*site{"example.com": files, "b.example.com": files})
	for _, u := range []string{
		"https://example.com/pkg/" + demoWheel,
		"https://example.com/moved/" + demoWheel,
		"https://example.com/pkg/" + demoWheel + "?signed=1#sha256=" + sum,
		"https://EXAMPLE.com:443/pkg/" + demoWheel + "#egg=demo&sha256=" + strings.ToUpper(sum),
	} {
		gr := newGrant(g)
		status, body := ask(t, gr, "url/"+url.QueryEscape(u))
		if status != http.StatusOK || !bytes.Equal(body, content) {
			t.Errorf("%s: %d %.200q", u, status, body)
			continue
		}
		got := gr.Served()
		if len(got) != 1 || got[0].Source != "url" || got[0].SHA256 != sum || got[0].Name != "demo" || strings.Contains(got[0].URL, "#") {
			t.Errorf("%s: served %+v", u, got)
		}
		again := newGrant(g)
		if err := again.Allow(got); err != nil {
			t.Fatal(err)
		}
		if status, body := ask(t, again, "file/"+sum+"/"+demoWheel); status != http.StatusOK || !bytes.Equal(body, content) {
			t.Errorf("%s from the plan: %d", u, status)
		}
	}
	gr := newGrant(g)
	ask(t, gr, "url/"+url.QueryEscape("https://example.com/pkg/"+demoWheel))
	if got := gr.Served(); len(got) != 1 || !got[0].Cached {
		t.Errorf("a URL's second time: %+v", got)
	}
	if status, body := ask(t, gr, "url/"+url.QueryEscape("https://example.com/pkg/"+demoWheel+"#sha256="+sumB)); status != http.StatusBadGateway {
		t.Errorf("another digest than asked for: %d %s", status, body)
	}
}

func TestPlan(t *testing.T) {
	index, content, sum := demoIndex(t)
	g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}})
	gr := newGrant(g)
	planned := File{Name: "demo", Version: "1.0", Filename: demoWheel, URL: index.URL + demoFile, SHA256: sum, Source: "index"}
	if err := gr.Allow([]File{planned}); err != nil {
		t.Fatal(err)
	}
	if status, body := ask(t, gr, "file/"+sum+"/"+demoWheel); status != http.StatusOK || !bytes.Equal(body, content) {
		t.Errorf("file of the plan: %d %.100q", status, body)
	}
	if index.count(demoPage) != 0 {
		t.Error("the plan did not spare the index page")
	}
	for _, broken := range []func(*File){
		func(f *File) { f.Filename = "../x.whl" }, func(f *File) { f.SHA256 = "abc" },
		func(f *File) { f.Name = "" }, func(f *File) { f.URL = "%zz" },
	} {
		f := planned
		broken(&f)
		if err := gr.Allow([]File{f}); err == nil {
			t.Errorf("a malformed plan passed: %+v", f)
		}
	}
}

func TestPolicyHoldsOnEveryRoute(t *testing.T) {
	index, _, sum := demoIndex(t)
	cdn := newSite(t)
	cdn.bytes("/"+demoWheel, wheel(t, "demo", "1.0"))
	g := newGateway(t, Options{
		IndexURLs: []string{index.URL + "/simple"}, CDN: cdn.URL + "/", Lock: lockOf("demo", "1.0", demoWheel, sum),
		Policy: egress.Policy{Deny: []string{"DEMO*"}},
	})
	gr := newGrant(g)
	plan := File{Name: "demo", Version: "1.0", Filename: demoWheel, URL: index.URL + demoFile, SHA256: sum, Source: "index"}
	if err := gr.Allow([]File{plan}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"simple/demo/", "simple/Demo/", "cdn/" + demoWheel, "file/" + sum + "/" + demoWheel, "url/" + url.QueryEscape("https://example.com/"+demoWheel)} {
		status, body := ask(t, gr, path)
		if status != http.StatusForbidden || !strings.Contains(string(body), `the operator denied package "demo"`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if index.count(demoFile)+index.count(demoPage)+cdn.count("/"+demoWheel) != 0 {
		t.Error("something was fetched for a denied package")
	}
}

// TestAGrantsOwnPolicyHoldsOnEveryRoute: also for what another grant has fetched.
func TestAGrantsOwnPolicyHoldsOnEveryRoute(t *testing.T) {
	index, _, sum := demoIndex(t)
	cdn := newSite(t)
	cdn.bytes("/"+demoWheel, wheel(t, "demo", "1.0"))
	g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}, CDN: cdn.URL + "/", Lock: lockOf("demo", "1.0", demoWheel, sum)})
	paths := []string{"simple/demo/", "file/" + sum + "/" + demoWheel, "cdn/" + demoWheel}
	plan := File{Name: "demo", Version: "1.0", Filename: demoWheel, URL: index.URL + demoFile, SHA256: sum, Source: "index"}
	free := newGrant(g)
	fetch := func(gr *Grant, want int, say string) {
		t.Helper()
		for _, path := range paths {
			if status, body := ask(t, gr, path); status != want || !strings.Contains(string(body), say) {
				t.Errorf("%s: %d %s, want %d", path, status, body, want)
			}
		}
	}
	fetch(free, http.StatusOK, "")
	for _, own := range []egress.Policy{{Deny: []string{"demo"}}, {Allow: []string{"six"}}, {Deny: []string{"host:127.0.0.1"}}} {
		gr := g.Grant(g.Addr(), own)
		if err := gr.Allow([]File{plan}); err != nil {
			t.Fatal(err)
		}
		fetch(gr, http.StatusForbidden, "the operator denied")
		if err := gr.Lent(plan); err == nil {
			t.Errorf("%+v: an image of a denied package was lent", own)
		}
	}
	fetch(g.Grant(g.Addr(), egress.Policy{NoFetch: true}), http.StatusOK, "")
	index.json("/simple/other/")
	if status, body := ask(t, g.Grant(g.Addr(), egress.Policy{NoFetch: true}), "simple/other/"); status != http.StatusGatewayTimeout {
		t.Errorf("a page that is not in the cache: %d %s", status, body)
	}
	fetch(free, http.StatusOK, "")
}

func TestMinReleaseAge(t *testing.T) {
	index, _, sum := demoIndex(t)
	now := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	index.json(demoPage,
		file(demoWheel, demoFile, sum, "upload-time", "2026-01-01T00:00:00.123456Z"),
		file("demo-2.0-py3-none-any.whl", demoFile, sum, "upload-time", "2026-01-30T00:00:00Z"),
		file("demo-3.0-py3-none-any.whl", demoFile, sum),
		file("demo-4.0-py3-none-any.whl", demoFile, sum, "upload-time", "yesterday"))
	g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}, Policy: egress.Policy{MinReleaseAge: 7 * 24 * time.Hour}})
	g.now = func() time.Time { return now }
	gr := newGrant(g)
	if p := askPage(t, gr, "demo"); !slices.Equal(p.Versions, []string{"1.0"}) || len(p.Files) != 1 {
		t.Errorf("page: %+v", p)
	}
	if status, _ := ask(t, gr, "file/"+sum+"/demo-2.0-py3-none-any.whl"); status != http.StatusNotFound {
		t.Errorf("a file that is too young, by its guessed URL: %d", status)
	}
	if status, body := ask(t, gr, "url/"+url.QueryEscape("https://example.com/"+demoWheel)); status != http.StatusForbidden {
		t.Errorf("a wheel by URL: %d %s", status, body)
	}
}

func TestSameFileIsFetchedOnce(t *testing.T) {
	index, content, sum := demoIndex(t)
	release := make(chan struct{})
	index.on(demoFile, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		_, _ = w.Write(content)
	})
	index.on(demoPage, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		writePage(w, []map[string]any{file(demoWheel, demoFile, sum)})
	})
	g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}})
	told := make(chan string, 1000)
	var wg sync.WaitGroup
	for range 8 {
		gr := newGrant(g)
		gr.SetProgress(func(stage string, _, _ int64) { told <- stage })
		wg.Go(func() {
			p := askPage(t, gr, "demo")
			if status, body := askURL(t, gr, p.Files[0].URL); status != http.StatusOK || !bytes.Equal(body, content) {
				t.Errorf("file: %d", status)
			}
		})
	}
	close(release)
	wg.Wait()
	if index.count(demoPage) != 1 || index.count(demoFile) != 1 {
		t.Errorf("asked %d times for the page, %d times for the file", index.count(demoPage), index.count(demoFile))
	}
	if len(told) == 0 {
		t.Error("nobody was told of the progress")
	}
}

// A page as hostile as one can be leads nowhere but to what it may.
func TestHostilePages(t *testing.T) {
	outside, private := newTLSSite(t), newTLSSite(t)
	content := wheel(t, "demo", "1.0")
	sum := outside.bytes("/"+demoWheel, content)
	private.bytes("/"+demoWheel, content)
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	index := newSite(t)
	index.bytes("/own/"+demoWheel, content)
	index.bytes("/other/"+demoWheel, append(content, 'x'))
	index.on("/to-private/"+demoWheel, redirect("https://inside.example.com/"+demoWheel))
	index.on("/to-http/"+demoWheel, redirect("http://example.com/"+demoWheel))
	index.on("/to-file/"+demoWheel, redirect("file:///etc/passwd"))
	index.on("/to-metadata/"+demoWheel, redirect("http://169.254.169.254/latest/meta-data/"))
	index.on("/to-public/"+demoWheel, redirect("https://example.com/"+demoWheel))
	index.on("/to-denied/"+demoWheel, redirect("https://denied.example.com/"+demoWheel))
	index.on("/loop/"+demoWheel, redirect("/loop/"+demoWheel))
	index.on("/huge/"+demoWheel, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(int64(maxFile)+1))
	})
	outside.on("/back/"+demoWheel, redirect(index.URL+"/own/"+demoWheel))

	for _, tc := range []struct {
		name, link, sum string
		status          int
		says            string
	}{
		{"own host, though private", "/own/" + demoWheel, sum, 200, ""},
		{"public https host", "https://example.com/" + demoWheel, sum, 200, ""},
		{"redirect to a public https host", "/to-public/" + demoWheel, sum, 200, ""},
		{"no digest", "/own/" + demoWheel, "", 403, "no sha256"},
		{"another digest", "/own/" + demoWheel, sumA, 502, "has sha256 " + sum},
		{"tampered file", "/other/" + demoWheel, sum, 502, "thrown away"},
		{"file URL", "file:///etc/passwd", sum, 403, "only https"},
		{"data URL", "data:text/plain,x", sum, 403, "only https"},
		{"javascript URL", "javascript:alert(1)", sum, 403, "only https"},
		{"not a URL", "http://[::1", sum, 403, "not a URL"},
		{"no host", "https:///x.whl", sum, 403, "only https"},
		{"plain http elsewhere", "http://example.com/" + demoWheel, sum, 403, "only https"},
		{"cloud metadata by http", "http://169.254.169.254/x", sum, 403, "only https"},
		{"private name by https", "https://inside.example.com/" + demoWheel, sum, 403, "private or reserved"},
		{"loopback on another port", strings.Replace(private.URL, "127.0.0.1", "127.0.0.66", 1) + "/" + demoWheel, sum, 403, "private or reserved"},
		{"redirect to a private name", "/to-private/" + demoWheel, sum, 403, "private or reserved"},
		{"redirect to http", "/to-http/" + demoWheel, sum, 403, "only https"},
		{"redirect to a file", "/to-file/" + demoWheel, sum, 403, "only https"},
		{"redirect to cloud metadata", "/to-metadata/" + demoWheel, sum, 403, "only https"},
		{"redirect loop", "/loop/" + demoWheel, sum, 403, "redirects more than"},
		{"denied host", "https://denied.example.com/" + demoWheel, sum, 403, "the operator denied host"},
		{"redirect to a denied host", "/to-denied/" + demoWheel, sum, 403, "the operator denied host"},
		{"larger than the limit", "/huge/" + demoWheel, sum, 403, "more than the 512 MiB"},
		{"absent", "/absent/" + demoWheel, sum, 502, "404"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			index.json(demoPage, file(demoWheel, tc.link, tc.sum))
			g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}, Policy: egress.Policy{Deny: []string{"denied.*"}}})
			pretend(t, g, map[string]*site{"example.com": outside, "denied.example.com": outside, "inside.example.com": nil})
			gr := newGrant(g)
			p := askPage(t, gr, "demo")
			if len(p.Files) != 1 {
				t.Fatalf("page: %+v", p)
			}
			status, body := askURL(t, gr, p.Files[0].URL)
			if status != tc.status || !strings.Contains(string(body), tc.says) {
				t.Errorf("%d %.300s; want %d with %q", status, body, tc.status, tc.says)
			}
			if status == http.StatusOK && !bytes.Equal(body, content) {
				t.Error("another content")
			}
			if status != http.StatusOK && len(gr.Served()) != 0 {
				t.Errorf("served %+v", gr.Served())
			}
		})
	}
	if private.count("/"+demoWheel) != 0 {
		t.Error("the private host was reached")
	}
}

// What a page names is left out when it isn't a file of that project.
func TestPageOfAnotherProject(t *testing.T) {
	index := newSite(t)
	content := wheel(t, "evil", "1.0")
	sum := index.bytes("/evil-1.0-py3-none-any.whl", content)
	index.json("/simple/good/", file("evil-1.0-py3-none-any.whl", "/evil-1.0-py3-none-any.whl", sum),
		file("../../x", "/x", sum), file("good-1.0-py3-none-any.whl\r\nX: y", "/x", sum), file("good-1.0.exe", "/x", sum))
	gr := newGrant(newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}, Policy: egress.Policy{Deny: []string{"evil"}}}))
	if p := askPage(t, gr, "good"); len(p.Files) != 0 {
		t.Errorf("page: %+v", p)
	}
	if status, _ := ask(t, gr, "file/"+sum+"/evil-1.0-py3-none-any.whl"); status != http.StatusNotFound {
		t.Errorf("file: %d", status)
	}
}

func TestOversizedPage(t *testing.T) {
	index := newSite(t)
	index.on(demoPage, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", simpleJSON)
		spaces := bytes.Repeat([]byte(" "), 1<<20)
		for range maxPage>>20 + 1 {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
	})
	gr := newGrant(newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}}))
	if status, body := ask(t, gr, "simple/demo/"); status != http.StatusBadGateway || !strings.Contains(string(body), "larger than") {
		t.Errorf("%d %s", status, body)
	}
}

// The password of an index goes to the index alone, and never to a guest.
func TestIndexPassword(t *testing.T) {
	outside := newTLSSite(t)
	content := wheel(t, "demo", "1.0")
	index := newSite(t)
	sum := digestHex(content)
	outside.on("/"+demoWheel, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("a foreign host got %v", r.Header)
		}
		_, _ = w.Write(content)
	})
	guarded := func(answer http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "me" || password != "s3cret" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			answer(w, r)
		}
	}
	index.on(demoPage, guarded(func(w http.ResponseWriter, _ *http.Request) {
		writePage(w, []map[string]any{
			file(demoWheel, index.URL+demoFile, sum),
			file("demo-2.0-py3-none-any.whl", "/away", sum),
		})
	}))
	index.on(demoFile, guarded(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(content) }))
	index.on("/away", guarded(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://example.com/"+demoWheel, http.StatusFound)
	}))
	configured := strings.Replace(index.URL, "http://", "http://me:s3cret@", 1) + "/simple"
	for _, project := range []string{demoWheel, "demo-2.0-py3-none-any.whl"} {
		// Each with an empty cache, as both have the same content.
		g := newGateway(t, Options{IndexURLs: []string{configured}})
		pretend(t, g, map[string]*site{"example.com": outside})
		gr := newGrant(g)
		p := askPage(t, gr, "demo")
		if status, body := ask(t, gr, "file/"+sum+"/"+project); status != http.StatusOK {
			t.Errorf("%s: %d %s", project, status, body)
		}
		all, err := json.Marshal([]any{p, gr.Served()})
		if err != nil || bytes.Contains(all, []byte("s3cret")) {
			t.Errorf("the password reached a guest or a plan: %s", all)
		}
	}
	if outside.count("/"+demoWheel) != 1 {
		t.Error("the redirect was not followed")
	}
	wrong := newGrant(newGateway(t, Options{IndexURLs: []string{strings.Replace(index.URL, "http://", "http://me:wr0ng@", 1)}}))
	if status, body := ask(t, wrong, "simple/simple/"); status == http.StatusOK || strings.Contains(string(body), "wr0ng") {
		t.Errorf("%d %s", status, body)
	}
}

func TestRegistriesCanBeDeniedAndAllowed(t *testing.T) {
	denied, _, _ := demoIndex(t)
	allowed, _, _ := demoIndex(t)
	indexes := []string{denied.URL + "/simple", strings.Replace(allowed.URL, "127.0.0.1", "localhost", 1) + "/simple"}
	for name, policy := range map[string]egress.Policy{
		"denied":  {Deny: []string{"host:127.0.*"}},
		"allowed": {Allow: []string{"host:localhost"}},
	} {
		t.Run(name, func(t *testing.T) {
			gr := newGrant(newGateway(t, Options{IndexURLs: indexes, Policy: policy}))
			if p := askPage(t, gr, "demo"); len(p.Files) == 0 {
				t.Errorf("the other index was not asked: %+v", p)
			}
			alone := newGrant(newGateway(t, Options{IndexURLs: indexes[:1], Policy: policy}))
			if status, body := ask(t, alone, "simple/demo/"); status != http.StatusForbidden || !strings.Contains(string(body), "the operator denied") {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	if denied.count(demoPage) != 0 {
		t.Error("an index that the operator denied was asked")
	}
}
