// Package page is the playground: a page that writes programs, runs them through the MCP
// endpoint that it is served beside, and shows the server's status. Requests for its
// files become files of the binary. All it needs comes from the same server, and the
// policy that it is sent with allows nothing else.
//
// Its program is in src; scripts/page makes assets/page.js of it.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"html"
	"net/http"
	"strings"
)

//go:embed assets/index.html
var index string

//go:embed assets/page.js
var script string

//go:embed assets/page.css
var style string

//go:embed assets/frame.css
var frameStyle string

//go:embed assets/icon.svg
var icon string

//go:embed assets/notice.txt
var notice string

// policy is what the page may do. A program's HTML is in a frame of the page's own
// making, which has the policy too, and no right to run scripts. Pictures are data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Files are the page's, by their paths. They call MCP at an endpoint, such as /mcp.
func Files(endpoint string) map[string]http.Handler {
	document := strings.Replace(index, `data-endpoint="/mcp"`, `data-endpoint="`+html.EscapeString(endpoint)+`"`, 1)
	return map[string]http.Handler{
		"/{$}":             newFile("text/html", document),
		"/page/page.js":    newFile("text/javascript", script),
		"/page/page.css":   newFile("text/css", style),
		"/page/frame.css":  newFile("text/css", frameStyle),
		"/page/icon.svg":   newFile("image/svg+xml", icon),
		"/page/notice.txt": newFile("text/plain", notice),
	}
}

// file is one file of the page's.
type file struct {
	kind, text, tag string
	packed          []byte // with gzip
}

func newFile(kind, text string) *file {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is one that there is
	_, _ = w.Write([]byte(text))                               // into memory
	_ = w.Close()
	return &file{kind, text, fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(text))), packed.Bytes()}
}

func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", f.kind+"; charset=utf-8")
	h.Set("Cache-Control", "no-cache") // a new server has a new page; what is not new is not sent again
	h.Set("ETag", f.tag)
	h.Set("Vary", "Accept-Encoding")
	switch {
	case strings.Contains(r.Header.Get("If-None-Match"), f.tag):
		w.WriteHeader(http.StatusNotModified)
	case strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"):
		h.Set("Content-Encoding", "gzip")
		_, _ = w.Write(f.packed) // who has gone needs no answer
	default:
		_, _ = w.Write([]byte(f.text))
	}
}
