//go:build !windows

package pyodide

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
	"rillbox/supervisor/wire"
)

// cell is one cell of a session: a program in a child that goes on after it.
//
// What its child says is a claim, as always. A guest can write a result frame of
// its own and so end its cell early; then the rest of the cell's frames is passed
// over, since each has its cell's number, and what is left of the cell gets no
// time before the next one, whose time it takes.
type cell struct {
	*run
	s      *session
	number int
	clock  *wire.CellClock
	exited bool // the child says that it ends

	input *wire.Input

	mu   sync.Mutex
	over bool // its result is there, or the child has ended
}

// do runs the cell to its end, or answers a question about a text.
func (c *cell) do(ctx context.Context, question request) job.Result {
	w := c.worker
	before, _ := w.Usage()
	emit, release := wire.HoldReport(c.emit)
	w.BeginCell(emit)
	w.grant.SetProgress(c.tell)
	c.clock = wire.NewCellClock(ctx, w.Child)
	endBuilds := w.grant.Building(c.clock)
	c.clock.Limit(c.program.Timeout, "the cell")
	c.input = wire.Pieces(c.stdin, c.send)
	context.AfterFunc(c.clock, c.interrupt)
	w.Resume()
	request := c.request()
	request.Cell, request.Complete, request.Unfinished = c.number, question.Complete, question.Unfinished
	go c.send(request)
	outcome := wire.ReadCell(w.Reader, func(frame wire.Frame) error { return c.takeOfCell(ctx, frame) })
	ended := time.Now()
	c.finish()
	endBuilds()
	w.grant.SetProgress(nil)

	var result job.Result
	if outcome.Result == nil {
		result = c.lost(outcome)
	} else {
		w.Pause()
		result = c.ended(outcome)
	}
	release(result)
	result.CPU -= before
	c.complete(&result, ended)
	c.e.makeImages(c.worker.rt, c.lacking)
	for _, file := range c.files() {
		c.installed[file.Name] = file.SHA256
	}
	return result
}

// ended is the result of a cell whose child lives on.
func (c *cell) ended(outcome wire.Outcome) job.Result {
	var reported struct {
		Code uint8 `json:"code"`
	}
	_ = json.Unmarshal(outcome.Result.JSON, &reported) // a guest's own frame may have no exit code
	exit := sandbox.Exit{Status: job.Completed, Code: int(reported.Code)}
	if exit.Code != 0 {
		exit.Status = job.Failed
	}
	exit.CPU, exit.PeakMemory = c.worker.Usage()
	exit.Stdout, exit.Stderr = c.worker.EndCell()
	result := outcome.Into(exit)
	status, reason := c.clock.Interruption()
	if status == "" {
		return result
	}
	traceback := ""
	if result.Error != nil {
		traceback = result.Error.Traceback
	}
	exit.Status, exit.Code, exit.Reason = status, job.InterruptedCode, reason+": the cell was interrupted, the session's state is kept"
	result = outcome.Into(exit)
	result.Error.Traceback = traceback
	result.State = job.StateKept
	return result
}

// lost is the result of a cell after which the child is no more, or of no more use.
func (c *cell) lost(outcome wire.Outcome) job.Result {
	w := c.worker
	if outcome.Err == nil { // the frames have ended: it may be about to
		select {
		case <-c.s.ended:
		case <-time.After(max(job.InterruptGrace, min(sandbox.EndGrace, c.clock.Left()))):
		}
	}
	const useless = "its session's process can take no other cell"
	w.Kill(job.Crashed, useless)
	<-c.s.ended
	exit := c.s.exit
	status, reason := c.clock.Interruption()
	switch {
	case status != "" && exit.Status != status:
		exit.Status, exit.Reason = status, reason+", and the session's process ended when it was interrupted"
	case outcome.Err != nil && exit.Reason == useless:
		exit.Status = job.Completed // so that the result tells of the error
	case c.exited:
		outcome.Result = &wire.Frame{}
	}
	result := c.result(outcome, exit)
	result.State = job.StateLost
	return result
}

// takeOfCell takes a frame.
func (c *cell) takeOfCell(ctx context.Context, frame wire.Frame) error {
	switch {
	case frame.Type == startedFrame && c.started.IsZero():
		c.start()
		c.clock.Limit(c.program.Timeout, "the cell")
		c.clock.LimitCPU()
		return nil
	case frame.Type == resolveFrame && c.wanted == nil:
		c.clock.Limit(c.e.o.Limits.InstallTimeout, "package installation")
	case frame.Type == stdinFrame && !c.started.IsZero():
		c.input.Ask()
		return nil
	case frame.Type == exitedFrame:
		c.exited = true
		return nil
	}
	return c.take(ctx, frame)
}

// interrupt interrupts the cell, and ends the child when that is of no avail.
func (c *cell) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	time.AfterFunc(job.InterruptGrace, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.over {
			status, reason := c.clock.Interruption()
			c.worker.Kill(status, fmt.Sprintf("%s, and did not stop within %v when it was interrupted", reason, job.InterruptGrace))
		}
	})
	_, err := c.worker.control.WriteAt(fmt.Appendf(nil, "%-16d", c.number), 0)
	if err != nil {
		c.e.o.Log.Warn("a cell can't be interrupted, and is ended", "error", err)
	}
	c.input.Interrupt()
}

// finish ends the interruptions: what comes too late is not the next cell's.
func (c *cell) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock.Stop()
	c.input.End()
	c.over = true
}
