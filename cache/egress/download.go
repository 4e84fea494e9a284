package egress

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	getter "github.com/hashicorp/go-getter/v2"
)

const (
	// maxUnpacked and maxFiles bound what an archive may hold.
	maxUnpacked = 1 << 30
	maxFiles    = 5000
)

// Source is something to download.
type Source struct {
	// URL is http: or https:.
	URL   string
	Route Route
	// Archive is how to unpack it: "tgz", "tar.bz2", "zip"; empty means not.
	// Links in an archive come out as ordinary files, never as links.
	Archive string
	// SHA256 and SHA512 are what it must hash to, in hex; empty means unknown.
	SHA256, SHA512 string
	// MaxBytes bounds what is transferred; zero means 1 GiB.
	MaxBytes int64
	// Header is sent along.
	Header http.Header
	// NoResume makes a broken transfer an error instead of resuming it: without a hash
	// nothing would notice that the parts are of different files.
	NoResume bool
}

// Download fetches src into the file dst, or unpacks it into the directory dst
// when src.Archive is set. A dropped connection is resumed, other failures of
// the network and the server are tried again with growing pauses. progress,
// which may be nil, is called from one goroutine when the other side begins to
// answer, ten times a second as bytes come, and at the end; total is 0 when unknown.
func (c *Client) Download(ctx context.Context, src Source, dst string, progress func(done, total int64)) error {
	u, err := url.Parse(src.URL)
	if err != nil {
		return withoutURL(err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return refuse("only http: and https: URLs can be fetched")
	}
	if progress == nil {
		progress = func(done, total int64) {}
	}
	if src.MaxBytes <= 0 {
		src.MaxBytes = 1 << 30
	}
	d := &download{c: c, src: src, url: u, part: dst + ".part", progress: progress}
	defer os.Remove(d.part)
	if err := c.retry(ctx, u, downloadTries, d.size, func() error { return d.attempt(ctx) }); err != nil {
		return err
	}
	if src.Archive == "" {
		return os.Rename(d.part, dst)
	}
	unpack := getter.LimitedDecompressors(maxFiles, maxUnpacked)[src.Archive]
	if unpack == nil {
		return fmt.Errorf("unknown kind of archive %q", src.Archive)
	}
	if err := unpack.Decompress(dst, d.part, true, 0o077); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	return nil
}

// download is the state of one Download, and go-getter's transport. go-getter does not
// get the URL, as it would interpret parts of it (see ../RATIONALE.md).
type download struct {
	c        *Client
	src      Source
	url      *url.URL
	part     string // the file with the bytes so far
	resumed  bool   // they are of several responses
	progress func(done, total int64)
}

func (d *download) size() int64 {
	st, err := os.Stat(d.part)
	if err != nil {
		return 0
	}
	return st.Size()
}

// attempt makes one request, for what follows the part.
func (d *download) attempt(ctx context.Context) error {
	src := "https://download.invalid/?checksum="
	switch {
	case d.src.SHA512 != "":
		src += "sha512:" + d.src.SHA512
	case d.src.SHA256 != "":
		src += "sha256:" + d.src.SHA256
	}
	client := getter.Client{
		Decompressors:   map[string]getter.Decompressor{}, // unpacked later, so that a part outlives an attempt
		DisableSymlinks: true,
		Getters: []getter.Getter{&getter.HttpGetter{
			Client:                &http.Client{Transport: d},
			DoNotCheckHeadFirst:   d.size() == 0, // HEAD only serves to resume
			XTerraformGetDisabled: true,
		}},
	}
	_, err := client.Get(ctx, &getter.Request{Src: src, Dst: d.part, GetMode: getter.ModeFile, Umask: 0o077, DisableSymlinks: true})
	var sum *getter.ChecksumError
	var broken *brokenError
	switch err = withoutURL(err); {
	case errors.As(err, &sum) && !d.resumed:
		return &MismatchError{Host: d.url.Host, Want: hex.EncodeToString(sum.Expected), Got: hex.EncodeToString(sum.Actual)}
	case errors.As(err, &sum):
		return d.restart()
	case errors.As(err, &broken) && d.src.NoResume:
		broken.last = true
	}
	return err
}

// restart removes the part, as no server continues where it ends.
func (d *download) restart() error {
	d.resumed = false
	return errors.Join(errNotResumed, os.Remove(d.part))
}

// RoundTrip returns a response whose body is what follows the part.
func (d *download) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodHead { // go-getter asks whether it can resume
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Accept-Ranges": {"bytes"}}, ContentLength: math.MaxInt64, Body: http.NoBody,
		}, nil
	}
	offset := d.size()
	header := http.Header{}
	if d.src.Header != nil {
		header = d.src.Header.Clone()
	}
	header.Set("Accept-Encoding", "identity") // the hash is that of the file
	if offset > 0 {
		d.resumed = true
		header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := d.c.send(req.Context(), d.url, d.src.Route, header)
	if err != nil {
		return nil, err
	}
	if err := d.admit(resp, offset); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// admit checks and bounds a response whose body go-getter appends to the part, at offset.
func (d *download) admit(resp *http.Response, offset int64) error {
	skip := int64(0)
	switch from := fmt.Sprintf("bytes %d-", offset); {
	case resp.StatusCode == http.StatusOK:
		skip = offset // the server sends all from the start
	case offset == 0:
		return &StatusError{d.url.Host, resp.StatusCode}
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable,
		resp.StatusCode == http.StatusPartialContent && !strings.HasPrefix(resp.Header.Get("Content-Range"), from):
		return d.restart()
	case resp.StatusCode != http.StatusPartialContent:
		return &StatusError{d.url.Host, resp.StatusCode}
	}
	var total int64
	if resp.ContentLength >= 0 {
		total = offset - skip + resp.ContentLength
	}
	if total > d.src.MaxBytes {
		return &TooLargeError{d.src.MaxBytes}
	}
	if _, err := io.CopyN(io.Discard, resp.Body, skip); err != nil {
		return &brokenError{err: err}
	}
	resp.ContentLength -= min(skip, max(resp.ContentLength, 0))
	body := &bounded{resp.Body, d.src.MaxBytes - offset, d.src.MaxBytes, nil}
	resp.Body = &meteredBody{ReadCloser: body, done: offset, total: total, tell: d.progress}
	d.progress(offset, total)
	return nil
}

// meteredBody is a body whose progress is told.
type meteredBody struct {
	io.ReadCloser
	done, total int64
	tell        func(done, total int64)
	told        time.Time
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.done += int64(n)
	if err != nil || time.Since(b.told) >= 100*time.Millisecond {
		b.told = time.Now()
		b.tell(b.done, b.total)
	}
	return n, err
}
