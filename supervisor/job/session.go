package job

import (
	"context"
	"time"
)

// SessionOptions say what a session is opened with.
type SessionOptions struct {
	Language Language
	// Permissions narrow what the operator granted, and Most what the client may have of
	// it, as those of a Program do.
	Permissions, Most []string
	Policy            PackagePolicy
	// Workspace is a directory, by its real path: the session's current one,
	// which it may read and write without further permission.
	Workspace string
	// ReadOnly lets the workspace be read, not written.
	ReadOnly bool
}

// InterruptGrace is how long a cell may take to end once it was interrupted.
const InterruptGrace = time.Second

// Session is one child that keeps its state from cell to cell: a cell is a
// Program of the session's language that runs in the state that the cells
// before it left. Its process is never another session's.
type Session interface {
	// Run runs one cell, as Engine.Run runs a program; one at a time. When the
	// cell's time is up or ctx ends, the cell is interrupted first, so that the
	// state is kept; when that does not stop it within InterruptGrace, the child
	// is killed. Result.State says which; after StateLost the session has ended.
	Run(ctx context.Context, cell Program, s Streams) (Result, error)
	// Complete gives the names that may stand in place of the last word of text.
	Complete(ctx context.Context, text string) ([]string, error)
	// Unfinished says whether text, as it is typed, waits for another line. It is the
	// guest's claim.
	Unfinished(ctx context.Context, text string) (bool, error)
	// Memory is how many bytes the child uses now.
	Memory() int64
	// Ended is closed when the child has ended, for whatever reason.
	Ended() <-chan struct{}
	// Close ends the child and waits for its end. The workspace stays.
	Close()
}

// SessionOpener is an engine that has sessions.
type SessionOpener interface {
	// OpenSession starts a session; nothing is handed to another one ever after.
	OpenSession(ctx context.Context, o SessionOptions, emit func(Event)) (Session, error)
}

// State says what became of a session's state when a cell did not end by itself.
type State string

// What becomes of a session's state.
const (
	StateKept State = "kept" // the cell was interrupted, the state before it is there
	StateLost State = "lost" // the child had to be killed, or died
)

// Display is one thing that a program wants to show, in the forms that it has
// one below the other: MIME type → content, text as it is, binary as base64
// (Jupyter's MIME bundle). It is the guest's claim.
type Display map[string]string
