package supervisor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// toolchain is one whose runs are a function: what is tested here is the
// way down to an engine and up again.
type toolchain struct {
	run func(ctx context.Context, p Program, emit func(Event)) (Result, error)
}

func (t toolchain) Run(ctx context.Context, p Program, emit func(Event)) (Result, error) {
	return t.run(ctx, p, emit)
}
func (toolchain) Prepare(context.Context, func(Event)) error { return nil }
func (toolchain) Install(context.Context, []string, func(Event)) ([]Package, error) {
	return nil, nil
}
func (toolchain) Describe() Description {
	return Description{Languages: []LanguageInfo{{Name: Python}}}
}
func (toolchain) Close() {}

func newTestSupervisor(run func(ctx context.Context, p Program, emit func(Event)) (Result, error)) *Supervisor {
	return New(DefaultLimits(), slog.New(slog.NewTextHandler(io.Discard, nil)), toolchain{run})
}

func TestProgramsThatCannotRunAreRefusedByName(t *testing.T) {
	s := newTestSupervisor(func(context.Context, Program, func(Event)) (Result, error) {
		t.Error("the program reached the engine")
		return Result{}, nil
	})
	for _, test := range []struct {
		name string
		p    Program
		want string
	}{
		{"no such language", Program{Language: "cobol"}, "cobol"},
		{"too long", Program{Language: Python, Code: strings.Repeat("#", 1<<20+1)}, "1048577 bytes"},
		{"not UTF-8", Program{Language: Python, Code: "print('\xff')"}, "UTF-8"},
		{"NUL in an argument", Program{Language: Python, Args: []string{"a\x00b"}}, "NUL"},
		{"negative timeout", Program{Language: Python, Timeout: -1}, "-1ns"},
		{"timeout over the maximum", Program{Language: Python, Timeout: time.Hour}, "1h0m0s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var program *ProgramError
			_, err := s.Run(t.Context(), test.p, func(Event) {})
			if !errors.As(err, &program) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestOnlyItsOwnClientCancelsAnExecution(t *testing.T) {
	started := make(chan string)
	s := newTestSupervisor(func(ctx context.Context, p Program, _ func(Event)) (Result, error) {
		started <- p.ID
		<-ctx.Done()
		return Result{Status: Cancelled}, nil
	})
	done := make(chan Result)
	go func() {
		r, _ := s.Run(t.Context(), Program{Language: Python, Client: "mine"}, func(Event) {})
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
	if r := <-done; r.Status != Cancelled || r.ExecutionID != id {
		t.Errorf("the result is %+v", r)
	}
	if s.Cancel("mine", id) {
		t.Error("an execution that is over was cancelled")
	}
}

func TestPanicIsOneRunsError(t *testing.T) {
	s := newTestSupervisor(func(_ context.Context, p Program, _ func(Event)) (Result, error) {
		if p.Code == "panic" {
			panic("boom")
		}
		return Result{Status: Completed}, nil
	})
	if _, err := s.Run(t.Context(), Program{Language: Python, Code: "panic"}, func(Event) {}); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("the error is %v", err)
	}
	if r, err := s.Run(t.Context(), Program{Language: Python}, func(Event) {}); err != nil || r.Status != Completed {
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
	s := newTestSupervisor(func(ctx context.Context, _ Program, _ func(Event)) (Result, error) {
		started <- true
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond) // what is left to do
		ended <- true
		return Result{Status: Cancelled}, nil
	})
	go func() { _, _ = s.Run(context.Background(), Program{Language: Python}, func(Event) {}) }()
	<-started
	s.Close()
	if len(ended) != 1 {
		t.Error("Close returned while a program ran")
	}
	if _, err := s.Run(t.Context(), Program{Language: Python}, func(Event) {}); !errors.Is(err, ErrCancelled) {
		t.Errorf("a program began after Close: %v", err)
	}
	if _, err := s.Install(t.Context(), Program{Language: Python}, func(Event) {}); !errors.Is(err, ErrCancelled) {
		t.Errorf("an installation began after Close: %v", err)
	}
}

func TestAResultSaysHowLongItWaited(t *testing.T) {
	limits := DefaultLimits()
	limits.Running = 1
	started, release := make(chan bool, 2), make(chan bool)
	s := New(limits, slog.New(slog.DiscardHandler), toolchain{func(context.Context, Program, func(Event)) (Result, error) {
		started <- true
		<-release
		return Result{Status: Completed}, nil
	}})
	run := func(ctx context.Context) <-chan Result {
		done := make(chan Result, 1)
		go func() {
			r, _ := s.Run(ctx, Program{Language: Python}, func(Event) {})
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
