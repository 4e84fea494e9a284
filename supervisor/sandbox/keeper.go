//go:build !windows

package sandbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"rillbox/supervisor/launcher"
)

// keeper is our end of the keeper process's input (see launcher.Kept); it
// closes when we die. It is nil when the keeper could not be started: then a
// child's parent-death signal, where there is one, is all there is.
var keeper = sync.OnceValue(func() *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer closeFiles(r)
	self, err := os.Executable()
	if err != nil {
		closeFiles(w)
		return nil
	}
	process := exec.Cmd{
		Path:        self,
		Args:        launcher.KeeperArgv(),
		Env:         []string{},
		Dir:         "/",
		Stdin:       r,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // out of reach of a Ctrl-C and of a group's SIGKILL
	}
	if err := process.Start(); err != nil {
		closeFiles(w)
		return nil
	}
	go func() { _ = process.Wait() }()
	return w
})

// tellKeeper says that a child has started, or that it is gone.
func tellKeeper(k launcher.Kept) {
	to := keeper()
	if to == nil {
		return
	}
	line, err := json.Marshal(k)
	if err != nil {
		return // it is made of numbers and strings
	}
	_, _ = to.Write(append(line, '\n')) // one write, less than PIPE_BUF: never torn
}
