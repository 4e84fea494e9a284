//go:build !windows

package pyodide

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"rillbox/cache/egress"
	"rillbox/deno"
	"rillbox/pyodide/gateway"
	"rillbox/pyodide/source"
	"rillbox/supervisor/job"
)

// A package of which the index has no wheel that runs here is built of its source, by
// its own build backend: a program (guest/build.py) of an engine of its own, the builder,
// to which nothing is granted but the package gateway. Its wheel is a claim, of which
// package source makes one that is what it should be.
//
// A build is a part of the run that waits for it: it ends with that, and a run has one at
// a time, so that places of the supervisor's bound their number.
const (
	builtKind   = "built"   // of the cache: the wheel
	unbuiltKind = "unbuilt" // why there is none
)

const (
	// buildTime bounds one build, its requirements included. Most take 2 to 5 s, those
	// with many modules to translate 20 s.
	buildTime = 2 * time.Minute
	// unbuiltFor is how long it is believed that a source can't be built: what it is
	// built by may change.
	unbuiltFor = 24 * time.Hour
)

// buildKey describes all that decides what a source is built to.
func (rt *runtime) buildKey(policy egress.Policy, archive gateway.File) string {
	return fmt.Sprintf("%s/%s/%s/%s", rt.key, rt.origin, policyKey(policy), digest(archive.Name, archive.Version, archive.Filename, archive.SHA256))
}

// newBuilder makes the engine of builds.
func (e *Engine) newBuilder() (*Engine, error) {
	limits := e.o.Limits
	limits.Timeout, limits.CPUTime = min(buildTime, limits.InstallTimeout), 0
	limits.Stdout, limits.Stderr = 64<<10, 64<<10
	limits.Result = int64(base64.StdEncoding.EncodedLen(source.MaxWheel)) + 4<<10
	b, err := New(Options{
		Options: deno.Options{
			Cache: e.o.Cache, DenoPath: e.o.DenoPath, Policy: e.o.Policy, Limits: limits, Log: e.o.Log,
			Wall: e.o.Wall, WithoutSecondWall: e.o.WithoutSecondWall,
		},
		Path: e.o.Path, IndexURL: e.o.IndexURL, Mirror: e.o.Mirror, builds: true,
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.built = b
	return b, err
}

// buildWheel is the gateway's Builder.
func (e *Engine) buildWheel(ctx context.Context, rt *runtime, policy egress.Policy, archive gateway.File, fetch func() (string, error), tell func(stage string, done, total int64)) (path string, fresh bool, err error) {
	key := rt.buildKey(policy, archive)
	if e.cacheOnly(policy) && !e.o.Cache.Has(builtKind, key) {
		key += "/cache"
	}
	path, hit, err := e.o.Cache.GetOrPut(ctx, builtKind, key, func(ctx context.Context, w io.Writer) error {
		if why := e.unbuilt(key); why != "" {
			return &gateway.UnbuiltError{Text: why}
		}
		lasting, err := e.build(ctx, policy, archive, fetch, tell, w)
		if unbuilt, ok := errors.AsType[*gateway.UnbuiltError](err); ok && lasting {
			e.keepUnbuilt(ctx, key, unbuilt.Text)
		}
		return err
	})
	return path, !hit, err
}

// unbuiltRecord says why a source can't be built.
type unbuiltRecord struct {
	Time time.Time `json:"time"`
	Why  string    `json:"why"`
}

// unbuilt is why a source can't be built, as it was found lately; empty if it was not.
func (e *Engine) unbuilt(key string) string {
	path, err := e.o.Cache.Get(unbuiltKind, key)
	if err != nil {
		return ""
	}
	var record unbuiltRecord
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &record)
	}
	if age := time.Since(record.Time); err != nil || age < 0 || age > unbuiltFor {
		return ""
	}
	return record.Why
}

func (e *Engine) keepUnbuilt(ctx context.Context, key, why string) {
	text, err := json.Marshal(unbuiltRecord{time.Now(), why})
	if err == nil {
		_, err = e.o.Cache.Put(ctx, unbuiltKind, key, bytes.NewReader(text))
	}
	if err != nil {
		e.o.Log.Warn("why a Python package can't be built is not kept", "error", err)
	}
}

// build writes the wheel of a source archive. An *gateway.UnbuiltError says why there is
// none, and lasting that it would be so again.
func (e *Engine) build(ctx context.Context, policy egress.Policy, archive gateway.File, fetch func() (string, error), tell func(stage string, done, total int64), w io.Writer) (lasting bool, err error) {
	path, err := fetch()
	if err != nil {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	builder, err := e.builder()
	if err != nil {
		return false, err
	}
	what := archive.Name + " " + archive.Version
	cant := func(format string, args ...any) error {
		return &gateway.UnbuiltError{Text: what + " " + job.ShowLine(fmt.Sprintf(format, args...), 1000)}
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	input, repacked := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := source.Repack(f, archive.Filename, repacked)
		_ = repacked.CloseWithError(err)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) {
			cancel(err)
		}
		unpacked <- err
	}()
	stage := fmt.Sprintf("building %s from source", what)
	tell(stage, 0, 0)
	program := job.Program{Language: job.Python, Name: "build.py", Code: buildProgram}
	result, err := builder.runUnder(ctx, policy, program, job.Streams{Stdin: input, Emit: func(event job.Event) {
		switch {
		case event.Kind != job.Stage:
		case event.Total > 0 && event.Done == event.Total:
			tell(stage, 0, 0)
		default:
			tell(stage+": "+event.Text, event.Done, event.Total)
		}
	}})
	_ = input.Close()
	bad := <-unpacked
	if bad != nil && !errors.Is(bad, io.ErrClosedPipe) {
		if egress.IsLocal(bad) {
			return false, bad
		}
		return true, cant("can't be built: its source is refused: %v", bad)
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	e.o.Log.Debug("a Python package was built", "file", archive.Filename, "status", result.Status, "duration", result.Duration,
		"cpu", result.CPU, "memory", result.PeakMemory, "stdout", result.Stdout.String(), "stderr", result.Stderr.String(), "error", err)
	switch {
	case err != nil && egress.IsLocal(err):
		return false, err
	case err != nil:
		return false, cant("can't be built: %v", err)
	case result.Status == job.TimedOut:
		return false, cant("can't be built: its build did not end within %v", builder.o.Limits.Timeout)
	case result.Status == job.OutOfMemory:
		return false, cant("can't be built: its build takes more memory than a program may have (%d MiB)", builder.o.Limits.Memory>>20)
	case result.Status != job.Completed:
		why := string(result.Status)
		if result.Error != nil {
			why = result.Error.Name + ": " + result.Error.Message
		}
		return false, cant("can't be built: its build ended with %s", why)
	}
	var outcome struct {
		Wheel   []byte `json:"wheel"`
		Failed  string `json:"failed"`
		Lasting bool   `json:"lasting"`
	}
	if err := json.Unmarshal(result.Value, &outcome); err != nil {
		return false, cant("can't be built: its build gave no wheel")
	}
	if outcome.Failed != "" {
		return outcome.Lasting, cant("%s", strings.TrimSuffix(outcome.Failed, "."))
	}
	if err := source.Wheel(outcome.Wheel, archive.Name, archive.Version, w); err != nil {
		if egress.IsLocal(err) {
			return false, err
		}
		return true, cant("can't be built: %v", err)
	}
	return false, nil
}
