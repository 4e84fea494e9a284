package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// The test binary plays the children: what it does is its first argument.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(playChild(os.Args[2], os.Args[3:]))
	}
	code := m.Run()
	_ = RemoveServerDir()
	os.Exit(code)
}

func playChild(role string, args []string) int {
	frames := os.NewFile(3, "frames")
	if code, ok := playOnLinux(role, args); ok {
		return code
	}
	switch role {
	case "echo":
		in, _ := io.ReadAll(os.Stdin)
		_, _ = fmt.Fprintf(os.Stdout, "out:%s", in)
		_, _ = fmt.Fprint(os.Stderr, "err")
		_, _ = fmt.Fprintln(frames, "frame")
		return 7
	case "look":
		dir, _ := os.Getwd()
		entries, _ := os.ReadDir("/proc/self/fd")
		var fds []string
		for _, e := range entries {
			target, _ := os.Readlink("/proc/self/fd/" + e.Name())
			// What Go's own runtime opens at its start is not inherited.
			if target != "" && !strings.HasPrefix(target, "anon_inode:") && !strings.HasPrefix(target, "/proc/") && !strings.HasPrefix(target, "/sys/fs/cgroup") {
				fds = append(fds, e.Name())
			}
		}
		fmt.Printf("env=%q dir=%s fds=%v pgid=%v", os.Environ(), dir, fds, syscall.Getpgrp() == os.Getpid())
	case "hang":
		// A grandchild that hangs too, in the same group.
		c := exec.Command(os.Args[0], "child", "sleep")
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			panic(err)
		}
		fmt.Println(c.Process.Pid)
		select {}
	case "sleep":
		time.Sleep(time.Hour)
	case "flood":
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range 300 {
			_, _ = os.Stdout.Write(chunk)
		}
	case "allocate":
		var all [][]byte
		for {
			b := make([]byte, 8<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			all = append(all, b)
			fmt.Println(len(all) * 8)
		}
	case "chatter":
		for range 100 {
			fmt.Println(strings.Repeat("o", 99))
			fmt.Fprintln(os.Stderr, strings.Repeat("e", 99))
		}
	case "write":
		if err := os.WriteFile(args[0], bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
			fmt.Print(err)
			return 1
		}
	case "litter":
		switch args[0] {
		case "bytes in a folder by a path that is too long", "deep folders":
			folder := strings.Repeat("d", 200)
			for range map[bool]int{true: 300, false: 30}[args[0] == "deep folders"] {
				if os.Mkdir(folder, 0o700) != nil || os.Chdir(folder) != nil {
					return 1
				}
			}
			if args[0] == "deep folders" {
				select {}
			}
		case "bytes without a name":
			for {
				file, err := os.Create("file")
				if err == nil {
					err = os.Remove("file")
				}
				if err != nil {
					return 1
				}
				fd, err := syscall.Dup(int(file.Fd())) // which nothing closes
				if err != nil {
					return 1
				}
				_, _ = syscall.Write(fd, make([]byte, 100<<10))
				time.Sleep(10 * time.Millisecond)
			}
		}
		for i := 0; ; i++ {
			if err := os.WriteFile(fmt.Sprintf("file-%d", i), make([]byte, 1<<10), 0o600); err != nil {
				fmt.Print(err)
				return 1
			}
		}
	case "read":
		if _, err := os.ReadFile(args[0]); err != nil {
			fmt.Print(err)
			return 1
		}
	case "listen":
		var c net.ListenConfig
		c.SetMultipathTCP(len(args) > 1)
		listener, err := c.Listen(context.Background(), "tcp", args[0])
		if err != nil {
			fmt.Print(err)
			return 1
		}
		_ = listener.Close()
	case "fork":
		if err := exec.Command("/bin/true").Run(); err != nil {
			fmt.Print(err)
			return 1
		}
	case "kill":
		pid, _ := strconv.Atoi(args[0])
		if err := syscall.Kill(pid, 0); err != nil {
			fmt.Print(err)
			return 1
		}
	case "spin": // on as many threads as it may, for two seconds
		runtime.GOMAXPROCS(8)
		for range 8 {
			go func() {
				for n := uint64(1); n != 0; n++ {
				}
			}()
		}
		time.Sleep(2 * time.Second)
	case "depart": // from the group
		c := exec.Command(os.Args[0], "child", "burn")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintln(frames, c.Process.Pid)
		select {}
	case "delegate":
		_ = exec.Command(os.Args[0], "child", "burn").Run()
	case "burn":
		for n := uint64(1); n != 0; n++ {
		}
	case "signal":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "server": // starts a child that hangs, says so, and waits to be killed
		dir, err := NewRunDir()
		if err != nil {
			panic(err)
		}
		c, err := Start(Command{Path: os.Args[0], Args: []string{"child", "hang"}, Dir: dir}, job.DefaultLimits())
		if err != nil {
			panic(err)
		}
		fmt.Println(dir)
		fmt.Println(c.pid())
		c.Attach(context.Background(), func(e job.Event) { _, _ = os.Stdout.Write(e.Data) })
		select {}
	}
	return 0
}

