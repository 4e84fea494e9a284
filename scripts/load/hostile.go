//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// deeds counts what hostile clients did, and what they were told.
type deeds struct {
	mu    sync.Mutex
	count map[string]int
}

func (d *deeds) add(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count == nil {
		d.count = map[string]int{}
	}
	d.count[name]++
}

func (d *deeds) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(d.count)) {
		list = append(list, fmt.Sprintf("%s %d", name, d.count[name]))
	}
	return strings.Join(list, ", ")
}

// act is one wrong thing that a client does: it sends a message.
type act struct {
	name  string
	tool  string // that the message calls, if any
	body  string
	part  int           // so many bytes of the body are sent; 0 means all
	deaf  bool          // it reads nothing
	leave time.Duration // it goes after so long; 0 means with the answer
}

// acts are what a hostile client does, in turn.
var acts = sync.OnceValue(func() []act {
	return []act{
		{name: "slow reader", tool: "run_code", deaf: true, leave: 5 * time.Second,
			body: toolCall("run_code", `{"language":"javascript","code":"for (let i = 0; i < 20000; i++) console.log('x'.repeat(100))"}`)},
		{name: "body of 11 MiB", tool: "run_code",
			body: toolCall("run_code", `{"language":"javascript","code":"`+strings.Repeat("x", 11<<20)+`"}`)},
		{name: "file of 4 MiB", tool: "write_file",
			body: toolCall("write_file", `{"session_id":"its-own","path":"x","text":"`+strings.Repeat("x", 4<<20)+`"}`)},
		{name: "list of files", tool: "list_files",
			body: toolCall("list_files", `{"session_id":"its-own"}`)},
		{name: "installation of nothing", tool: "install_packages",
			body: toolCall("install_packages", `{"language":"javascript","packages":["file:///etc/passwd"]}`)},
		{name: "program that hangs", tool: "run_code",
			body: toolCall("run_code", `{"language":"javascript","code":"while (true);","timeout_seconds":0.5}`)},
		{name: "client that goes", tool: "run_code", leave: 300 * time.Millisecond,
			body: toolCall("run_code", `{"language":"python","code":"while True: pass","timeout_seconds":5}`)},
		{name: "half a body", tool: "run_code", part: 40, deaf: true, leave: 5 * time.Second,
			body: toolCall("run_code", `{"language":"javascript","code":"1"}`)},
		{name: "hello and no more", body: hello},
		{name: "no JSON", body: `{"jsonrpc":`},
	}
})

// hello begins a protocol session.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}`

// toolCall is the message that calls a tool, as of 2026-07-28.
func toolCall(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":1,`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, arguments)
}

// misbehave has hostile client i do one act after another until ctx ends. Not all begin
// with the same.
func (s *server) misbehave(ctx context.Context, i int) {
	for n := i; ctx.Err() == nil; n++ {
		act := acts()[n%len(acts())]
		said := "no answer"
		if status, err := s.do(ctx, act, s.tokenOf(i)); err == nil {
			said = fmt.Sprint(status)
		}
		s.deeds.add(act.name + " (" + said + ")")
	}
}

// do does an act on a connection of its own, and gives the status of its answer.
func (s *server) do(ctx context.Context, a act, token string) (status int, err error) {
	if a.leave > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.leave)
		defer cancel()
	}
	r, err := s.request(http.MethodPost, token, a.body)
	if err != nil {
		return 0, err
	}
	if a.tool != "" {
		r.Header.Set("MCP-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", a.tool)
	}
	if a.part > 0 {
		r.Body = io.NopCloser(strings.NewReader(a.body[:a.part]))
	}
	conn, err := net.Dial("tcp", r.Host)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	go r.Write(conn) // the answer can come before the end of the body
	if a.deaf {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// request is one to the endpoint, for who writes it to a connection.
func (s *server) request(method, token, body string) (*http.Request, error) {
	r, err := http.NewRequest(method, s.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r, nil
}
