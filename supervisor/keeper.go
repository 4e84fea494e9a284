//go:build !windows

package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"rillbox/supervisor/launcher"
)

// keeper is our end of the keeper process's input (see launcher.KeepLine); it
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

func keep(pgid int, dir string) {
	if k := keeper(); k != nil {
		_, _ = fmt.Fprint(k, launcher.KeepLine(pgid, dir)) // one write, less than PIPE_BUF: never torn
	}
}

func release(pgid int) {
	if k := keeper(); k != nil {
		_, _ = fmt.Fprint(k, launcher.ReleaseLine(pgid))
	}
}
