package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
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

	"golang.org/x/sys/unix"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// playOnLinux plays the children that make system calls which only Linux has.
func playOnLinux(role string, args []string) (code int, played bool) {
	var err error
	switch role {
	case "end":
		return playEnd(args[0], args[1]), true
	case "namespace":
		runtime.LockOSThread()
		if err = syscall.Unshare(syscall.CLONE_NEWUSER | syscall.CLONE_NEWUTS); errors.Is(err, syscall.EINVAL) {
			err = nil // it would be allowed, but not to a process with threads
		}
	case "tree":
		_ = filepath.WalkDir("/", func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				fmt.Println(path)
			}
			return nil
		})
	case "capabilities":
		header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		err = unix.Capget(&header, &data[0])
		bounding, ambient := 0, 0
		for c := range uintptr(unix.CAP_LAST_CAP + 1) {
			if has, _ := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); has == 1 {
				bounding++
			}
			if has, _ := unix.PrctlRetInt(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, c, 0, 0); has == 1 {
				ambient++
			}
		}
		privileges, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		fmt.Printf("prm=%d inh=%d eff=%d bnd=%d amb=%d nnp=%d", data[0].Permitted|data[1].Permitted, data[0].Inheritable|data[1].Inheritable,
			data[0].Effective|data[1].Effective, bounding, ambient, privileges)
	case "packet socket":
		_, err = syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0)
	default:
		return 0, false
	}
	if err != nil {
		fmt.Print(err)
		return 1, true
	}
	return 0, true
}

// needWall skips where the machine does not offer a wall, and fails where CI is set.
func needWall(t *testing.T, level launcher.Level) {
	t.Helper()
	if offered := launcher.Offered(); offered.Level < level {
		missing(t, offered.Detail)
	}
}

func TestWallHoldsAroundAChild(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(access launcher.Access) launcher.Wall {
		return launcher.Wall{Places: []launcher.Place{{Path: secret, Access: access}}}
	}
	programs := launcher.Wall{Processes: true}
	for _, path := range []string{"/bin", "/lib", "/lib64", "/usr"} {
		programs.Places = append(programs.Places, launcher.Place{Path: path, Access: launcher.Read | launcher.Execute, Optional: true})
	}
	server := strconv.Itoa(os.Getpid())
	for _, level := range []launcher.Level{launcher.Landlock, launcher.Namespaces} {
		t.Run(level.String(), func(t *testing.T) {
			needWall(t, level)
			ownNetwork := level == launcher.Namespaces
			for _, test := range []struct {
				name string
				wall launcher.Wall
				role []string
				ok   bool
			}{
				{"read outside", launcher.Wall{}, []string{"read", secret}, false},
				{"read granted", file(launcher.Read), []string{"read", secret}, true},
				{"write to what is read-only", file(launcher.Read), []string{"write", secret}, false},
				{"write granted, without reading", file(launcher.Write), []string{"write", secret}, true},
				{"read of what is write-only", file(launcher.Write), []string{"read", secret}, false},
				{"write granted", file(launcher.Read | launcher.Write), []string{"write", secret}, true},
				{"a process", launcher.Wall{Places: programs.Places}, []string{"fork"}, false},
				{"a process, granted", programs, []string{"fork"}, true},
				{"listening", launcher.Wall{}, []string{"listen", "127.0.0.1:0"}, ownNetwork},
				{"listening, with MPTCP", launcher.Wall{}, []string{"listen", "127.0.0.1:0", "mptcp"}, ownNetwork},
				{"listening, granted", launcher.Wall{AnyPort: true}, []string{"listen", "127.0.0.1:0"}, true},
				{"listening on a port of its choice", launcher.Wall{AnyPort: true}, []string{"listen", "127.0.0.1:24680"}, ownNetwork},
				{"a namespace of its own", launcher.Wall{}, []string{"namespace"}, false},
				{"a packet socket", launcher.Wall{}, []string{"packet socket"}, false},
				{"a signal to the server", launcher.Wall{}, []string{"kill", server}, false},
				{"a signal to the server, with processes", programs, []string{"kill", server}, false},
				{"another process's memory map", launcher.Wall{}, []string{"read", "/proc/" + server + "/maps"}, false},
			} {
				t.Run(test.name, func(t *testing.T) {
					test.wall.Level = level
					p := play(t, job.DefaultLimits(), &test.wall, "", test.role...)
					if ok := p.Code == 0; ok != test.ok {
						t.Errorf("ended with %v %d: %s%s", p.Status, p.Code, p.stdout, p.Stderr.String())
					}
					refused := slices.ContainsFunc([]string{"permission denied", "operation not permitted", "no such file or directory", "no such process", "read-only file system"}, func(why string) bool {
						return strings.Contains(p.stdout, why)
					})
					if !test.ok && !refused {
						t.Errorf("refused for another reason: %q", p.stdout)
					}
				})
			}
		})
	}
	for _, role := range [][]string{{"read", secret}, {"fork"}, {"kill", server}} { // what is refused above is possible
		if p := play(t, job.DefaultLimits(), nil, "", role...); p.Code != 0 {
			t.Errorf("%q without a wall: %s", role, p.stdout)
		}
	}
}

