package stdio

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// plain is a server without a limit to its end.
type plain struct{ *mcp.Server }

func (p plain) Connect(ctx context.Context, _ string, placed func(), t mcp.Transport) (*mcp.ServerSession, error) {
	p.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			placed()
			return next(ctx, method, req)
		}
	})
	return p.Server.Connect(ctx, t, nil)
}
func (plain) MaxMessage() int64 { return 1 << 20 }
func (plain) Stop() error       { return nil }

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// serve connects a client that has begun; its server ends with the test.
func serve(t *testing.T, s *mcp.Server) (to *io.PipeWriter, from *bufio.Reader) {
	t.Helper()
	in, to := io.Pipe()
	out, write := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(context.Background(), plain{s}, in, write, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		to.Close()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Error("it does not end")
		}
	})
	from = bufio.NewReader(out)
	fmt.Fprintln(to, initialize)
	if line, err := from.ReadString('\n'); err != nil || !strings.Contains(line, `"serverInfo"`) {
		t.Fatalf("initialize gave %s, %v", line, err)
	}
	fmt.Fprintln(to, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return to, from
}

// TestAClientThatDoesNotReadIsNotReadEither: what waits for it is bounded, and all
// comes when it reads again.
func TestAClientThatDoesNotReadIsNotReadEither(t *testing.T) {
	to, from := serve(t, mcp.NewServer(&mcp.Implementation{}, nil))
	const calls = 10_000
	var taken atomic.Int64
	go func() {
		for id := range calls {
			if _, err := fmt.Fprintf(to, `{"jsonrpc":"2.0","id":"call %d","method":"ping"}`+"\n", id); err != nil {
				t.Error(err)
				return
			}
			taken.Store(int64(id + 1))
		}
	}()
	before := int64(-1)
	for taken.Load() != before { // until no more are taken
		before = taken.Load()
		time.Sleep(time.Second)
	}
	// 64 KiB of calls are read ahead.
	if most := int64(maxUnwritten/messageCost + maxUnanswered + 64<<10/50 + 100); before > most {
		t.Errorf("%d calls were taken of a client that reads nothing, want %d at most", before, most)
	}
	for range calls {
		if line, err := from.ReadString('\n'); !strings.Contains(line, `"result":{`) {
			t.Fatalf("the answer is %.200s, %v", line, err)
		}
	}
}

// TestACallWithAnIDInUseIsRefused, and not under that id, which is another call's.
func TestACallWithAnIDInUseIsRefused(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{}, nil)
	end := make(chan struct{})
	defer close(end)
	s.AddTool(&mcp.Tool{Name: "wait", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-end
		return &mcp.CallToolResult{}, nil
	})
	to, from := serve(t, s)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`
	go func() {
		for _, line := range []string{call, call, `{"jsonrpc":"2.0","id":2,"method":"ping"}`} {
			fmt.Fprintln(to, line)
		}
	}()
	for _, want := range []string{`"id":null,"error":{"code":-32600,"message":"a call with the id 1 is not answered yet`, `"id":2,`} {
		if line, err := from.ReadString('\n'); !strings.Contains(line, want) {
			t.Errorf("the answer is %s, %v, want %s", line, err, want)
		}
	}
}
