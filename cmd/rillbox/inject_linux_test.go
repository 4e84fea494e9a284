package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// The kernel asks us of each file operation of a process that we start under a
// filter of its own, and of all that it starts (seccomp_unotify(2)). So one of
// them can fail that never fails otherwise, in the program as it is.

// A fileCall says what a system call is of: arguments that are descriptors of
// files, and those that are paths, each with the one that is its directory's
// descriptor (or none).
type fileCall struct {
	fds   []int
	paths [][2]int // directory, path
	fails []faultKind
}

// A faultKind is how a call fails: an error, or fewer bytes than there are.
type faultKind struct {
	name  string
	errno syscall.Errno
	bytes uint64 // of a read, where there is no error
}

var (
	diskFull     = faultKind{"ENOSPC", unix.ENOSPC, 0}
	ioError      = faultKind{"EIO", unix.EIO, 0}
	tooManyFiles = faultKind{"EMFILE", unix.EMFILE, 0}
	oneByte      = faultKind{"a read of one byte", 0, 1}
	atEnd        = faultKind{"an early end", 0, 0}
)

const none = -1

var (
	failOpens  = []faultKind{tooManyFiles, ioError, diskFull}
	failReads  = []faultKind{atEnd, ioError, oneByte}
	failWrites = []faultKind{diskFull, ioError}
	failLooks  = []faultKind{ioError}
)

// fileCalls are those that are asked about, by name: a system lacks some.
var fileCalls = map[string]fileCall{
	"open":            {nil, [][2]int{{none, 0}}, failOpens},
	"openat":          {nil, [][2]int{{0, 1}}, failOpens},
	"openat2":         {nil, [][2]int{{0, 1}}, failOpens},
	"read":            {[]int{0}, nil, failReads},
	"pread64":         {[]int{0}, nil, failReads},
	"getdents64":      {[]int{0}, nil, failLooks},
	"readv":           {[]int{0}, nil, failLooks},
	"preadv":          {[]int{0}, nil, failLooks},
	"fstat":           {[]int{0}, nil, failLooks},
	"stat":            {nil, [][2]int{{none, 0}}, failLooks},
	"lstat":           {nil, [][2]int{{none, 0}}, failLooks},
	"newfstatat":      {nil, [][2]int{{0, 1}}, failLooks},
	"statx":           {nil, [][2]int{{0, 1}}, failLooks},
	"readlink":        {nil, [][2]int{{none, 0}}, failLooks},
	"readlinkat":      {nil, [][2]int{{0, 1}}, failLooks},
	"write":           {[]int{0}, nil, failWrites},
	"pwrite64":        {[]int{0}, nil, failWrites},
	"writev":          {[]int{0}, nil, failWrites},
	"pwritev":         {[]int{0}, nil, failWrites},
	"copy_file_range": {[]int{2, 0}, nil, failWrites},
	"sendfile":        {[]int{0, 1}, nil, failWrites},
	"ftruncate":       {[]int{0}, nil, failWrites},
	"fallocate":       {[]int{0}, nil, failWrites},
	"fsync":           {[]int{0}, nil, failWrites},
	"fdatasync":       {[]int{0}, nil, failWrites},
	"mkdir":           {nil, [][2]int{{none, 0}}, failWrites},
	"mkdirat":         {nil, [][2]int{{0, 1}}, failWrites},
	"link":            {nil, [][2]int{{none, 1}, {none, 0}}, failWrites},
	"linkat":          {nil, [][2]int{{2, 3}, {0, 1}}, failWrites},
	"symlink":         {nil, [][2]int{{none, 1}}, failWrites},
	"symlinkat":       {nil, [][2]int{{1, 2}}, failWrites},
	"rename":          {nil, [][2]int{{none, 1}, {none, 0}}, failWrites},
	"renameat":        {nil, [][2]int{{2, 3}, {0, 1}}, failWrites},
	"renameat2":       {nil, [][2]int{{2, 3}, {0, 1}}, failWrites},
	"unlink":          {nil, [][2]int{{none, 0}}, failLooks},
	"rmdir":           {nil, [][2]int{{none, 0}}, failLooks},
	"unlinkat":        {nil, [][2]int{{0, 1}}, failLooks},
	"chmod":           {nil, [][2]int{{none, 0}}, failLooks},
	"fchmod":          {[]int{0}, nil, failLooks},
	"fchmodat":        {nil, [][2]int{{0, 1}}, failLooks},
	"utimensat":       {nil, [][2]int{{0, 1}}, failWrites},
}