// A wall beside a directory with many entries has a long list of paths.
func TestAWallCanBeLong(t *testing.T) {
	for _, level := range []launcher.Level{launcher.Landlock, launcher.Namespaces} {
		needWall(t, level)
		wall := &launcher.Wall{Level: level}
		for i := range 20_000 {
			wall.Places = append(wall.Places, launcher.Place{Path: fmt.Sprintf("/nowhere/%d", i), Access: launcher.Write, Optional: true})
		}
		if p := play(t, job.DefaultLimits(), wall, "hello", "echo"); p.stdout != "out:hello" {
			t.Errorf("%v: ended with %v %d: %s", level, p.Status, p.Code, p.Stderr.String())
		}
	}
}

// TestAServerWithManyFiles: a child starts, whatever the server has open beyond the child's
// own limit of 1,024 descriptors.
func TestAServerWithManyFiles(t *testing.T) {
	needWall(t, launcher.Namespaces)
	for range 1100 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	wall := &launcher.Wall{Level: launcher.Namespaces, Places: []launcher.Place{{Path: t.TempDir(), Access: launcher.Write}}}
	if p := play(t, job.DefaultLimits(), wall, "hello", "echo"); p.stdout != "out:hello" {
		t.Errorf("ended with %v %d: %s", p.Status, p.Code, p.Stderr.String())
	}
}

