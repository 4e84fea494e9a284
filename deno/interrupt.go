//go:build !windows

package deno

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// quietTime is how long no code has to run for the guest to be taken for stopped.
const quietTime = 50 * time.Millisecond

// pauses is what V8 tells while its debugger is enabled.
type pauses struct {
	// at is told when V8 has paused, and whether code of the guest's runs there;
	// resumed when it goes on.
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

// quieten ends what goes on between turns of the event loop, such as a loop that
// awaits a file again and again: V8 pauses what runs, again and again until that
// is code of the guest's, or called by it, and terminates it there. It gives false
// where that is not done when ctx ends. What waits for something that does not
// come meanwhile stays.
func (s *session) quieten(ctx context.Context) bool {
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
