// Package launcher starts child processes behind a wall.
//
// What flows through it: a Command goes in, and a process comes out that runs it with
// its own descriptors, limits, cgroup and wall. No instruction of Deno or of a guest
// runs before all of that is in force; where it can't be, Start fails.
//
// On Linux, Start prepares a list of system calls (steps_linux.go), forks, and has the
// child make them; the last is execve. On macOS our own binary is executed again, sets
// its limits and goes on as sandbox-exec.
//
// Our binary also serves as the keeper (see Kept), from this package's init: importing
// the package is all that a program or a test binary needs.
//
// What is made by hand, and why:
//   - the list of calls: syscall.SysProcAttr knows no mounts, Landlock or filters, and a
//     helper process that is our binary costs 4 ms of processor time more, of the 10 to 20 ms
//     that a small JavaScript program takes in all.
//     clone3 into a cgroup is for version 2 alone, so a child joins by a write.
//   - Landlock: go-landlock restricts all threads of the process that calls it, which
//     for us is the server; only its system calls are used.
//   - the filter: go-seccomp-bpf compares 64 bits where the kernel takes an int, and
//     searches numbers one by one; its tables of numbers are used. libseccomp needs cgo.
//   - cgroups: they are six files; containerd/cgroups took as much code, and ten modules.
//   - the user namespace: SysProcAttr maps users from the parent, for which the child
//     would have to wait; it writes its own maps.
package launcher

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// keeperName is argv[0] of our own binary as the keeper.
const keeperName = "rillbox-keeper"

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
	// FileBytes bounds the size of each file that the child writes; 0 is no
	// bound. A longer write fails in the guest with "file too large".
	FileBytes uint64
}

// limits are the child's resource limits, none above those in force.
func (c Command) limits() (map[int]unix.Rlimit, error) {
	values := map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 1024}
	if c.FileBytes > 0 {
		values[unix.RLIMIT_FSIZE] = c.FileBytes
		signal.Ignore(syscall.SIGXFSZ) // a longer write is an error, not the child's end; a child inherits it
	}
	limits := map[int]unix.Rlimit{}
	for resource, value := range values {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return nil, fmt.Errorf("read a resource limit: %w", err)
		}
		value = min(value, now.Max)
		limits[resource] = unix.Rlimit{Cur: value, Max: value}
	}
	return limits, nil
}

// KeeperArgv gives argv for executing our own binary as the keeper of a server.
func KeeperArgv(server int) []string { return []string{keeperName, strconv.Itoa(server)} }

func init() {
	if os.Args[0] == keeperName && len(os.Args) == 2 {
		server, _ := strconv.Atoi(os.Args[1]) // KeeperArgv wrote it
		keep(os.Stdin, CgroupsOf(server))
		os.Exit(0)
	}
}