// TestARootHoldsWhatItWasGiven and nothing else, and says nothing of the machine.
func TestARootHoldsWhatItWasGiven(t *testing.T) {
	needWall(t, launcher.Namespaces)
	given := t.TempDir()
	if err := os.WriteFile(filepath.Join(given, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := play(t, job.DefaultLimits(), &launcher.Wall{Level: launcher.Namespaces, Links: map[string]string{"/link": "/given"},
		Places: []launcher.Place{{Path: given, Name: "/given", Access: launcher.Read}}}, "", "tree")
	self, _ := os.Executable()
	libraries, err := exec.Command("ldd", self).CombinedOutput()
	if err != nil && !strings.Contains(string(libraries), "not a dynamic executable") {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(p.stdout) {
		if strings.HasPrefix(line, "/dev/fd") || line == "/dev/null" || line == "/dev/urandom" || strings.HasPrefix(line, "/proc/self/") || line == "/link" || line == "/given/file" ||
			line == self || strings.Contains(string(libraries), line) {
			continue
		}
		t.Errorf("the root holds %s", line)
	}
	for _, want := range []string{"/given/file", "/link", "/dev/null"} {
		if !slices.Contains(strings.Fields(p.stdout), want) {
			t.Errorf("the root does not hold %s: %s", want, p.stdout)
		}
	}
}

// TestARootIsTheChildsWhateverOurUmask leaves to others of what we make.
func TestARootIsTheChildsWhateverOurUmask(t *testing.T) {
	needWall(t, launcher.Namespaces)
	given := t.TempDir()
	if err := os.WriteFile(filepath.Join(given, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o077))
	p := play(t, job.DefaultLimits(), &launcher.Wall{Level: launcher.Namespaces,
		Places: []launcher.Place{{Path: given, Name: "/given/below", Access: launcher.Read}}}, "", "tree")
	if !slices.Contains(strings.Fields(p.stdout), "/given/below/file") {
		t.Errorf("the root does not hold what was given: %s%s", p.stdout, p.Stderr.String())
	}
}

// TestNoCapabilityIsLeft in any set, at any level, whoever we are.
func TestNoCapabilityIsLeft(t *testing.T) {
	for _, level := range []launcher.Level{launcher.Deno, launcher.Landlock, launcher.Namespaces} {
		if level > launcher.Offered().Level {
			continue
		}
		p := play(t, job.DefaultLimits(), &launcher.Wall{Level: level}, "", "capabilities")
		want := "prm=0 inh=0 eff=0 bnd=0 amb=0 nnp=1"
		if os.Getuid() != 0 && level != launcher.Namespaces {
			want = "prm=0 inh=0 eff=0"
		}
		if !strings.HasPrefix(p.stdout, want) {
			t.Errorf("%v: %s %s", level, p.stdout, p.Stderr.String())
		}
	}
}

// TestWhatWasJudgedIsMounted or the child does not start.
func TestWhatWasJudgedIsMounted(t *testing.T) {
	needWall(t, launcher.Namespaces)
	dir := t.TempDir()
	inner := filepath.Join(dir, "inner")
	for _, path := range []string{inner, filepath.Join(dir, "secret")} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "secret", "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file, real, err := launcher.Open(inner)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	wall := &launcher.Wall{Level: launcher.Namespaces, Places: []launcher.Place{{Path: real, File: file, Access: launcher.Read}}}
	// The directory is moved, and a link takes its place: what is seen under the
	// name is the directory that was judged.
	if err := errors.Join(os.Rename(inner, filepath.Join(dir, "moved")), os.Symlink("secret", inner)); err != nil {
		t.Fatal(err)
	}
	if p := play(t, job.DefaultLimits(), wall, "", "read", filepath.Join(inner, "file")); !strings.Contains(p.stdout, "no such file") {
		t.Errorf("%d %s", p.Code, p.stdout)
	}
	if err := os.Remove(filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	wall.Places = append(wall.Places, launcher.Place{Path: self, Access: launcher.Read | launcher.Execute})
	if _, err := Start(Command{Path: self, Dir: "/", Wall: wall}, job.DefaultLimits()); err == nil || !strings.Contains(err.Error(), launcher.ErrReplaced.Error()) {
		t.Errorf("what was removed is granted: %v", err)
	}
}

// What a filter refuses can be seen, and is refused all the same.
func TestRefusedCallsAreReported(t *testing.T) {
	var mu sync.Mutex
	var refused []string
	launcher.ReportRefused(func(call string) {
		mu.Lock()
		defer mu.Unlock()
		refused = append(refused, call)
	})
	defer launcher.ReportRefused(nil)
	needWall(t, launcher.Landlock)
	p := play(t, job.DefaultLimits(), &launcher.Wall{Level: launcher.Best.Offered()}, "", "packet socket")
	if p.Code != 1 || p.stdout != "operation not permitted" {
		t.Errorf("ended with %d: %q", p.Code, p.stdout)
	}
	mu.Lock()
	defer mu.Unlock()
	want := fmt.Sprintf("socket(%#x, %#x, 0x0)", syscall.AF_PACKET, syscall.SOCK_RAW)
	if !slices.Contains(refused, want) {
		t.Errorf("reported were %q, not %s", refused, want)
	}
	t.Log(refused)
}

// A child that has ended before its sockets are asked for has none: its end is told by
// Wait, as that of another.
func TestAChildThatHasEndedHasNoListeners(t *testing.T) {
	wall := launcher.Wall{Level: launcher.Namespaces, Listen: []uint16{8080}}
	needWall(t, wall.Level)
	c := start(t, job.DefaultLimits(), &wall, "echo")
	listeners, err := c.Listeners()
	if err != nil || len(listeners) != 1 {
		t.Fatalf("before its end there are %d listeners (%v), want one", len(listeners), err)
	}
	_ = listeners[0].Close()
	c.Attach(t.Context(), func(job.Event) {})
	_ = c.Stdin().Close()
	if exit := c.Wait(); exit.Code != 7 {
		t.Fatalf("it ended with %d %s", exit.Code, exit.Reason)
	}
	if listeners, err = c.Listeners(); err != nil || len(listeners) > 0 {
		t.Errorf("after its end there are %d listeners (%v)", len(listeners), err)
	}
}
