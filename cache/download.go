package cache

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	getter "github.com/hashicorp/go-getter/v2"
)

const (
	// dialTimeout bounds name resolution and connecting, so that a missing
	// network is told within 5 s even where packets vanish.
	dialTimeout = 3 * time.Second
	// idleTimeout ends an attempt in which no byte has come for so long.
	idleTimeout = 30 * time.Second
	// maxTries is how often an attempt that brought no byte is made again.
	maxTries = 5
	// maxUnpacked and maxFiles bound what an archive may hold.
	maxUnpacked = 1 << 30
	maxFiles    = 5000
)

// Source is something to download.
type Source struct {
	// URL is http: or https:.
	URL string
	// Archive is how to unpack it: "tgz", "tar.bz2", "zip"; empty means not.
	// Links in an archive come out as ordinary files, never as links.
	Archive string
	// SHA256 and SHA512 are what it must hash to, in hex; empty means unknown.
	SHA256, SHA512 string
	// MaxBytes bounds what is transferred; zero means 1 GiB.
	MaxBytes int64
	// Header is sent along; never to another host that it redirects to.
	Header http.Header
}

// Download fetches src into the file dst, or unpacks it into the directory dst
// when src.Archive is set. A dropped connection is resumed, other failures of
// the network and the server are tried again with growing pauses. progress,
// which may be nil, is called from one goroutine when the other side begins to
// answer and as bytes come; total is 0 when unknown.
//
// When the cache is offline the error wraps ErrOffline, and nothing is asked.
func (c *Cache) Download(ctx context.Context, src Source, dst string, progress func(done, total int64)) error {
	u, err := url.Parse(src.URL)
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("download %s: only http: and https: URLs can be fetched", u.Redacted())
	}
	if strings.Contains(u.Path, "//") { // go-getter would take what follows for a directory in an archive
		return fmt.Errorf("download %s: the path has an empty segment", u.Redacted())
	}
	if c.offline {
		return NotCached(u.Redacted())
	}
	if progress == nil {
		progress = func(done, total int64) {}
	}
	part := dst + ".part"
	defer os.Remove(part)
	d := download{c: c, src: src, url: u, part: part, progress: progress}
	if err := d.run(ctx); err != nil {
		return fmt.Errorf("download %s: %w", u.Redacted(), err)
	}
	if src.Archive == "" {
		return os.Rename(part, dst)
	}
	if err := unpack(src.Archive, part, dst); err != nil {
		return fmt.Errorf("unpack %s: %w", u.Redacted(), err)
	}
	return nil
}

func unpack(archive, from, to string) error {
	dec := getter.LimitedDecompressors(maxFiles, maxUnpacked)[archive]
	if dec == nil {
		return fmt.Errorf("unknown kind of archive %q", archive)
	}
	return dec.Decompress(to, from, true, 0o077)
}

// download is one Download in work.
type download struct {
	c        *Cache
	src      Source
	url      *url.URL
	part     string // what has come so far
	progress func(done, total int64)
}

