package server

//lint:file-ignore SA1019 MCP's logging is deprecated as of 2026-07-28, yet it is what today's clients have.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/server/stdio"
	"rillbox/supervisor/job"
)

// heard is one notification as a client got it.
type heard struct {
	at       time.Time
	progress float64
	event    string
	message  string
}

// listener collects what a client hears.
type listener struct {
	mu       sync.Mutex
	progress []heard
	log      []heard
}

func (l *listener) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			l.mu.Lock()
			defer l.mu.Unlock()
			event, _ := r.Params.Meta[metaEvent].(string)
			l.progress = append(l.progress, heard{time.Now(), r.Params.Progress, event, r.Params.Message})
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			l.mu.Lock()
			defer l.mu.Unlock()
			data := r.Params.Data.(map[string]any)
			l.log = append(l.log, heard{time.Now(), 0, fmt.Sprint(r.Params.Level, " ", data["event"]), fmt.Sprint(data["text"])})
		},
	}
}

func (l *listener) all() []heard {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]heard(nil), l.progress...)
}

// stdout joins what was heard of the guest's stdout.
func (l *listener) stdout() string {
	var b strings.Builder
	for _, h := range l.all() {
		if h.event == "stdout" {
			b.WriteString(strings.TrimPrefix(h.message, "stdout: "))
		}
	}
	return b.String()
}

func callWithToken(session *mcp.ClientSession, token any) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: "run_code", Arguments: json.RawMessage(anyRun)}
	if token != nil {
		params.SetProgressToken(token)
	}
	return session.CallTool(context.Background(), params)
}

// writes is a run that emits by script, in the bubble's time.
func writes(script func(emit func(job.EventKind, string))) scripted {
	return scripted{run: func(_ context.Context, p job.Program, emit func(job.Event)) (job.Result, error) {
		script(func(kind job.EventKind, s string) {
			if kind == job.Stage {
				emit(job.Event{Kind: kind, Text: s})
				return
			}
			data := []byte(s)
			emit(job.Event{Kind: kind, Data: data})
			clear(data) // the receiver must not have kept it
		})
		return job.Result{Status: job.Completed, Stdout: kept("end")}, nil
	}}
}

func TestProgressIsPromptAndStrictlyIncreasing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := map[string]time.Time{}
		var l listener
		session := dial(t, newServer(writes(func(emit func(job.EventKind, string)) {
			for i := range 40 {
				kind := []job.EventKind{job.Stdout, job.Stderr, job.Stage}[i%3]
				line := fmt.Sprintf("line-%03d", i)
				written[line] = time.Now()
				emit(kind, line+"\n")
				time.Sleep(time.Duration(i) * 3 * time.Millisecond)
			}
		}), nil), l.options())
		if _, err := callWithToken(session, "t"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		news := l.all()
		if !strings.HasPrefix(news[0].message, "started execution ") || news[0].event != "started" {
			t.Errorf("the first message is %q", news[0].message)
		}
		last := 0.0
		for _, h := range news {
			if h.progress <= last {
				t.Errorf("progress went from %v to %v", last, h.progress)
			}
			last = h.progress
			for line, at := range written {
				if strings.Contains(h.message, line) {
					if late := h.at.Sub(at); late >= 100*time.Millisecond {
						t.Errorf("%s came %v after it was written", line, late)
					}
					delete(written, line)
				}
			}
		}
		if len(written) > 0 {
			t.Errorf("never heard: %v", written)
		}
	})
}

// TestAQuietRunTellsThatItLasts to whom asked for progress: also before its first
// word, between two, and while packages are installed.
func TestAQuietRunTellsThatItLasts(t *testing.T) {
	quietly := writes(func(emit func(job.EventKind, string)) {
		time.Sleep(5 * time.Second)
		emit(job.Stdout, "word\n")
		time.Sleep(5 * time.Second)
	})
	quietly.install = func(context.Context, []string, func(job.Event)) ([]job.Package, error) {
		time.Sleep(10 * time.Second)
		return nil, nil
	}
	for tool, args := range map[string]string{"run_code": anyRun, "install_packages": `{"language":"python","packages":["six"]}`} {
		synctest.Test(t, func(t *testing.T) {
			var l listener
			session := dial(t, newServer(quietly, nil), l.options())
			params := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)}
			params.SetProgressToken("t")
			last, count := time.Now(), 0
			if _, err := session.CallTool(context.Background(), params); err != nil {
				t.Fatal(err)
			}
			ended := time.Now()
			synctest.Wait()
			for _, h := range append(l.all(), heard{at: ended}) {
				if h.at.Sub(last) > time.Second {
					t.Errorf("%s told nothing for %v, until %q", tool, h.at.Sub(last), h.message)
				}
				last = h.at
				count++
			}
			if count > 20 {
				t.Errorf("%s told %d things in 10 s", tool, count)
			}
		})
	}
}

func TestAFloodIsCoalescedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chunk, chunks = 32 << 10, 2000 // 64 MB in two seconds
		var l listener
		session := dial(t, newServer(writes(func(emit func(job.EventKind, string)) {
			for range chunks {
				emit(job.Stdout, strings.Repeat("é", chunk/2))
				time.Sleep(time.Millisecond)
			}
		}), nil), l.options())
		begin := time.Now()
		if _, err := callWithToken(session, 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		news := l.all()
		if most := int(time.Since(begin)/streamPause) + 3; len(news) > most {
			t.Errorf("%d notifications, want at most %d", len(news), most)
		}
		var got int64
		for _, h := range news {
			if len(h.message) > 2*streamHalf+100 {
				t.Errorf("a message of %d bytes", len(h.message))
			}
			if !utf8.ValidString(h.message) || strings.Contains(h.message, "\uFFFD") {
				t.Errorf("a character was cut: %q", h.message)
			}
			body, ok := strings.CutPrefix(h.message, "stdout: ")
			if !ok {
				continue
			}
			head, rest, cut := strings.Cut(body, "\n… ")
			got += int64(len(head))
			if cut {
				var omitted int64
				if _, err := fmt.Sscanf(rest, "%d bytes left out …\n", &omitted); err != nil {
					t.Fatalf("%q: %v", rest, err)
				}
				_, tail, _ := strings.Cut(rest, "\n")
				got += omitted + int64(len(tail))
			}
		}
		if got != chunk*chunks {
			t.Errorf("%d bytes were told or counted, want %d", got, chunk*chunks)
		}
	})
}

func TestCharactersAreWholeWhenBytesComeOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const said = "añ€😀\n"
		var l listener
		session := dial(t, newServer(writes(func(emit func(job.EventKind, string)) {
			for i := range len(said) {
				emit(job.Stdout, said[i:i+1])
				time.Sleep(2 * streamPause)
			}
			emit(job.Stdout, "€"[:2]) // never finished
		}), nil), l.options())
		if _, err := callWithToken(session, 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, want := l.stdout(), said+"\uFFFD\uFFFD"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestALineInTwoPartsIsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l listener
		session := dial(t, newServer(writes(func(emit func(job.EventKind, string)) {
			for range 3 {
				emit(job.Stdout, "word")
				time.Sleep(time.Millisecond)
				emit(job.Stdout, "\n")
				time.Sleep(time.Second / 2)
			}
		}), nil), l.options())
		if _, err := callWithToken(session, 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if news := l.all(); len(news) != 4 || news[3].message != "stdout: word\n" {
			t.Errorf("got %v", news)
		}
	})
}

func TestStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l listener
		session := dial(t, newServer(scripted{run: func(_ context.Context, _ job.Program, emit func(job.Event)) (job.Result, error) {
			emit(job.Event{Text: "resolving"})
			time.Sleep(2 * streamPause)
			// Within one pause: of one stage the latest figure is enough, of
			// two stages each is told.
			for done := range int64(25) {
				emit(job.Event{Text: "fetching numpy", Done: done * 100_000, Total: 12_100_000})
			}
			emit(job.Event{Text: "installing\nnumpy \xff"})
			emit(job.Event{Text: strings.Repeat("long ", 1000), Done: 1_500_000})
			for i := range 20 {
				emit(job.Event{Text: fmt.Sprint("step ", i)})
			}
			return job.Result{Status: job.Completed}, nil
		}}, nil), l.options())
		if _, err := callWithToken(session, 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var stages []string
		for _, h := range l.all()[1:] {
			if h.event != "stage" {
				t.Errorf("%q is a %s", h.message, h.event)
			}
			if len(h.message) > maxStage+20 {
				t.Errorf("a stage of %d bytes", len(h.message))
			}
			stages = append(stages, h.message)
		}
		if stages[0] != "resolving" || stages[len(stages)-1] != "step 19" || len(stages) != 1+streamStages {
			t.Errorf("got %q", stages)
		}
	})
	for _, row := range []struct {
		event job.Event
		want  string
	}{
		{job.Event{Text: "fetching numpy", Done: 2_400_000, Total: 12_100_000}, "fetching numpy 2.4 of 12.1 MB"},
		{job.Event{Text: "fetching numpy", Done: 2_400_000}, "fetching numpy 2.4 MB"},
		{job.Event{Text: "fetching six", Done: 2_400, Total: 12_100}, "fetching six 2.4 of 12.1 kB"},
		{job.Event{Text: "fetching six", Total: 31}, "fetching six 0 of 31 bytes"},
		{job.Event{Text: "fetching six", Done: 31, Total: 31}, "fetching six 31 of 31 bytes"},
		{job.Event{Text: "fetching six", Done: 31, Total: -1}, "fetching six 31 bytes"},
		{job.Event{Text: "fetching six", Total: -1}, "fetching six"},
		{job.Event{Text: "installing\nnumpy \xff"}, `installing numpy \xff`},
	} {
		if got := stageText(row.event); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}

