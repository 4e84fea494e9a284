package page

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, path string, headers ...string) *http.Response {
	t.Helper()
	mux := http.NewServeMux()
	for path, file := range Files(`/other"<`) {
		mux.Handle("GET "+path, file)
	}
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w.Result()
}

func textOf(t *testing.T, r *http.Response) string {
	t.Helper()
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		packed, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		body = packed
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFilesAreServedWithAPolicy(t *testing.T) {
	for path := range Files("/mcp") {
		path = strings.TrimSuffix(path, "{$}")
		t.Run(path, func(t *testing.T) {
			plain := get(t, path)
			h := plain.Header
			policy := h.Get("Content-Security-Policy")
			if plain.StatusCode != 200 || !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self'; ") ||
				strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
				t.Errorf("%d, %s", plain.StatusCode, policy)
			}
			if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-cache" {
				t.Errorf("%v", h)
			}
			packed := get(t, path, "Accept-Encoding", "br, gzip")
			if packed.Header.Get("Content-Encoding") != "gzip" || textOf(t, packed) != textOf(t, plain) {
				t.Error("what is packed is something else")
			}
			if again := get(t, path, "If-None-Match", h.Get("ETag")); again.StatusCode != http.StatusNotModified || textOf(t, again) != "" {
				t.Errorf("the same file again: %d", again.StatusCode)
			}
			if other := get(t, path, "If-None-Match", `"x"`); other.StatusCode != 200 {
				t.Errorf("another file: %d", other.StatusCode)
			}
		})
	}
}

// TestNothingComesFromElsewhere: no file names another host, but for names of XML's
// vocabularies, which nobody fetches, and the texts of licences.
func TestNothingComesFromElsewhere(t *testing.T) {
	address := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9.-]+\.[a-z]{2,}`)
	for path := range Files("/mcp") {
		if path == "/page/notice.txt" {
			continue
		}
		for _, found := range address.FindAllString(textOf(t, get(t, strings.TrimSuffix(path, "{$}"))), -1) {
			if found != "http://www.w3.org" {
				t.Errorf("%s names %s", path, found)
			}
		}
	}
}

func TestTheDocumentHasNothingInline(t *testing.T) {
	text := textOf(t, get(t, "/"))
	if regexp.MustCompile(`(?i)<style| style=| on[a-z]+=|<script[^>]*>[^<]|javascript:`).MatchString(text) {
		t.Error("the page's policy forbids inline scripts and styles")
	}
	if !strings.Contains(text, `data-endpoint="/other&#34;&lt;"`) {
		t.Error("the endpoint is not the server's")
	}
}
