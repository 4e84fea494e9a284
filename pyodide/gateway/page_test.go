package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"rillbox/cache/egress"
)

func mustURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

const (
	sumA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	sumB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

const htmlPage = `<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.1"><base href="/files/x/"></head><body>
<a href="../demo-1.0-py3-none-any.whl#sha256=` + sumA + `" data-requires-python="&gt;=3.8" data-core-metadata="sha256=` + sumB + `">demo-1.0</a><br>
<A HREF='https://cdn.example.com/Demo-2.0%2Bcpu-py3-none-any.whl#sha256=` + sumB + `' data-yanked="bad build" data-upload-time="2026-01-01T00:00:00Z">demo</A>
<a href="demo-3.0-py3-none-any.whl#md5=0123" data-yanked data-core-metadata="true">no digest</a>
<a href="demo-1.0.tar.gz#sha256=` + sumA + `">source</a>
<a href="demo-1.0-2.tar.gz#sha256=` + sumA + `">source of an unclear version</a>
<a href="other-1.0-py3-none-any.whl#sha256=` + sumA + `">another project</a>
<a>no link</a><a href="%zz">bad</a><a href="">empty</a><!-- <a href="demo-9-py3-none-any.whl"> -->
</body></html>`

func TestHTMLPage(t *testing.T) {
	p, err := parsePage("demo", mustURL(t, "https://index.example.com/simple/demo/"), "text/html; charset=utf-8", []byte(htmlPage))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range p.files {
		link := "-"
		if f.link != nil {
			link = f.link.String()
		}
		got = append(got, strings.Join([]string{f.Filename, f.version, link, f.sha256(), f.RequiresPython, string(f.Yanked), f.CoreMetadata["sha256"], f.UploadTime}, " "))
	}
	want := []string{
		"demo-1.0-py3-none-any.whl 1.0 https://index.example.com/files/demo-1.0-py3-none-any.whl " + sumA + " >=3.8  " + sumB + " ",
		"Demo-2.0+cpu-py3-none-any.whl 2.0+cpu https://cdn.example.com/Demo-2.0%2Bcpu-py3-none-any.whl " + sumB + `  "bad build"  2026-01-01T00:00:00Z`,
		"demo-3.0-py3-none-any.whl 3.0 https://index.example.com/files/x/demo-3.0-py3-none-any.whl   true  ",
		"demo-1.0.tar.gz 1.0 https://index.example.com/files/x/demo-1.0.tar.gz " + sumA + "    ",
		"demo-1.0-2.tar.gz  - " + sumA + "    ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for filename, why := range map[string]string{"demo-3.0-py3-none-any.whl": "no sha256", "demo-1.0-2.tar.gz": "which version", "demo-1.0.tar.gz": "", "demo-1.0-py3-none-any.whl": ""} {
		if f := p.files[p.byName[filename]]; (why == "") != (f.refused == "") || !strings.Contains(f.refused, why) {
			t.Errorf("%s is refused for %q, want %q", filename, f.refused, why)
		}
	}
}

func TestPageErrors(t *testing.T) {
	for name, tc := range map[string]struct{ contentType, body, want string }{
		"plain text":       {"text/plain", "hello", `content type is "text/plain"`},
		"no type, no page": {"", "hello", `content type is ""`},
		"broken JSON":      {simpleJSON, `{"files":[`, "parse JSON"},
		"another JSON":     {simpleJSON, `{"meta":{"api-version":"1.0"},"projects":[]}`, "no list of files"},
		"another version":  {simpleJSON, `{"meta":{"api-version":"2.0"},"files":[]}`, "version"},
		"deep nesting":     {simpleJSON, `{"files":` + strings.Repeat("[", 20000), "parse JSON"},
		"wrong types":      {simpleJSON, `{"files":[{"filename":{"a":1}}]}`, "parse JSON"},
		"null":             {simpleJSON, `null`, "no list of files"},
	} {
		if _, err := parsePage("demo", mustURL(t, "https://i.example/"), tc.contentType, []byte(tc.body)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// checkPage is what holds for every page, whoever wrote it.
func checkPage(t *testing.T, p *page) {
	for _, f := range p.files {
		if !isFilename(f.Filename) {
			t.Errorf("file name %q", f.Filename)
		}
		if f.refused != "" {
			continue
		}
		project, _, ok := wheelName(f.Filename)
		if !ok {
			project, _, ok = sourceName(f.Filename)
		}
		if !ok || project != p.project {
			t.Errorf("%q is served for %s", f.Filename, p.project)
		}
		if !isSHA256(f.sha256()) {
			t.Errorf("%s is served without a digest: %v", f.Filename, f.Hashes)
		}
		if f.link == nil || (f.link.Scheme != "https" && f.link.Scheme != "http") || f.link.Host == "" {
			t.Errorf("%s leads to %v", f.Filename, f.link)
		}
	}
	body, err := p.render(egress.Policy{}, time.Now(), func(sum, name string) string { return "http://gateway/" + sum + "/" + name })
	if err != nil || !json.Valid(body) {
		t.Errorf("render: %v, %s", err, body)
	}
	var served servedPage
	if err := json.Unmarshal(body, &served); err != nil {
		t.Errorf("render: %v", err)
	}
	for _, f := range served.Files {
		if !strings.HasPrefix(f.URL, "http://gateway/") {
			t.Errorf("%s leads a guest to %s", f.Filename, f.URL)
		}
	}
}

func FuzzJSONPage(f *testing.F) {
	f.Add([]byte(`{"meta":{"api-version":"1.1"},"name":"demo","versions":["1.0"],"files":[{"filename":"demo-1.0-py3-none-any.whl","url":"../demo-1.0-py3-none-any.whl","hashes":{"sha256":"` + sumA + `"},"yanked":"x","size":3,"upload-time":"2024-01-01T00:00:00.1Z","core-metadata":{"sha256":"` + sumB + `"},"requires-python":null}]}`))
	f.Add([]byte(`{"files":[{"filename":"demo-1-py3-none-any.whl","url":"file:///etc/passwd","yanked":false,"core-metadata":true}]}`))
	f.Add([]byte(`{"files":[{"filename":"../demo-1-py3-none-any.whl","url":"http://169.254.169.254/","size":-1}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if p, err := parsePage("demo", mustURL(t, "https://i.example/simple/demo/"), simpleJSON, body); err == nil {
			checkPage(t, p)
		}
	})
}

func FuzzHTMLPage(f *testing.F) {
	f.Add([]byte(htmlPage))
	f.Add([]byte(`<base href="javascript:x"><a href="demo-1-py3-none-any.whl#sha256=` + sumA + `">`))
	f.Add([]byte(`<a href="//169.254.169.254/demo-1-py3-none-any.whl#sha256=` + sumA + `" data-yanked="&quot;\u2028&#0;">`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if p, err := parsePage("demo", mustURL(t, "https://i.example/simple/demo/"), "text/html", body); err == nil {
			checkPage(t, p)
		}
	})
}

// TestWhatIsNoPageIsNotKept: what a network's sign-in page, a broken proxy or an
// empty answer is taken for is neither a page nor its absence, is said, and is asked
// for again.
func TestWhatIsNoPageIsNotKept(t *testing.T) {
	for name, answer := range map[string]struct{ media, body, want string }{
		"a sign-in page": {"text/html", "<!DOCTYPE html><html><head><title>Welcome to Hotel WiFi</title></head><body><a href=\"/login\">Log in</a><a href=\"/guide.zip\">help</a></body></html>", "Welcome to Hotel WiFi"},
		"empty HTML":     {"text/html", "", "not a page of a package index"},
		"empty":          {"", "", "content type"},
		"empty JSON":     {simpleJSON, "", "parse JSON"},
		"garbage":        {"text/html", "\x00\x01\xfe garbage", "garbage"},
		"other JSON":     {"application/json", `{"error": "sign in first"}`, "sign in first"},
		"nothing's JSON": {"application/json", `{"files": []}`, "does not say that it is a page"},
	} {
		t.Run(name, func(t *testing.T) {
			index, _, _ := demoIndex(t)
			index.mu.Lock()
			good := index.answers[demoPage]
			index.mu.Unlock()
			index.on(demoPage, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{answer.media}
				_, _ = io.WriteString(w, answer.body)
			})
			g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}})
			status, body := ask(t, newGrant(g), "simple/demo/")
			if status == http.StatusOK || !strings.Contains(string(body), answer.want) {
				t.Errorf("%d %s; want %q in it", status, body, answer.want)
			}
			index.on(demoPage, good)
			if p := askPage(t, newGrant(g), "demo"); len(p.Files) == 0 {
				t.Error("the next time the page has no files")
			}
		})
	}
	for name, body := range map[string]string{
		"old":  "<html><head><title>Links for demo</title></head><body><h1>Links for demo</h1></body></html>",
		"new":  `<html><head><meta name="pypi:repository-version" content="1.0"></head></html>`,
		"eggs": `<a href="Demo-1.0-py2.7.egg">Demo-1.0-py2.7.egg</a>`,
	} {
		if p, err := parsePage("demo", mustURL(t, "https://i.example/simple/demo/"), "text/html", []byte(body)); err != nil || len(p.files) > 0 {
			t.Errorf("a page without files, %s: %+v %v", name, p, err)
		}
	}
}
