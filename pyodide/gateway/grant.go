package gateway

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"rillbox/cache/egress"
)

const (
	atOnce    = 16  // requests of one grant that are served at once
	queued    = 512 // and that wait; more are refused
	burst     = 400 // requests of one grant, in a moment
	perSecond = 50  // and after that
	keptPages = 500 // index pages whose links work, the latest
	keptBytes = 128 << 20
)

// File is one file that a guest got, or that an install plan names.
type File struct {
	Name     string `json:"name"` // project, normalised; for Source "pyodide" the lock file's name
	Version  string `json:"version"`
	Filename string `json:"filename"`
	URL      string `json:"url"` // where it, or what it was built of, comes from, without user and password
	SHA256   string `json:"sha256"`
	Source   string `json:"source"` // "pyodide" (its CDN), "index", "url" or "built"
	Cached   bool   `json:"cached"` // it did not have to be fetched
	Size     int64  `json:"size"`   // bytes; 0 in a plan when unknown
}

// Grant is one child's access to the gateway. It is safe for concurrent use.
type Grant struct {
	g       *Gateway
	token   string
	address string
	policy  egress.Policy
	closed  context.Context
	close   context.CancelFunc

	demand       *demand // nil without a lock file
	queue, slots chan struct{}
	turn         chan struct{} // holds one token: a build's
	rate         *rate.Limiter

	progressMu sync.Mutex // held while progress runs
	progress   func(stage string, done, total int64)

	mu        sync.Mutex
	pages     map[string]*projectPage // by project
	pageOrder []string                // of pages, oldest first
	pageBytes int64
	plan      map[fileKey]entry
	served    []File
	broken    error
	building  context.Context // while sources are built for the guest; nil before
}

type fileKey struct{ sha256, filename string }

// entry is a file that may be served, and where to fetch it.
type entry struct {
	File
	link     *url.URL
	route    egress.Route
	registry string // the host of its index or CDN; empty for those of plans
	refused  string // why it is not served after all
	source   bool   // it is a source archive, of which a wheel can be built
	fresh    bool   // it was built for this grant
}

// BaseURL is the URL of the grant; it ends in "/".
func (gr *Grant) BaseURL() string { return "http://" + gr.address + "/" + gr.token + "/" }

// Close revokes the grant and cancels its requests.
func (gr *Grant) Close() {
	gr.g.grants.Delete(gr.token)
	gr.close()
	gr.SetProgress(nil)
}

// SetProgress sets the function that is called with the progress of downloads that
// the guest waits for: a stage such as "fetching numpy 2.4.6", and bytes (total is 0
// when unknown). It is called from one goroutine at a time, and not after SetProgress
// or Close has returned; it must call neither.
func (gr *Grant) SetProgress(progress func(stage string, done, total int64)) {
	gr.progressMu.Lock()
	defer gr.progressMu.Unlock()
	gr.progress = progress
}

func (gr *Grant) tell(stage string, done, total int64) {
	gr.progressMu.Lock()
	defer gr.progressMu.Unlock()
	if gr.progress != nil {
		gr.progress(stage, done, total)
	}
}

// Broken returns the first fault of this machine, such as a full disk, that kept a file
// from being served.
func (gr *Grant) Broken() error {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	return gr.broken
}

func (gr *Grant) broke(err error) {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	gr.broken = cmp.Or(gr.broken, err)
}

// Served lists the files that the guest got, in the order in which it first got them.
func (gr *Grant) Served() []File {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	return slices.Clone(gr.served)
}

func (gr *Grant) note(f File) {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	same := func(o File) bool { return o.SHA256 == f.SHA256 && o.Filename == f.Filename }
	if !slices.ContainsFunc(gr.served, same) {
		gr.served = append(gr.served, f)
	}
}

// Allow lets the guest have the files of an install plan below file/, as if an
// index page had named them. The plan must be trusted; the policy is checked again
// when a file is served. If a file is malformed, none is allowed.
func (gr *Grant) Allow(files []File) error {
	plan := make(map[fileKey]entry, len(files))
	for _, f := range files {
		e, err := gr.planned(f)
		if err != nil {
			return fmt.Errorf("install plan: %w", err)
		}
		plan[fileKey{f.SHA256, f.Filename}] = e
	}
	gr.mu.Lock()
	defer gr.mu.Unlock()
	for key, e := range plan {
		gr.plan[key] = e
	}
	return nil
}

