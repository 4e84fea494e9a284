package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"rillbox/cache"
	"rillbox/cache/egress"
)

const (
	indexKind   = "index" // of the cache; the key is the page's URL
	freshFor    = 10 * time.Minute
	absentFor   = 30 * time.Second // that "no such project" is believed
	maxPage     = 64 << 20         // bytes
	pageWait    = 90 * time.Second // to fetch one page
	pagesInside = 64 << 20         // bytes of pages kept parsed
)

// errNoProject says that no index has a project.
var errNoProject = errors.New("no package index has it")

// projectPage is a page with its record. It is immutable.
type projectPage struct {
	*page // nil when the index has no such project
	pageRecord
	index *url.URL // the index that it is from
}

// pageRecord is the first line of a page in the cache; the body as the index
// sent it follows.
type pageRecord struct {
	Fetched  time.Time `json:"fetched"`
	Absent   bool      `json:"absent,omitempty"` // the index has no such project
	URL      string    `json:"url"`              // of the page, after redirects
	Type     string    `json:"type,omitempty"`
	ETag     string    `json:"etag,omitempty"`
	Modified string    `json:"modified,omitempty"`
}

// fresh reports whether the page need not be fetched again yet.
func (p *projectPage) fresh(now time.Time) bool {
	keep := freshFor
	if p.Absent {
		keep = absentFor
	}
	age := now.Sub(p.Fetched)
	return age >= 0 && age < keep
}

// entry returns the entry of the page's file f.
func (p *projectPage) entry(f *pageFile) entry {
	e := entry{refused: f.refused, registry: p.index.Hostname(), File: File{
		Name: p.project, Version: f.version, Filename: f.Filename,
		SHA256: f.sha256(), Source: "index", Size: f.Size,
	}}
	_, _, e.source = sourceName(f.Filename)
	if f.link != nil {
		link := *f.link
		link.User = nil
		e.URL = link.String()
		e.link = &link
		// After a redirect to another origin, the page's links don't have the index's trust.
		if page, err := url.Parse(p.URL); err == nil && egress.SameOrigin(page, p.index) {
			e.route.Home = p.index
		}
	}
	return e
}

// project finds the page of a project in the first index that has it. If an index
// fails, the next ones are not tried: they may have another project of that name.
func (gr *Grant) project(ctx context.Context, name string) (*projectPage, error) {
	g := gr.g
	if len(g.indexes) == 0 {
		return nil, &egress.RefusedError{Text: "no package index is configured"}
	}
	var lacking []*projectPage
	var denied error
	for _, index := range g.indexes {
		// An index that the operator denied is skipped.
		if err := gr.policy.CheckPackage(egress.Python, name, index.Hostname()); err != nil {
			denied = err
			continue
		}
		p, err := gr.projectOf(ctx, index, name)
		if err != nil {
			return nil, err
		}
		if page, err := url.Parse(p.URL); err == nil && page.Host != "" { // where another grant may have been led
			if err := gr.policy.CheckLink(page.Hostname()); err != nil {
				return nil, err
			}
		}
		if !p.Absent {
			g.storeAbsent(ctx, name, lacking)
			return p, nil
		}
		lacking = append(lacking, p)
	}
	if denied != nil {
		return nil, denied
	}
	return nil, errNoProject
}

// storeAbsent records, for offline reruns, which indexes don't have a project that a
// later one has. For a project that no index has nothing is stored, or guests could
// fill the cache with invented names.
func (g *Gateway) storeAbsent(ctx context.Context, name string, lacking []*projectPage) {
	for _, p := range lacking {
		key := pageLink(p.index, name).String()
		if record, _, err := g.stored(key); err == nil && record.Absent {
			continue
		}
		if err := g.storePage(ctx, key, p.pageRecord, nil); err != nil {
			g.log.Warn("an index page could not be stored", "page", key, "err", err)
		}
	}
}

// pageLink is the URL of a project's page, without user and password.
func pageLink(index *url.URL, name string) *url.URL {
	link := index.JoinPath(name, "/")
	link.User = nil
	return link
}

