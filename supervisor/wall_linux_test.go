package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

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

func TestWallHoldsAroundAChild(t *testing.T) {
	if s := launcher.Offered(); s.Name == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal(s.Detail)
		}
		t.Skip(s.Detail)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	for _, test := range []struct {
		name string
		wall *launcher.Wall
		role []string
		ok   bool
	}{
		{"read without a wall", nil, []string{"read", secret}, true},
		{"read outside", &launcher.Wall{ReadOnly: []string{self}}, []string{"read", secret}, false},
		{"read granted", &launcher.Wall{ReadOnly: []string{self, secret}}, []string{"read", secret}, true},
		{"write to what is read-only", &launcher.Wall{ReadOnly: []string{self, secret}}, []string{"write", secret}, false},
		{"write granted, without reading", &launcher.Wall{ReadOnly: []string{self}, WriteOnly: []string{secret}}, []string{"write", secret}, true},
		{"read of what is write-only", &launcher.Wall{ReadOnly: []string{self}, WriteOnly: []string{secret}}, []string{"read", secret}, false},
		{"write granted", &launcher.Wall{ReadOnly: []string{self}, ReadWrite: []string{secret}}, []string{"write", secret}, true},
		{"a process, without a wall", nil, []string{"fork"}, true},
		{"a process", &launcher.Wall{ReadOnly: []string{self, "/bin"}}, []string{"fork"}, false},
		{"a process, granted", &launcher.Wall{ReadOnly: []string{self, "/bin"}, Processes: true}, []string{"fork"}, true},
		{"listening", &launcher.Wall{ReadOnly: []string{self}}, []string{"listen", "127.0.0.1:0"}, false},
		{"listening, with MPTCP", &launcher.Wall{ReadOnly: []string{self}}, []string{"listen", "127.0.0.1:0", "mptcp"}, false},
		{"listening, granted", &launcher.Wall{ReadOnly: []string{self}, Listen: true}, []string{"listen", "127.0.0.1:0"}, true},
		{"listening on a port of its choice", &launcher.Wall{ReadOnly: []string{self}, Listen: true}, []string{"listen", "127.0.0.1:24680"}, false},
		{"a namespace of its own", &launcher.Wall{ReadOnly: []string{self}}, []string{"namespace"}, false},
		{"a packet socket, without a wall", nil, []string{"packet socket"}, os.Getuid() == 0},
		{"a packet socket", &launcher.Wall{ReadOnly: []string{self}}, []string{"packet socket"}, false},
		{"a signal to the server, without a wall", nil, []string{"kill", strconv.Itoa(os.Getpid())}, true},
		{"a signal to the server", &launcher.Wall{ReadOnly: []string{self}}, []string{"kill", strconv.Itoa(os.Getpid())}, false},
		{"another process's memory map", &launcher.Wall{ReadOnly: []string{self}}, []string{"read", fmt.Sprintf("/proc/%d/maps", os.Getpid())}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, DefaultLimits(), test.wall, "", test.role...)
			if ok := p.Code == 0; ok != test.ok {
				t.Errorf("ended with %v %d: %s%s", p.Status, p.Code, p.stdout, p.Stderr.String())
			}
			if !test.ok && !strings.Contains(p.stdout, "permission denied") && !strings.Contains(p.stdout, "operation not permitted") {
				t.Errorf("refused for another reason: %q", p.stdout)
			}
		})
	}
}

// A wall beside a directory with many entries has a long list of paths.
func TestAWallCanBeLong(t *testing.T) {
	self, _ := os.Executable()
	wall := &launcher.Wall{ReadOnly: []string{self}}
	for i := range 20_000 {
		wall.WriteOnly = append(wall.WriteOnly, fmt.Sprintf("/nowhere/%d", i))
	}
	if p := play(t, DefaultLimits(), wall, "hello", "echo"); p.stdout != "out:hello" {
		t.Errorf("ended with %v %d: %s", p.Status, p.Code, p.Stderr.String())
	}
}
