package cache

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rillbox/cache/egress"
)

// headStart is how long an origin may take to begin its response before the next
// one is tried, too.
const headStart = time.Second

// Origin is one of several places to get the same files from.
type Origin struct {
	// Name says which, in errors: "Deno's releases".
	Name string
	// Fetch fills dir, an empty directory. Temporary files may be beside it, with names
	// that begin with its own. The first call of progress means that the response has
	// begun.
	Fetch func(ctx context.Context, dir string, progress func(done, total int64)) error
	// Below is where the files then are, below dir.
	Below string
	// Local says that it needs no network.
	Local bool
}

// Archive is an archive at a URL, with the files in its directory below.
func (c *Cache) Archive(name, below string, src egress.Source) Origin {
	return Origin{Name: name, Below: below, Fetch: func(ctx context.Context, dir string, progress func(done, total int64)) error {
		return c.Download(ctx, src, dir, progress)
	}}
}

// ErrNoSource is wrapped by an Origin's error when this machine has no such source: a
// tool is missing, or nothing is configured.
var ErrNoSource = errors.New("no such source on this machine")

// Fetch puts the files of p, and nothing else, into dir, from the first origin that has
// them. The next origin is started when one fails, or has not begun its response
// within headStart; the first to finish wins and the others are stopped. progress, which
// may be nil, is not called concurrently, and its figures only grow.
//
// When the cache is offline, local origins alone are asked. Without a network the error is
// egress.NotCached's.
func (c *Cache) Fetch(ctx context.Context, p Pinned, dir string, progress func(stage string, done, total int64)) error {
	if c.Offline() {
		p.From = slices.DeleteFunc(slices.Clone(p.From), func(o Origin) bool { return !o.Local })
	}
	if len(p.From) == 0 {
		return egress.NotCached(p.Name)
	}
	tmp, err := c.tempDir("fetch-")
	if err != nil {
		return fmt.Errorf("fetch %s: %w", p.Name, err)
	}
	defer removeAll(tmp)
	winner, err := p.race(ctx, tmp, progress)
	for name := range p.Files {
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)
		}
		if err == nil {
			err = os.Rename(filepath.Join(winner, name), filepath.Join(dir, name))
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	switch {
	case err == nil:
		return nil
	case egress.IsOffline(err):
		c.log.Debug("the network is not reachable", "wanted", p.Name, "err", err)
		return egress.NotCached(p.Name)
	}
	return fmt.Errorf("fetch %s: %w", p.Name, err)
}

// race returns the directory, below tmp, in which the first origin to finish has put the
// files. All others have ended then.
func (p Pinned) race(ctx context.Context, tmp string, progress func(stage string, done, total int64)) (dir string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var mu sync.Mutex
	var best int64
	tell := func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if progress != nil && done > best {
			best = done
			progress("fetching "+p.Name, done, total)
		}
	}
	type event struct {
		who   int
		ended bool // else its response has begun
		err   error
	}
	events := make(chan event, 2*len(p.From))
	directory := func(who int) string { return filepath.Join(tmp, fmt.Sprint(who)) }
	start := func(who int) {
		begun := sync.OnceFunc(func() { events <- event{who: who} })
		err := os.Mkdir(directory(who), 0o700)
		if err == nil {
			err = p.From[who].Fetch(ctx, directory(who), func(done, total int64) { begun(); tell(done, total) })
		}
		if err == nil {
			err = p.check(filepath.Join(directory(who), p.From[who].Below))
		}
		events <- event{who, true, err}
	}
	slow := time.NewTimer(headStart)
	defer slow.Stop()
	var failed failures
	responding := map[int]bool{}
	for started, next := 0, true; len(failed) < len(p.From); {
		if who := started; next && who < len(p.From) && len(responding) == 0 {
			started++
			all.Go(func() { start(who) })
			slow.Reset(headStart)
		}
		select {
		case e := <-events:
			next = e.ended
			switch {
			case !e.ended:
				responding[e.who] = true
			case e.err == nil:
				return filepath.Join(directory(e.who), p.From[e.who].Below), nil
			default:
				delete(responding, e.who)
				failed = append(failed, fmt.Errorf("%s: %w", p.From[e.who].Name, e.err))
			}
		case <-slow.C:
			next = true
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return "", failed
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

// failures are the errors of all origins.
type failures []error

func (f failures) Error() string {
	var lines []string
	for _, err := range f {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "; ")
}

// Unwrap gives a missing network as the cause only if no origin responded.
func (f failures) Unwrap() []error {
	answered := slices.DeleteFunc(slices.Clone(f), func(err error) bool {
		return egress.IsOffline(err) || errors.Is(err, ErrNoSource)
	})
	if len(answered) > 0 {
		return answered
	}
	return f
}

// Pinned is something whose files are known before they are fetched: from wherever they
// come, they are those or refused.
type Pinned struct {
	// Name is what a person would call it: "Deno 2.9.6".
	Name string
	// Files are the hashes (sha256, in hex) that each file may have, by its path.
	Files map[string][]string
	// From is where the files may come from, the best first.
	From []Origin
}

// check compares the files in a directory with their hashes.
func (p Pinned) check(dir string) error {
	for name, want := range p.Files {
		path := filepath.Join(dir, name)
		st, err := os.Lstat(path)
		if err != nil {
			return fmt.Errorf("refused, as %s is missing: %w", name, err)
		}
		if !st.Mode().IsRegular() {
			return fmt.Errorf("refused, as %s is not a regular file (%v)", name, st.Mode().Type())
		}
		got, _, err := HashFile(path)
		if err != nil {
			return err
		}
		if !slices.Contains(want, got) {
			return fmt.Errorf("refused, as %s is not the pinned file: want sha256 %s, got %s", name, strings.Join(want, " or "), got)
		}
	}
	return nil
}
