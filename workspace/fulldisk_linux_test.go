package workspace

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestAFullDiskLeavesWholeFiles runs fillDisk where it can mount a small disk.
func TestAFullDiskLeavesWholeFiles(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playFullDisk+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil, bytes.HasPrefix(out, []byte("no disk: ")):
		if os.Getenv("CI") != "" {
			t.Fatalf("a small disk cannot be mounted here: %s %v", out, err)
		}
		t.Skipf("a small disk cannot be mounted here: %s %v", out, err)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	}
}

// fillDisk checks what becomes of files when a disk of one MiB is full, and
// exits with 1 when it is not right.
func fillDisk(dir string) {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		fmt.Println("no disk:", err)
		os.Exit(0)
	}
	code := 0
	check := func(ok bool, what string, args ...any) {
		if !ok {
			fmt.Printf(what+"\n", args...)
			code = 1
		}
	}
	d, err := Open(dir, Options{})
	check(err == nil, "open: %v", err)
	kept := strings.Repeat("k", 300<<10)
	_, err = d.Write("sub/kept", []byte(kept))
	check(err == nil, "the first write: %v", err)
	_, err = d.Write("sub/kept", make([]byte, 900<<10))
	check(err != nil && strings.Contains(err.Error(), "the disk under the workspace is full"), "too large a replacement: %v", err)
	_, err = d.Write("new", make([]byte, 900<<10))
	check(err != nil && strings.Contains(err.Error(), "full"), "too large a file: %v", err)
	check(d.WriteAll(map[string][]byte{"a": make([]byte, 900<<10)}) != nil, "WriteAll on a full disk")
	c, err := d.Read("sub/kept", 0, 1<<20)
	check(err == nil && string(c.Data) == kept, "the file kept %d bytes: %v", len(c.Data), err)
	l, err := d.List("")
	check(err == nil && names(l.Files) == "sub sub/kept", "left is %q: %v", names(l.Files), err)
	w, err := d.Write("new", make([]byte, 600<<10))
	check(err == nil && w.Created, "a write that fits again: %v", err)
	os.Exit(code)
}
