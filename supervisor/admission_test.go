package supervisor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"rillbox/supervisor/job"
)

func TestAdmissionIsFairBetweenClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(job.Limits{Running: 1, Waiting: 10})
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
		if running, waiting := a.load(); running != 1 || waiting != 4 {
			t.Errorf("%d run and %d wait, want 1 and 4", running, waiting)
		}
		leave()
		synctest.Wait()
		if running, waiting := a.load(); running != 0 || waiting != 0 {
			t.Errorf("%d run and %d wait in the end", running, waiting)
		}
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
		a := newAdmission(job.Limits{Running: 1, Waiting: 1})
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
		if a.free != 1 || a.room != 1 || len(a.waiting) != 0 || len(a.clients) != 0 || len(a.running) != 0 {
			t.Errorf("left over: %+v", a)
		}
	})
}

// TestAdmissionIsShared: a client that was first has half of the places and of the
// queue while another wants the rest, and all while nobody does.
func TestAdmissionIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places, queue = 4, 8
		a := newAdmission(job.Limits{Running: places, Waiting: queue})
		var mu sync.Mutex
		busy, running := map[string]int{}, map[string]int{}
		count := func(of map[string]int, client string, more int) {
			mu.Lock()
			defer mu.Unlock()
			of[client] += more
		}
		end := map[string]chan bool{"first": make(chan bool), "second": make(chan bool)}
		send := func(client string, runs int) {
			for range runs {
				go func() {
					leave, err := a.enter(t.Context(), client)
					if err != nil {
						var full *BusyError
						if !errors.As(err, &full) {
							t.Error(err)
						}
						count(busy, client, 1)
						return
					}
					count(running, client, 1)
					<-end[client]
					count(running, client, -1)
					leave()
				}()
				synctest.Wait()
			}
		}
		send("first", places+queue)
		if running["first"] != places || len(a.waiting["first"]) != queue || busy["first"] != 0 {
			t.Fatalf("alone the first has %d places and %d in the queue", running["first"], len(a.waiting["first"]))
		}
		send("second", queue)
		if len(a.waiting["first"]) != queue/2 || len(a.waiting["second"]) != queue/2 {
			t.Errorf("the queue holds %d of the first's and %d of the second's", len(a.waiting["first"]), len(a.waiting["second"]))
		}
		if busy["first"] != queue/2 || busy["second"] != queue/2 {
			t.Errorf("refused were %v", busy)
		}
		for range places / 2 {
			end["first"] <- true
			synctest.Wait()
		}
		if running["first"] != places/2 || running["second"] != places/2 {
			t.Errorf("after as many ends as are half of the places there run %v", running)
		}
		for _, client := range end {
			close(client)
		}
		synctest.Wait()
		if a.free != places || a.room != queue || len(a.waiting) != 0 || len(a.clients) != 0 || len(a.running) != 0 {
			t.Errorf("left over: %+v", a)
		}
	})
}

// TestOneClientsMost: beyond what the operator allows it a client waits though there are
// places, and is refused when enough of its runs wait; others have the places.
func TestOneClientsMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(job.Limits{Running: 3, Waiting: 10})
		a.most = func(client string) (running, waiting int) {
			if client == "narrow" {
				return 1, 1
			}
			return 0, 0
		}
		first, err := a.enter(t.Context(), "narrow")
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan func(), 1)
		go func() {
			leave, err := a.enter(t.Context(), "narrow")
			if err != nil {
				t.Error(err)
			}
			second <- leave
		}()
		synctest.Wait()
		var busy *BusyError
		if _, err := a.enter(t.Context(), "narrow"); !errors.As(err, &busy) || !busy.Client || busy.RetryAfter <= 0 {
			t.Errorf("its third run: %v", err)
		}
		var others []func()
		for range 2 {
			leave, err := a.enter(t.Context(), "other")
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, leave)
		}
		others[0]()
		synctest.Wait()
		if len(second) != 0 || a.free != 1 {
			t.Errorf("the end of another's run gave it a place; %d are free", a.free)
		}
		first()
		(<-second)()
		others[1]()
		if a.free != 3 || a.room != 10 || len(a.waiting) != 0 || len(a.clients) != 0 || len(a.running) != 0 {
			t.Errorf("left over: %+v", a)
		}
	})
}
