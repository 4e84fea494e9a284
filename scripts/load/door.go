//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// door is a server with its clients.
type door struct {
	name    string
	url     string // of HTTP
	command *exec.Cmd
	connect func(ctx context.Context, i int) (*mcp.ClientSession, error)
	clients []*mcp.ClientSession
	memory  memory
	deeds   deeds

	measured
	idleText string
}

// measured is what came of calls.
type measured struct {
	mu      sync.Mutex
	calls   int
	busy    time.Duration // how long they went on
	refused int           // told to come again
	wrong   []string      // an answer that is not the program's, or another's
	lost    []string      // no answer
	took    map[string]times
}

func (m *measured) rate() float64 { return float64(m.calls) / m.busy.Seconds() }

// settings let all clients wait, and call as often as they can.
func settings(o options) []string {
	return []string{"--log-level", "info", "--waiting", fmt.Sprint(4 * o.clients), "--sessions", "64"}
}

// openHTTP starts a server over HTTP; each client has a connection and a protocol
// session of its own, or none where its era knows none.
func openHTTP(ctx context.Context, o options) (*door, error) {
	d := &door{name: "HTTP"}
	d.command = exec.CommandContext(ctx, o.program, append([]string{"serve", "--http", "127.0.0.1:0", "--http-requests", "1000000", "--http-window", "1s"}, settings(o)...)...)
	d.command.Cancel = func() error { return d.command.Process.Signal(os.Interrupt) }
	stderr, err := d.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := d.command.Start(); err != nil {
		return nil, err
	}
	log := bufio.NewReader(stderr)
	for d.url == "" {
		text, err := log.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("the server ended, or said nothing: %w", err)
		}
		var line struct {
			URL string `json:"url"`
		}
		if json.Unmarshal([]byte(text), &line) == nil {
			d.url = line.URL
		}
	}
	go io.Copy(io.Discard, log)
	d.memory.watch(ctx, d.command.Process.Pid)
	d.connect = func(ctx context.Context, i int) (*mcp.ClientSession, error) {
		transport := &mcp.StreamableClientTransport{Endpoint: d.url, HTTPClient: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}
		version := []string{"2025-11-25", "2026-07-28"}[i%2]
		return d.client().Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	}
	return d, nil
}

// openStdio starts a server for one connection, which all clients share.
func openStdio(ctx context.Context, o options) (*door, error) {
	d := &door{name: "stdio"}
	d.command = exec.Command(o.program, append([]string{"serve"}, settings(o)...)...)
	one, err := d.client().Connect(ctx, &mcp.CommandTransport{Command: d.command}, nil)
	if err != nil {
		return nil, err
	}
	d.memory.watch(ctx, d.command.Process.Pid)
	d.connect = func(context.Context, int) (*mcp.ClientSession, error) { return one, nil }
	return d, nil
}

// client is one that notes what progress of another's calls it hears.
func (d *door) client() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "load", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if own, _ := r.Params.ProgressToken.(string); strings.Contains(r.Params.Message, mark) && !strings.Contains(r.Params.Message, own) {
				d.note(func(m *measured) { m.wrong = append(m.wrong, own+" heard: "+r.Params.Message) })
			}
		},
	})
}

func (d *door) close() {
	for _, c := range d.clients {
		_ = c.Close() // stdio's is the same for all
	}
	if d.url != "" {
		_ = d.command.Process.Signal(os.Interrupt)
		_ = d.command.Wait()
	}
}

func (d *door) note(change func(*measured)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.measured)
}

// mark begins each token.
const mark = "token-"

var made atomic.Int64

// programs are what is run, by language; each prints its token, and has it as its value.
var programs = []struct{ name, language, code string }{
	{"js", "javascript", `console.log("%[1]s"); export default "%[1]s";`},
	{"ts", "typescript", `const token: string = "%[1]s"; console.log(token); export default token;`},
	{"python", "python", "print('%[1]s')\n'%[1]s'"},
	{"js", "javascript", `console.log("%[1]s"); export default "%[1]s";`},
}

// call has so many clients call for so long.
func (d *door) call(ctx context.Context, clients int, lasts time.Duration) error {
	for len(d.clients) < clients {
		c, err := d.connect(ctx, len(d.clients))
		if err != nil {
			return fmt.Errorf("%s: client %d: %w", d.name, len(d.clients), err)
		}
		d.clients = append(d.clients, c)
	}
	start := time.Now()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := i; time.Since(start) < lasts; n++ {
				d.one(ctx, d.clients[i], n)
			}
		})
	}
	all.Wait()
	d.note(func(m *measured) { m.busy += time.Since(start) })
	return nil
}

// longest is when an answer counts as lost.
const longest = 2 * time.Minute

// one makes a call and judges its answer.
func (d *door) one(ctx context.Context, c *mcp.ClientSession, n int) {
	p := programs[n%len(programs)]
	token := fmt.Sprintf("%s%d.", mark, made.Add(1))
	params := &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": p.language, "code": fmt.Sprintf(p.code, token)}}
	params.SetProgressToken(token)
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	start := time.Now()
	r, err := c.CallTool(ctx, params)
	took := time.Since(start)
	if err != nil {
		d.note(func(m *measured) { m.lost = append(m.lost, token+": "+err.Error()) })
		return
	}
	text, _ := json.Marshal(r.Content)
	var out struct {
		Stdout, Result string
		DurationMS     float64 `json:"duration_ms"`
	}
	structured, _ := json.Marshal(r.StructuredContent)
	_ = json.Unmarshal(structured, &out) // what is missing is wrong
	switch {
	case r.IsError && strings.Contains(string(text), "try again in"):
		d.note(func(m *measured) { m.refused++ })
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond) // as it is told to
	case r.IsError || out.Stdout != token+"\n" || out.Result != token:
		d.note(func(m *measured) { m.wrong = append(m.wrong, fmt.Sprintf("%s got %s %s", token, text, structured)) })
	default:
		d.note(func(m *measured) {
			m.calls++
			if m.took == nil {
				m.took = map[string]times{}
			}
			t := m.took[p.name]
			t.whole = append(t.whole, took)
			t.own = append(t.own, time.Duration(out.DurationMS*float64(time.Millisecond)))
			m.took[p.name] = t
		})
	}
}
