package gateway

import (
	"archive/zip"
	"bytes"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"rillbox/cache"
)

// machineIndex is the index that this machine's pip asks.
func machineIndex(t *testing.T) []string {
	t.Helper()
	urls, err := PipIndexURLs()
	if err != nil {
		t.Fatal(err)
	}
	if len(urls) > 0 {
		return urls
	}
	out, err := exec.Command("python3", "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)").Output()
	if err != nil {
		missing(t, "pip is not configured, and does not tell its own index: %v", err)
	}
	return []string{strings.TrimSpace(string(out))}
}

// missing skips a test for what the machine lacks, and fails it under CI.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// A real index, a pure wheel and one for WebAssembly, and both again offline.
func TestRealIndex(t *testing.T) {
	indexes, dir := machineIndex(t), t.TempDir()
	for _, o := range []cache.Options{{}, {Offline: true}} {
		g := newGateway(t, Options{Cache: openCache(t, dir, o), IndexURLs: indexes})
		gr := newGrant(g)
		for _, want := range []struct{ project, filename string }{
			{"six", "six-1.17.0-py2.py3-none-any.whl"},
			{"msgpack", "pyemscripten"},
		} {
			start := time.Now()
			status, body := ask(t, gr, "simple/"+want.project+"/")
			if status == http.StatusGatewayTimeout && !o.Offline {
				missing(t, "needs the network: %s", body)
			}
			link, described := "", false
			for _, f := range askPage(t, gr, want.project).Files {
				if strings.Contains(f.Filename, want.filename) {
					link, described = f.URL, f.CoreMetadata != nil // mirrors often don't tell of it
				}
			}
			if link == "" {
				t.Fatalf("the page of %s names no %s", want.project, want.filename)
			}
			paged := time.Now()
			status, body = askURL(t, gr, link)
			if status != http.StatusOK {
				t.Fatalf("%s: %d %s", link, status, body)
			}
			if _, err := zip.NewReader(bytes.NewReader(body), int64(len(body))); err != nil {
				t.Errorf("%s: %v", link, err)
			}
			t.Logf("offline %v, %s: page %v, file %v", o.Offline, want.project, paged.Sub(start), time.Since(paged))
			status, body = askURL(t, gr, link+".metadata")
			if described && (status != http.StatusOK || !bytes.Contains(body, []byte("Metadata-Version"))) {
				t.Errorf("metadata of %s: %d %.100s", want.project, status, body)
			}
		}
		for _, f := range gr.Served() {
			if f.Cached != o.Offline {
				t.Errorf("offline %v, cached %v: %+v", o.Offline, f.Cached, f)
			}
			byURL := newGrant(g)
			status, body := ask(t, byURL, "url/"+url.QueryEscape(f.URL))
			if got := byURL.Served(); status != http.StatusOK || len(got) != 1 || got[0].SHA256 != f.SHA256 {
				t.Errorf("offline %v, by URL: %d %.200q, %+v", o.Offline, status, body, got)
			}
		}
	}
}

// A guest asks by itself for a private address, in many spellings, with the
// real rules of what is private.
func TestRealAddresses(t *testing.T) {
	gr := newGrant(newGateway(t, Options{}))
	for _, host := range []string{"127.0.0.1", "[::1]", "10.0.0.1", "169.254.169.254", "192.168.0.1", "[::ffff:169.254.169.254]", "[fd00::1]", "[fe80::1%25lo]", "0.0.0.0", "localhost"} {
		status, body := ask(t, gr, "url/https:%2F%2F"+strings.ReplaceAll(host, "%", "%25")+"%2F"+demoWheel)
		if status != http.StatusForbidden || !strings.Contains(string(body), "private or reserved") {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
}
