package launcher

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The keeper is a process beside each server. When the server ends, even by SIGKILL,
// the keeper's standard input ends; it then kills the children that are left and
// removes their directories and cgroups.
//
// Its input is a JSON line (Kept) for each child that starts, the same line with Gone
// set when it has ended, and one with nothing but Group and Gone when all is removed.

// Kept is what a keeper knows of a child.
type Kept struct {
	// Group is the child's process group.
	Group int `json:"group"`
	// Gone says that the group is not to be killed: the child has ended and the number
	// may be another's, or it is in a PID namespace, which the kernel ends with the
	// server. Dir and Cgroup are still to be removed.
	Gone bool `json:"gone,omitempty"`
	// Dir is the child's directory, if it has one.
	Dir string `json:"dir,omitempty"`
	// Cgroup are the cgroup.procs files of the child's cgroup.
	Cgroup []string `json:"cgroup,omitempty"`
}

func keep(input io.Reader, cgroups string) {
	children := readKept(input)
	for group, child := range children {
		if !child.Gone {
			_ = syscall.Kill(-group, syscall.SIGKILL) // ESRCH: it ended by itself
		}
	}
	for _, child := range children {
		for _, procs := range child.Cgroup {
			_ = killAll(procs) // also one that had just been started
		}
		if child.Dir != "" {
			_ = os.RemoveAll(child.Dir) // what is left is removed by the next start
		}
	}
	// A cgroup can be removed once the kernel has let its processes go, which takes
	// seconds where it is busy. The server may have ended between making one and telling
	// of it: what it began to start there dies with it.
	untold := func(name string) bool { return strings.HasPrefix(name, cgroups) }
	for wait := time.Millisecond; wait < 10*time.Second; wait *= 2 {
		if told, others := removeCgroups(children), RemoveEmptyCgroups(untold); told && others {
			return
		}
		time.Sleep(wait)
	}
}

// readKept reads lines to their end, and gives the children that are left.
func readKept(input io.Reader) map[int]Kept {
	children := map[int]Kept{}
	lines := json.NewDecoder(input)
	for {
		var k Kept
		if err := lines.Decode(&k); err != nil {
			return children // the end, or a line torn by it
		}
		switch {
		case k.Group <= 1: // kill(2) would take it for everything, or for ourselves
		case k.Gone && k.Dir == "" && len(k.Cgroup) == 0:
			delete(children, k.Group)
		default:
			children[k.Group] = k
		}
	}
}

func removeCgroups(children map[int]Kept) bool {
	all := true
	for _, child := range children {
		for _, procs := range child.Cgroup {
			err := syscall.Rmdir(filepath.Dir(procs))
			all = all && (err == nil || err == syscall.ENOENT)
		}
	}
	return all
}
