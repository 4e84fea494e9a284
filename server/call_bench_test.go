package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"rillbox/server/stdio"
	"rillbox/supervisor/job"
)

// BenchmarkCall is what a run_code call costs in the server alone, from the
// client's line to the answer's: its engine ends a run at once.
func BenchmarkCall(b *testing.B) {
	for _, output := range []int{6, 1 << 20} {
		b.Run(fmt.Sprintf("%d bytes of output", output), func(b *testing.B) {
			r := job.Result{Status: job.Completed, Value: json.RawMessage(`{"a":1}`)}
			r.Stdout.Head = bytes.Repeat([]byte("a line of text\n"), output/15+1)
			c := openConversation(b, newServer(says(r), nil))
			call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":` + anyRun + `}}`
			for b.Loop() {
				if answer := c.ask(b, call); !strings.Contains(answer, `"status":"completed"`) {
					b.Fatalf("%.300s", answer)
				}
			}
		})
	}
}

// conversation is a client that sends lines and reads lines.
type conversation struct {
	to   io.Writer
	from *bufio.Reader
}

func openConversation(b *testing.B, s *Server) *conversation {
	in, to := io.Pipe()
	from, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- stdio.Serve(context.Background(), s, in, out, s.o.Log)
		out.Close()
	}()
	b.Cleanup(func() {
		to.Close()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	c := &conversation{to, bufio.NewReader(from)}
	c.ask(b, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	c.say(b, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *conversation) say(b *testing.B, line string) {
	if _, err := io.WriteString(c.to, line+"\n"); err != nil {
		b.Fatal(err)
	}
}

func (c *conversation) ask(b *testing.B, line string) string {
	c.say(b, line)
	answer, err := c.from.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return answer
}

// BenchmarkEmit is what streaming costs while the client is not keeping up, a
// full pipe of output at a time.
func BenchmarkEmit(b *testing.B) {
	s := &stream{wake: make(chan struct{}, 1)}
	piece := bytes.Repeat([]byte("a line of text\n"), 64<<10/15)
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		s.emit(job.Event{Kind: job.Stdout, Data: piece})
	}
}
