package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// BusyError says that no more runs can be taken now, by the server or, with
// Session, by one session.
type BusyError struct {
	Running, Waiting int
	Session          bool
	RetryAfter       time.Duration
}

func (e *BusyError) Error() string {
	if e.Session {
		return fmt.Sprintf("busy: a cell is running and %d calls are waiting, which is all that one session takes; try again in %v", e.Waiting, e.RetryAfter)
	}
	return fmt.Sprintf("busy: %d programs are running and %d are waiting, which is all that this server takes; try again in %v",
		e.Running, e.Waiting, e.RetryAfter)
}

// retryAfter is what a refused client is told: most programs end well before.
const retryAfter = 2 * time.Second

// admission lets a number of runs go on at once and queues the next ones, one
// from each client in turn, so that a client with many waiting programs holds
// up no other client's first.
type admission struct {
	mu      sync.Mutex
	free    int
	room    int // how many more may wait
	limits  Limits
	clients []string                   // those with waiting runs, in turn
	waiting map[string][]chan struct{} // a client's runs, oldest first
}

func newAdmission(limits Limits) *admission {
	return &admission{free: limits.Running, room: limits.Waiting, limits: limits, waiting: map[string][]chan struct{}{}}
}

// enter returns when the client's run may start, with the function that must be
// called when it is over.
func (a *admission) enter(ctx context.Context, client string) (leave func(), err error) {
	turn, err := a.place(client)
	if err != nil {
		return nil, err
	}
	tellPlaced(ctx)
	select {
	case <-turn:
		return a.leave, nil
	case <-ctx.Done():
		if !a.withdraw(client, turn) {
			a.leave() // its turn came at the same moment
		}
		return nil, context.Cause(ctx)
	}
}

// place gives the client's run its place in the queue; its turn comes when the
// channel is closed.
func (a *admission) place(client string) (turn chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	turn = make(chan struct{})
	if a.free > 0 {
		a.free--
		close(turn)
		return turn, nil
	}
	if a.room == 0 {
		return nil, &BusyError{Running: a.limits.Running, Waiting: a.limits.Waiting, RetryAfter: retryAfter}
	}
	a.room--
	if len(a.waiting[client]) == 0 {
		a.clients = append(a.clients, client)
	}
	a.waiting[client] = append(a.waiting[client], turn)
	return turn, nil
}

// tryEnter is enter for who does not wait.
func (a *admission) tryEnter() (leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.free == 0 {
		return nil, false
	}
	a.free--
	return a.leave, true
}

type placedKey struct{}

// OnPlaced gives a context for one call of the supervisor's; told is called when the
// call has its place among those of its session or, without one, of all: who comes
// later has a later one.
func OnPlaced(ctx context.Context, told func()) context.Context {
	return context.WithValue(ctx, placedKey{}, told)
}

func tellPlaced(ctx context.Context) {
	if told, ok := ctx.Value(placedKey{}).(func()); ok {
		told()
	}
}

// leave gives the place to the next client's oldest run.
func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.clients) == 0 {
		a.free++
		return
	}
	client := a.clients[0]
	a.clients = a.clients[1:]
	turn := a.waiting[client][0]
	a.waiting[client] = a.waiting[client][1:]
	if len(a.waiting[client]) > 0 {
		a.clients = append(a.clients, client)
	} else {
		delete(a.waiting, client)
	}
	a.room++
	close(turn)
}

// withdraw takes a run out of the queue, or says that its turn has come.
func (a *admission) withdraw(client string, turn chan struct{}) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, other := range a.waiting[client] {
		if other != turn {
			continue
		}
		a.waiting[client] = append(a.waiting[client][:i:i], a.waiting[client][i+1:]...)
		a.room++
		if len(a.waiting[client]) == 0 {
			delete(a.waiting, client)
			for j, name := range a.clients {
				if name == client {
					a.clients = append(a.clients[:j:j], a.clients[j+1:]...)
					break
				}
			}
		}
		return true
	}
	return false
}