// watchedName is the command by which the tests' binary puts itself under the
// filter, sends the filter's listener to its descriptor 3, and becomes the command
// that its arguments name.
const watchedName = "watched"

func init() { testCommands[watchedName] = becomeWatched }

func becomeWatched() {
	runtime.LockOSThread() // the filter is this thread's until it becomes the command
	path, err := exec.LookPath(os.Args[1])
	if err == nil {
		err = sendListener()
	}
	if err == nil {
		err = syscall.Exec(path, os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, watchedName+":", err)
	os.Exit(1)
}

func sendListener() error {
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	filter := []unix.SockFilter{load(0)}
	for name := range fileCalls {
		if number, known := info.SyscallNames[name]; known {
			filter = append(filter,
				unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(number)},
				unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_USER_NOTIF})
		}
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// Once we know of a call, only the process's end takes it back.
	listener, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("load the filter: %w", errno)
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		return err
	}
	_ = unix.Close(3)
	return unix.Close(int(listener))
}

// An operation is a call on a file below the root.
type operation struct {
	call, path string
	fault      string // how it failed by us
}

func (o operation) String() string { return strings.TrimSpace(o.call + " " + o.path + " " + o.fault) }

// An injection says which operations fail below root.
type injection struct {
	root     string
	children bool           // of processes that the program starts, not its own
	only     *regexp.Regexp // by call and path; nil: all
	at       int            // the first that fails, from 1; 0: none
	variant  int            // which of the ways to fail that the call has
	onward   *faultKind     // each from there on that can fail so
}

// A watched is a program that has atEnd, with all that it left behind.
type watched struct {
	status         int
	stdout, stderr string
	seen           []operation
	failed         []operation
}

// runWatched runs a command under the filter, and returns when it and all that it
// started have atEnd.
func runWatched(t *testing.T, env []string, in injection, args ...string) watched {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "listener")
	defer unix.Close(pair[0])
	ctx, cancel := context.WithTimeout(t.Context(), faultTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, watchedName, args...)
	cmd.Env = env
	cmd.ExtraFiles = []*os.File{theirs}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = faultTime
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		_ = cmd.Wait()
		if os.Getenv("CI") != "" {
			t.Fatal("no filter can be loaded that asks us:", err, stderr.String())
		}
		t.Skip("no filter can be loaded that asks us:", err, stderr.String())
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		t.Fatal(err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{injection: in, t: t, listener: fds[0], program: cmd.Process.Pid, process: map[int]int{}}
	w.info, err = arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	var answering sync.WaitGroup
	answering.Go(w.answer)
	err = cmd.Wait()
	answering.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return watched{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), w.seen, w.failed}
}

type watcher struct {
	injection
	t        *testing.T
	info     *arch.Info
	listener int
	program  int
	process  map[int]int // of threads
	seen     []operation
	failed   []operation
}

// notice is struct seccomp_notif, answer is struct seccomp_notif_resp.
type notice struct {
	id           uint64
	thread       uint32
	flags        uint32
	number       int32
	architecture uint32
	instruction  uint64
	arguments    [6]uint64
}

type verdict struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// answer answers until nobody is under the filter any more.
func (w *watcher) answer() {
	defer unix.Close(w.listener)
	for {
		ready := []unix.PollFd{{Fd: int32(w.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err == unix.EINTR {
			continue
		} else if err != nil || ready[0].Revents&unix.POLLIN == 0 {
			return
		}
		var n notice
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // who asked has atEnd
		}
		v := w.judge(n)
		v.id = n.id
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&v)))
	}
}