// run tries until the bytes are there, or there is no hope.
func (d *download) run(ctx context.Context) error {
	begun := time.Now()
	fresh := true // the bytes all come from one answer
	var best int64
	for tries := 1; ; tries++ {
		err := d.try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		have := d.size()
		if have > best { // it moves: be patient
			best, tries = have, 1
		}
		var sum *getter.ChecksumError
		var refused *refusedError
		switch {
		case errors.As(err, &sum):
			err = fmt.Errorf("refused, as the bytes are not those that are pinned: want hash %x, got %x", sum.Expected, sum.Actual)
			if fresh {
				return err
			}
			if err := os.Remove(d.part); err != nil {
				return err
			}
		case errors.As(err, &refused) && !refused.again:
			return err
		case IsOffline(err) && have == 0 && (tries >= 2 || time.Since(begun) > time.Second):
			return err
		case tries >= maxTries:
			return fmt.Errorf("gave up after %d tries: %w", tries, err)
		}
		fresh = d.size() == 0
		d.c.log.Debug("download failed, trying again", "url", d.url.Redacted(), "have", have, "err", err)
		select {
		case <-time.After(pause(tries)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pause is how long to wait after a number of failures: 0.25 to 0.5 s, doubled
// each time.
func pause(tries int) time.Duration {
	base := 250 * time.Millisecond << (tries - 1)
	return base + rand.N(base)
}

func (d *download) size() int64 {
	st, err := os.Stat(d.part)
	if err != nil {
		return 0
	}
	return st.Size()
}

// try makes one request, which goes on where the part ends.
func (d *download) try(ctx context.Context) error {
	u := *d.url
	q := u.Query()
	switch {
	case d.src.SHA512 != "":
		q.Set("checksum", "sha512:"+d.src.SHA512)
	case d.src.SHA256 != "":
		q.Set("checksum", "sha256:"+d.src.SHA256)
	}
	u.RawQuery = q.Encode()
	client := getter.Client{
		Decompressors:   map[string]getter.Decompressor{}, // unpacked later, so that a part outlives an attempt
		DisableSymlinks: true,
		Getters: []getter.Getter{&getter.HttpGetter{
			Client: &http.Client{
				Transport:     &guard{d: d, base: transport()},
				CheckRedirect: checkRedirect,
			},
			Header:                d.src.Header,
			DoNotCheckHeadFirst:   d.size() == 0, // HEAD only serves to resume
			HeadFirstTimeout:      10 * time.Second,
			XTerraformGetDisabled: true,
		}},
	}
	_, err := client.Get(ctx, &getter.Request{
		Src: u.String(), Dst: d.part, GetMode: getter.ModeFile, Umask: 0o077, DisableSymlinks: true,
	})
	return err
}

// checkRedirect refuses to leave https, and endless redirects.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return &refusedError{why: "it redirects more than 10 times"}
	}
	if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return &refusedError{why: "it redirects from https to " + req.URL.Redacted()}
	}
	return nil
}

// refusedError is an answer that can't be used.
type refusedError struct {
	why   string
	again bool // asking again may help
}

func (e *refusedError) Error() string { return e.why }

// guard is the transport under go-getter. It turns bad answers into errors of
// ours, caps the size (go-getter's own cap cuts silently, and is ignored when
// there is a progress listener), ends an answer that stalls, and sees that
// a part is only ever continued by the bytes that follow it.
type guard struct {
	d    *download
	base http.RoundTripper
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	stalled := time.AfterFunc(idleTimeout, func() {
		cancel(&refusedError{why: fmt.Sprintf("no byte came for %v", idleTimeout), again: true})
	})
	resp, err := g.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		stalled.Stop()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &guardedBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, stalled: stalled}
	if req.Method != http.MethodGet || resp.StatusCode/100 == 3 {
		return resp, nil
	}
	if err := g.admit(req, resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// admit checks the headers of an answer whose body will go into the part.
func (g *guard) admit(req *http.Request, resp *http.Response) error {
	switch code := resp.StatusCode; code {
	case http.StatusOK, http.StatusPartialContent:
	default:
		again := code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
		return &refusedError{why: "the server answered " + resp.Status, again: again}
	}
	var offset int64
	if req.Header.Get("Range") != "" {
		offset = g.d.size()
		want := fmt.Sprintf("bytes %d-", offset)
		if resp.StatusCode != http.StatusPartialContent || !strings.HasPrefix(resp.Header.Get("Content-Range"), want) {
			_ = os.Remove(g.d.part)
			return &refusedError{why: "the server does not continue where the connection dropped", again: true}
		}
	} else if g.d.size() > 0 {
		if err := os.Truncate(g.d.part, 0); err != nil {
			return err
		}
	}
	limit := g.d.src.MaxBytes
	if limit <= 0 {
		limit = 1 << 30
	}
	var total int64
	if resp.ContentLength >= 0 {
		total = offset + resp.ContentLength
	}
	if total > limit {
		return &refusedError{why: fmt.Sprintf("it is %d bytes, more than the %d allowed", total, limit)}
	}
	body := resp.Body.(*guardedBody)
	body.done, body.total, body.limit, body.progress = offset, total, limit, g.d.progress
	g.d.progress(offset, total)
	return nil
}

// guardedBody is the body of an answer.
type guardedBody struct {
	io.ReadCloser
	ctx                context.Context
	cancel             context.CancelCauseFunc
	stalled            *time.Timer
	done, total, limit int64
	progress           func(done, total int64) // nil: not for the part
}

func (b *guardedBody) Read(p []byte) (int, error) {
	b.stalled.Reset(idleTimeout)
	n, err := b.ReadCloser.Read(p)
	if b.progress == nil {
		return n, err
	}
	b.done += int64(n)
	if b.done > b.limit {
		return 0, &refusedError{why: fmt.Sprintf("it is more than the %d bytes allowed", b.limit)}
	}
	if n > 0 {
		b.progress(b.done, b.total)
	}
	if err != nil && err != io.EOF {
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (b *guardedBody) Close() error {
	b.stalled.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

var transport = sync.OnceValue(NewTransport)

// NewTransport is an HTTP transport that honours the machine's proxies and
// certificates ($SSL_CERT_FILE on macOS too, where Go alone would not), and
// tells a missing network within seconds. It leaves bodies as they are sent.
func NewTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 10 * time.Second
	t.ResponseHeaderTimeout = 30 * time.Second
	t.DisableCompression = true
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if pem, err := os.ReadFile(file); err == nil && pool.AppendCertsFromPEM(pem) {
			t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		}
	}
	return t
}