type played struct {
	Exit
	stdout, frames string
	events         []string
}

// play runs a child to its end.
func play(t *testing.T, limits job.Limits, wall *launcher.Wall, stdin string, role ...string) played {
	t.Helper()
	c := start(t, limits, wall, role...)
	var p played
	var mu sync.Mutex
	c.Attach(t.Context(), func(e job.Event) {
		mu.Lock()
		defer mu.Unlock()
		p.events = append(p.events, string(e.Data))
	})
	c.SetDeadline(20*time.Second, "the test")
	go func() {
		_, _ = io.WriteString(c.Stdin(), stdin)
		_ = c.Stdin().Close()
	}()
	frames, _ := io.ReadAll(c.Frames())
	p.Exit = c.Wait()
	p.frames, p.stdout = string(frames), p.Stdout.String()
	return p
}

func start(t *testing.T, limits job.Limits, wall *launcher.Wall, role ...string) *Child {
	t.Helper()
	dir, err := NewRunDir()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if wall != nil { // it sees itself and its directory
		own := *wall
		own.Places = append([]launcher.Place{{Path: self, Access: launcher.Read | launcher.Execute}, {Path: dir, Access: launcher.Read}}, wall.Places...)
		wall = &own
	}
	c, err := Start(Command{Path: self, Args: append([]string{"child"}, role...), Dir: dir, Wall: wall}, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill(job.Cancelled, "the test is over")
		<-c.Ended()
		if _, err := os.Stat(dir); err == nil {
			RemoveRunDir(dir)
		}
	})
	return c
}

func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(stat, []byte(") Z ")) || syscall.Kill(pid, 0) != nil
}

// stays is how long something is left that does not go by itself; a busy machine
// takes a while for what does.
const stays = 30 * time.Second

// awaitGone fails when the process stays.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(stays); !gone(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d is still there after %v", pid, stays)
		}
	}
}

func TestChildStreamsFramesAndExitCode(t *testing.T) {
	p := play(t, job.DefaultLimits(), nil, "hello", "echo")
	if p.stdout != "out:hello" || p.Stderr.String() != "err" || p.frames != "frame\n" {
		t.Errorf("stdout %q, stderr %q, frames %q", p.stdout, p.Stderr.String(), p.frames)
	}
	if p.Status != job.Failed || p.Code != 7 || p.Reason != "" {
		t.Errorf("ended with %v, %d, %q", p.Status, p.Code, p.Reason)
	}
	if p.CPU <= 0 || p.PeakMemory <= 0 {
		t.Errorf("CPU %v, peak memory %d", p.CPU, p.PeakMemory)
	}
}

func TestChildInheritsNothing(t *testing.T) {
	t.Setenv("RILLBOX_TEST_SECRET", "leaked")
	// A descriptor without close-on-exec, as a careless parent leaves us one.
	leak, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(leak) }()
	p := play(t, job.DefaultLimits(), nil, "", "look")
	if !strings.Contains(p.stdout, "env=[]") || !strings.Contains(p.stdout, "fds=[0 1 2 3]") || !strings.Contains(p.stdout, "pgid=true") {
		t.Errorf("the child sees %s", p.stdout)
	}
}

func TestRunDirectoryIsRemoved(t *testing.T) {
	c := start(t, job.DefaultLimits(), nil, "echo")
	c.Attach(t.Context(), func(job.Event) {})
	_ = c.Stdin().Close()
	_, _ = io.ReadAll(c.Frames())
	c.Wait()
	for end := time.Now().Add(stays); ; time.Sleep(time.Millisecond) { // it goes behind the run
		if _, err := os.Stat(c.command.Dir); os.IsNotExist(err) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the run's directory is still there")
		}
	}
}

