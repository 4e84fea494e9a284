package supervisor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"rillbox/supervisor/job"
)

// BusyError says that no more runs can be taken now, by the server or, with
// Session, by one session, or, with Client, of one client.
type BusyError struct {
	Running, Waiting int
	Session, Client  bool
	RetryAfter       time.Duration
}

func (e *BusyError) Error() string {
	if e.Client {
		return fmt.Sprintf("busy: %d of your programs are running and %d are waiting, which is all that you may have; try again in %v", e.Running, e.Waiting, e.RetryAfter)
	}
	if e.Session {
		return fmt.Sprintf("busy: a cell is running and %d calls are waiting, which is all that one session takes; try again in %v", e.Waiting, e.RetryAfter)
	}
	return fmt.Sprintf("busy: %d programs are running and %d are waiting, which is all that this server takes; try again in %v",
		e.Running, e.Waiting, e.RetryAfter)
}

// retryAfter is what a refused client is told: most programs end well before.
const retryAfter = 2 * time.Second

// admission lets a number of runs go on at once and queues the next ones. Places
// and the queue are shared: a place goes to the waiting client that has fewest, and
// in a full queue whose runs are most gives up its newest for one of a client that
// has fewer. So a client has half at most while another one wants the other half,
// and all while nobody does. What the operator allows one client may be less: then places
// stay free while it waits.
type admission struct {
	most    func(client string) (running, waiting int) // of one client's; 0 means no limit
	mu      sync.Mutex
	free    int
	room    int // how many more may wait
	limits  job.Limits
	running map[string]int
	clients []string            // those with waiting runs, in turn
	waiting map[string][]*place // a client's runs, oldest first
}

// place is a run's in the queue.
type place struct {
	turn chan struct{} // closed when it has come, or the place is lost
	lost bool          // to another client's; read it after turn
}

func newAdmission(limits job.Limits) *admission {
	return &admission{
		most: func(string) (running, waiting int) { return 0, 0 },
		free: limits.Running, room: limits.Waiting, limits: limits, running: map[string]int{}, waiting: map[string][]*place{},
	}
}

// enter returns when the client's run may start, with the function that must be
// called when it is over.
func (a *admission) enter(ctx context.Context, client string) (leave func(), err error) {
	p, err := a.place(client)
	if err != nil {
		return nil, err
	}
	tellPlaced(ctx)
	select {
	case <-p.turn:
		if p.lost {
			return nil, a.busy()
		}
		return func() { a.leave(client) }, nil
	case <-ctx.Done():
		a.mu.Lock()
		waited := a.remove(client, p)
		a.mu.Unlock()
		if !waited && !p.lost {
			a.leave(client) // its turn came at the same moment
		}
		return nil, context.Cause(ctx)
	}
}

func (a *admission) busy() error {
	return &BusyError{Running: a.limits.Running, Waiting: a.limits.Waiting, RetryAfter: retryAfter}
}

// load is how many runs go on, and how many wait.
func (a *admission) load() (running, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limits.Running - a.free, a.limits.Waiting - a.room
}

// place gives the client's run its place in the queue.
func (a *admission) place(client string) (*place, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &place{turn: make(chan struct{})}
	if a.free > 0 && a.mayBegin(client) {
		a.begin(client)
		close(p.turn)
		return p, nil
	}
	if _, most := a.most(client); most > 0 && len(a.waiting[client]) >= most {
		return nil, &BusyError{Running: a.running[client], Waiting: most, Client: true, RetryAfter: retryAfter}
	}
	if a.room == 0 && !a.makeRoom(client) {
		return nil, a.busy()
	}
	a.room--
	if len(a.waiting[client]) == 0 {
		a.clients = append(a.clients, client)
	}
	a.waiting[client] = append(a.waiting[client], p)
	return p, nil
}

// makeRoom takes the newest place of the client that has most, if it has more than
// this one will have.
func (a *admission) makeRoom(client string) bool {
	most := ""
	for _, other := range a.clients {
		if len(a.waiting[other]) > len(a.waiting[most]) {
			most = other
		}
	}
	of := a.waiting[most]
	if len(of) <= len(a.waiting[client])+1 {
		return false
	}
	newest := of[len(of)-1]
	newest.lost = true
	close(newest.turn)
	a.remove(most, newest)
	return true
}

// mayBegin says whether a client may have one more place. The caller holds mu.
func (a *admission) mayBegin(client string) bool {
	most, _ := a.most(client)
	return most == 0 || a.running[client] < most
}

// begin takes a free place. The caller holds mu.
func (a *admission) begin(client string) {
	a.free--
	a.running[client]++
}

// tryEnter is enter for who does not wait.
func (a *admission) tryEnter(client string) (leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.free == 0 {
		return nil, false
	}
	a.begin(client)
	return func() { a.leave(client) }, true
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

// leave gives the client's place to the oldest run of the client that has fewest
// places; of several, to the one whose turn is next.
func (a *admission) leave(client string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free++
	if a.running[client]--; a.running[client] == 0 {
		delete(a.running, client)
	}
	at := -1
	for i, other := range a.clients {
		if a.mayBegin(other) && (at < 0 || a.running[other] < a.running[a.clients[at]]) {
			at = i
		}
	}
	if at < 0 {
		return
	}
	next := a.clients[at]
	p := a.waiting[next][0]
	a.remove(next, p)
	if i := slices.Index(a.clients, next); i >= 0 { // it waits for more: the others come first
		a.clients = append(slices.Delete(a.clients, i, i+1), next)
	}
	a.begin(next)
	close(p.turn)
}

// remove takes a run out of the queue, or says that it is there no more. The caller
// holds mu.
func (a *admission) remove(client string, p *place) bool {
	i := slices.Index(a.waiting[client], p)
	if i < 0 {
		return false
	}
	a.waiting[client] = slices.Delete(a.waiting[client], i, i+1)
	a.room++
	if len(a.waiting[client]) == 0 {
		delete(a.waiting, client)
		a.clients = slices.DeleteFunc(a.clients, func(name string) bool { return name == client })
	}
	return true
}
