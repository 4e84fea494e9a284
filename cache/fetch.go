package cache

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"rillbox/cache/egress"
)

// headStart is how long a source may take to begin its response before the next
// one is tried, too.
const headStart = time.Second

// Alternative is one of several places to get the same thing from.
type Alternative struct {
	// Name says which, in errors: "Deno's releases".
	Name string
	// Fetch fills dir, an empty directory, and verifies what it put there. It may
	// use dir+".tmp" for temporary files. Its first call of progress means that
	// the response has begun.
	Fetch func(ctx context.Context, dir string, progress func(done, total int64)) error
}

// FetchAny fills the empty directory dir from the first alternative that
// succeeds. The next one is started when one fails, or has not begun its response
// within headStart; the first to finish wins and the others are stopped. what names
// what is wanted, as a person would; progress, which may be nil, is not called
// concurrently, and its figures only grow.
//
// When there is no network, or the cache is offline, the error is egress.NotCached's.
func (c *Cache) FetchAny(ctx context.Context, what, dir string, progress func(done, total int64), from ...Alternative) error {
	if c.offline {
		return egress.NotCached(what)
	}
	tmp, err := c.tempDir("fetch-")
	if err != nil {
		return fmt.Errorf("fetch %s: %w", what, err)
	}
	defer removeAll(tmp)
	ctx, cancel := context.WithCancel(ctx)
	r := race{
		ctx: ctx, tmp: tmp, from: from, progress: progress, answered: map[int]bool{},
		done: make(chan arrival, len(from)), heard: make(chan int, len(from)),
	}
	defer r.all.Wait()
	defer cancel()
	winner, err := r.run()
	if err == nil {
		err = moveEntries(winner, dir)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	switch {
	case err == nil:
		return nil
	case egress.IsOffline(err):
		c.log.Debug("the network is not reachable", "wanted", what, "err", err)
		return egress.NotCached(what)
	}
	return fmt.Errorf("fetch %s: %w", what, err)
}

// Download is egress.Client.Download for URLs that the operator or Rillbox itself named:
// they may lead anywhere. When the cache is offline the error wraps egress.ErrOffline.
func (c *Cache) Download(ctx context.Context, src egress.Source, dst string, progress func(done, total int64)) error {
	u, err := url.Parse(src.URL)
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	src.Route = egress.Route{Home: u, Named: func(*url.URL) bool { return true }}
	if err := c.network.Download(ctx, src, dst, progress); err != nil {
		return fmt.Errorf("download %s: %w", u.Redacted(), err)
	}
	return nil
}

func moveEntries(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// race is the state of one FetchAny.
type race struct {
	ctx      context.Context
	tmp      string
	from     []Alternative
	started  int // how many of from
	running  int
	answered map[int]bool // of those running, who began to answer
	done     chan arrival
	heard    chan int
	all      sync.WaitGroup

	mu       sync.Mutex
	best     int64
	progress func(done, total int64)
}

// arrival is the end of one alternative.
type arrival struct {
	who int
	dir string
	err error
}

// run returns the directory of the winner.
func (r *race) run() (string, error) {
	var failed failures
	slow := time.NewTimer(headStart)
	defer slow.Stop()
	r.next(slow)
	for r.running > 0 {
		select {
		case who := <-r.heard:
			r.answered[who] = true
		case <-slow.C:
			if len(r.answered) == 0 {
				r.next(slow)
			}
		case a := <-r.done:
			r.running--
			delete(r.answered, a.who)
			if a.err == nil {
				return a.dir, nil
			}
			failed = append(failed, fmt.Errorf("%s: %w", r.from[a.who].Name, a.err))
			if len(r.answered) == 0 {
				r.next(slow)
			}
		case <-r.ctx.Done():
			return "", context.Cause(r.ctx)
		}
	}
	return "", failed
}

// next starts the next alternative, if there is one.
func (r *race) next(slow *time.Timer) {
	if r.started == len(r.from) {
		return
	}
	who := r.started
	r.started++
	r.running++
	slow.Reset(headStart)
	r.all.Go(func() {
		dir := filepath.Join(r.tmp, fmt.Sprint(who))
		var once sync.Once
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			err = r.from[who].Fetch(r.ctx, dir, func(done, total int64) {
				once.Do(func() { r.heard <- who })
				r.forward(done, total)
			})
		}
		r.done <- arrival{who, dir, err}
	})
}

func (r *race) forward(done, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.progress != nil && done > r.best {
		r.best = done
		r.progress(done, total)
	}
}

// failures are the errors of all alternatives.
type failures []error

func (f failures) Error() string {
	if len(f) == 0 {
		return "there is nowhere to get it from"
	}
	var lines []string
	for _, err := range f {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "; ")
}

// Unwrap gives a missing network as the cause only if no source responded.
func (f failures) Unwrap() []error {
	var answered []error
	for _, err := range f {
		if !egress.IsOffline(err) && !errors.Is(err, ErrNoSource) {
			answered = append(answered, err)
		}
	}
	if len(answered) > 0 {
		return answered
	}
	return f
}

// ErrNoSource is wrapped by an Alternative's error when this machine has no
// such source: a tool is missing, or nothing is configured.
var ErrNoSource = errors.New("no such source on this machine")
