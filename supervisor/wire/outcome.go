package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// Outcome is what a child's frames said of a run.
type Outcome struct {
	// Result is the result frame, Uncaught the last uncaught error; nil when
	// there was none.
	Result   *Frame
	Uncaught *job.GuestError
	// Quiet says that a child that ends without a result has said all by its exit
	// status.
	Quiet bool
	Shown Displays
	// Err is why the frames could not be read to their end.
	Err error
}

// ReadOutcome reads a child's frames to their end. Each frame but result,
// uncaught and display goes to other (nil drops them) as it comes; an error of
// other's ends the reading like a protocol error. At the result ending is called,
// unless it is nil: after that a child ends, unless the guest has it go on.
func ReadOutcome(frames *FrameReader, ending func(), other func(Frame) error) Outcome {
	o := ReadCell(frames, other)
	if o.Result != nil {
		if ending != nil {
			ending()
		}
		o.read(frames, other) // a second result is an error
	}
	if o.Err != nil {
		frames.Drain()
	}
	return o
}

// ReadCell reads the frames of one cell, up to its result. At an error, and
// where there is no result, the child can take no other cell.
func ReadCell(frames *FrameReader, other func(Frame) error) (o Outcome) {
	o.read(frames, other)
	return o
}

// read reads up to a result or the end.
func (o *Outcome) read(frames *FrameReader, other func(Frame) error) {
	for o.Err == nil {
		frame, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		switch {
		case err != nil:
		case frame.Type == ResultFrame:
			o.Result = &frame
			return
		case frame.Type == UncaughtFrame:
			o.Uncaught = frame.Error
		case frame.Type == DisplayFrame:
			err = o.Shown.Add(frame)
		case other != nil:
			err = other(frame)
		}
		o.Err = err
	}
}

// heapExhausted is what V8 writes before it aborts for want of heap.
var heapExhausted = []byte("Fatal JavaScript out of memory")

// Into gives the run's result: the verdict is exit's, the value, the error and
// what is shown are the frames'. Times, packages and other notes are left to the
// engine.
func (o Outcome) Into(exit sandbox.Exit) job.Result {
	r := job.Result{
		Status:     exit.Status,
		ExitCode:   exit.Code,
		Stdout:     exit.Stdout,
		Stderr:     exit.Stderr,
		Combined:   exit.Combined,
		CPU:        exit.CPU,
		PeakMemory: exit.PeakMemory,
		Displays:   o.Shown.List,
		Notes:      o.Shown.summary(o.Result != nil),
	}
	errors := r.Errors()
	if exit.Status == job.Crashed && (bytes.Contains(errors.Head, heapExhausted) || bytes.Contains(errors.Tail, heapExhausted)) {
		r.Status = job.OutOfMemory
		exit.Reason = "the JavaScript heap is full"
	}
	if r.Status == job.OutOfMemory { // we may have ended it while it told that
		*errors = withoutReport(*errors)
	}
	switch r.Status {
	case job.Completed:
		switch {
		case o.isUnusable():
			r.Status, r.Error = job.Failed, o.protocolError(exit)
		case o.Result == nil:
		case o.Result.Error != nil:
			r.Status, r.Error = job.Failed, o.Result.Error
		default:
			r.Value = o.Result.Value
		}
	case job.Failed:
		switch {
		case exit.Reason != "": // we ended it
			r.Error = &job.GuestError{Name: "LimitError", Message: exit.Reason}
		case o.Result != nil && o.Result.Error != nil:
			r.Error = o.Result.Error
		case o.Uncaught != nil:
			r.Error = o.Uncaught
		case o.isUnusable():
			r.Error = o.protocolError(exit)
		}
	default:
		r.Error = &job.GuestError{Name: r.Status.ErrorName(), Message: exit.Reason}
	}
	return r
}

// withoutReport takes V8's report of a full heap off what a child wrote.
func withoutReport(c job.Captured) job.Captured {
	if at := reportIn(c.Head); at >= 0 {
		return job.Captured{Head: c.Head[:at]}
	}
	if at := reportIn(c.Tail); at >= 0 {
		c.Tail = c.Tail[:at]
	}
	return c
}

func (o Outcome) isUnusable() bool { return o.Err != nil || o.Result == nil && !o.Quiet }

func (o Outcome) protocolError(exit sandbox.Exit) *job.GuestError {
	why := "it ended without saying how the program went"
	if o.Err != nil {
		why = o.Err.Error()
	}
	return &job.GuestError{
		Name:    "ProtocolError",
		Message: fmt.Sprintf("the program's process ended with exit status %d, and what it reported can't be used: %s", exit.Code, why),
	}
}