// Lent records that the guest got a file of an install plan from the cache without
// the gateway. It fails if the policy denies the file.
func (gr *Grant) Lent(f File) error {
	e, err := gr.planned(f)
	if err != nil {
		return fmt.Errorf("install plan: %w", err)
	}
	if err := gr.check(e); err != nil {
		return err
	}
	e.Cached = true
	gr.note(e.File)
	return nil
}

// check says whether the policy allows a file: also one in the cache, whoever fetched it.
func (gr *Grant) check(e entry) error {
	err := gr.policy.CheckPackage(egress.Python, e.Name, e.registry)
	if err == nil && e.link != nil && !gr.g.isMirrored(e) {
		err = gr.policy.CheckLink(e.link.Hostname())
	}
	return err
}

// Check says whether what a plan says of a file is well formed.
func (f File) Check() error {
	if !isFilename(f.Filename) || !isSHA256(f.SHA256) || !isProjectName(f.Name) {
		return fmt.Errorf("%.300q with sha256 %.100q of package %.200q is malformed", f.Filename, f.SHA256, f.Name)
	}
	if u, err := url.Parse(f.URL); err != nil || u.Host == "" {
		return fmt.Errorf("the URL of %s is malformed", f.Filename)
	}
	return nil
}

// planned returns the entry of a plan's file. It may be at an index or the CDN.
func (gr *Grant) planned(f File) (entry, error) {
	if err := f.Check(); err != nil {
		return entry{}, err
	}
	u, err := url.Parse(f.URL)
	if err != nil {
		return entry{}, err
	}
	u.User = nil
	f.URL = u.String()
	var route egress.Route
	for _, home := range append(slices.Clone(gr.g.indexes), gr.g.cdn) {
		if egress.SameOrigin(u, home) && f.Source != "url" {
			route.Home = home
		}
	}
	if f.Source == "url" {
		route.Host = gr.policy.CheckHost
	}
	return entry{File: f, link: u, route: route}, nil
}

// remember makes the links of a page valid, and drops the oldest pages when there
// are too many.
func (gr *Grant) remember(p *projectPage) {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	if old, ok := gr.pages[p.project]; ok {
		gr.pageBytes += p.size - old.size
		gr.pages[p.project] = p
		return
	}
	gr.pages[p.project] = p
	gr.pageOrder = append(gr.pageOrder, p.project)
	gr.pageBytes += p.size
	for len(gr.pageOrder) > 1 && (len(gr.pageOrder) > keptPages || gr.pageBytes > keptBytes) {
		oldest := gr.pageOrder[0]
		gr.pageBytes -= gr.pages[oldest].size
		delete(gr.pages, oldest)
		gr.pageOrder = gr.pageOrder[1:]
	}
}

// named returns the entry of a file that a page or plan of this grant names.
func (gr *Grant) named(sha256, filename string) (e entry, metadata string, ok bool) {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	if e, ok := gr.plan[fileKey{sha256, filename}]; ok {
		return e, "", true
	}
	project, _, ok := wheelName(filename)
	if !ok {
		project, _, _ = sourceName(filename)
	}
	p := gr.pages[project]
	if p == nil {
		return entry{}, "", false
	}
	f := p.find(sha256, filename)
	if f == nil || !f.visible(gr.policy, gr.g.now()) {
		return entry{}, "", false
	}
	return p.entry(f), f.CoreMetadata["sha256"], true
}

// enter waits until a request of the grant may be served. The caller must call leave
// if there is no error.
func (gr *Grant) enter(ctx context.Context) (leave func(), err error) {
	select {
	case gr.queue <- struct{}{}:
	default:
		return nil, errTooMany
	}
	if err := gr.rate.Wait(ctx); err != nil {
		<-gr.queue
		return nil, err
	}
	select {
	case gr.slots <- struct{}{}:
		return func() { <-gr.slots; <-gr.queue }, nil
	case <-ctx.Done():
		<-gr.queue
		return nil, context.Cause(ctx)
	}
}
