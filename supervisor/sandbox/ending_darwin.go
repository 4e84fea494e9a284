package sandbox

import (
	"syscall"
	"time"

	"rillbox/supervisor/launcher"
)

// tellsEnding: the system tells nothing of a process's end before it is over.
func tellsEnding(int) bool { return false }

func readEnding(int, *launcher.Cgroup) (syscall.WaitStatus, bool) { return 0, false }

func sleepBriefly(d time.Duration) { time.Sleep(d) }