// projectOf gets a page from one index, with one request at a time for all of a policy who
// want it.
func (gr *Grant) projectOf(ctx context.Context, index *url.URL, name string) (*projectPage, error) {
	g, link := gr.g, pageLink(index, name)
	flight := g.flights.DoChan(fmt.Sprintf("%s %v %s", link, gr.policy.NoFetch, gr.policy.Key()), func() (page any, err error) {
		g.work.RLock() // it may outlive those who asked
		defer g.work.RUnlock()
		if g.stopped.Err() != nil {
			return nil, context.Canceled
		}
		// No handler is above this to recover: a page that breaks its parser
		// must not end the server.
		defer func() {
			if r := recover(); r != nil {
				g.log.Error("a package index page broke its parser", "page", link.String(), "panic", r, "stack", string(debug.Stack()))
				err = fmt.Errorf("the page of %s on %s can't be read", name, link.Host)
			}
		}()
		ctx, cancel := context.WithTimeoutCause(g.stopped, pageWait, errors.New("no answer in time"))
		defer cancel()
		return gr.refresh(ctx, index, link, name)
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case result := <-flight:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(*projectPage), nil
	}
}

// refresh returns the page from memory or the cache if it is fresh, or if the index
// can't be reached; else from the index.
func (gr *Grant) refresh(ctx context.Context, index, link *url.URL, name string) (*projectPage, error) {
	g, key := gr.g, link.String()
	old := g.pages.get(key)
	if old == nil || !old.fresh(g.now()) {
		if stored := g.storedPage(index, key, name); stored != nil {
			old = stored
			g.pages.put(key, old)
		}
	}
	if old != nil && (old.fresh(g.now()) || gr.noFetch()) {
		return old, nil
	}
	if gr.noFetch() {
		return nil, cache.ErrMiss
	}
	p, err := gr.fetchPage(ctx, index, link, name, old)
	if err != nil {
		if old == nil {
			return nil, err
		}
		g.log.Warn("an index page could not be refreshed, the old one is used", "page", key, "age", g.now().Sub(old.Fetched), "err", err)
		return old, nil
	}
	g.pages.put(key, p)
	return p, nil
}

// fetchPage fetches or revalidates a page and stores it.
func (gr *Grant) fetchPage(ctx context.Context, index, link *url.URL, name string, old *projectPage) (*projectPage, error) {
	g := gr.g
	header := http.Header{"Accept": {acceptPage}}
	if old != nil && old.ETag != "" {
		header.Set("If-None-Match", old.ETag)
	} else if old != nil && old.Modified != "" {
		header.Set("If-Modified-Since", old.Modified)
	}
	resp, body, err := g.network.Get(ctx, link, egress.Route{Home: index, Host: gr.policy.CheckLink}, header, maxPage)
	if _, large := errors.AsType[*egress.TooLargeError](err); large {
		return nil, fmt.Errorf("the page of %s on %s is larger than %d bytes", name, link.Host, maxPage)
	}
	if err != nil {
		return nil, err
	}
	p := &projectPage{index: index, pageRecord: pageRecord{Fetched: g.now(), URL: resp.Request.URL.String()}}
	switch {
	case resp.StatusCode == http.StatusNotModified && old != nil:
		p.page, p.pageRecord = old.page, old.pageRecord
		p.Fetched = g.now()
		if _, body, err = g.stored(link.String()); err != nil {
			return p, nil // trimmed meanwhile; it will be fetched whole next time
		}
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		p.Absent = true
		return p, nil
	case resp.StatusCode == http.StatusOK:
		p.Type, p.ETag, p.Modified = resp.Header.Get("Content-Type"), resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
		if p.page, err = parsePage(name, resp.Request.URL, p.Type, body); err != nil {
			return nil, fmt.Errorf("the page of %s on %s: %w", name, link.Host, err)
		}
	default:
		return nil, &egress.StatusError{Host: link.Host, Code: resp.StatusCode}
	}
	if err := g.storePage(ctx, link.String(), p.pageRecord, body); err != nil {
		g.log.Warn("an index page could not be stored", "page", link.String(), "err", err)
	}
	return p, nil
}

func (g *Gateway) storePage(ctx context.Context, key string, record pageRecord, body []byte) error {
	head, err := json.Marshal(record)
	if err != nil {
		return err
	}
	content := io.MultiReader(bytes.NewReader(append(head, '\n')), bytes.NewReader(body))
	_, err = g.cache.Put(ctx, indexKind, key, content)
	return err
}

// storedPage reads a page from the cache; it is nil if it is missing or unreadable.
func (g *Gateway) storedPage(index *url.URL, key, name string) *projectPage {
	record, body, err := g.stored(key)
	if err != nil {
		if !errors.Is(err, cache.ErrMiss) {
			g.log.Warn("a stored index page is of no use", "page", key, "err", err)
		}
		return nil
	}
	p := &projectPage{index: index, pageRecord: record}
	if p.Absent {
		return p
	}
	base, err := url.Parse(record.URL)
	if err == nil {
		p.page, err = parsePage(name, base, record.Type, body)
	}
	if err != nil {
		g.log.Warn("a stored index page is of no use", "page", key, "err", err)
		return nil
	}
	return p
}

func (g *Gateway) stored(key string) (record pageRecord, body []byte, err error) {
	path, err := g.cache.Get(indexKind, key)
	if err != nil {
		return record, nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return record, nil, err
	}
	head, body, _ := bytes.Cut(text, []byte("\n"))
	err = json.Unmarshal(head, &record)
	return record, body, err
}

// pageCache keeps parsed pages, as parsing a large one takes 100 ms.
type pageCache struct {
	mu    sync.Mutex
	pages map[string]*projectPage // by URL
	size  int64
}

func (c *pageCache) get(key string) *projectPage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages[key]
}

// put drops all pages when they are too many: they are in the cache on disk.
func (c *pageCache) put(key string, p *projectPage) {
	size := int64(1 << 10) // about, in memory
	if p.page != nil {
		size += p.size
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size += size; c.pages == nil || c.size > pagesInside {
		c.pages, c.size = map[string]*projectPage{}, size
	}
	c.pages[key] = p
}
