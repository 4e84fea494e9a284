package sandbox

import (
	"bytes"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestNativeProbe makes some 200 system calls from native code inside a child and
// compares what each answers with testdata/probe-CASE.txt. A call that has become
// possible, or impossible, shows there.
func TestNativeProbe(t *testing.T) {
	probe := buildProbe(t)
	for _, test := range []struct {
		name string
		wall launcher.Wall
	}{
		{"landlock", launcher.Wall{Level: launcher.Landlock, AnyPort: true}},
		{"landlock-network", launcher.Wall{Level: launcher.Landlock, Network: true}},
		{"landlock-processes", launcher.Wall{Level: launcher.Landlock, Network: true, Processes: true}},
		{"namespaces", launcher.Wall{Level: launcher.Namespaces}},
		{"namespaces-network", launcher.Wall{Level: launcher.Namespaces, Network: true}},
		{"namespaces-processes", launcher.Wall{Level: launcher.Namespaces, Processes: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			needWall(t, test.wall.Level)
			outside := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(outside, []byte("content"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(outside, time.Unix(1, 0), time.Unix(2, 0)); err != nil {
				t.Fatal(err)
			}
			before := status(t, outside)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			dir, err := NewRunDir()
			if err != nil {
				t.Fatal(err)
			}
			wall := test.wall
			wall.Places = []launcher.Place{{Path: probe, Access: launcher.Read | launcher.Execute}, {Path: dir, Access: launcher.Read | launcher.Write}}
			c, err := Start(Command{Path: probe, Dir: dir, Wall: &wall, Args: []string{
				strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), strconv.Itoa(os.Getpid()), outside,
			}}, job.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			c.Attach(t.Context(), func(job.Event) {})
			c.SetDeadline(20*time.Second, "the test")
			_ = c.Stdin().Close()
			exit := c.Wait()
			if exit.Status != job.Completed || exit.Code != 0 {
				t.Fatalf("ended with %v %d: %s", exit.Status, exit.Code, exit.Stderr.String())
			}
			golden(t, filepath.Join("testdata", "probe-"+test.name+".txt"), exit.Stdout.String())
			if after := status(t, outside); after != before {
				t.Errorf("a file outside became %+v, was %+v", after, before)
			}
		})
	}
}

// buildProbe compiles testdata/probe.c, static so that it needs no library inside.
func buildProbe(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		missing(t, "no C compiler: install cc to run the native probe")
	}
	path := filepath.Join(t.TempDir(), "probe")
	if out, err := exec.Command(cc, "-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o", path, "testdata/probe.c").CombinedOutput(); err != nil {
		t.Fatalf("compile the probe: %v\n%s", err, out)
	}
	return path
}

// missing skips a test that this machine can't run; in CI that is a failure.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// status is all that the kernel tells of a file but its time of access, which
// reading it changes.
func status(t *testing.T, path string) syscall.Stat_t {
	t.Helper()
	var s syscall.Stat_t
	if err := syscall.Lstat(path, &s); err != nil {
		t.Fatal(err)
	}
	s.Atim = syscall.Timespec{}
	return s
}

var otherMachine = regexp.MustCompile(`(?m)^(amd64:|# amd64 ).*\n`)

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOARCH != "amd64" {
		text = otherMachine.ReplaceAll(text, nil)
	}
	if bytes.Equal(text, []byte(got)) {
		return
	}
	want := strings.Split(string(text), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(want) || line != want[i] {
			t.Errorf("line %d is %q; if that is right, run with -update and read the difference", i+1, line)
		}
	}
}
