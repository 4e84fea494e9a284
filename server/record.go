package server

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// Record tells of a tool call that has ended: nothing of its code, input, environment and
// output.
type Record struct {
	Began time.Time
	Took  time.Duration
	// Client owns what the call made; Session is the connection's ID, where it has one, and
	// Request that of the HTTP request, whose place in a trace is Trace (W3C's traceparent).
	Client, Session, Request, Trace string
	// Tool is the tool's name; "unknown" for a name that no tool has.
	Tool string
	// Status is how it ended: a run's job.Status, or completed; refused, busy or error where
	// nothing was done.
	Status string
	// Language is one that the server has; empty where none is concerned.
	Language job.Language
	// Packages and Permissions are those that the call names, shortened. A nil list of
	// permissions means all that were granted.
	Packages, Permissions []string
	// Execution is the ID of the run, if there was one.
	Execution                              string
	Waited, Installing, Fetching, Duration time.Duration // as in job.Result
	PeakMemory                             int64
	// In is how many bytes the arguments have, Out how many the answer's content has, its
	// structured form apart.
	In, Out int64
}

// Statuses of calls that did nothing.
const (
	StatusBusy    = "busy"    // there was no room for a run
	StatusRefused = "refused" // it can't be done as it was asked
	StatusError   = "error"
)

type recordKey struct{}

// recordOf is that of the call which has the context.
func recordOf(ctx context.Context) *Record {
	if r, ok := ctx.Value(recordKey{}).(*Record); ok {
		return r
	}
	return &Record{}
}

// Headers with which a door names a request, and its place in a trace.
const (
	RequestHeader = "X-Request-Id"
	TraceHeader   = "Traceparent"
)

// recorded begins a call's record; end completes it and tells of it.
func (s *Server) recorded(ctx context.Context, call *mcp.CallToolRequest) (_ context.Context, end func(mcp.Result, error)) {
	r := &Record{Began: time.Now(), Client: clientOf(ctx), Tool: "unknown", In: int64(len(call.Params.Arguments))}
	if call.Session != nil {
		r.Session = call.Session.ID()
	}
	if call.Extra != nil {
		r.Request, r.Trace = call.Extra.Header.Get(RequestHeader), call.Extra.Header.Get(TraceHeader)
	}
	for _, t := range s.tools {
		if t.Name == call.Params.Name {
			r.Tool = t.Name
		}
	}
	return context.WithValue(ctx, recordKey{}, r), func(res mcp.Result, err error) {
		if s.o.Ended == nil {
			return
		}
		r.Took = time.Since(r.Began)
		answer, isAnswer := res.(*mcp.CallToolResult)
		switch {
		case err != nil:
			r.Status = cmp.Or(r.Status, statusOf(err))
		case isAnswer && answer != nil && answer.IsError:
			r.Status = cmp.Or(r.Status, StatusError)
		default:
			r.Status = cmp.Or(r.Status, string(job.Completed))
		}
		if isAnswer && answer != nil {
			r.Out = contentBytes(answer.Content)
		}
		s.o.Ended(*r)
	}
}

// statusOf is the status of a call that did nothing.
func statusOf(err error) string {
	var refused *job.ProgramError
	var busy *supervisor.BusyError
	switch {
	case errors.As(err, &busy):
		return StatusBusy
	case errors.As(err, &refused):
		return StatusRefused
	}
	return StatusError
}

// asked notes what a call names.
func (r *Record) asked(packages, permissions []string) {
	r.Packages, r.Permissions = nil, nil
	for _, name := range packages[:min(len(packages), maxItems)] {
		r.Packages = append(r.Packages, job.ShowLine(withoutSecrets(name), maxIdentity))
	}
	if permissions != nil {
		r.Permissions = []string{}
	}
	for _, flag := range permissions[:min(len(permissions), maxItems)] {
		r.Permissions = append(r.Permissions, job.ShowLine(flag, maxIdentity))
	}
}

// ran notes a run.
func (r *Record) ran(p job.Program, result job.Result, err error) {
	r.Execution, r.Language = p.ID, cmp.Or(result.Language, p.Language)
	r.Waited, r.Installing, r.Fetching, r.Duration, r.PeakMemory = result.Waited, result.Installing, result.Fetching, result.Duration, result.PeakMemory
	r.Status = string(result.Status)
	if err != nil {
		r.Status = statusOf(err)
	}
}

// withoutSecrets is a package's name; of a URL, host and path.
func withoutSecrets(name string) string {
	of, address, isOf := strings.Cut(name, " @ ") // PEP 508
	if !isOf {
		of, address = "", name
	}
	if u, err := url.Parse(strings.TrimSpace(address)); err == nil && u.Host != "" {
		return strings.TrimSpace(of + " " + u.Host + u.Path)
	}
	if scheme, _, is := strings.Cut(address, ":"); is && strings.EqualFold(scheme, "data") { // it is code
		return strings.TrimSpace(of + " (a data: URL)")
	}
	if strings.Contains(address, "://") { // no URL that can be read
		return strings.TrimSpace(of + " (a URL)")
	}
	return name
}

func contentBytes(content []mcp.Content) (bytes int64) {
	for _, c := range content {
		switch c := c.(type) {
		case *mcp.TextContent:
			bytes += int64(len(c.Text))
		case *mcp.ImageContent:
			bytes += int64(len(c.Data))
		case *mcp.AudioContent:
			bytes += int64(len(c.Data))
		case *mcp.EmbeddedResource:
			bytes += int64(len(c.Resource.Text) + len(c.Resource.Blob))
		}
	}
	return bytes
}
