package sandbox

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"rillbox/supervisor/launcher"
)

// keeper is our end of the keeper process's input (see launcher.Kept); it
// closes when we die. It is nil when the keeper could not be started: then a
// child's parent-death signal, where there is one, is all there is.
var keeper = sync.OnceValue(func() io.Writer {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	process := exec.Cmd{
		Path:        self,
		Args:        launcher.KeeperArgv(os.Getpid()),
		Env:         []string{},
		Dir:         "/",
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // out of reach of a Ctrl-C and of a group's SIGKILL
	}
	input, err := process.StdinPipe()
	if err != nil || process.Start() != nil {
		return nil
	}
	go func() { _ = process.Wait() }()
	return input
})

// tellKeeper says that a child has started, or that it is gone.
func tellKeeper(k launcher.Kept) {
	if to := keeper(); to != nil {
		_ = json.NewEncoder(to).Encode(k) // one write, less than PIPE_BUF: never torn
	}
}
