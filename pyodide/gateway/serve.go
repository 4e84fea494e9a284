package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"rillbox/cache"
	"rillbox/cache/egress"
)

const (
	maxURL    = 2048            // bytes of a wheel's URL
	writeWait = 5 * time.Minute // for a whole file: a guest reads when it does not compute
)

// serve answers a request of a child.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	g.work.RLock()
	defer g.work.RUnlock()
	if g.stopped.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if err := g.checkRequest(r); err != nil {
		g.fail(w, r, err)
		return
	}
	token, path, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	gr := g.lookup(token)
	if gr == nil {
		g.fail(w, r, errNoPath)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(gr.closed, cancel)()
	leave, err := gr.enter(ctx)
	if err != nil {
		g.fail(w, r, err)
		return
	}
	defer leave()
	if err := g.route(w, r.WithContext(ctx), gr, path); err != nil {
		if egress.IsLocal(err) {
			gr.broke(err)
		}
		g.fail(w, r, err)
	}
}

// checkRequest refuses what no package installer sends: requests of web pages in a
// browser on this machine, and attempts to break the server.
func (g *Gateway) checkRequest(r *http.Request) error {
	here, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return answerf(http.StatusMethodNotAllowed, "only GET and HEAD are served")
	case here == nil || r.Host != here.String(), !strings.HasPrefix(r.RequestURI, "/"):
		return answerf(http.StatusMisdirectedRequest, "this is not the host that was asked for")
	case r.Header.Get("Origin") != "", r.Header.Get("Sec-Fetch-Site") != "":
		return answerf(http.StatusForbidden, "web pages are not served")
	case r.ContentLength != 0, len(r.TransferEncoding) > 0, r.Header.Get("Upgrade") != "":
		return answerf(http.StatusBadRequest, "requests have no body and no upgrade here")
	}
	return nil
}

// route serves path, still percent-encoded, below a grant's own.
func (g *Gateway) route(w http.ResponseWriter, r *http.Request, gr *Grant, path string) error {
	route, rest, _ := strings.Cut(path, "/")
	switch route {
	case "url":
		return g.serveURL(w, r, gr, rest)
	case "simple":
		rest = strings.TrimSuffix(rest, "/")
	}
	switch names := segments(rest); {
	case route == "simple" && len(names) == 1:
		return g.serveProject(w, r, gr, names[0])
	case route == "file" && len(names) == 2:
		return g.serveFile(w, r, gr, names[0], names[1])
	case route == "built" && len(names) == 2:
		return g.serveBuilt(w, r, gr, names[0], names[1])
	case route == "cdn" && len(names) == 1:
		e, ok := g.locked[names[0]]
		if !ok {
			return answerf(http.StatusNotFound, "Pyodide's lock file names no file %q", names[0])
		}
		return g.serveEntry(w, r, gr, e)
	}
	return errNoPath
}

// segments decodes the parts of a path, once. There are none when a part is empty or
// has a separator after that.
func segments(path string) []string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		decoded, err := url.PathUnescape(part)
		if err != nil || decoded == "" || decoded == "." || decoded == ".." || strings.ContainsAny(decoded, "/\\\x00") {
			return nil
		}
		parts[i] = decoded
	}
	return parts
}

// serveProject serves an index page.
func (g *Gateway) serveProject(w http.ResponseWriter, r *http.Request, gr *Grant, name string) error {
	if !isProjectName(name) {
		return answerf(http.StatusNotFound, "%.200q is not the name of a package", name)
	}
	name = egress.NormalizePython(name)
	if err := gr.policy.CheckPackage(egress.Python, name, ""); err != nil {
		return err
	}
	// A guest that hangs up keeps its slot until the page is there, so that it can't
	// cause more requests at a time than it has slots.
	p, err := gr.project(gr.closed, name)
	if err != nil {
		return gr.explain("the index page of "+name, err)
	}
	if p, err = gr.demand.narrow(p); err != nil {
		return err
	}
	gr.remember(p)
	body, err := p.render(gr.policy, g.now(), func(sha256, filename string) string {
		return gr.BaseURL() + "file/" + sha256 + "/" + url.PathEscape(filename)
	})
	if err != nil {
		return err
	}
	return send(w, r, simpleJSON, int64(len(body)), strings.NewReader(string(body)))
}

// serveFile serves a file that a page or plan named, or its metadata.
func (g *Gateway) serveFile(w http.ResponseWriter, r *http.Request, gr *Grant, sha256, filename string) error {
	wheel, isMetadata := strings.CutSuffix(filename, ".metadata")
	e, metadata, ok := gr.named(sha256, wheel)
	if !ok || (isMetadata && metadata == "") {
		return answerf(http.StatusNotFound, "no index page that was asked for names %.300q with this sha256", filename)
	}
	if e.source {
		return answerf(http.StatusForbidden, "%s is refused: it is a source archive, and only wheels can be installed", filename)
	}
	if !isMetadata {
		return g.serveEntry(w, r, gr, e)
	}
	link := *e.link
	link.Path += ".metadata"
	if link.RawPath != "" {
		link.RawPath += ".metadata"
	}
	e.link = &link
	e.Filename, e.SHA256, e.Size = filename, metadata, 0
	path, _, err := g.checkedBlob(r.Context(), gr, metadataKind, maxMetadata, e)
	if err != nil {
		return err
	}
	return sendFile(w, r, path, func(int64) {})
}

