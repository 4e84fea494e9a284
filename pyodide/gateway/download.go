package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const maxResumes = 4 // of one download

// download writes the content of a URL to w, and no more than limit bytes. A
// broken transfer is taken up again where it ended if resume is set, for which
// the caller must check the digest of the whole.
func (f *fetcher) download(ctx context.Context, from source, w io.Writer, limit int64, resume bool, progress func(done, total int64)) error {
	var done int64
	for try := 0; ; try++ {
		n, err := f.transfer(ctx, from, w, done, limit, progress)
		done += n
		var broken *brokenError
		if !errors.As(err, &broken) || !resume || try >= maxResumes {
			return err
		}
	}
}

// brokenError says that a body ended early.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return "the transfer broke off: " + e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// transfer writes the content from offset on to w, and returns how much it was.
func (f *fetcher) transfer(ctx context.Context, from source, w io.Writer, offset, limit int64, progress func(done, total int64)) (int64, error) {
	// Bytes as they are: the digests are of the file, not of a transfer coding.
	header := http.Header{"Accept-Encoding": {"identity"}}
	if offset > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := f.get(ctx, from, header)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	skip := int64(0)
	switch {
	case resp.StatusCode == http.StatusOK:
		skip = offset
	case resp.StatusCode == http.StatusPartialContent && offset > 0 && rangeStart(resp) == offset:
	default:
		return 0, &statusError{from.url.Host, resp.StatusCode}
	}
	total := int64(0)
	if resp.ContentLength >= 0 {
		total = resp.ContentLength + offset - skip
	}
	if total > limit {
		return 0, tooLarge(total, limit)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, skip); err != nil {
		return 0, &brokenError{err}
	}
	body := &meteredReader{r: resp.Body, left: limit - offset, limit: limit, done: offset, total: total, progress: progress}
	n, err := io.Copy(w, body)
	if body.err != nil {
		err = &brokenError{body.err}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	return n, err
}

func rangeStart(resp *http.Response) int64 {
	start, _, _ := strings.Cut(strings.TrimPrefix(resp.Header.Get("Content-Range"), "bytes "), "-")
	n, err := strconv.ParseInt(start, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func tooLarge(size, limit int64) error {
	return &refusedError{fmt.Sprintf("it has %d bytes, and the limit is %d", size, limit)}
}

// meteredReader bounds what is read, tells the progress, and keeps apart the
// errors of reading from those of writing.
type meteredReader struct {
	r           io.Reader
	left, limit int64
	done, total int64
	progress    func(done, total int64)
	told        time.Time
	err         error // of reading
}

func (m *meteredReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.left -= int64(n)
	if m.left < 0 {
		return 0, tooLarge(m.done+int64(n), m.limit)
	}
	m.done += int64(n)
	if m.progress != nil && (err != nil || time.Since(m.told) >= 100*time.Millisecond) {
		m.told = time.Now()
		m.progress(m.done, m.total)
	}
	if err != nil && err != io.EOF {
		m.err = err
	}
	return n, err
}
