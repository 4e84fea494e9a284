package supervisor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rillbox/supervisor/job"
)

// toolchain is one whose runs are a function: what is tested here is the
// way down to an engine and up again.
type toolchain struct {
	run func(ctx context.Context, p job.Program, emit func(job.Event)) (job.Result, error)
}

func (t toolchain) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	return t.run(ctx, p, streams.Emit)
}
func (toolchain) Prepare(context.Context, func(job.Event), ...job.Language) error { return nil }
func (toolchain) Install(context.Context, job.Program, func(job.Event)) ([]job.Package, error) {
	return nil, nil
}
func (toolchain) Describe() job.Description {
	return job.Description{Languages: []job.LanguageInfo{{Name: job.Python}}}
}
func (toolchain) Close() {}

func newTestSupervisor(run func(ctx context.Context, p job.Program, emit func(job.Event)) (job.Result, error)) *Supervisor {
	return New(job.DefaultLimits(), slog.New(slog.NewTextHandler(io.Discard, nil)), toolchain{run})
}

func TestProgramsThatCannotRunAreRefusedByName(t *testing.T) {
	s := newTestSupervisor(func(context.Context, job.Program, func(job.Event)) (job.Result, error) {
		t.Error("the program reached the engine")
		return job.Result{}, nil
	})
	for _, test := range []struct {
		name string
		p    job.Program
		want string
	}{
		{"no such language", job.Program{Language: "cobol"}, "cobol"},
		{"too long", job.Program{Language: job.Python, Code: strings.Repeat("#", 1<<20+1)}, "1048577 bytes"},
		{"not UTF-8", job.Program{Language: job.Python, Code: "print('\xff')"}, "UTF-8"},
		{"a file outside of its directory", job.Program{Language: job.Python, Files: map[string][]byte{"../x.py": nil}}, "leads out"},
		{"a place outside of its workspace", job.Program{Language: job.Python, Path: "/x.py"}, "leads out"},
		{"NUL in an argument", job.Program{Language: job.Python, Args: []string{"a\x00b"}}, "NUL"},
		{"negative timeout", job.Program{Language: job.Python, Timeout: -1}, "-1ns"},
		{"timeout over the maximum", job.Program{Language: job.Python, Timeout: time.Hour}, "1h0m0s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var program *job.ProgramError
			_, err := s.Run(t.Context(), test.p, Call{Streams: quiet})
			if !errors.As(err, &program) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestOnlyItsOwnClientCancelsAnExecution(t *testing.T) {
	started := make(chan string)
	s := newTestSupervisor(func(ctx context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
		started <- p.ID
		<-ctx.Done()
		return job.Result{Status: job.Cancelled}, nil
	})
	done := make(chan job.Result)
	go func() {
		r, _ := s.Run(t.Context(), job.Program{Language: job.Python}, Call{Client: "mine", Streams: quiet})
		done <- r
	}()
	id := <-started
	if s.Cancel("another", id) {
		t.Error("another client could cancel it")
	}
	if s.Cancel("mine", "unknown") {
		t.Error("an unknown execution was cancelled")
	}
	if !s.Cancel("mine", id) {
		t.Error("its own client could not cancel it")
	}
	if r := <-done; r.Status != job.Cancelled || r.ExecutionID != id {
		t.Errorf("the result is %+v", r)
	}
	if s.Cancel("mine", id) {
		t.Error("an execution that is over was cancelled")
	}
}

func TestPanicIsOneRunsError(t *testing.T) {
	s := newTestSupervisor(func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
		if p.Code == "panic" {
			panic("boom")
		}
		return job.Result{Status: job.Completed}, nil
	})
	if _, err := s.Run(t.Context(), job.Program{Language: job.Python, Code: "panic"}, Call{Streams: quiet}); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("the error is %v", err)
	}
	if r, err := s.Run(t.Context(), job.Program{Language: job.Python}, Call{Streams: quiet}); err != nil || r.Status != job.Completed {
		t.Errorf("the next run: %+v, %v", r, err)
	}
	if s.admission.free != s.limits.Running {
		t.Errorf("%d of %d places are free", s.admission.free, s.limits.Running)
	}
}

// TestNothingGoesOnAfterClose: when Close returns, what ran has ended, and nothing
// begins any more.
func TestNothingGoesOnAfterClose(t *testing.T) {
	started, ended := make(chan bool), make(chan bool, 1)
	s := newTestSupervisor(func(ctx context.Context, _ job.Program, _ func(job.Event)) (job.Result, error) {
		started <- true
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond) // what is left to do
		ended <- true
		return job.Result{Status: job.Cancelled}, nil
	})
	go func() {
		_, _ = s.Run(context.Background(), job.Program{Language: job.Python}, Call{Streams: quiet})
	}()
	<-started
	s.Close()
	if len(ended) != 1 {
		t.Error("Close returned while a program ran")
	}
	if _, err := s.Run(t.Context(), job.Program{Language: job.Python}, Call{Streams: quiet}); !errors.Is(err, ErrCancelled) {
		t.Errorf("a program began after Close: %v", err)
	}
	if _, err := s.Install(t.Context(), "", job.Python, nil, quiet.Emit); !errors.Is(err, ErrCancelled) {
		t.Errorf("an installation began after Close: %v", err)
	}
}

func TestAResultSaysHowLongItWaited(t *testing.T) {
	limits := job.DefaultLimits()
	limits.Running = 1
	started, release := make(chan bool, 2), make(chan bool)
	s := New(limits, slog.New(slog.DiscardHandler), toolchain{func(context.Context, job.Program, func(job.Event)) (job.Result, error) {
		started <- true
		<-release
		return job.Result{Status: job.Completed}, nil
	}})
	run := func(ctx context.Context) <-chan job.Result {
		done := make(chan job.Result, 1)
		go func() {
			r, _ := s.Run(ctx, job.Program{Language: job.Python}, Call{Streams: quiet})
			done <- r
		}()
		return done
	}
	first := run(t.Context())
	<-started
	placed := make(chan bool)
	second := run(OnPlaced(t.Context(), func() { close(placed) }))
	<-placed
	const wait = 30 * time.Millisecond
	time.Sleep(wait)
	close(release)
	<-first
	if r := <-second; r.Waited < wait {
		t.Errorf("it waited %v, and is said to have waited %v", wait, r.Waited)
	}
}

// A run's time of fetching is that of the stages which say so, however many events each has.
func TestFetchingIsMeasuredByStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fetchClock
		emit := f.watch(func(job.Event) {})
		for _, e := range []struct {
			kind job.EventKind
			text string
		}{
			{job.Stage, "installing"},
			{job.Stage, job.FetchingStage + "numpy"},
			{job.Stage, job.FetchingStage + "numpy"},
			{job.Stage, job.FetchingStage + "rich"},
			{job.Stdout, ""},
			{job.Stage, "building"},
			{job.Stage, job.FetchingStage + "six"},
		} {
			emit(job.Event{Kind: e.kind, Text: e.text})
			time.Sleep(time.Second)
		}
		if took := f.end(); took != 4*time.Second {
			t.Errorf("it took %v, want 4s", took)
		}
	})
}
