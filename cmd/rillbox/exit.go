//go:build !windows

package main

import "rillbox/supervisor"

// Exit statuses that are not the program's own.
const (
	statusUsage     = 2   // the command line or a setting is wrong
	statusTimedOut  = 124 // the program's time was up, as timeout(1) has it
	statusBroken    = 125 // we failed, not the program
	statusCancelled = 130 // Ctrl-C or SIGTERM
	statusMemory    = 137 // the program used too much memory (128 + SIGKILL)
	statusPipe      = 141 // nobody reads what we write (128 + SIGPIPE)
)

// exitStatus is an error that sets the exit status, and was told already.
type exitStatus int

func (exitStatus) Error() string { return "" }

// statusOf is the exit status that tells how a program ended.
func statusOf(r supervisor.Result) error {
	switch r.Status {
	case supervisor.Completed:
		return nil
	case supervisor.TimedOut:
		return exitStatus(statusTimedOut)
	case supervisor.OutOfMemory:
		return exitStatus(statusMemory)
	case supervisor.Cancelled:
		return exitStatus(statusCancelled)
	}
	if r.ExitCode == 0 { // a crash that left no status of its own
		return exitStatus(1)
	}
	return exitStatus(r.ExitCode)
}
