package supervisor

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"rillbox/supervisor/job"
)

// stubborn is a toolchain whose cells "wait" take their session with them when they
// are cancelled; those that "linger" don't.
type stubborn struct{ cells }

func (s *stubborn) OpenSession(ctx context.Context, o job.SessionOptions, emit func(job.Event)) (job.Session, error) {
	session, err := s.cells.OpenSession(ctx, o, emit)
	if err != nil {
		return nil, err
	}
	return stubbornSession{session.(*countedSession)}, nil
}

type stubbornSession struct{ *countedSession }

func (s stubbornSession) Run(ctx context.Context, cell job.Program, streams job.Streams) (job.Result, error) {
	r, err := s.countedSession.Run(ctx, cell, streams)
	if cell.Code == "linger" {
		<-ctx.Done()
	}
	if cell.Code == "wait" {
		s.Close()
		r.State = job.StateLost
	}
	return r, err
}

// TestALossThatNobodyHeardOfIsToldByTheNextCell: who takes a call back reads no answer
// of it.
func TestALossThatNobodyHeardOfIsToldByTheNextCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(job.DefaultLimits(), slog.New(slog.DiscardHandler), &stubborn{})
		t.Cleanup(s.Close)
		id := create(t, s, "a")
		tells := func(code string) bool {
			return strings.Contains(strings.Join(cell(t, s, "a", id, code).Notes, "\n"), "the session's state was lost")
		}
		takeBack := func(code string) {
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan bool)
			go func() {
				defer close(over)
				_, _ = s.Run(ctx, job.Program{Language: job.Python, Code: code}, Call{Client: "a", Session: id, Streams: quiet})
			}()
			synctest.Wait() // it runs
			cancel()
			<-over
		}
		if tells("") {
			t.Error("the first cell tells of a loss")
		}
		takeBack("wait")
		takeBack("wait") // neither does who takes the next call back
		takeBack("linger")
		if !tells("") {
			t.Error("the next cell does not tell that the state was lost")
		}
		if tells("") {
			t.Error("the one after tells it again")
		}
		if tells("die") || tells("") {
			t.Error("a loss that was heard of is told again")
		}
	})
}

// TestAResetThatIsTakenBackIsWhole: it has ended cells that say that the state is
// lost.
func TestAResetThatIsTakenBackIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := withCells(t)
		id := create(t, s, "a")
		cell(t, s, "a", id, "")
		said := make(chan job.Result)
		go func() { said <- cell(t, s, "a", id, "wait") }()
		synctest.Wait() // it runs
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.ResetSession(ctx, "a", id, Reset{Variables: true})
		r, next := <-said, cell(t, s, "a", id, "")
		if err != nil || r.State != job.StateLost || string(next.Value) != "1" {
			t.Errorf("the reset: %v; the cell that ran: %v; the next is its session's cell %s", err, r.State, next.Value)
		}
	})
}