// serveURL serves a wheel by its URL, which is percent-encoded as a whole.
func (g *Gateway) serveURL(w http.ResponseWriter, r *http.Request, gr *Grant, escaped string) error {
	e, err := gr.wheelAt(escaped)
	if err != nil {
		return err
	}
	if e.SHA256 != "" {
		return g.serveEntry(w, r, gr, e)
	}
	path, hit, err := g.urlBlob(r.Context(), gr, e)
	if err != nil {
		return gr.explain(e.Filename, err)
	}
	e.SHA256, e.Cached = filepath.Base(path), hit // the cache names files by their digest
	if err := gr.demand.check(e.File); err != nil {
		return err
	}
	return g.sendNoted(w, r, gr, e, path)
}

// wheelAt reads and judges a guest's URL.
func (gr *Grant) wheelAt(escaped string) (entry, error) {
	text, err := url.PathUnescape(escaped)
	if err != nil || len(text) > maxURL {
		return entry{}, answerf(http.StatusBadRequest, "the URL is malformed or too long")
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return entry{}, answerf(http.StatusForbidden, "%.300q is not an https URL without user and password", text)
	}
	filename := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	name, version, ok := wheelName(filename)
	if !ok {
		return entry{}, answerf(http.StatusForbidden, "%.300q does not end in the file name of a wheel", text)
	}
	if err := errors.Join(gr.policy.CheckPackage(egress.Python, name, u.Hostname()), gr.policy.CheckHost(u.Hostname())); err != nil {
		return entry{}, err
	}
	if gr.policy.MinReleaseAge > 0 {
		return entry{}, answerf(http.StatusForbidden, "the operator asks for a minimum release age, which a wheel by URL such as %s does not tell; use a release of the index", filename)
	}
	sum := ""
	for part := range strings.SplitSeq(u.Fragment, "&") {
		if value, ok := strings.CutPrefix(part, "sha256="); ok {
			if sum = strings.ToLower(value); !isSHA256(sum) {
				return entry{}, answerf(http.StatusForbidden, "%.300q does not end in a sha256", text)
			}
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return entry{
		File: File{Name: name, Version: version, Filename: filename, URL: u.String(), SHA256: sum, Source: "url"},
		link: u, route: egress.Route{Host: gr.policy.CheckHost}, registry: u.Hostname(),
	}, nil
}

// serveEntry serves a file that was named with its digest.
func (g *Gateway) serveEntry(w http.ResponseWriter, r *http.Request, gr *Grant, e entry) error {
	if err := gr.demand.check(e.File); err != nil {
		return err
	}
	path, hit, err := g.checkedBlob(r.Context(), gr, WheelKind, maxFile, e)
	if err != nil {
		return err
	}
	e.Cached = hit && !e.fresh
	return g.sendNoted(w, r, gr, e, path)
}

// checkedBlob is blob after the checks of the policy and the file's page. Its errors are
// for the guest.
func (g *Gateway) checkedBlob(ctx context.Context, gr *Grant, kind string, limit int64, e entry) (path string, hit bool, err error) {
	if err := gr.check(e); err != nil {
		return "", false, err
	}
	if e.refused != "" {
		return "", false, answerf(http.StatusForbidden, "%s is refused: %s", e.Filename, e.refused)
	}
	path, hit, err = g.blob(ctx, gr, kind, limit, e)
	if errors.Is(err, cache.ErrMiss) && e.Source == Built {
		return "", false, answerf(http.StatusNotFound, "%s was built of a source, and is no longer in the cache: run the program again", e.Filename)
	}
	if err != nil {
		return "", false, gr.explain(e.Filename, err)
	}
	return path, hit, nil
}

// sendNoted sends a package's file and records it for Served.
func (g *Gateway) sendNoted(w http.ResponseWriter, r *http.Request, gr *Grant, e entry, path string) error {
	return sendFile(w, r, path, func(size int64) {
		if e.Size = size; r.Method == http.MethodGet {
			gr.note(e.File)
		}
	})
}

// sendFile sends a file, after calling found with its size.
func sendFile(w http.ResponseWriter, r *http.Request, path string, found func(size int64)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	found(st.Size())
	return send(w, r, "application/octet-stream", st.Size(), f)
}

// send sends all of a body: ranges and conditions of the request are ignored. The
// connection of a guest that has not read it after writeWait is closed.
func send(w http.ResponseWriter, r *http.Request, contentType string, size int64, body io.Reader) error {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(writeWait))
	defer context.AfterFunc(r.Context(), func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })()
	if _, err := io.Copy(w, body); err != nil {
		panic(http.ErrAbortHandler) // headers are out: only the connection can tell
	}
	_ = control.SetWriteDeadline(time.Time{})
	return nil
}
