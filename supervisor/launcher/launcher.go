//go:build !windows

// Package launcher is the child's side of starting a child: what happens between
// the fork and Deno.
//
// What flows through it: a Command with its Policy. The new process ties its
// life to ours, lowers its priority, sets its limits, builds the second wall
// around itself and executes the command; of our descriptors it has those that
// the command names. It promises that no instruction of Deno or of a guest runs
// before all of that is in force: where it can't be, the child does not start.
//
// Our own binary, executed again under another name, also serves as the keeper
// (see Keeper): the process that ends what a server leaves behind when it is
// killed. It runs from this package's init, so that importing the package is all
// that a program or a test binary needs.
package launcher

import (
	"io"
	"os"
)

// Names of the roles of our own binary, told by argv[0].
const (
	launcherName = "rillbox-launcher"
	keeperName   = "rillbox-keeper"
	otherName    = "rillbox-mapping" // from which a mapping of users is taken
)

// FailureStatus is the exit status of a child that could not be started.
const FailureStatus = 125

// Command says what a child becomes.
type Command struct {
	// Path is the executable, Args its arguments without argv[0], Env its whole
	// environment, Dir its working directory.
	Path string
	Args []string
	Env  []string
	Dir  string
	// Files are the child's descriptors, from 0 on; it has no others.
	Files []*os.File
	Policy
}

// Policy is what is put in force before the child starts.
type Policy struct {
	// Wall is the second wall; nil leaves it out.
	Wall *Wall `json:"wall,omitempty"`
	// Cgroup are the files through which the child joins its cgroup.
	Cgroup []string `json:"cgroup,omitempty"`
	// Nice is added to the child's niceness, 0 to 19.
	Nice int `json:"nice,omitempty"`
	// OpenFiles bounds the child's file descriptors.
	OpenFiles uint64 `json:"open_files,omitempty"`
	// FileBytes bounds the size of each file that the child writes; 0 is no
	// bound. A longer write fails in the guest with "file too large".
	FileBytes uint64 `json:"file_bytes,omitempty"`
}

// KeeperArgv gives argv for executing our own binary as a keeper.
func KeeperArgv() []string { return []string{keeperName} }

func init() {
	switch os.Args[0] {
	case launcherName:
		becomeChild()
	case keeperName:
		keep(os.Stdin)
		os.Exit(0)
	case otherName: // it is there for its user namespace
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
}
