//go:build !windows

package deno

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// stopTime is the processor time within which a guest that does not compute does as it is
// told. It is none of the clock's: where the machine is busy, that guest waits for its turn.
const stopTime = 50 * time.Millisecond

// interrupt stops the guest's code and timers, so that the session can go on; stopped
// is false when that takes longer than InterruptGrace. waits says that the guest was
// not computing, and may still wait for something.
//
// Code that computes without an end is terminated. That is safe where V8 runs a
// cell's code or what follows an await. In a callback that Deno calls, such as a
// timer's, it ends the process, so it is done only where nothing else helps.
func (s *session) interrupt() (stopped, waits bool) {
	ctx, cancel := context.WithTimeout(context.Background(), job.InterruptGrace)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- s.askGuest(ctx, "stop", nil, nil) }()
	began, _ := s.child.Usage()
	looks := time.NewTicker(sandbox.BusyInterval)
	defer looks.Stop()
	for late, waiting := time.After(job.InterruptGrace/2), true; waiting; {
		select {
		case err := <-answer:
			return err == nil && s.terminateTurns(ctx), true
		case <-late:
			waiting = false
		case <-looks.C:
			used, _ := s.child.Usage()
			waiting = used-began < stopTime
		}
	}
	return s.inspector.call(ctx, "Runtime.terminateExecution", nil, nil) == nil && <-answer == nil && s.terminateTurns(ctx), false
}

// quietTime is how long no code must run until the guest counts as stopped.
const quietTime = 50 * time.Millisecond

// pauses is what V8 tells while its debugger is enabled.
type pauses struct {
	// at receives at each pause whether the guest's code runs there, resumed when V8
	// goes on.
	at      chan bool
	resumed chan struct{}
	// internal are the scripts of Deno's and ours.
	internal map[string]bool
	guest    string // the URL that ours begin with
}

// maxInternal is how many scripts are known as internal; Deno has some 300.
const maxInternal = 5000

// take takes a notification of V8's. It is called from one goroutine.
func (p *pauses) take(n notification) {
	switch n.Method {
	case "Debugger.scriptParsed":
		var script struct{ ScriptID, URL string }
		if json.Unmarshal(n.Params, &script) != nil || len(p.internal) == maxInternal {
			return
		}
		for _, prefix := range []string{"ext:", "node:", p.guest} {
			if strings.HasPrefix(script.URL, prefix) {
				p.internal[script.ScriptID] = true
			}
		}
	case "Debugger.resumed":
		select {
		case p.resumed <- struct{}{}:
		default: // a second one is of the guest's making, as below
		}
	case "Debugger.paused":
		var paused struct {
			CallFrames []struct {
				Location struct{ ScriptID string }
			}
		}
		if json.Unmarshal(n.Params, &paused) != nil {
			return
		}
		guests := false
		for _, frame := range paused.CallFrames {
			guests = guests || !p.internal[frame.Location.ScriptID]
		}
		select {
		case p.at <- guests:
		default:
		}
	}
}

// terminateTurns ends code that runs in turns of the event loop, such as a loop that
// awaits a file again and again: it pauses V8 until the guest's code, or code that it
// called, is what runs, and terminates it there. It returns false if that is not done
// when ctx ends. What waits for something that does not come meanwhile stays.
func (s *session) terminateTurns(ctx context.Context) bool {
	call := func(method string, params any) bool { return s.inspector.call(ctx, method, params, nil) == nil }
	if !call("Debugger.enable", nil) {
		return false
	}
	for quiet := 0; quiet < 2; { // V8 may forget that it was to pause while it ends something
		if !call("Debugger.pause", nil) {
			return false
		}
		select {
		case guests := <-s.pauses.at:
			quiet = 0
			if !call("Debugger.resume", map[string]bool{"terminateOnResume": guests}) {
				return false
			}
			select {
			case <-s.pauses.resumed: // before that, it would not pause again
			case <-ctx.Done():
				return false
			}
		case <-time.After(quietTime):
			quiet++
		case <-s.ended:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return call("Debugger.disable", nil)
}