func TestDeadlineEndsTheWholeGroup(t *testing.T) {
	c := start(t, job.DefaultLimits(), nil, "hang")
	first := make(chan string, 1)
	c.Attach(t.Context(), func(e job.Event) {
		select {
		case first <- string(e.Data):
		default:
		}
	})
	grandchild, err := strconv.Atoi(strings.TrimSpace(<-first))
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Millisecond, "the program")
	_, _ = io.ReadAll(c.Frames())
	exit := c.Wait()
	if exit.Status != job.TimedOut || !strings.Contains(exit.Reason, "longer than 1ms") {
		t.Errorf("ended with %v, %q", exit.Status, exit.Reason)
	}
	awaitGone(t, grandchild)
	if !strings.Contains(exit.Stdout.String(), strconv.Itoa(grandchild)) {
		t.Errorf("output before the deadline is lost: %q", exit.Stdout.String())
	}
}

func TestCancelEndsTheChild(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := start(t, job.DefaultLimits(), nil, "hang")
	c.Attach(ctx, func(job.Event) { cancel() })
	_, _ = io.ReadAll(c.Frames())
	if exit := c.Wait(); exit.Status != job.Cancelled {
		t.Errorf("ended with %v, %q", exit.Status, exit.Reason)
	}
}

func TestMemoryLimit(t *testing.T) {
	limits := job.DefaultLimits()
	limits.Memory = 256 << 20
	p := play(t, limits, nil, "", "allocate")
	if p.Status != job.OutOfMemory || !strings.Contains(p.Reason, "256 MiB") {
		t.Errorf("ended with %v, %q", p.Status, p.Reason)
	}
	if p.PeakMemory > 2*limits.Memory {
		t.Errorf("it used %d MiB of %d", p.PeakMemory>>20, limits.Memory>>20)
	}
}

func TestFloodCostsNoMoreThanTheBudget(t *testing.T) {
	p := play(t, job.DefaultLimits(), nil, "", "flood")
	kept := int64(len(p.Stdout.Head) + len(p.Stdout.Tail))
	if p.Status != job.Completed || kept != 1<<20 || p.Stdout.Omitted != 299<<20 {
		t.Errorf("%v: kept %d bytes, left out %d", p.Status, kept, p.Stdout.Omitted)
	}
}

func TestFileSizeLimitIsAnErrorInTheChild(t *testing.T) {
	limits := job.DefaultLimits()
	limits.FileBytes = 1 << 10
	p := play(t, limits, nil, "", "write", "big")
	if p.Code != 1 || !strings.Contains(p.stdout, "file too large") {
		t.Errorf("ended with %v %d, %q", p.Status, p.Code, p.stdout)
	}
}

func TestDirectoryLimits(t *testing.T) {
	for _, test := range []struct {
		name         string
		files, bytes int64
		want         string
	}{
		{"files", 100, 1 << 30, "100 files"},
		{"bytes", 1 << 30, 1 << 20, "1 MiB"},
		{"bytes in a folder by a path that is too long", 1 << 30, 1 << 20, "1 MiB"},
		{"bytes without a name", 1 << 30, 1 << 20, "1 MiB"},
		{"deep folders", 1 << 30, 1 << 30, "too deep"},
	} {
		t.Run(test.name, func(t *testing.T) {
			limits := job.DefaultLimits()
			limits.Files, limits.Disk = test.files, test.bytes
			if test.name == "bytes without a name" && runtime.GOOS != "linux" {
				t.Skip("only Linux tells of them")
			}
			p := play(t, limits, nil, "", "litter", test.name)
			if p.Status != job.Failed || !strings.Contains(p.Reason, test.want) {
				t.Errorf("ended with %v, %q", p.Status, p.Reason)
			}
		})
	}
}

func TestSignalIsACrash(t *testing.T) {
	p := play(t, job.DefaultLimits(), nil, "", "signal")
	if p.Status != job.Crashed || p.Code != 128+int(syscall.SIGKILL) {
		t.Errorf("ended with %v, %d, %q", p.Status, p.Code, p.Reason)
	}
}

