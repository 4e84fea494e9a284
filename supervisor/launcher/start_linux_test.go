package launcher

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAStartHasAnEnd: a child that is stopped before its execve is ended, and its
// parent goes on: meanwhile too, with all that stops the whole program for a moment.
func TestAStartHasAnEnd(t *testing.T) {
	before := startTime
	startTime = 300 * time.Millisecond
	defer func() { startTime = before }()
	f, err := prepare(Command{Path: "/bin/true", Dir: "/", Files: []*os.File{os.Stdin}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { closeAll(f.opened) }()
	last := f.list[len(f.list)-1]
	f.list = f.list[:len(f.list)-1]
	self := f.add(stepLimits, unix.SYS_GETPID)
	f.add(stepLimits, unix.SYS_KILL, self, int(syscall.SIGSTOP))
	f.list = append(f.list, last)
	collected := make(chan bool)
	go func() {
		for range 20 {
			runtime.GC()
			time.Sleep(10 * time.Millisecond)
		}
		close(collected)
	}()
	began := time.Now()
	_, err = f.start()
	if err == nil || !strings.Contains(err.Error(), "not executed within 300ms") {
		t.Errorf("it gives %v", err)
	}
	if took := time.Since(began); took < startTime || took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	<-collected
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("it left a child behind: %v", err)
	}
}
