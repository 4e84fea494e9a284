//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// idleClients do nothing: each has a connection, a protocol session and its open stream.
type idleClients struct {
	conns []net.Conn
	each  int64 // memory that each takes in the server, in bytes
}

// idleTime is how long the server may take for what an idle client says at first.
const idleTime = 30 * time.Second

// openIdle opens so many idle clients, some at once.
func openIdle(s *server, count int) (*idleClients, error) {
	before, err := s.resident()
	if err != nil {
		return nil, err
	}
	idle := &idleClients{conns: make([]net.Conn, count)}
	errs := make([]error, count)
	next := make(chan int)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range next {
				idle.conns[i], errs[i] = s.dialIdle()
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("idle client %d: %w", i, err)
		}
	}
	after, err := s.resident()
	idle.each = (after - before) / int64(count)
	return idle, err
}

// dialIdle opens one: it says hello, and listens.
func (s *server) dialIdle() (net.Conn, error) {
	r, err := s.request(http.MethodPost, s.tokenOfIdle(), hello)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", r.Host)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(idleTime)); err != nil {
		return nil, err
	}
	from := bufio.NewReader(conn)
	header, err := exchange(conn, from, r, http.StatusOK, true)
	if err != nil {
		return nil, err
	}
	session := header.Get("Mcp-Session-Id")
	for _, said := range []struct {
		method, body string
		status       int
	}{
		{http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, http.StatusAccepted},
		{http.MethodGet, "", http.StatusOK},
	} {
		r, err := s.request(said.method, s.tokenOfIdle(), said.body)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Mcp-Session-Id", session)
		if _, err := exchange(conn, from, r, said.status, said.method == http.MethodPost); err != nil {
			return nil, err
		}
	}
	return conn, conn.SetDeadline(time.Time{})
}

// exchange sends a request and reads the answer, whole or its header only.
func exchange(conn net.Conn, from *bufio.Reader, r *http.Request, want int, whole bool) (http.Header, error) {
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(from, r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != want {
		return nil, fmt.Errorf("%s was answered %s", r.Method, answer.Status)
	}
	if whole {
		_, err = io.Copy(io.Discard, answer.Body)
	}
	return answer.Header, err
}

// open is how many are still connected.
func (c *idleClients) open() int {
	var count atomic.Int64
	var all sync.WaitGroup
	for _, conn := range c.conns {
		all.Go(func() {
			_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // the read tells
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				count.Add(1)
			}
		})
	}
	all.Wait()
	return int(count.Load())
}