func TestSIGKILLOfTheServerEndsItsChildren(t *testing.T) {
	self, _ := os.Executable()
	for range 5 {
		server := exec.Command(self, "child", "server")
		server.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
		out, err := server.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		var told []string
		for len(told) < 3 && lines.Scan() {
			told = append(told, lines.Text())
		}
		if len(told) < 3 {
			t.Fatalf("the server told %q", told)
		}
		child, _ := strconv.Atoi(told[1])
		grandchild, _ := strconv.Atoi(told[2])
		if gone(child) || gone(grandchild) {
			t.Fatal("the children had ended before the server did")
		}
		_ = server.Process.Kill()
		_ = server.Wait()
		awaitGone(t, child)
		awaitGone(t, grandchild)
		for end := time.Now().Add(stays); ; time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(told[0]); os.IsNotExist(err) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s is still there", told[0])
			}
		}
	}
}

func TestDirectoriesOfDeadServersAreRemoved(t *testing.T) {
	base := t.TempDir()
	dead, alive := filepath.Join(base, "1-dead"), filepath.Join(base, "2-alive")
	for _, dir := range []string{dead, alive} {
		if err := os.MkdirAll(filepath.Join(dir, "run-1"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, lockName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, age := range map[string]time.Duration{ // those that have no lock file
		"3-about-to-begin": 0, "4-the-clock-was-set-back": -time.Hour + time.Minute,
		"5-old": 2 * time.Hour, "6-the-clock-was-set-far-back": -2 * time.Hour,
	} {
		then := time.Now().Add(-age)
		if err := errors.Join(os.Mkdir(filepath.Join(base, name), 0o700), os.Chtimes(filepath.Join(base, name), then, then)); err != nil {
			t.Fatal(err)
		}
	}
	lock := flock.New(filepath.Join(alive, lockName))
	if locked, err := lock.TryLock(); !locked {
		t.Fatal("the lock is not free", err)
	}
	defer lock.Close()
	removeStale(base)
	entries, _ := os.ReadDir(base)
	if names := slices.Collect(func(yield func(string) bool) {
		for _, e := range entries {
			if !yield(e.Name()) {
				return
			}
		}
	}); !slices.Equal(names, []string{"2-alive", "3-about-to-begin", "4-the-clock-was-set-back"}) {
		t.Errorf("left are %v", names)
	}
}

func TestEachStreamHasItsOwnLimit(t *testing.T) {
	limits := job.DefaultLimits()
	limits.Stdout, limits.Stderr = 1000, 3000
	p := play(t, limits, nil, "", "chatter")
	for name, row := range map[string]struct {
		kept job.Captured
		want int64
	}{"stdout": {p.Stdout, limits.Stdout}, "stderr": {p.Stderr, limits.Stderr}} {
		if n := int64(len(row.kept.Head) + len(row.kept.Tail)); n != row.want || row.kept.Omitted != 10_000-row.want {
			t.Errorf("%s: %d bytes kept, %d left out; want %d of 10,000 kept", name, n, row.kept.Omitted, row.want)
		}
	}
}

// The machine may be busy, so that a guest gets less; never more than is dealt
// out: a second's worth at once, when its bound begins, and one for each second.
func TestAGuestGetsAsManyProcessorsAsAreSet(t *testing.T) {
	for _, cpus := range []float64{job.DefaultLimits().CPUs, 0.25} {
		limits := job.DefaultLimits()
		limits.CPUs = cpus
		c := start(t, limits, nil, "spin")
		if !c.group.BoundsProcessors() {
			t.Skip("processor time can't be bounded here")
		}
		began := time.Now()
		c.MarkBaseline()
		c.Attach(t.Context(), func(job.Event) {})
		_, _ = io.ReadAll(c.Frames())
		exit := c.Wait()
		took := time.Since(began)
		t.Logf("%v of processor time in %v", exit.CPU, took)
		if most := time.Duration(cpus * float64(took+time.Second)); exit.CPU > most+200*time.Millisecond {
			t.Errorf("the child got %v of processor time in %v, and may have %v", exit.CPU, took, most)
		}
	}
}

// More than one processor can't be told by a clock on a busy machine; the kernel's
// own file says what is dealt out.
func TestTheKernelDealsOutWhatIsSet(t *testing.T) {
	limits := job.DefaultLimits()
	limits.CPUs = 1.5
	c := start(t, limits, nil, "sleep")
	if !c.group.BoundsProcessors() {
		t.Skip("processor time can't be bounded here")
	}
	c.MarkBaseline()
	for _, procs := range c.group.Join() {
		for file, want := range map[string]string{"cpu.max": "1500000 1000000", "cpu.cfs_quota_us": "1500000"} {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(procs), file))
			if got := strings.TrimSpace(string(text)); err == nil && got != want {
				t.Errorf("%s: %s, want %s", file, got, want)
			} else if err == nil {
				return
			}
		}
	}
	t.Error("the kernel's file was not found")
}

func TestEmptyCgroupsOfDeadServersAreRemoved(t *testing.T) {
	if offered := launcher.OfferedCgroup(); !offered.Offered {
		t.Skipf("no cgroups here: %s", offered.Detail)
	}
	dead := exec.Command("/bin/true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	dirs := map[string]bool{} // by path: must be there
	for pid, left := range map[int]bool{dead.Process.Pid: false, os.Getpid(): true} {
		group, err := launcher.NewCgroup(launcher.CgroupsOf(pid)+"test", 64<<20, 16)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = group.Remove() })
		for _, procs := range group.Join() {
			dirs[filepath.Dir(procs)] = left
		}
	}
	RemoveLeftovers()
	for dir, left := range dirs {
		if _, err := os.Stat(dir); (err == nil) != left {
			t.Errorf("%s: %v; want it there: %v", dir, err, left)
		}
	}
}

