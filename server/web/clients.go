package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"rillbox/server"
	"rillbox/supervisor"
)

// Identity is who sends a request.
type Identity struct {
	// Name owns what its requests make.
	Name string
	// Revoked, if any, ends when what identified it holds no more.
	Revoked context.Context
	// Requests is how many it may send in a Window; 0 means as many as others.
	Requests int
	// Tools says which tools it may use, of those that all may.
	Tools server.ToolList
	// Terms bound what it runs and keeps. The supervisor asks the TokenSet for them.
	Terms supervisor.Terms
	// Admin says that it may see what others do.
	Admin bool
}

// Tokens identify requests by their bearer tokens.
type Tokens interface {
	// Identify gives the identity of a token; false if there is none.
	Identify(ctx context.Context, token string) (Identity, bool)
}

// client is an identity with what it holds.
type client struct {
	name string
	rate *rate.Limiter
	// revoked is Identity's; clients.mu guards it.
	revoked context.Context

	mu       sync.Mutex
	underWay int64 // bytes of requests that wait for their answers
	users    int   // requests
	used     time.Time
}

// clients are the identities that were seen lately.
type clients struct {
	requests int
	window   time.Duration
	ended    func(name string) // is told when what identified a client holds no more

	mu     sync.Mutex
	byName map[string]*client
	calls  int
	none   chan struct{} // closed when there are no calls; nil while nobody waits for that
}

func (c *clients) init(o Options, ended func(name string)) {
	c.requests, c.window, c.ended, c.byName = o.Requests, o.Window, ended, map[string]*client{}
}

// sender is the client that sent a request, as what identified it says; revoked ends when
// that holds no more.
type sender struct {
	*client
	revoked  context.Context
	requests int // in a window
	tools    server.ToolList
	admin    bool
}

// of is the client of an identity.
func (c *clients) of(i Identity) sender {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := cmp.Or(i.Requests, c.requests)
	limit := rate.Inf
	if requests > 0 {
		limit = rate.Every(c.window / time.Duration(requests))
	}
	known := c.byName[i.Name]
	if known == nil {
		known = &client{name: i.Name, rate: rate.NewLimiter(limit, requests)}
		c.byName[i.Name] = known
	}
	known.mu.Lock()
	known.used = time.Now()
	known.mu.Unlock()
	if known.rate.Burst() != requests {
		known.rate.SetLimit(limit)
		known.rate.SetBurst(requests)
	}
	if i.Revoked == nil {
		i.Revoked = context.Background()
	}
	if known.revoked != i.Revoked {
		known.revoked = i.Revoked
		context.AfterFunc(i.Revoked, func() { c.ended(i.Name) })
	}
	return sender{known, i.Revoked, requests, i.Tools, i.Admin}
}

// forget leaves out clients that sent nothing for so long, and have nothing that holds
// them. None of them can come back before end has ended the rest of what is theirs.
func (c *clients) forget(after time.Duration, holds func(client string) bool, end func(client string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, known := range c.byName {
		known.mu.Lock()
		idle := known.users == 0 && time.Since(known.used) > after
		known.mu.Unlock()
		if idle && !holds(name) {
			delete(c.byName, name)
			end(name)
		}
	}
}

type senderKey struct{}

func senderOf(ctx context.Context) sender { return ctx.Value(senderKey{}).(sender) }

// identify finds out who sends a request.
func (d *Door) identify(r *http.Request) (from sender, _ *refusal) {
	if d.o.Tokens == nil && d.o.OAuth == nil {
		return d.clients.of(Identity{Name: "http"}), nil
	}
	token := bearer(r)
	if token == "" {
		return from, refuse(http.StatusUnauthorized, "send the token that you were given, in a header: Authorization: Bearer TOKEN").
			with("WWW-Authenticate", d.challenge(r, ""))
	}
	if d.o.Tokens != nil {
		if identity, ok := d.o.Tokens.Identify(r.Context(), token); ok {
			return d.clients.of(identity), nil
		}
	}
	if d.o.OAuth == nil {
		return from, refuse(http.StatusUnauthorized, "this token does not hold, or no more: ask the operator for another").
			with("WWW-Authenticate", d.challenge(r, "invalid_token"))
	}
	identity, err := d.o.OAuth.identify(r.Context(), token)
	switch {
	case err == nil:
		return d.clients.of(identity), nil
	case errors.Is(err, errNoKeys):
		return from, refuse(http.StatusServiceUnavailable, "the token can't be verified now, for its issuer does not answer: try again in %v", fetchPause).later(fetchPause)
	case errors.Is(err, errScope):
		return from, refuse(http.StatusForbidden, "this token does not suffice: get one with the scopes %s", strings.Join(d.o.OAuth.scopes, " ")).
			with("WWW-Authenticate", d.challenge(r, "insufficient_scope"))
	}
	return from, refuse(http.StatusUnauthorized, "this token does not hold: %v; get another from %s", err, d.o.OAuth.issuer).
		with("WWW-Authenticate", d.challenge(r, "invalid_token"))
}

// bearer is the token of a request; empty if it has none.
func bearer(r *http.Request) string {
	value := r.Header.Get("Authorization")
	const scheme = "bearer "
	if len(value) <= len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return ""
	}
	return value[len(scheme):]
}

// stay is a request that waits for its answer.
type stay struct {
	of   *client
	size int64 // bytes
}

// enter counts a request, within the bounds; its stay must be left when it was answered.
func (c *client) enter(size int64) (*stay, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.underWay+size > maxUnderWay && c.users > 0 {
		return nil, refuse(http.StatusTooManyRequests, "%d MiB of your requests wait for their answers, which is all that one client may have: try again in %v", maxUnderWay>>20, retryTime).later(retryTime)
	}
	c.underWay += size
	c.users++
	return &stay{c, size}, nil
}

// resize says how large the request turned out to be.
func (s *stay) resize(size int64) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.underWay += size - s.size
	s.size = size
}

func (s *stay) leave() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.underWay -= s.size
	s.of.users--
	s.of.used = time.Now()
}

// checkRate refuses messages that come too often.
func (s sender) checkRate(messages int, window time.Duration) *refusal {
	taken := s.rate.ReserveN(time.Now(), messages)
	if !taken.OK() {
		return refuse(http.StatusRequestEntityTooLarge, "a batch counts as its messages, and you may send %d in %v: send smaller ones", s.requests, window)
	}
	wait := taken.Delay()
	if wait == 0 {
		return nil
	}
	taken.Cancel()
	return refuse(http.StatusTooManyRequests, "you sent more than %d requests in %v: try again in %v", s.requests, window, wait.Round(100*time.Millisecond)).later(wait)
}

// begin counts a call that goes on.
func (c *clients) begin() (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.calls--; c.calls == 0 && c.none != nil {
			close(c.none)
			c.none = nil
		}
	}
}

// awaitCalls waits until no call goes on, or for so long.
func (c *clients) awaitCalls(most time.Duration) {
	c.mu.Lock()
	if c.calls == 0 {
		c.mu.Unlock()
		return
	}
	c.none = make(chan struct{})
	none := c.none
	c.mu.Unlock()
	select {
	case <-none:
	case <-time.After(most):
	}
}
