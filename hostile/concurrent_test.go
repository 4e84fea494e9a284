//go:build !windows

package hostile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"rillbox/server/stdio"
	"rillbox/supervisor/job"
)

// script is what one client sends: each call, and each cancel, as a line.
type script struct {
	client   int
	luck     *rand.Rand
	calls    []asked
	lines    []line
	sessions []sessionOf
}

// line is a message; call is its place in calls.
type line struct {
	call   int
	cancel bool
	text   string
}

type sessionOf struct{ id, language string }

func (s *script) nonce() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	nonce := []byte("nonce")
	for range 26 {
		nonce = append(nonce, letters[s.luck.IntN(len(letters))])
	}
	return string(nonce)
}

func message(fields map[string]any) string {
	fields["jsonrpc"] = "2.0"
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	return string(text)
}

// call adds a call of a tool. Its number is its request's id.
func (s *script) call(tool, session, nonce string, arguments map[string]any) {
	n := len(s.calls)
	if session != "" {
		arguments["session_id"] = session
	}
	s.calls = append(s.calls, asked{client: s.client, number: n, tool: tool, session: session, nonce: nonce})
	s.lines = append(s.lines, line{n, false, message(map[string]any{"id": n, "method": "tools/call", "params": map[string]any{
		"name": tool, "arguments": arguments, "_meta": map[string]any{"progressToken": n}}})})
}

