package supervisor

import (
	"syscall"
	"time"
)

// tellsEnding: the system tells nothing of a process's end before it is over.
func tellsEnding(int) bool { return false }

func readEnding(int) (syscall.WaitStatus, bool) { return 0, false }

func sleepBriefly(d time.Duration) { time.Sleep(d) }
