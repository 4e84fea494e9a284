//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
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

const meta = `"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"hostile","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// tool is a call of a tool, as JSON.
func tool(name, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, name, arguments, meta)
}

// misbehave does one wrong thing after another until ctx ends; client i begins with its
// own.
func (d *door) misbehave(ctx context.Context, i int) {
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	defer client.CloseIdleConnections()
	session := fmt.Sprintf("hostile-%d", i%4)
	acts := []struct {
		name string
		do   func(ctx context.Context) (string, error)
	}{
		{"slow reader", func(ctx context.Context) (string, error) {
			return d.raw(ctx, tool("run_code", `{"language":"javascript","code":"for (let i = 0; i < 20000; i++) console.log('x'.repeat(100))"}`), -1)
		}},
		{"body of 11 MiB", func(ctx context.Context) (string, error) {
			return d.post(ctx, client, tool("run_code", `{"language":"javascript","code":"`+strings.Repeat("x", 11<<20)+`"}`))
		}},
		{"file of 4 MiB", func(ctx context.Context) (string, error) {
			return d.post(ctx, client, tool("write_file", `{"session_id":"`+session+`","path":"x","text":"`+strings.Repeat("x", 4<<20)+`"}`))
		}},
		{"list of files", func(ctx context.Context) (string, error) {
			return d.post(ctx, client, tool("list_files", `{"session_id":"`+session+`"}`))
		}},
		{"installation of nothing", func(ctx context.Context) (string, error) {
			return d.post(ctx, client, tool("install_packages", `{"language":"javascript","packages":["file:///etc/passwd"]}`))
		}},
		{"program that hangs", func(ctx context.Context) (string, error) {
			return d.post(ctx, client, tool("run_code", `{"language":"javascript","code":"while (true);","timeout_seconds":0.5}`))
		}},
		{"client that goes", func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			return d.post(ctx, client, tool("run_code", `{"language":"python","code":"while True: pass","timeout_seconds":5}`))
		}},
		{"half a body", func(ctx context.Context) (string, error) {
			return d.raw(ctx, tool("run_code", `{"language":"javascript","code":"1"}`), 40)
		}},
		{"hello without an end", func(ctx context.Context) (string, error) {
			return d.post(ctx, client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"hostile","version":"1"}}}`)
		}},
		{"no JSON", func(ctx context.Context) (string, error) { return d.post(ctx, client, `{"jsonrpc":`) }},
	}
	for n := i; ctx.Err() == nil; n++ {
		act := acts[n%len(acts)]
		said, err := act.do(ctx)
		if err != nil {
			said = "broken off"
		}
		d.deeds.add(act.name + " (" + said + ")")
	}
}

// post sends a body, reads the answer and gives its status.
func (d *door) post(ctx context.Context, client *http.Client, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if strings.Contains(body, "2026-07-28") {
		r.Header.Set("MCP-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/call")
		_, name, _ := strings.Cut(body, `"name":"`)
		name, _, _ = strings.Cut(name, `"`)
		r.Header.Set("Mcp-Name", name)
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return fmt.Sprint(answer.StatusCode), err
}

// raw sends a request, or only so many bytes of its body, and reads nothing for a while.
func (d *door) raw(ctx context.Context, body string, most int) (string, error) {
	u, err := url.Parse(d.url)
	if err != nil {
		return "", err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	length := len(body)
	if most >= 0 {
		body = body[:most]
	}
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"+
		"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: run_code\r\nContent-Length: %d\r\n\r\n%s", u.Path, u.Host, length, body); err != nil {
		return "", err
	}
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
	}
	return "silent", nil
}

// holdIdle opens so many connections and, on each, a protocol session, which do nothing
// until the end, and notes what they cost.
func (d *door) holdIdle(ctx context.Context, count int) error {
	before, err := resident(d.command.Process.Pid)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns, transport.IdleConnTimeout = count, count, 0
	client := &http.Client{Transport: transport}
	base := strings.TrimSuffix(d.url, "/mcp")
	var streams sync.WaitGroup
	failed := make(chan error, count)
	places := make(chan struct{}, 64)
	held := make([]net.Conn, count)
	u, err := url.Parse(base)
	if err != nil {
		return err
	}
	for i := range count {
		places <- struct{}{}
		streams.Go(func() {
			defer func() { <-places }()
			conn, err := net.Dial("tcp", u.Host)
			if err != nil {
				failed <- err
				return
			}
			held[i] = conn
			if _, err := fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", u.Host); err != nil {
				failed <- err
				return
			}
			if _, err := conn.Read(make([]byte, 1024)); err != nil {
				failed <- err
			}
		})
	}
	streams.Wait()
	connected, err := resident(d.command.Process.Pid)
	if err != nil {
		return err
	}
	for range count {
		places <- struct{}{}
		streams.Go(func() {
			defer func() { <-places }()
			said, err := d.post(ctx, client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"idle","version":"1"}}}`)
			if err == nil && said != "200" {
				err = fmt.Errorf("initialize: %s", said)
			}
			if err != nil {
				failed <- err
			}
		})
	}
	streams.Wait()
	all, err := resident(d.command.Process.Pid)
	if err != nil {
		return err
	}
	close(failed)
	if err, ok := <-failed; ok {
		return fmt.Errorf("hold %d idle connections: %w (%d more)", count, err, len(failed))
	}
	d.idleText = fmt.Sprintf("%d idle connections took %d kB each, and as many protocol sessions %d kB each.", count, (connected-before)>>10/int64(count), (all-connected)>>10/int64(count))
	context.AfterFunc(ctx, func() {
		for _, conn := range held {
			_ = conn.Close()
		}
	})
	return nil
}
