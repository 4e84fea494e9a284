package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/rogpeppe/go-internal/txtar"

	"rillbox/server/stdio"
	"rillbox/supervisor/job"
)

// wire talks JSON-RPC lines with a server.
type wire struct {
	t  *testing.T
	w  io.Writer
	in *bufio.Reader
}

func newWire(t *testing.T, w io.Writer, r io.Reader) *wire {
	return &wire{t, w, bufio.NewReaderSize(r, 1<<20)}
}

func (w *wire) send(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.w, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) read() string {
	w.t.Helper()
	line, err := w.in.ReadString('\n')
	if err != nil {
		w.t.Fatalf("reading what the server says: %v (after %q)", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// open initializes the session.
func (w *wire) open() {
	w.t.Helper()
	w.send(initialize)
	if line := w.read(); !strings.Contains(line, `"serverInfo"`) {
		w.t.Fatalf("initialize gave %s", line)
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// TestConversations plays what a client sends, and compares all that the server
// says. Where a conversation has a line too long to write down, it says
// <NxS>: N times the text S.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/conversations/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			said := converse(t, string(archive.Files[0].Data))
			if *update {
				archive.Files = append(archive.Files[:1], txtar.File{Name: "server", Data: []byte(said)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := string(archive.Files[1].Data); said != want {
				t.Errorf("the server said:\n%s\nwant:\n%s", said, want)
			}
		})
	}
}

var (
	repeated = regexp.MustCompile(`<(\d+)x([^>]+)>`)
	anyID    = regexp.MustCompile(`[a-z2-7]{26}`)
)

// converse sends lines one at a time, each request after the answer to the one
// before, and returns all that came.
func converse(t *testing.T, client string) string {
	s := newServer(scripted{run: func(_ context.Context, p job.Program, emit func(job.Event)) (job.Result, error) {
		emit(job.Event{Kind: job.Stdout, Data: []byte(p.Code)})
		return job.Result{Status: job.Completed, Stdout: kept(p.Code), Value: json.RawMessage("7")}, nil
	}}, nil)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- stdio.Serve(context.Background(), s, in, out, s.o.Log); out.Close() }()
	w := newWire(t, toServer, fromServer)
	var said strings.Builder
	for line := range strings.Lines(client) {
		line = repeated.ReplaceAllStringFunc(strings.TrimSuffix(line, "\n"), func(s string) string {
			var n int
			m := repeated.FindStringSubmatch(s)
			fmt.Sscan(m[1], &n)
			return strings.Repeat(m[2], n)
		})
		w.send(line)
		if message, err := jsonrpc.DecodeMessage([]byte(line)); err == nil && json.Valid([]byte(line)) {
			if r, ok := message.(*jsonrpc.Request); !ok || !r.IsCall() {
				continue
			}
		} else if strings.TrimSpace(line) == "" {
			continue
		}
		for {
			answer := w.read()
			fmt.Fprintln(&said, anyID.ReplaceAllString(answer, "<id>"))
			if !strings.Contains(answer, `"method":`) {
				break
			}
		}
	}
	toServer.Close()
	if err := awaitValue(t, ended, "the end of serve"); err != nil {
		t.Errorf("serve: %v", err)
	}
	return said.String()
}

// The answers to a batch come together when all are there, and others meanwhile.
func TestABatchIsAnsweredAsAWhole(t *testing.T) {
	release := make(chan struct{})
	s := newServer(scripted{run: func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
		if p.Code == "slow" {
			<-release
		}
		return job.Result{Status: job.Completed, Stdout: kept(p.Code)}, nil
	}}, nil)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- stdio.Serve(context.Background(), s, in, out, s.o.Log); out.Close() }()
	w := newWire(t, toServer, fromServer)
	w.send(strings.Replace(initialize, "2025-11-25", "2025-03-26", 1))
	w.read()
	run := func(id, code string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"py","code":"` + code + `"}}}`
	}
	w.send(`[{"jsonrpc":"2.0","method":"notifications/initialized"}, ` + run("1", "slow") + `,` + run(`"1"`, "quick") + `]`)
	w.send(run("2", "alone"))
	if line := w.read(); !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":2,`) {
		t.Errorf("the first answer is %s", line)
	}
	close(release)
	var answers []struct {
		ID     any
		Result struct{ StructuredContent runOutput }
	}
	line := w.read()
	if err := json.Unmarshal([]byte(line), &answers); err != nil || len(answers) != 2 {
		t.Fatalf("the batch is answered with %s (%v)", line, err)
	}
	for _, a := range answers {
		if want := map[any]string{1.0: "slow", "1": "quick"}[a.ID]; a.Result.StructuredContent.Stdout != want {
			t.Errorf("%v is answered with %+v, want %q", a.ID, a.Result, want)
		}
	}
	toServer.Close()
	if err := awaitValue(t, ended, "the end of serve"); err != nil {
		t.Errorf("serve: %v", err)
	}
}

// TestStdoutCarriesNothingButMCP runs a server whose engine prints to stdout.
func TestStdoutCarriesNothingButMCP(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), serveStray+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := newWire(t, stdin, stdout)
	w.open()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":` + anyRun + `}}`)
	if line := w.read(); !strings.Contains(line, `"id":1`) {
		t.Errorf("stdout carried %q", line)
	}
	stdin.Close()
	if rest, err := io.ReadAll(w.in); err != nil || len(rest) > 0 {
		t.Errorf("stdout carried %q (%v)", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v: %s", err, stderr.String())
	}
	if !strings.Contains(stderr.String(), "a stray line") {
		t.Errorf("the stray line is not on stderr: %q", stderr.String())
	}
}
