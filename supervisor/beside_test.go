package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rillbox/supervisor/job"
)

// besider is an engine whose program "outer" is given to the test with its streams; others
// are counted.
type besider struct {
	toolchain
	outer func(job.Streams)
}

func (b besider) Run(ctx context.Context, p job.Program, s job.Streams) (job.Result, error) {
	if p.Code == "outer" {
		b.outer(s)
		return job.Result{Status: job.Completed}, nil
	}
	if s.Beside != nil {
		return job.Result{}, errors.New("a program beside another could run others")
	}
	return b.run(ctx, p, s.Emit)
}

// What a program runs beside itself has its place, one at a time, and is judged by its
// client's terms.
func TestBeside(t *testing.T) {
	limits := job.DefaultLimits()
	limits.Running, limits.Waiting = 1, 0 // there is no other place
	var now, most atomic.Int64
	var ran job.Program
	b := besider{toolchain: toolchain{func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
		ran = p
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(5 * time.Millisecond)
		now.Add(-1)
		return job.Result{Status: job.Completed}, nil
	}}}
	inner := func(p job.Program, beside func(context.Context, job.Program, job.Streams) (job.Result, error)) error {
		p.Language = job.Python
		_, err := beside(t.Context(), p, job.Streams{Emit: func(job.Event) {}})
		return err
	}
	called := false
	b.outer = func(s job.Streams) {
		called = true
		done := make(chan error, 4)
		for range 4 {
			go func() { done <- inner(job.Program{Code: "inner"}, s.Beside) }()
		}
		for range 4 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if len(ran.Most) != 1 || !ran.Policy.CacheOnly || ran.Timeout != limits.Timeout {
			t.Errorf("it ran as %+v", ran)
		}
		for words, p := range map[string]job.Program{
			"between 0 and 1m": {Timeout: time.Hour},
			"leads out":        {Path: "../x.py"},
			"UTF-8":            {Code: "\xff"},
		} {
			if err := inner(p, s.Beside); err == nil || !errors.As(err, new(*job.ProgramError)) || !strings.Contains(err.Error(), words) {
				t.Errorf("%+v: %v", p, err)
			}
		}
		_, err := s.Beside(t.Context(), job.Program{Language: "cobol"}, job.Streams{Emit: func(job.Event) {}})
		if err == nil || !strings.Contains(err.Error(), "cobol") {
			t.Errorf("a language that is not here: %v", err)
		}
	}
	s := New(limits, slog.New(slog.DiscardHandler), b)
	s.SetTerms(func(string) Terms {
		return Terms{Timeout: time.Minute, Policy: job.PackagePolicy{CacheOnly: true}, Permissions: map[job.Language][]string{job.Python: {"--allow-env=A"}}}
	})
	r, err := s.Run(t.Context(), job.Program{Language: job.Python, Code: "outer"}, Call{Client: "one", Streams: quiet})
	if err != nil || r.Status != job.Completed || !called {
		t.Fatalf("%+v, %v", r, err)
	}
	if most.Load() != 1 {
		t.Errorf("%d ran at once", most.Load())
	}
}
