//go:build !windows

package hostile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What a run, a client or a server may leave behind, as the kernel tells it.

// needProc skips where there is no /proc to look at.
func needProc(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("what is left over is read from /proc, which is on Linux alone")
	}
}

// process is one line of what `ps` would show.
type process struct {
	pid, parent int
	command     string
	// belongings are the environment, the working directory and the cgroups,
	// by which a process is known that left its parent and its group.
	belongings string
}

func (p process) String() string {
	return fmt.Sprintf("%d (child of %d): %.200s", p.pid, p.parent, p.command)
}

// processes lists those that are alive; what ended and was not waited for is not.
func processes(t testing.TB) []process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var list []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, alive := readProcess(pid); alive {
			list = append(list, p)
		}
	}
	return list
}

// readProcess reads what proc(5) tells of a process.
func readProcess(pid int) (p process, alive bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return p, false
	}
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // of a name that has such a sign no test here speaks
	fields := strings.Fields(string(rest))
	if len(fields) < 2 || strings.Contains("ZX", fields[0]) {
		return p, false
	}
	p.pid = pid
	p.parent, _ = strconv.Atoi(fields[1])
	command, _ := os.ReadFile(dir + "cmdline")
	p.command = strings.Join(strings.Split(string(command), "\x00"), " ")
	environment, _ := os.ReadFile(dir + "environ")
	groups, _ := os.ReadFile(dir + "cgroup")
	cwd, _ := os.Readlink(dir + "cwd")
	mounts := ""
	if text, err := os.ReadFile(dir + "mountinfo"); err == nil && strings.Contains(string(text), " /rillbox/") { // a root of its own
		mounts = string(text)
	}
	p.belongings = strings.Join([]string{p.command, string(environment), cwd, mounts, string(groups)}, "\n")
	return p, true
}

// childrenOf lists the processes that a process started, by their parent.
func childrenOf(t testing.TB, pid int) []process {
	t.Helper()
	return slices.DeleteFunc(processes(t), func(p process) bool { return p.parent != pid })
}

// belonging lists the processes that have one of the words about them,
// whosever children they are.
func belonging(t testing.TB, words ...string) []process {
	t.Helper()
	return slices.DeleteFunc(processes(t), func(p process) bool {
		return p.pid == os.Getpid() || !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(p.belongings, word) })
	})
}

// cgroupWord is in the names of all cgroups of a server's children.
func cgroupWord(server int) string { return fmt.Sprintf("rillbox-%d-", server) }

// cgroupsOf lists the cgroups of servers' children.
func cgroupsOf(t testing.TB, servers ...int) []string {
	t.Helper()
	var found []string
	ours := func(name string) bool {
		return slices.ContainsFunc(servers, func(server int) bool { return strings.HasPrefix(name, cgroupWord(server)) })
	}
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // another's, or just removed
		case err != nil:
			return err
		case entry.IsDir() && ours(entry.Name()):
			found = append(found, path)
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// runDirsIn lists the children's directories below a TMPDIR.
func runDirsIn(t testing.TB, temp string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(temp, "rillbox-*", "*", "run-*"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// stays is how long something is left that does not go by itself; a busy machine takes
// a while for what does.
const stays = 30 * time.Second

// allGone waits until there is nothing left, and says how long that took. It fails
// the test, with what is left, when something stays.
func allGone[T any](t testing.TB, what string, left func() []T) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		list := left()
		took := time.Since(start)
		if len(list) == 0 {
			return took
		}
		if took > stays {
			t.Errorf("%s: %d left after %v:", what, len(list), stays)
			for _, one := range list {
				t.Errorf("\t%v", one)
			}
			return took
		}
		time.Sleep(20 * time.Millisecond) // none of them is ours to wait for
	}
}

// descriptors names what each descriptor of ours leads to.
func descriptors(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil { // the directory's own has just been closed
			list = append(list, entry.Name()+" "+to)
		}
	}
	return list
}

// residentOf is a process's resident memory that no file stands behind, in bytes.
func residentOf(t testing.TB, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nRssAnon:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