// TestTheKeeperRemovesCgroupsThatItWasNotToldOf: a server may be killed between making
// one and telling of it.
func TestTheKeeperRemovesCgroupsThatItWasNotToldOf(t *testing.T) {
	if offered := launcher.OfferedCgroup(); !offered.Offered {
		t.Skipf("no cgroups here: %s", offered.Detail)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.Command("/bin/true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	var dirs [2]string
	for i, server := range []int{dead.Process.Pid, os.Getpid()} {
		group, err := launcher.NewCgroup(launcher.CgroupsOf(server)+"untold", 64<<20, 16)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = group.Remove() })
		dirs[i] = filepath.Dir(group.Join()[0])
	}
	keeper := exec.Cmd{Path: self, Args: launcher.KeeperArgv(dead.Process.Pid), Env: []string{}} // whose input has ended
	if err := keeper.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dirs[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", dirs[0], err)
	}
	if _, err := os.Stat(dirs[1]); err != nil {
		t.Error(err)
	}
}

// TestWhatAChildHasWrittenIsReadHoweverLate: a reader may have to wait for a processor,
// or for who takes what it reads.
func TestWhatAChildHasWrittenIsReadHoweverLate(t *testing.T) {
	t.Parallel()
	c := start(t, job.DefaultLimits(), nil, "echo")
	_ = c.Stdin().Close()
	first := true
	c.Attach(t.Context(), func(e job.Event) {
		if e.Kind == job.Stdout && first {
			first = false
			<-c.Ended()
			time.Sleep(drainTime + 200*time.Millisecond)
		}
	})
	exit := c.Wait()
	if exit.Code != 7 || exit.Stdout.String() != "out:" || exit.Stderr.String() != "err" {
		t.Errorf("the exit is %+v", exit)
	}
	if frames, err := io.ReadAll(c.Frames()); err != nil || string(frames) != "frame\n" {
		t.Errorf("the frames are %q, %v", frames, err)
	}
	if n, err := c.Frames().Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("after the end Read gives %d, %v", n, err)
	}
}

// TestAStreamThatIsFloodedEnds: a descendant that left the child's group and is ended by
// nothing may go on writing.
func TestAStreamThatIsFloodedEnds(t *testing.T) {
	flooded := func() *os.File {
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeFiles(from, to) })
		go func() {
			for chunk := make([]byte, streamBuffer); ; {
				if _, err := to.Write(chunk); err != nil {
					return
				}
			}
		}()
		return from
	}
	c := &Child{out: newStream(flooded(), job.Stdout, 1<<10), err: newStream(nil, job.Stderr, 1<<10)}
	c.out.begin(func(job.Event) { c.finishStreams() })
	c.out.read()
	if kept := c.out.end(); kept.Omitted == 0 {
		t.Errorf("kept is %d bytes", len(kept.Head)+len(kept.Tail))
	}
	f := &frames{File: flooded(), rest: streamBuffer}
	f.finish()
	if all, err := io.ReadAll(f); err != nil || len(all) > streamBuffer {
		t.Errorf("read are %d bytes, %v", len(all), err)
	}
}
