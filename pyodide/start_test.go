//go:build !windows

package pyodide

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/supervisor/job"
)

// TestAStartHasALimit: a child that does not get as far as to take a program, stopped
// as it may be, is not waited for as long as an installation may take.
func TestAStartHasALimit(t *testing.T) {
	e := newEngine(t)
	defer func(d time.Duration) { startTime = d }(startTime)
	startTime = time.Millisecond // none is so fast
	const want = "the start of Python took longer than 1ms"
	r, err := e.Run(t.Context(), python("1"), job.Streams{Emit: func(job.Event) {}})
	if err != nil || r.Status != job.TimedOut || r.Error == nil || !strings.Contains(r.Error.Message, want) {
		t.Errorf("a run: %+v %v", r, err)
	}
	if s, err := e.OpenSession(t.Context(), job.SessionOptions{Language: job.Python, Workspace: t.TempDir()}, func(job.Event) {}); err == nil {
		s.Close()
		t.Error("a session began")
	} else if !strings.Contains(err.Error(), want) {
		t.Errorf("a session: %v", err)
	}
	if w, err := e.startAhead(t.Context()); err == nil {
		w.Discard()
		t.Error("a worker was started ahead")
	}
}

// TestTheCacheMayBeBehindALink: wherever in its path the link is.
func TestTheCacheMayBeBehindALink(t *testing.T) {
	dir := cachetest.Open(t).Dir()
	link, above := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "above")
	if err := errors.Join(os.Symlink(dir, link), os.Symlink(filepath.Dir(dir), above)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, filepath.Join(above, filepath.Base(dir))} {
		c, err := cache.Open(path, cache.Options{Log: cachetest.Logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		for _, without := range []bool{false, true} {
			e := newEngine(t, func(o *Options) { o.Cache, o.WithoutSecondWall = c, without })
			if r := completed(t, e, python("6 * 7")); string(r.Value) != "42" {
				t.Errorf("%s: %s", path, r.Value)
			}
		}
	}
}
