//go:build !windows

package deno

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"rillbox/supervisor"
	"rillbox/supervisor/launcher"
)

// Programs are parsed in processes of their own. esbuild is fast and made for
// people's own programs: its parser recurses once for each level of nesting (a
// program of a million brackets overflows Go's stack, which ends a process), and
// takes minutes for some that are made for it. Such a program costs a scanner,
// and the run goes on without what it would have told.
//
// A scanner is our own binary again, started as every child is, with no
// permission to anything. Requests come on its fd 0, answers go to its fd 3, as
// JSON. It runs none of the program, so that it can serve one run after another.

// scanArg, alone, makes our binary a scanner.
const scanArg = "rillbox-scan"

const (
	scanTime   = 10 * time.Second // for one program
	scanStack  = 128 << 20        // bytes; enough for 10,000 levels
	scanMemory = 512 << 20        // bytes
	idleKept   = 2                // scanners that wait for the next run
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
		one.child.SetDeadline(24*time.Hour, "waiting for a program")
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
		one = nil
	}
	s.mu.Unlock()
	if one != nil {
		one.end()
	}
}

func (s *scanners) close() {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	for _, one := range idle {
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
	return &scanner{child, json.NewEncoder(child.Stdin()), json.NewDecoder(child.Frames())}, nil
}

// end ends the process, if it has not ended by itself.
func (one *scanner) end() {
	one.child.Kill(supervisor.Cancelled, "it is not needed any more")
	one.child.Wait()
}
