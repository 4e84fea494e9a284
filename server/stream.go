package server

//lint:file-ignore SA1019 MCP's logging is deprecated as of 2026-07-28, yet it is what today's clients have.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
)

const (
	// streamPause is the least time between two flushes.
	streamPause = 50 * time.Millisecond
	// streamGather is how long the first event after a quiet time waits for
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
	pending []*notice     // in the order in which each first had something to say
	wake    chan struct{} // 1: something is pending
	known   chan struct{} // closed when the execution can be cancelled by its ID
	closing chan struct{}
	done    chan struct{}

	combined bool    // what comes as stdout is both streams
	progress float64 // only the sender's
}

// notice is what the next flush says of one stream or one stage.
type notice struct {
	kind  job.EventKind
	name  string // of the stage
	text  string // what to say; of a stream only once it is taken
	bytes *job.Capture
}

// maxToken is the longest progress token, in bytes: each message of progress repeats it.
const maxToken = 1 << 10

// checkProgressToken refuses a token that can't be repeated as it came, or costs too much.
func checkProgressToken(token any) error {
	switch token := token.(type) {
	case nil:
		return nil
	case string:
		if len(token) <= maxToken {
			return nil
		}
	case float64:
		if token == math.Trunc(token) && math.Abs(token) < 1<<53 {
			return nil
		}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("progressToken must be a string of at most %d bytes, or a whole number of less than 2^53", maxToken)}
}

func newStream(ctx context.Context, session *mcp.ServerSession, token any, id string) *stream {
	s := &stream{
		session: session,
		token:   token,
		id:      id,
		ctx:     ctx,
		wake:    make(chan struct{}, 1),
		known:   make(chan struct{}),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	go s.send()
	return s
}

// emit takes one event.
func (s *stream) emit(e job.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.noticeOf(e)
	if e.Kind == job.Stage {
		n.text = stageText(e)
	} else {
		_, _ = n.bytes.Write(e.Data) // it keeps what it can
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// noticeOf finds or makes the pending notice of the event's stream or stage.
func (s *stream) noticeOf(e job.Event) *notice {
	stages, oldest := 0, -1
	for i, n := range s.pending {
		if n.kind == e.Kind && n.name == e.Text {
			return n
		}
		if n.kind == job.Stage {
			if stages++; oldest < 0 {
				oldest = i
			}
		}
	}
	if e.Kind == job.Stage && stages == streamStages {
		s.pending = slices.Delete(s.pending, oldest, oldest+1)
	}
	n := &notice{kind: e.Kind, name: e.Text, bytes: job.NewCapture(2 * streamHalf)}
	s.pending = append(s.pending, n)
	return n
}

// take gives what is pending. What begins a character that is not whole yet waits,
// unless it is the last.
func (s *stream) take(last bool) []*notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.pending
	s.pending = nil
	for _, n := range taken {
		if n.kind == job.Stage {
			continue
		}
		c := n.bytes.Captured()
		if c.Omitted == 0 { // the character may be in both
			c = job.Captured{Tail: append(c.Head, c.Tail...)}
		}
		if cut := len(c.Tail) - partialRune(c.Tail); cut < len(c.Tail) && !last {
			_, _ = s.noticeOf(job.Event{Kind: n.kind}).bytes.Write(c.Tail[cut:])
			c.Tail = c.Tail[:cut]
		}
		n.text = textOf(c).text
	}
	return taken
}

// close sends what is still waiting and returns when nothing more will be sent.
func (s *stream) close() {
	close(s.closing)
	<-s.done
}

// send is the goroutine that talks to the client.
func (s *stream) send() {
	defer close(s.done)
	known := s.known
	began := time.Now()
	quiet := time.NewTimer(streamQuiet)
	defer quiet.Stop()
	for {
		last, woken := false, false
		select {
		case <-known:
		case <-s.wake:
			woken = true
			s.rest(streamGather)
		case <-quiet.C:
			s.notify("running", seconds(time.Since(began).Round(time.Second))+" so far")
		case <-s.closing:
			last = true
		}
		quiet.Reset(streamQuiet)
		if known != nil && isClosed(known) { // it is said first
			known = nil
			s.say("info", "started", "", "started execution "+s.id)
		}
		if !woken && !last { // what has come meanwhile may be half a line
			continue
		}
		told := s.take(last)
		for _, n := range told {
			s.tell(n)
		}
		if last {
			return
		}
		if len(told) > 0 {
			s.rest(streamPause - streamGather)
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// rest waits, unless the run has ended.
func (s *stream) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.closing:
	}
}

func (s *stream) tell(n *notice) {
	name := outName(s.combined)
	switch {
	case n.kind == job.Stage:
		s.say("info", "stage", "", n.text)
		return
	case n.kind == job.Stderr:
		name = "stderr"
	}
	if n.text != "" {
		s.say("debug", name, name+": ", n.text)
	}
}

// say tells one thing to those who want progress, and to those who want messages of the
// level.
func (s *stream) say(level mcp.LoggingLevel, event, prefix, text string) {
	s.notify(event, prefix+text)
	s.message(level, event, text)
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
func (s *stream) ended(status job.Status, took time.Duration) {
	level := mcp.LoggingLevel("info")
	if status != job.Completed {
		level = "warning"
	}
	s.message(level, "ended", fmt.Sprintf("%s after %d ms", status, took.Milliseconds()))
}

// stageText writes a stage for people: "fetching numpy 2.4 of 12.1 MB".
func stageText(e job.Event) string {
	text := job.ShowLine(e.Text, maxStage)
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
