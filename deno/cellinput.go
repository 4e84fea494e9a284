//go:build !windows

package deno

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// cellInput is a session's standard input: a named pipe, which ends with each cell.
// A reader of a named pipe sees its end when nobody has it open for writing, and can
// read on when somebody opens it again.
type cellInput struct {
	path string
	own  *os.File // for reading what a cell left
}

// newCellInput makes the pipe at path; theirs is the child's end of it.
func newCellInput(path string) (in *cellInput, theirs *os.File, err error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, nil, fmt.Errorf("make a pipe for standard input: %w", err)
	}
	in = &cellInput{path: path}
	// Opening for reading would wait for a writer.
	if in.own, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return nil, nil, err
	}
	if theirs, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return nil, nil, errors.Join(err, in.own.Close())
	}
	if err := syscall.SetNonblock(int(theirs.Fd()), false); err != nil {
		return nil, nil, errors.Join(err, in.own.Close(), theirs.Close())
	}
	return in, theirs, nil
}

// give copies r to the child until over is called; a nil r gives it nothing.
func (in *cellInput) give(r io.Reader) (over func(), err error) {
	if r == nil {
		return func() {}, nil
	}
	to, err := os.OpenFile(in.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open standard input: %w", err)
	}
	go func() {
		_, _ = io.Copy(to, r) // an error means that nobody reads any more
		_ = to.Close()
	}()
	return func() {
		_ = to.Close()
		in.drain()
	}, nil
}

// drain drops what the cell did not read: up to the end that a pipe without a writer has.
func (in *cellInput) drain() {
	_ = in.own.SetReadDeadline(time.Now().Add(time.Second)) // the guest may have become one
	_, _ = io.Copy(io.Discard, in.own)
}

func (in *cellInput) close() error {
	if in == nil {
		return nil
	}
	return in.own.Close()
}
