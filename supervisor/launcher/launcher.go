//go:build !windows

// Package launcher is the child's side of starting a child: our own binary,
// executed again under another name, which prepares the process that it is in
// and then becomes Deno.
//
// What flows through it: a Policy, as JSON on descriptor 4, and the command in
// the arguments. It ties the child's life to ours, lowers its
// priority, sets its limits, builds the second wall around it and calls execve;
// file descriptors 0 to 3, the environment and the working directory are those
// that it was started with. It promises that no instruction of Deno or of a
// guest runs before all of that is in force: where it can't be, it exits with
// status 125 and a message on stderr.
//
// The same binary also serves as the keeper (see Keeper): the process that ends
// what a server leaves behind when it is killed.
//
// Both run from this package's init, so that importing the package is all that
// a program or a test binary needs. That costs a few milliseconds: other
// packages' initialisation comes first, and is small (measured: 3 ms for all).
package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Names of the roles, told by argv[0].
const (
	launcherName = "rillbox-launcher"
	keeperName   = "rillbox-keeper"
)

// FailureStatus is the exit status of a child that the launcher could not start.
const FailureStatus = 125

// Policy is what the launcher puts in force before it becomes the child.
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

// PolicyDescriptor is where the launcher reads its policy, as JSON until EOF. It
// is no argument because a policy can be longer than one may be, and because
// arguments can be read by others.
const PolicyDescriptor = 4

// Argv gives argv, argv[0] included, for executing our own binary as a launcher
// that puts a policy in force and becomes path with args.
func Argv(path string, args []string) []string {
	return append([]string{launcherName, path}, args...)
}

// WritePolicy writes a policy for a launcher to read.
func WritePolicy(w io.Writer, p Policy) error {
	if err := json.NewEncoder(w).Encode(p); err != nil {
		return fmt.Errorf("give the launcher its policy: %w", err)
	}
	return nil
}

// KeeperArgv gives argv for executing our own binary as a keeper.
func KeeperArgv() []string { return []string{keeperName} }

func init() {
	switch os.Args[0] {
	case launcherName:
		err := launch(os.Args[1:])
		fmt.Fprintln(os.Stderr, "rillbox: cannot start the child:", err)
		os.Exit(FailureStatus)
	case keeperName:
		keep(os.Stdin)
		os.Exit(0)
	}
}

// launch returns only when it fails.
func launch(args []string) error {
	if len(args) == 0 {
		return errors.New("want a command, have none")
	}
	from := os.NewFile(PolicyDescriptor, "the policy's descriptor")
	p, err := readPolicy(from)
	if err != nil {
		return err
	}
	_ = from.Close() // it was only read
	if err := p.apply(); err != nil {
		return err
	}
	if err := syscall.Exec(args[0], args, os.Environ()); err != nil {
		return fmt.Errorf("execute %s: %w", args[0], err)
	}
	return nil
}

// readPolicy reads a policy. What it does not know is an error: it would not be
// in force.
func readPolicy(from io.Reader) (Policy, error) {
	var p Policy
	text := json.NewDecoder(from)
	text.DisallowUnknownFields()
	if err := text.Decode(&p); err != nil {
		return p, fmt.Errorf("read the policy: %w", err)
	}
	if text.More() {
		return p, errors.New("read the policy: something follows it")
	}
	return p, nil
}

func (p Policy) apply() error {
	if err := join(p.Cgroup); err != nil {
		return fmt.Errorf("join the child's cgroup: %w", err)
	}
	if err := closeDescriptors(4); err != nil {
		return fmt.Errorf("close inherited descriptors: %w", err)
	}
	if err := setLimit(unix.RLIMIT_CORE, 0); err != nil {
		return fmt.Errorf("turn core dumps off: %w", err)
	}
	if p.OpenFiles > 0 {
		if err := setLimit(unix.RLIMIT_NOFILE, p.OpenFiles); err != nil {
			return fmt.Errorf("limit open files to %d: %w", p.OpenFiles, err)
		}
	}
	if p.FileBytes > 0 {
		if err := setLimit(unix.RLIMIT_FSIZE, p.FileBytes); err != nil {
			return fmt.Errorf("limit file sizes to %d bytes: %w", p.FileBytes, err)
		}
		signal.Ignore(syscall.SIGXFSZ) // a longer write is an error, not the child's end; it outlives execve
	}
	if p.Nice > 0 {
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, p.Nice); err != nil {
			return fmt.Errorf("lower the priority by %d: %w", p.Nice, err)
		}
	}
	if p.Wall != nil {
		if err := p.Wall.raise(); err != nil {
			return fmt.Errorf("raise the second wall: %w", err)
		}
	}
	return nil
}

// setLimit lowers a resource limit to value, or leaves a lower one.
func setLimit(resource int, value uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	value = min(value, uint64(now.Max))
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value})
}
