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
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Names of the roles of our own binary, told by argv[0].
const (
	launcherName = "rillbox-launcher"
	keeperName   = "rillbox-keeper"
)

// FailureStatus is the exit status of a child that could not be started.
const FailureStatus = 125

// Command says what a child becomes, and within which bounds.
type Command struct {
	// Path is the executable, Args its arguments without argv[0], Env its whole
	// environment, Dir its working directory.
	Path string
	Args []string
	Env  []string
	Dir  string
	// Files are the child's descriptors, from 0 on; it has no others.
	Files []*os.File `json:"-"`
	// Wall is the second wall; nil leaves it out.
	Wall *Wall `json:"-"`
	// Cgroup are the files through which the child joins its cgroup.
	Cgroup []string
	// Nice is added to the child's niceness, 0 to 19.
	Nice int
	// OpenFiles bounds the child's file descriptors; 0 is no bound.
	OpenFiles uint64
	// FileBytes bounds the size of each file that the child writes; 0 is no
	// bound. A longer write fails in the guest with "file too large".
	FileBytes uint64
}

// limits are the child's resource limits, none above those in force.
func (c Command) limits() (map[int]unix.Rlimit, error) {
	limits := map[int]unix.Rlimit{}
	for resource, value := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: c.OpenFiles, unix.RLIMIT_FSIZE: c.FileBytes} {
		if value == 0 && resource != unix.RLIMIT_CORE {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return nil, fmt.Errorf("read a resource limit: %w", err)
		}
		value = min(value, now.Max)
		limits[resource] = unix.Rlimit{Cur: value, Max: value}
	}
	if c.FileBytes > 0 {
		signal.Ignore(syscall.SIGXFSZ) // a longer write is an error, not the child's end; a child inherits it
	}
	return limits, nil
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
	}
}
