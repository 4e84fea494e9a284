package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start starts a child. Darwin's processes can't be forked from Go, so our own
// binary is executed again; it reads the command, puts its bounds in force and becomes
// the child, by way of sandbox-exec where it has a wall. The command is no argument
// because it can be longer than one may be, and because arguments can be read by
// others.
func Start(c Command) (s Started, err error) {
	told := told{Command: c}
	if told.Profile, err = c.sandboxProfile(); err != nil {
		return s, fmt.Errorf("start %s: %w", c.Path, err)
	}
	self, err := os.Executable()
	if err != nil {
		return s, fmt.Errorf("find our own executable, to start the child with: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return s, fmt.Errorf("make a pipe for the child's command: %w", err)
	}
	defer func() { _ = r.Close() }()
	s.Process, err = os.StartProcess(self, []string{launcherName, fmt.Sprint(len(c.Files))}, &os.ProcAttr{
		Dir: c.Dir, Env: append([]string{}, c.Env...), // nil would mean ours
		Files: append(c.Files[:len(c.Files):len(c.Files)], r),
		Sys:   &syscall.SysProcAttr{Setpgid: true}, // no parent-death signal: the keeper ends what we leave
	})
	if err != nil {
		return s, errors.Join(fmt.Errorf("start %s: %w", c.Path, err), w.Close())
	}
	go func() { // it may be longer than a pipe holds
		_ = json.NewEncoder(w).Encode(told) // it fails when the launcher has ended, and its status says so
		_ = w.Close()
	}()
	return s, nil
}

// told is what the launcher is told.
type told struct {
	Command
	Profile string
}

// launcherName is argv[0] of our own binary on its way to a child.
const launcherName = "rillbox-launcher"

func init() {
	if os.Args[0] == launcherName {
		fmt.Fprintln(os.Stderr, "rillbox: cannot start the child:", launch())
		os.Exit(FailureStatus)
	}
}

// launch returns only when it fails.
func launch() error {
	var descriptor int
	if _, err := fmt.Sscan(strings.Join(os.Args[1:], " "), &descriptor); err != nil {
		return fmt.Errorf("read the command's descriptor: %w", err)
	}
	from := os.NewFile(uintptr(descriptor), "the command's descriptor")
	var c told
	if err := json.NewDecoder(from).Decode(&c); err != nil {
		return fmt.Errorf("read the command: %w", err)
	}
	_ = from.Close() // it was only read
	if err := closeDescriptors(descriptor); err != nil {
		return fmt.Errorf("close inherited descriptors: %w", err)
	}
	limits, err := c.limits()
	if err != nil {
		return err
	}
	for resource, limit := range limits {
		if err := unix.Setrlimit(resource, &limit); err != nil {
			return fmt.Errorf("set resource limit %d to %d: %w", resource, limit.Max, err)
		}
	}
	if c.Nice > 0 {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, c.Nice); err != nil {
			return fmt.Errorf("lower the priority by %d: %w", c.Nice, err)
		}
	}
	argv := append([]string{c.Path}, c.Args...)
	if c.Profile != "" {
		argv = append([]string{sandboxExec, "-p", c.Profile}, argv...)
	}
	return fmt.Errorf("execute %s: %w", argv[0], syscall.Exec(argv[0], argv, os.Environ()))
}

// closeDescriptors marks every descriptor from first on to be closed by execve:
// those that we inherited are none of the child's.
func closeDescriptors(first int) error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		var fd int
		if _, err := fmt.Sscan(entry.Name(), &fd); err == nil && fd >= first {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
