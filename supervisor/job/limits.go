package job

import (
	"runtime"
	"time"
)

// Limits bound what one run, and all runs together, may use. Every one of them
// is enforced on our side of the pipes, whatever the guest does.
type Limits struct {
	// Timeout is how long the guest's code may run when the program does not
	// say; MaxTimeout is the most that a program may ask for.
	Timeout, MaxTimeout time.Duration
	// CPUTime is how much processor time the guest's code may use, a session's in
	// each cell; 0 means as much as Timeout lets it.
	CPUTime time.Duration
	// InstallTimeout bounds fetching and installing a run's packages.
	InstallTimeout time.Duration
	// Memory is how many bytes a child may use above what its runtime needs
	// before the guest's code starts.
	Memory int64
	// CPUs is how many processors' worth of time a child gets once the guest's code
	// starts, however many threads it has, where the machine can hold that
	// (launcher.CgroupSupport.Processors).
	CPUs float64
	// Stdout and Stderr are how many bytes are kept of the guest's streams.
	Stdout, Stderr int64
	// Result is how many bytes the guest's frames (its value, its error) may
	// have in all, Displays how many those that show something (pictures in
	// base64, HTML). What is beyond Displays is left out, and counted.
	Result, Displays int64
	// Code and Stdin are the largest program and standard input, in bytes,
	// that a client may send.
	Code, Stdin int64
	// FileBytes is the largest file that a child may write. Disk and Files are how
	// much its own directory, or its session's, may hold in all; ClientDisk is how
	// much those of all sessions of one client may.
	FileBytes, Disk, ClientDisk, Files int64
	// Sessions is how many sessions one client may have, AllSessions how many all
	// clients together.
	Sessions, AllSessions int
	// SessionIdle is how long a session lasts without a call when its client
	// does not say, MaxSessionIdle the most that it may ask for.
	SessionIdle, MaxSessionIdle time.Duration
	// Running is how many runs go on at once, Waiting how many may queue. ClientRunning
	// and ClientWaiting are the most of one client's, 0 for no limit but its share.
	Running, Waiting             int
	ClientRunning, ClientWaiting int
}

// DefaultLimits are those in force when the operator sets none.
func DefaultLimits() Limits {
	return Limits{
		Timeout:        30 * time.Second,
		MaxTimeout:     300 * time.Second,
		InstallTimeout: 300 * time.Second,
		Memory:         512 << 20,
		CPUs:           1, // as many runs as there are processors don't slow each other
		Stdout:         1 << 20,
		Stderr:         1 << 20,
		Result:         1 << 20,
		Displays:       10 << 20,
		Code:           1 << 20,
		Stdin:          10 << 20,
		FileBytes:      100 << 20,
		Disk:           100 << 20,
		ClientDisk:     500 << 20,
		Files:          1000,
		Sessions:       5,
		AllSessions:    64,
		SessionIdle:    600 * time.Second,
		MaxSessionIdle: time.Hour,
		Running:        2 * runtime.NumCPU(),
		Waiting:        64,
	}
}
