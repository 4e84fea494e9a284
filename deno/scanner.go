//go:build !windows

package deno

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"rillbox/supervisor"
	"rillbox/supervisor/launcher"
)

// Programs are parsed in processes of their own. esbuild is fast and made for
// people's own programs: its parser recurses once for each level of nesting (a
// program of a million brackets overflows Go's stack, which ends a process), and
// its time doubles with each level of some types (400 bytes can take for ever).
// Such a program costs a scanner, and the run goes on without what it would have
// told.
//
// A scanner is our own binary again, started as every child is, with no
// permission to anything. Requests come on its fd 0, answers go to its fd 3, as
// JSON. It runs none of the program, so that it can serve one run after another.

// scanArg, alone, makes our binary a scanner.
const scanArg = "rillbox-scan"

const (
	scanTime   = 5 * time.Second // for one program
	scanStack  = 128 << 20       // bytes; enough for 10,000 levels
	scanMemory = 512 << 20       // bytes

	// So many scanners wait so long for the next run: starting one takes 10 ms,
	// and nothing of a run may be left a second after its end.
	idleKept = 2
	idleTime = 300 * time.Millisecond
)

type scanRequest struct {
	Code      string `json:"code"`
	Extension string `json:"extension"` // with its dot
}

func init() {
	if len(os.Args) == 2 && os.Args[1] == scanArg {
		debug.SetMaxStack(scanStack)
		answer(json.NewDecoder(os.Stdin), json.NewEncoder(os.NewFile(3, "answers")))
		os.Exit(0)
	}
}

// answer scans until the requests end.
func answer(requests *json.Decoder, answers *json.Encoder) {
	for {
		var r scanRequest
		if err := requests.Decode(&r); err != nil {
			return
		}
		if err := answers.Encode(scan(r.Code, loaders[r.Extension])); err != nil {
			return
		}
	}
}

// scanner is one such process.
type scanner struct {
	child    *supervisor.Child
	requests *json.Encoder
	answers  *json.Decoder
	expiry   *time.Timer // while it is idle
}

// scanners start, keep and end them.
type scanners struct {
	mu     sync.Mutex
	idle   []*scanner
	closed bool
}

// scan parses a program. The error means that no scanner could be started or
// that ctx ended.
func (s *scanners) scan(ctx context.Context, code, extension string) (scanned, error) {
	one, err := s.take()
	if err != nil {
		return scanned{}, fmt.Errorf("start a process to parse the program: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { one.child.Kill(supervisor.Cancelled, "the run was cancelled") })
	one.child.SetDeadline(scanTime, "parsing the program")
	var found scanned
	err = errors.Join(one.requests.Encode(scanRequest{code, extension}), one.answers.Decode(&found))
	if err == nil && stop() {
		one.child.SetDeadline(scanTime, "waiting for a program")
		s.keep(one)
		return found, nil
	}
	stop()
	one.end()
	if ctx.Err() != nil {
		return scanned{}, context.Cause(ctx)
	}
	return scanned{TooHard: true}, nil
}

func (s *scanners) take() (*scanner, error) {
	s.mu.Lock()
	if last := len(s.idle) - 1; last >= 0 {
		one := s.idle[last]
		s.idle = s.idle[:last]
		one.expiry.Stop()
		s.mu.Unlock()
		return one, nil
	}
	s.mu.Unlock()
	return startScanner()
}

func (s *scanners) keep(one *scanner) {
	s.mu.Lock()
	if !s.closed && len(s.idle) < idleKept {
		s.idle = append(s.idle, one)
		kept := one
		one.expiry = time.AfterFunc(idleTime, func() { s.expire(kept) })
		one = nil
	}
	s.mu.Unlock()
	if one != nil {
		one.end()
	}
}

// expire ends a scanner that is still idle.
func (s *scanners) expire(one *scanner) {
	s.mu.Lock()
	i := slices.Index(s.idle, one)
	if i >= 0 {
		s.idle = slices.Delete(s.idle, i, i+1)
	}
	s.mu.Unlock()
	if i >= 0 {
		one.end()
	}
}

func (s *scanners) close() {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	for _, one := range idle {
		one.expiry.Stop()
		one.end()
	}
}

func startScanner() (*scanner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := supervisor.NewRunDir()
	if err != nil {
		return nil, err
	}
	limits := supervisor.DefaultLimits()
	limits.Memory = scanMemory
	child, err := supervisor.Start(supervisor.Command{
		Path: self,
		Args: []string{scanArg},
		Env:  []string{"GOMAXPROCS=2", "GOTRACEBACK=none"},
		Dir:  dir,
		Wall: &launcher.Wall{ReadOnly: []string{self}},
	}, limits)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	child.Attach(context.Background(), func(supervisor.Event) {})
	return &scanner{child: child, requests: json.NewEncoder(child.Stdin()), answers: json.NewDecoder(child.Frames())}, nil
}

// end ends the process, if it has not ended by itself.
func (one *scanner) end() {
	one.child.Kill(supervisor.Cancelled, "it is not needed any more")
	one.child.Wait()
}
