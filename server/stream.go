package server

//lint:file-ignore SA1019 MCP's logging is deprecated as of 2026-07-28, yet it is what today's clients have.

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
)

const (
	// streamPause is the least time between two flushes of a run's news.
	streamPause = 50 * time.Millisecond
	// streamGather is how long the first news after a quiet time waits for
	// more: Python writes a line and its newline in two parts.
	streamGather = 10 * time.Millisecond
	// streamHalf is how many bytes of the beginning, and of the end, of what a
	// stream wrote since the last flush are sent; the middle is left out.
	streamHalf = 2 << 10
	// streamStages is how many stages can wait for a flush; the oldest go
	// first.
	streamStages = 8
	// maxStage is the longest stage, in bytes.
	maxStage = 300
	// streamQuiet is the longest time without progress: some clients give up on a
	// call that tells nothing for as long as three seconds.
	streamQuiet = 900 * time.Millisecond
)

// stream turns one run's events into notifications/progress, when the client
// gave a token, and notifications/message, when it set a level:
//
//	started execution …               info
//	fetching numpy 2.4 of 12.1 MB     info
//	stdout: …                         debug
//	stderr: …                         debug
//	3 s so far                        progress only, when nothing else is to be told
//
// emit never waits for the client. What happens while a flush is under way, or
// within streamPause of the last, waits in at most a few KiB.
//
// The prefix tells apart what the guest wrote from what we say, for clients
// that look at the message only; _meta says it in machine-readable form.
type stream struct {
	session *mcp.ServerSession
	token   any             // nil: no progress is wanted
	id      string          // of the execution; empty when it is none
	ctx     context.Context // of the call: when it ends nobody listens

	mu      sync.Mutex
	pending []*news       // in the order in which each first had something to say
	partial [2][]byte     // of stdout and stderr: a character that is not whole yet
	wake    chan struct{} // 1: something is pending
	closing chan struct{}
	done    chan struct{}

	combined bool    // what comes as stdout is both streams
	progress float64 // only the sender's
}

// news is what one flush says of one stream or one stage.
type news struct {
	kind       supervisor.EventKind
	head, tail []byte
	omitted    int64
}

func newStream(ctx context.Context, session *mcp.ServerSession, token any, id string) *stream {
	s := &stream{
		session: session,
		token:   token,
		id:      id,
		ctx:     ctx,
		wake:    make(chan struct{}, 1),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	go s.send()
	return s
}

// emit takes one event, from one goroutine at a time.
func (s *stream) emit(e supervisor.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case supervisor.Stage:
		s.stage(stageText(e), e.Text)
	case supervisor.Stdout, supervisor.Stderr:
		s.output(e.Kind, e.Data)
	}
	s.wakeUp()
}

// close sends what is still waiting and returns when nothing more will be sent.
func (s *stream) close() {
	s.mu.Lock()
	for _, kind := range []supervisor.EventKind{supervisor.Stdout, supervisor.Stderr} {
		if partial := s.partialOf(kind); len(*partial) > 0 {
			s.add(kind, *partial)
			*partial = nil
		}
	}
	s.mu.Unlock()
	close(s.closing)
	<-s.done
}

func (s *stream) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// stage puts a stage in line. A newer figure of the same stage takes the older
// one's place.
func (s *stream) stage(text, name string) {
	stages := 0
	for _, n := range s.pending {
		if n.kind == supervisor.Stage {
			stages++
			if string(n.tail) == name {
				n.head = []byte(text)
				return
			}
		}
	}
	if stages == streamStages {
		for i, n := range s.pending {
			if n.kind == supervisor.Stage {
				s.pending = append(s.pending[:i], s.pending[i+1:]...)
				break
			}
		}
	}
	// A stage's tail holds its name, to find it again.
	s.pending = append(s.pending, &news{kind: supervisor.Stage, head: []byte(text), tail: []byte(name)})
}

func (s *stream) partialOf(kind supervisor.EventKind) *[]byte {
	if kind == supervisor.Stderr {
		return &s.partial[1]
	}
	return &s.partial[0]
}

// output adds what the guest wrote, up to its last whole character.
func (s *stream) output(kind supervisor.EventKind, data []byte) {
	partial := s.partialOf(kind)
	if len(*partial) > 0 {
		data = append(*partial, data...)
		*partial = nil
	}
	if n := partialRune(data); n > 0 {
		*partial = append([]byte(nil), data[len(data)-n:]...)
		data = data[:len(data)-n]
	}
	s.add(kind, data)
}