func TestLogNotificationsFollowTheLevel(t *testing.T) {
	for level, want := range map[mcp.LoggingLevel]string{
		"":        "",
		"warning": "warning ended",
		"info":    "info started, info stage, warning ended",
		"debug":   "info started, info stage, debug stdout, debug stderr, warning ended",
	} {
		for _, era := range []string{handshakeEra, sessionlessEra} {
			synctest.Test(t, func(t *testing.T) {
				if got := logAt(t, era, level); got != want {
					t.Errorf("at level %q of %s: got %q, want %q", level, era, got, want)
				}
			})
		}
	}
}

// logAt lists what a client hears in the log of a failing run.
func logAt(t *testing.T, era string, level mcp.LoggingLevel) string {
	var l listener
	run := writes(func(emit func(job.EventKind, string)) {
		emit(job.Stage, "installing")
		emit(job.Stdout, "out")
		emit(job.Stderr, "err")
	})
	inner := run.run
	run.run = func(ctx context.Context, p job.Program, emit func(job.Event)) (job.Result, error) {
		_, err := inner(ctx, p, emit)
		return job.Result{Status: job.Failed, ExitCode: 1}, err
	}
	session := dialEra(t, newServer(run, nil), l.options(), era)
	params := &mcp.CallToolParams{Name: "run_code", Arguments: json.RawMessage(anyRun)}
	switch {
	case level == "":
	case era == sessionlessEra: // the level comes with each request
		params.Meta = mcp.Meta{mcp.MetaKeyLogLevel: level}
	default:
		if err := session.SetLoggingLevel(context.Background(), &mcp.SetLoggingLevelParams{Level: level}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := session.CallTool(context.Background(), params); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	var got []string
	for _, h := range l.log {
		got = append(got, h.event)
	}
	if len(l.progress) > 0 {
		t.Errorf("progress without a token: %v", l.progress)
	}
	return strings.Join(got, ", ")
}

// TestNoNewsAfterTheResult reads the wire itself: the order of messages is what
// counts.
func TestNoNewsAfterTheResult(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	s := newServer(writes(func(emit func(job.EventKind, string)) {
		for i := range 1000 {
			emit(job.Stdout, fmt.Sprintln(i))
		}
	}), nil)
	ended := make(chan error, 1)
	go func() { ended <- stdio.Serve(context.Background(), s, in, out, s.o.Log); out.Close() }()
	wire := newWire(t, toServer, fromServer)
	wire.open()
	for id := range 20 {
		wire.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_code","_meta":{"progressToken":"t%[1]d"},"arguments":%s}}`, id+10, anyRun))
		answered := false
		wire.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"after %d","method":"ping"}`, id))
		for pinged := false; !pinged || !answered; {
			line := wire.read()
			switch {
			case strings.Contains(line, fmt.Sprintf(`"id":%d,`, id+10)):
				answered = true
			case strings.Contains(line, `"notifications/progress"`) && answered:
				t.Fatalf("news after the result: %s", line)
			case strings.Contains(line, fmt.Sprintf(`"after %d"`, id)):
				pinged = true
			}
		}
	}
	toServer.Close()
	if err := awaitValue(t, ended, "the end of serve"); err != nil {
		t.Error(err)
	}
}

// TestASlowClientDoesNotSlowARun has a client that reads nothing while a run
// floods it.
func TestASlowClientDoesNotSlowARun(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ran := make(chan uint64, 1)
	s := newServer(writes(func(emit func(job.EventKind, string)) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		chunk := strings.Repeat("x", 32<<10)
		for range 8 << 10 { // 256 MB
			emit(job.Stdout, chunk)
			emit(job.Stage, "still here")
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		ran <- after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
	}), nil)
	ended := make(chan error, 1)
	go func() { ended <- stdio.Serve(context.Background(), s, in, out, s.o.Log); out.Close() }()
	wire := newWire(t, toServer, fromServer)
	wire.open()
	wire.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"run_code","_meta":{"progressToken":1},"arguments":` + anyRun + `}}`)
	if grown := awaitValue(t, ran, "the run's end, with nobody reading"); grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	for !strings.Contains(wire.read(), `"id":5`) {
	}
	toServer.Close()
	if err := awaitValue(t, ended, "the end of serve"); err != nil {
		t.Error(err)
	}
}

func FuzzStreamKeepsEveryByte(f *testing.F) {
	f.Add([]byte("hello\nwörld 😀"), uint8(3))
	f.Add(bytes.Repeat([]byte("€"), 5000), uint8(7))
	f.Add([]byte("\xff\xe2\x82"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		s := &stream{wake: make(chan struct{}, 1)}
		for rest := data; len(rest) > 0; {
			n := min(int(step)+1, len(rest))
			s.emit(job.Event{Kind: job.Stdout, Data: rest[:n]})
			rest = rest[n:]
		}
		var got int64
		for _, n := range s.pending {
			c := n.bytes.Captured()
			if len(c.Head) > streamHalf || len(c.Tail) > streamHalf {
				t.Fatalf("%d and %d bytes wait", len(c.Head), len(c.Tail))
			}
			got += int64(len(c.Head)+len(c.Tail)) + c.Omitted
		}
		if got != int64(len(data)) {
			t.Errorf("%d of %d bytes are accounted for", got, len(data))
		}
	})
}