// judge lets a call be, or fails it.
func (w *watcher) judge(n notice) verdict {
	goOn := verdict{flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	name := w.info.SyscallNumbers[int(n.number)]
	call := fileCalls[name]
	if (w.processOf(int(n.thread)) != w.program) != w.children {
		return goOn
	}
	path := w.pathOf(n, call)
	if path == "" {
		return goOn
	}
	if w.only != nil && !w.only.MatchString(name+" "+path) {
		return goOn
	}
	w.seen = append(w.seen, operation{call: name, path: path})
	count := len(w.seen)
	if w.at == 0 || count < w.at || count > w.at && w.onward == nil {
		return goOn
	}
	kinds := make([]faultKind, 0, len(call.fails))
	for _, kind := range call.fails {
		if w.onward != nil && kind != *w.onward || kind == diskFull && strings.HasPrefix(name, "open") && !creates(name, n) {
			continue
		}
		kinds = append(kinds, kind)
	}
	if len(kinds) == 0 {
		return goOn
	}
	kind := kinds[w.variant%len(kinds)]
	if len(w.failed) < 20 {
		w.failed = append(w.failed, operation{name, path, kind.name})
	}
	if kind.errno != 0 {
		return verdict{errno: -int32(kind.errno)}
	}
	if kind.bytes == 0 {
		return verdict{}
	}
	got, err := w.readInstead(n, name == "pread64", min(kind.bytes, n.arguments[2]))
	if err != nil {
		w.t.Errorf("read in place of %s %s: %v", name, path, err)
		return goOn
	}
	return verdict{value: int64(got)}
}

// creates says that an open may make a file.
func creates(name string, n notice) bool {
	switch name {
	case "open":
		return n.arguments[1]&unix.O_CREAT != 0
	case "openat":
		return n.arguments[2]&unix.O_CREAT != 0
	}
	return false
}

// readInstead failReads some bytes from a process's file into its memory, as it would.
func (w *watcher) readInstead(n notice, positioned bool, size uint64) (int, error) {
	pidfd, err := unix.PidfdOpen(w.processOf(int(n.thread)), 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(pidfd)
	file, err := unix.PidfdGetfd(pidfd, int(int32(n.arguments[0])), 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(file)
	content := make([]byte, size)
	var got int
	if positioned {
		got, err = unix.Pread(file, content, int64(n.arguments[3]))
	} else {
		got, err = unix.Read(file, content)
	}
	if err != nil || got == 0 {
		return 0, err
	}
	local := []unix.Iovec{{Base: &content[0], Len: uint64(got)}}
	remote := []unix.RemoteIovec{{Base: uintptr(n.arguments[1]), Len: got}}
	_, err = unix.ProcessVMWritev(int(n.thread), local, remote, 0)
	return got, err
}

// pathOf is where the file of a call is below the root, else empty.
func (w *watcher) pathOf(n notice, call fileCall) string {
	for _, fd := range call.fds {
		if rel := w.below(link(n, fmt.Sprint("fd/", int32(n.arguments[fd])))); rel != "" {
			return rel
		}
	}
	for _, at := range call.paths {
		path := memoryText(int(n.thread), uintptr(n.arguments[at[1]]))
		if !filepath.IsAbs(path) {
			dir := "cwd"
			if at[0] != none && int32(n.arguments[at[0]]) != unix.AT_FDCWD {
				dir = fmt.Sprint("fd/", int32(n.arguments[at[0]]))
			}
			path = filepath.Join(link(n, dir), path)
		}
		if rel := w.below(path); rel != "" {
			return rel
		}
	}
	return ""
}

func (w *watcher) below(path string) string {
	rel, ok := strings.CutPrefix(path, w.root+"/")
	if !ok {
		return ""
	}
	return rel
}

// link failReads a link of the thread's in /proc; empty if it has none.
func link(n notice, name string) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/%s", n.thread, name))
	return strings.TrimSuffix(path, " (deleted)")
}

// memoryText is a text in another process's memory, up to a page's end or two.
func memoryText(thread int, address uintptr) string {
	const page = 4096
	var text []byte
	for range 2 {
		part := make([]byte, page-address%page)
		n, err := unix.ProcessVMReadv(thread, []unix.Iovec{{Base: &part[0], Len: uint64(len(part))}},
			[]unix.RemoteIovec{{Base: address, Len: len(part)}}, 0)
		if err != nil {
			return ""
		}
		text = append(text, part[:n]...)
		if end := bytes.IndexByte(text, 0); end >= 0 {
			return string(text[:end])
		}
		address += uintptr(n)
	}
	return ""
}

// processOf is the process that a thread is of.
func (w *watcher) processOf(thread int) int {
	if process, known := w.process[thread]; known {
		return process
	}
	process := 0
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	for line := range strings.Lines(string(text)) {
		if id, found := strings.CutPrefix(line, "Tgid:"); found {
			process, _ = strconv.Atoi(strings.TrimSpace(id))
		}
	}
	w.process[thread] = process
	return process
}
