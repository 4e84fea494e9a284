//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// server is a rillbox with its clients.
type server struct {
	name    string
	count   int      // of the clients
	url     string   // of MCP over HTTP
	tokens  []string // of the identities there
	command *exec.Cmd
	exited  chan struct{}
	connect func(ctx context.Context, i int) (*mcp.ClientSession, error)
	clients []*mcp.ClientSession
	memory  memory
	deeds   deeds
	measured
}

// identities are those of the clients over HTTP. One more is that of the clients that do
// nothing.
const identities = 4

// tokenOf is the token of a client; the first half of the clients has the first half of the
// identities, so that those who behave share none with those who don't.
func (s *server) tokenOf(i int) string {
	half := identities / 2
	return s.tokens[2*i/s.count*half+i%half]
}

// tokenOfIdle is that of a client that does nothing.
func (s *server) tokenOfIdle() string { return s.tokens[identities] }

// startHTTP starts a server that knows its clients by their tokens. What is left of its
// limits are those on what one client may hold; it may call as often as it can.
func startHTTP(o options, dir string) (*server, error) {
	s := &server{name: "HTTP", count: o.clients, exited: make(chan struct{})}
	var file bytes.Buffer
	for i := range identities + 1 {
		token := rand.Text()
		s.tokens = append(s.tokens, token)
		fmt.Fprintf(&file, "[client-%d]\nsha256 = \"%x\"\nrequests = 1000000\n", i, sha256.Sum256([]byte(token)))
	}
	path := filepath.Join(dir, "tokens.toml")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		return nil, err
	}
	s.command = exec.Command(o.program, append(serve(o), "--http", "127.0.0.1:0", "--auth-tokens", path)...)
	stderr, err := s.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	log := bufio.NewReader(stderr)
	for s.url == "" {
		text, err := log.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("the server ended before it listened: %w: %s", err, text)
		}
		var line struct {
			URL string `json:"url"`
		}
		if json.Unmarshal([]byte(text), &line) == nil {
			s.url = line.URL
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, log)
		_ = s.command.Wait() // how it ended does not matter
		close(s.exited)
	}()
	go s.memory.watch(s)
	s.connect = func(ctx context.Context, i int) (*mcp.ClientSession, error) {
		own := withToken{http.DefaultTransport.(*http.Transport).Clone(), s.tokenOf(i)}
		transport := &mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: own}}
		version := []string{"2025-11-25", "2026-07-28"}[i/2%2]
		return s.client().Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	}
	return s, nil
}

// withToken sends a token with each request.
type withToken struct {
	*http.Transport
	token string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.Transport.RoundTrip(r)
}

// startStdio starts a server with one connection, which all clients share.
func startStdio(o options) (*server, error) {
	s := &server{name: "stdio", count: o.clients, exited: make(chan struct{})}
	s.command = exec.Command(o.program, serve(o)...)
	in, err := s.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_, _ = s.command.Process.Wait() // how it ended does not matter
		close(s.exited)
	}()
	go s.memory.watch(s)
	one := sync.OnceValues(func() (*mcp.ClientSession, error) {
		return s.client().Connect(context.Background(), &mcp.IOTransport{Reader: out, Writer: in}, nil)
	})
	s.connect = func(context.Context, int) (*mcp.ClientSession, error) { return one() }
	return s, nil
}

// serve is the command; all clients may wait.
func serve(o options) []string { return []string{"serve", "--waiting", fmt.Sprint(4 * o.clients)} }

// client is one that notes what progress of another's calls it hears.
func (s *server) client() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "load", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if own, _ := r.Params.ProgressToken.(string); strings.Contains(r.Params.Message, mark) && !strings.Contains(r.Params.Message, own) {
				s.note(func(m *measured) { m.bad = append(m.bad, own+" heard: "+r.Params.Message) })
			}
		},
	})
}

// open connects the clients, and has each program run once, so that what a server makes
// once is there.
func (s *server) open(ctx context.Context) error {
	for i := range s.count {
		c, err := s.connect(ctx, i)
		if err != nil {
			return fmt.Errorf("%s: client %d: %w", s.name, i, err)
		}
		s.clients = append(s.clients, c)
	}
	for n := range programs {
		s.one(ctx, s.clients[0], n)
	}
	if len(s.bad) > 0 {
		return fmt.Errorf("%s: the first calls: %s", s.name, s.bad[0])
	}
	s.measured = measured{}
	return nil
}

// end ends the server as an operator does.
func (s *server) end() error {
	_ = s.command.Process.Signal(os.Interrupt) // it fails if the server has ended
	select {
	case <-s.exited:
		return nil
	case <-time.After(endTime):
		return fmt.Errorf("%s: the server did not end within %v of SIGINT", s.name, endTime)
	}
}

func (s *server) kill() {
	_ = s.command.Process.Kill() // it fails if the server has ended
	<-s.exited
}

// memory is what a server's process uses, each second.
type memory struct {
	mu      sync.Mutex
	samples []int64
}

func (m *memory) watch(s *server) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-s.exited:
			return
		case <-every.C:
			if size, err := s.resident(); err == nil { // else it is about to end
				m.mu.Lock()
				m.samples = append(m.samples, size)
				m.mu.Unlock()
			}
		}
	}
}

// quarters are the means of a fourth of the time each.
func (m *memory) quarters() (means []int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	each := len(m.samples) / 4
	if each == 0 {
		return nil
	}
	for part := range slices.Chunk(m.samples[len(m.samples)%4:], each) {
		var sum int64
		for _, size := range part {
			sum += size
		}
		means = append(means, sum/int64(each))
	}
	return means
}

// growth is by how much the mean of the last quarter is above that of the second one, and
// by how much it may be: what the garbage collector leaves to chance. In the first quarter
// a server still warms up.
func (m *memory) growth() (grew, most int64) {
	q := m.quarters()
	if q == nil {
		return 0, 0
	}
	return q[3] - q[1], max(24<<20, q[1]/4)
}

// resident is how much memory the server's process has of its own, in bytes.
func (s *server) resident() (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), "RssAnon:")
	var kB int64
	_, err = fmt.Sscan(rest, &kB)
	return kB << 10, err
}

// mebibytes lists sizes.
func mebibytes(sizes []int64) string {
	var texts []string
	for _, size := range sizes {
		texts = append(texts, fmt.Sprint(size>>20))
	}
	return strings.Join(texts, ", ") + " MiB"
}