// cancel takes the last call back, a little later.
func (s *script) cancel() {
	n := len(s.calls) - 1
	s.calls[n].cancelled = true
	s.lines = append(s.lines, line{n, true, message(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": n}})})
}

// shuffleCancels moves each cancel by some lines.
func (s *script) shuffleCancels() {
	for i := len(s.lines) - 1; i >= 0; i-- {
		if s.lines[i].cancel {
			moved := s.lines[i]
			to := min(i+s.luck.IntN(25), len(s.lines)-1)
			copy(s.lines[i:], s.lines[i+1:to+1])
			s.lines[to] = moved
		}
	}
}

// keepers keep a cell's number in the session's state and print what is there.
var keepers = map[string]string{
	"javascript": "(globalThis.ran ??= []).push(%[1]d); console.log('ran', JSON.stringify(globalThis.ran), '%[2]s');\n",
	"typescript": "((globalThis as any).ran ??= [] as number[]).push(%[1]d); console.log('ran', JSON.stringify((globalThis as any).ran), '%[2]s');\n",
	"python":     "ran = globals().get('ran', []) + [%[1]d]\nprint('ran', ran, '%[2]s', flush=True)\n",
}

// ends are how a cell goes on after it has kept its number; those that go on for ever
// are always cancelled.
var ends = []struct {
	scripts, python string
	forever         bool
	share           int // of 100
}{
	{"0", "0", false, 60},
	{"await new Promise((r) => setTimeout(r, 20))", "import asyncio\nawait asyncio.sleep(0.02)", false, 12},
	{"throw new Error('thrown')", "raise ValueError('raised')", false, 6},
	{"for (;;);", "while True: pass", true, 8},
	{"await new Promise((r) => setTimeout(r, 1e6))", "import asyncio\nawait asyncio.sleep(1e6)", true, 8},
	{"Deno.exit(3)", "import os\nos._exit(3)", false, 3},
	{"for (;;) try { for (;;); } catch {}", "while True:\n  try:\n    while True: pass\n  except BaseException: pass", true, 3},
}

// cell adds a cell, which may be cancelled.
func (s *script) cell(in sessionOf) {
	luck, nonce := s.luck.IntN(100), s.nonce()
	for _, end := range ends {
		if luck -= end.share; luck >= 0 {
			continue
		}
		code := end.scripts
		if in.language == "python" {
			code = end.python
		}
		s.call("run_code", in.id, nonce, map[string]any{"language": in.language, "code": fmt.Sprintf(keepers[in.language], len(s.calls), nonce) + code})
		if end.forever || s.luck.IntN(8) == 0 {
			s.cancel()
		}
		return
	}
}

// write fills the script with so many calls of all kinds.
func (s *script) write(calls int) {
	for from := len(s.calls); len(s.calls) < from+calls; {
		in, nonce := s.sessions[s.luck.IntN(len(s.sessions))], s.nonce()
		switch luck := s.luck.IntN(100); {
		case luck < 65:
			s.cell(in)
			continue
		case luck < 77:
			code := fmt.Sprintf("console.log('%s')", nonce)
			if s.luck.IntN(4) == 0 {
				code += "\nfor (;;);"
				s.call("run_code", "", nonce, map[string]any{"language": "javascript", "code": code})
				s.cancel()
				continue
			}
			s.call("run_code", "", nonce, map[string]any{"language": "javascript", "code": code})
		case luck < 86:
			s.call("write_file", in.id, nonce, map[string]any{"path": "kept.txt", "content": nonce})
		case luck < 95:
			s.call("read_file", in.id, "", map[string]any{"path": "kept.txt"})
		case luck < 97:
			s.call("reset_session", in.id, "", map[string]any{})
		case in.language == "python":
			s.call("install_packages", in.id, "", map[string]any{"language": "python", "packages": []string{"harmless"}})
		default:
			s.call("list_sessions", "", "", map[string]any{})
		}
		if s.luck.IntN(10) == 0 {
			s.cancel()
		}
	}
	s.shuffleCancels()
}

// spoken is a client that speaks to a server by lines.
type spoken struct {
	in    io.WriteCloser
	out   *bufio.Reader
	calls []asked
	over  chan struct{} // closed when all that must be was answered

	mu     sync.Mutex
	events int
	open   int // calls without an answer that must have one
	strays []string
}

func speak(t *testing.T, h house) *spoken {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- errors.Join(stdio.Serve(t.Context(), h.server, theirIn, theirOut, slog.New(slog.DiscardHandler)), theirOut.Close())
	}()
	t.Cleanup(func() {
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	s := &spoken{in: in, out: bufio.NewReader(out), over: make(chan struct{})}
	s.send(t, message(map[string]any{"id": "first", "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"}}}))
	if _, err := s.out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s.send(t, message(map[string]any{"method": "notifications/initialized"}))
	return s
}

func (s *spoken) send(t *testing.T, line string) {
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		t.Error(err)
	}
}

// play sends all of a script without waiting for anything.
func (s *spoken) play(t *testing.T, lines []line) {
	for _, l := range lines {
		s.mu.Lock()
		s.events++
		if !l.cancel {
			s.calls[l.call].sent = s.events
		}
		s.mu.Unlock()
		s.send(t, l.text)
	}
}

var ranNumbers = regexp.MustCompile(`(?m)^ran (\[[0-9, ]*\]) nonce`)

// listen notes what comes until the server has closed the connection.
func (s *spoken) listen() {
	for {
		text, err := s.out.ReadString('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     *int
			Method string
			Params struct{ ProgressToken *int }
			Error  *struct{ Message string }
			Result struct {
				IsError           bool
				StructuredContent struct {
					Status, Stdout, State string
					Notes                 []string
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			m.ID, m.Method = nil, ""
		}
		s.mu.Lock()
		s.events++
		switch {
		case m.Method == "notifications/progress" && m.Params.ProgressToken != nil && *m.Params.ProgressToken < len(s.calls) && len(s.calls[*m.Params.ProgressToken].answers) == 0:
		case m.Method != "" && m.Method != "notifications/progress":
		case m.ID == nil || *m.ID < 0 || *m.ID >= len(s.calls):
			s.strays = append(s.strays, text)
		default:
			c := &s.calls[*m.ID]
			said := m.Result.StructuredContent
			a := told{at: s.events, text: text, status: said.Status, lost: said.State == "lost"}
			a.refused = m.Error != nil || m.Result.IsError && said.Status == ""
			if a.status == "" && !a.refused {
				a.status = "completed"
			}
			for _, note := range said.Notes {
				a.anew = a.anew || strings.Contains(note, "began in an empty session")
			}
			if found := ranNumbers.FindStringSubmatch(said.Stdout); found != nil {
				_ = json.Unmarshal([]byte(found[1]), &a.ran)
			}
			if len(c.answers) == 0 && !c.cancelled {
				if s.open--; s.open == 0 {
					close(s.over)
				}
			}
			c.answers = append(c.answers, a)
		}
		s.mu.Unlock()
	}
}

// TestAHistoryOfManyCalls: four clients of one server send 500 calls, none waiting for
// another, and take some of them back; what they see is as history.check wants it, and
// nothing is left behind.
func TestAHistoryOfManyCalls(t *testing.T) {
	needWall(t)
	needProc(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	wheels := newIndex(t)
	wheels.put("harmless", zipOf(t, wheelFiles("harmless", "text = 'harmless'")...))
	limits := job.DefaultLimits()
	limits.Sessions, limits.AllSessions, limits.Running, limits.Waiting = 8, 64, 12, 1000
	limits.Timeout, limits.MaxTimeout = 5*time.Minute, 5*time.Minute // nothing leans on it
	endEngines()
	dirs := entriesOf(t, runsDir(t))
	h := openHouseOf(t, houseOptions{limits: limits, index: wheels.url()})
	var clients []*spoken
	var scripts []*script
	var listening sync.WaitGroup
	for i := range 4 {
		s := &script{client: i, luck: rand.New(rand.NewPCG(seed, uint64(i)))}
		c := speak(t, h)
		languages := []string{"javascript", "javascript", "javascript", "typescript"}
		if i < 2 {
			languages = append(languages, "python")
		}
		for _, language := range languages {
			n := len(s.calls)
			s.call("create_session", "", "", map[string]any{"language": language})
			c.send(t, s.lines[n].text)
			id := ""
			for id == "" {
				text, err := c.out.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				var m struct {
					ID     *int
					Result struct{ StructuredContent sessionAnswer }
				}
				if err := json.Unmarshal([]byte(text), &m); err != nil {
					t.Fatal(err)
				}
				if m.ID != nil {
					if id = m.Result.StructuredContent.SessionID; id == "" {
						t.Fatal(text)
					}
				}
			}
			s.calls[n].answers = []told{{status: "completed"}}
			s.sessions = append(s.sessions, sessionOf{id, language})
		}
		s.lines = nil
		s.write(125)
		c.calls = s.calls
		for _, call := range s.calls {
			if !call.cancelled && len(call.answers) == 0 {
				c.open++
			}
		}
		clients, scripts = append(clients, c), append(scripts, s)
	}
	for i, c := range clients {
		listening.Go(c.listen)
		go c.play(t, scripts[i].lines)
	}
	late := time.After(3 * time.Minute) // only what is never answered takes so long
	for _, c := range clients {
		select {
		case <-c.over:
		case <-late:
		}
	}
	// Whatever comes after the answers has come when the connection ends.
	for _, c := range clients {
		_ = c.in.Close()
	}
	listening.Wait()
	h.supervisor.Close()

	var all history
	counts := map[string]int{}
	for _, c := range clients {
		all.calls, all.strays = append(all.calls, c.calls...), append(all.strays, c.strays...)
		for _, call := range c.calls {
			what := "unanswered"
			if len(call.answers) > 0 {
				what = outcomeOf(t, call)
			}
			counts[call.tool+" "+what]++
			counts[what]++
		}
	}
	t.Logf("%v", counts)
	for _, wrong := range all.check() {
		t.Error(wrong)
	}
	if counts["busy"] > len(all.calls)/4 || counts["completed"] < len(all.calls)/3 {
		t.Errorf("of %d calls %d were completed, %d refused as busy", len(all.calls), counts["completed"], counts["busy"])
	}
	allGone(t, "processes", func() []process { return strangers(t, 0) })
	allGone(t, "directories", func() []string { return entriesOf(t, runsDir(t), dirs...) })
}

// outcomeOf names what came of a call, which has to be what a call of the test's can come to.
func outcomeOf(t *testing.T, c asked) string {
	a := c.answers[0]
	switch {
	case a.refused && strings.Contains(a.text, "busy"):
		return "busy"
	case a.refused:
		missing := c.tool == "read_file" && strings.Contains(a.text, "kept.txt")
		reset := c.tool == "install_packages" && strings.Contains(a.text, "Cancelled")
		if !missing && !reset && !c.cancelled {
			t.Errorf("%v: %.500s", c, a.text)
		}
		return "refused"
	case a.status != "completed" && a.status != "failed" && a.status != "cancelled":
		t.Errorf("%v: %.2000s", c, a.text)
	}
	return a.status
}
