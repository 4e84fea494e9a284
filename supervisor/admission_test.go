package supervisor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestAdmissionIsFairBetweenClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(Limits{Running: 1, Waiting: 10})
		leave, err := a.enter(t.Context(), "first")
		if err != nil {
			t.Fatal(err)
		}
		turns := make(chan string, 10)
		for _, client := range []string{"greedy", "greedy", "greedy", "modest"} {
			go func() {
				leave, err := a.enter(t.Context(), client)
				if err != nil {
					t.Error(err)
					return
				}
				turns <- client
				leave()
			}()
			synctest.Wait() // queued in this order
		}
		leave()
		synctest.Wait()
		close(turns)
		var order []string
		for client := range turns {
			order = append(order, client)
		}
		if len(order) != 4 || order[1] != "modest" {
			t.Errorf("turns went to %v; the modest client's only program must come second", order)
		}
	})
}

func TestAdmissionRefusesWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(Limits{Running: 1, Waiting: 1})
		leave, _ := a.enter(t.Context(), "a")
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error, 1)
		go func() {
			_, err := a.enter(ctx, "a")
			waited <- err
		}()
		synctest.Wait()
		var busy *BusyError
		if _, err := a.enter(t.Context(), "b"); !errors.As(err, &busy) || busy.RetryAfter <= 0 {
			t.Errorf("a full queue answers %v", err)
		}
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled wait ends with %v", err)
		}
		leave()
		if leave, err := a.enter(t.Context(), "c"); err != nil {
			t.Errorf("a free place is refused: %v", err)
		} else {
			leave()
		}
		if a.free != 1 || a.room != 1 || len(a.waiting) != 0 || len(a.clients) != 0 {
			t.Errorf("left over: %+v", a)
		}
	})
}
