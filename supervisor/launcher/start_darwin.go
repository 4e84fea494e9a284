package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start starts a child. Darwin's processes can't be forked from Go, so our own
// binary is executed again; it reads its policy, puts it in force and becomes
// the child, by way of sandbox-exec where it has a wall. The policy is no argument
// because it can be longer than one may be, and because arguments can be read by
// others.
func Start(c Command) (Started, error) {
	profile, err := c.sandboxProfile()
	if err != nil {
		return Started{}, fmt.Errorf("start %s: %w", c.Path, err)
	}
	self, err := os.Executable()
	if err != nil {
		return Started{}, fmt.Errorf("find our own executable, to start the child with: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return Started{}, fmt.Errorf("make a pipe for the child's policy: %w", err)
	}
	defer func() { _ = r.Close() }()
	process, err := os.StartProcess(self, append([]string{launcherName, fmt.Sprint(len(c.Files)), c.Path}, c.Args...), &os.ProcAttr{
		Dir: c.Dir, Env: append([]string{}, c.Env...), // nil would mean ours
		Files: append(c.Files[:len(c.Files):len(c.Files)], r),
		Sys:   &syscall.SysProcAttr{Setpgid: true}, // no parent-death signal: the keeper ends what we leave
	})
	if err != nil {
		return Started{}, errors.Join(fmt.Errorf("start %s: %w", c.Path, err), w.Close())
	}
	told := told{Policy: c.Policy, Profile: profile}
	told.Wall = nil // the profile is it
	go func() {     // it may be longer than a pipe holds
		_ = json.NewEncoder(w).Encode(told) // it fails when the launcher has ended, and its status says so
		_ = w.Close()
	}()
	return Started{Process: process}, nil
}

// told is what the launcher is told.
type told struct {
	Policy
	Profile string `json:"profile,omitempty"`
}

// becomeChild makes the process that it is in the child.
func becomeChild() {
	err := launch(os.Args[1:])
	fmt.Fprintln(os.Stderr, "rillbox: cannot start the child:", err)
	os.Exit(FailureStatus)
}

// launch returns only when it fails.
func launch(args []string) error {
	if len(args) < 2 {
		return errors.New("want a descriptor and a command")
	}
	var descriptor uint
	if _, err := fmt.Sscan(args[0], &descriptor); err != nil {
		return fmt.Errorf("read the policy's descriptor %q: %w", args[0], err)
	}
	from := os.NewFile(uintptr(descriptor), "the policy's descriptor")
	var p told
	if err := json.NewDecoder(from).Decode(&p); err != nil {
		return fmt.Errorf("read the policy: %w", err)
	}
	_ = from.Close() // it was only read
	if err := p.apply(descriptor); err != nil {
		return err
	}
	command := args[1:]
	if p.Profile != "" {
		command = append([]string{sandboxExec, "-p", p.Profile}, command...)
	}
	if err := syscall.Exec(command[0], command, os.Environ()); err != nil {
		return fmt.Errorf("execute %s: %w", command[0], err)
	}
	return nil
}

func (p Policy) apply(firstInherited uint) error {
	if err := closeDescriptors(firstInherited); err != nil {
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

// closeDescriptors marks every descriptor from first on to be closed by execve:
// those that we inherited are none of the child's.
func closeDescriptors(first uint) error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		var fd uint
		if _, err := fmt.Sscan(entry.Name(), &fd); err == nil && fd >= first {
			syscall.CloseOnExec(int(fd))
		}
	}
	return nil
}
