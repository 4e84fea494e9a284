//go:build !windows

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// Worker is a child of an engine's that has loaded what it runs programs with, or
// is about to, and then takes a program.
type Worker struct {
	*sandbox.Child
	Reader *FrameReader // of its frames
	Ready  bool         // it has said that it takes a program
}

// SetReady takes the worker at its word that it takes a program.
func (w *Worker) SetReady() {
	w.MarkBaseline()
	w.Ready = true
}

// AwaitReady waits until the worker takes a program. One that does not within
// a time is ended, and the error says what of it took longer, or how it ended.
func (w *Worker) AwaitReady(ctx context.Context, within time.Duration, what string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%s took longer than %v", what, within))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { w.Kill(job.Cancelled, "it is not ready in time") })
	frame, err := w.Reader.Next()
	if err == nil && frame.Type != ReadyFrame {
		err = fmt.Errorf("its first frame is %q", frame.Type)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("its process has ended")
		select {
		case <-w.Ended(): // by itself, and says how
		case <-time.After(time.Second):
		}
	}
	if err != nil {
		exit := w.discard()
		return fmt.Errorf("%w (%s) %s", err, exit.Reason, exit.Stderr)
	}
	w.SetReady()
	return nil
}

// Discard ends a worker that nobody needs, and waits for its end.
func (w *Worker) Discard() { w.discard() }

func (w *Worker) discard() sandbox.Exit {
	w.Kill(job.Cancelled, "it is not needed")
	w.Attach(context.Background(), func(job.Event) {})
	w.Reader.Drain()
	return w.Wait()
}

// QuestionTime is how long a session's child may take to answer a question about a text, such
// as how it goes on: in Python an object's own code runs when it is asked for its attributes.
const QuestionTime = 2 * time.Second

// Answer reads what a cell that was such a question came to; without a value nothing is known.
func Answer(language string, result job.Result, err error, answer any) error {
	if err != nil || result.Value == nil {
		return err
	}
	if err := json.Unmarshal(result.Value, answer); err != nil {
		return fmt.Errorf("read what %s says of a text: %w", language, err)
	}
	return nil
}