func (s *stream) add(kind supervisor.EventKind, data []byte) {
	if len(data) == 0 {
		return
	}
	var n *news
	for _, p := range s.pending {
		if p.kind == kind {
			n = p
		}
	}
	if n == nil {
		n = &news{kind: kind}
		s.pending = append(s.pending, n)
	}
	if room := min(streamHalf-len(n.head), len(data)); room > 0 {
		n.head = append(n.head, data[:room]...)
		data = data[room:]
	}
	if excess := len(n.tail) + len(data) - streamHalf; excess > 0 {
		n.omitted += int64(excess)
		drop := min(excess, len(n.tail))
		n.tail = append(n.tail[:0], n.tail[drop:]...)
		data = data[excess-drop:]
	}
	n.tail = append(n.tail, data...)
}

// send is the goroutine that talks to the client.
func (s *stream) send() {
	defer close(s.done)
	s.started()
	began := time.Now()
	quiet := time.NewTimer(streamQuiet)
	defer quiet.Stop()
	for {
		last := false
		select {
		case <-s.wake:
			s.rest(streamGather)
		case <-quiet.C:
			s.notify("running", seconds(time.Since(began).Round(time.Second))+" so far")
		case <-s.closing:
			last = true
		}
		quiet.Reset(streamQuiet)
		s.mu.Lock()
		pending := s.pending
		s.pending = nil
		s.mu.Unlock()
		for _, n := range pending {
			s.tell(n)
		}
		if last {
			return
		}
		s.rest(streamPause - streamGather)
	}
}

// rest waits, unless the run has ended.
func (s *stream) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closing:
	}
}

func (s *stream) started() {
	if s.id == "" {
		return
	}
	s.notify("started", "started execution "+s.id)
	s.message("info", "started", "started execution "+s.id)
}

func (s *stream) tell(n *news) {
	switch n.kind {
	case supervisor.Stage:
		s.notify("stage", string(n.head))
		s.message("info", "stage", string(n.head))
		return
	}
	name := "stdout"
	if n.kind == supervisor.Stderr {
		name = "stderr"
	}
	if s.combined {
		name = "output"
	}
	text := textOf(supervisor.Captured{Head: n.head, Tail: n.tail, Omitted: n.omitted}).text
	s.notify(name, name+": "+text)
	s.message("debug", name, text)
}

// notify sends a progress notification. An error means that the call or the
// connection is at its end, which the call learns by itself.
func (s *stream) notify(event, message string) {
	if s.token == nil {
		return
	}
	s.progress++
	meta := mcp.Meta{metaEvent: event}
	if s.id != "" {
		meta[metaExecution] = s.id
	}
	_ = s.session.NotifyProgress(s.ctx, &mcp.ProgressNotificationParams{
		Meta:          meta,
		ProgressToken: s.token,
		Progress:      s.progress,
		Message:       message,
	})
}

// Names in _meta of the progress notifications.
const (
	metaEvent     = "rillbox/event"        // started, stage, stdout, stderr, output or running
	metaExecution = "rillbox/execution_id" // the run's id
)

// logData is the data of a log notification.
type logData struct {
	ExecutionID string `json:"execution_id,omitempty"`
	Event       string `json:"event"`
	Text        string `json:"text"`
}

// message sends a log notification; the SDK drops it when the client asked for
// no level, or for a higher one.
func (s *stream) message(level mcp.LoggingLevel, event, text string) {
	_ = s.session.Log(s.ctx, &mcp.LoggingMessageParams{
		Level:  level,
		Logger: "rillbox",
		Data:   logData{s.id, event, text},
	})
}

// ended tells a client that set a level how the run ended; it must be called
// after close.
func (s *stream) ended(status supervisor.Status, took time.Duration) {
	level := mcp.LoggingLevel("info")
	if status != supervisor.Completed {
		level = "warning"
	}
	s.message(level, "ended", fmt.Sprintf("%s after %d ms", status, took.Milliseconds()))
}

// stageText writes a stage for people: "fetching numpy 2.4 of 12.1 MB".
func stageText(e supervisor.Event) string {
	text := supervisor.ShowLine(e.Text, maxStage)
	unit, name := 1e6, "MB"
	switch most := max(e.Done, e.Total); {
	case most < 1e3:
		unit, name = 1, "bytes"
	case most < 1e6:
		unit, name = 1e3, "kB"
	}
	switch {
	case e.Total > 0:
		text += fmt.Sprintf(" %s of %s %s", short(float64(e.Done)/unit), short(float64(e.Total)/unit), name)
	case e.Done > 0:
		text += fmt.Sprintf(" %s %s", short(float64(e.Done)/unit), name)
	}
	return text
}
