package launcher

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOwnCgroupsAreFound in what the kernel says of them on several machines.
func TestOwnCgroupsAreFound(t *testing.T) {
	const unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	const legacy = "35 31 0:32 %[1]s /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"36 31 0:33 %[1]s /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"39 31 0:36 %[1]s /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" +
		"40 31 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
		"41 31 0:38 / /elsewhere rw - cgroup cgroup rw,memory\n"
	for _, row := range []struct {
		name, cgroups, mounts, want string
	}{
		{"version 2", "0::/user.slice/own.scope\n", unified,
			"map[cpu:/sys/fs/cgroup/user.slice/own.scope memory:/sys/fs/cgroup/user.slice/own.scope pids:/sys/fs/cgroup/user.slice/own.scope]"},
		{"version 2, where we have moved to", "0::/own.service/rillbox-server\n", unified,
			"map[cpu:/sys/fs/cgroup/own.service memory:/sys/fs/cgroup/own.service pids:/sys/fs/cgroup/own.service]"},
		{"version 2, in a container", "0::/rillbox-server\n", unified, "map[cpu:/sys/fs/cgroup memory:/sys/fs/cgroup pids:/sys/fs/cgroup]"},
		{"version 2, outside of what is mounted", "0::/../own.scope\n", unified, "map[]"},
		{"version 1", "9:memory:/own:with colon\n8:cpu,cpuacct:/\n0::/\n", fmt.Sprintf(legacy, "/"),
			"map[cpu:/sys/fs/cgroup/cpu,cpuacct memory:/sys/fs/cgroup/memory/own:with colon]"},
		{"version 1, in a container", "9:memory:/docker/1\n8:cpu,cpuacct:/docker/1/below\n7:pids:/docker/2\n", fmt.Sprintf(legacy, "/docker/1"),
			"map[cpu:/sys/fs/cgroup/cpu,cpuacct/below memory:/sys/fs/cgroup/memory]"},
		{"nothing", "", "", "map[]"},
	} {
		if got := fmt.Sprint(cgroupDirs(row.cgroups, row.mounts)); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}

// TestCgroupsAreBounded by the files of each version.
func TestCgroupsAreBounded(t *testing.T) {
	for _, row := range []struct {
		unified, processors bool
		want                map[string]string
		joins               int
	}{
		{true, true, map[string]string{"cgroup.subtree_control": "+memory +pids +cpu", "own/memory.max": "64", "own/memory.swap.max": "0", "own/pids.max": "16", "own/cpu.max": "500000 1000000", "own/cpu.weight": "5"}, 1},
		{true, false, map[string]string{"cgroup.subtree_control": "+memory +pids", "own/memory.max": "64", "own/memory.swap.max": "0", "own/pids.max": "16"}, 1},
		{false, true, map[string]string{"memory/own/memory.limit_in_bytes": "64", "pids/own/pids.max": "16", "cpu/own/cpu.cfs_quota_us": "500000", "cpu/own/cpu.cfs_period_us": "1000000", "cpu/own/cpu.shares": "51"}, 3},
	} {
		top := t.TempDir()
		parents := map[string]string{"memory": top, "pids": top, "cpu": top}
		if !row.unified {
			parents = map[string]string{"memory": top + "/memory", "pids": top + "/pids", "cpu": top + "/cpu"}
		}
		c, err := makeCgroup(parents, row.unified, "own", 64, 16, row.processors)
		if err != nil {
			t.Fatal(err)
		}
		c.Yield()
		c.BoundProcessors(0.5)
		if got := len(c.Join()); got != row.joins {
			t.Errorf("%+v: %d files to join", row, got)
		}
		files := map[string]string{}
		err = filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if err := os.Chmod(path, 0o600); err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			files[path[len(top)+1:]] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(files), fmt.Sprint(row.want); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestACgroupIsVacated: the kernel refuses controllers to the children of a cgroup of
// version 2 that holds processes. Any controller that version 1 does not have serves.
func TestACgroupIsVacated(t *testing.T) {
	if unified() {
		t.Skip("cgroups are of version 2 here, and this process is in one of its own")
	}
	top := t.TempDir()
	if err := unix.Mount("none", top, "cgroup2", 0, ""); err != nil {
		t.Skipf("cgroups of version 2 can't be mounted here: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(top, unix.MNT_DETACH)) })
	write := func(text string, path ...string) error {
		return os.WriteFile(filepath.Join(append([]string{top}, path...)...), []byte(text), 0)
	}
	offered, err := os.ReadFile(filepath.Join(top, "cgroup.controllers"))
	must(t, err)
	controllers := strings.Fields(string(offered))
	if len(controllers) == 0 {
		t.Skip("version 1 has all controllers here")
	}
	enabled := "+" + controllers[0]
	before, err := os.ReadFile(filepath.Join(top, "cgroup.subtree_control"))
	must(t, err)
	must(t, write(enabled, "cgroup.subtree_control"))
	name := fmt.Sprintf("rillbox-test-%d", os.Getpid())
	own := filepath.Join(top, name)
	must(t, os.Mkdir(own, 0o700))
	child := exec.Command("sleep", "1000")
	must(t, child.Start())
	t.Cleanup(func() {
		must(t, child.Process.Kill())
		_ = child.Wait() // killed
		must(t, write(strconv.Itoa(os.Getpid()), "cgroup.procs"))
		for _, dir := range []string{filepath.Join(own, serverGroup), own} {
			for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
				if err := syscall.Rmdir(dir); err == nil || time.Now().After(end) {
					must(t, err)
					break
				}
			}
		}
		if !strings.Contains(string(before), controllers[0]) {
			must(t, write("-"+controllers[0], "cgroup.subtree_control"))
		}
	})
	for _, pid := range []int{os.Getpid(), child.Process.Pid} {
		must(t, write(strconv.Itoa(pid), name, "cgroup.procs"))
	}
	if err := delegate(own, enabled); !errors.Is(err, syscall.EBUSY) {
		t.Fatalf("while it holds processes: %v", err)
	}

	// Somebody else's process is there, too: nothing is moved.
	other := exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!") // whose parent is gone
	out, err := other.Output()
	must(t, err)
	stranger := strings.TrimSpace(string(out))
	pid, err := strconv.Atoi(stranger)
	must(t, err)
	must(t, write(stranger, name, "cgroup.procs"))
	if err := vacate(own); err == nil || !strings.Contains(err.Error(), stranger) {
		t.Errorf("with another's process: %v", err)
	}
	if _, err := os.Stat(filepath.Join(own, serverGroup)); err == nil {
		t.Error("something was made, and another's process is there")
	}
	must(t, write(stranger, "cgroup.procs"))
	must(t, syscall.Kill(pid, syscall.SIGKILL))

	must(t, vacate(own))
	must(t, delegate(own, enabled))
	pids, err := pidsIn(filepath.Join(own, serverGroup, "cgroup.procs"))
	if slices.Sort(pids); err != nil || !slices.Equal(pids, []int{min(os.Getpid(), child.Process.Pid), max(os.Getpid(), child.Process.Pid)}) {
		t.Errorf("moved were %v, %v", pids, err)
	}
	must(t, vacate(own)) // nobody is there
	text, err := os.ReadFile("/proc/self/cgroup")
	must(t, err)
	mount := "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	if dir := cgroupDirs(string(text), mount)["memory"]; dir != "/sys/fs/cgroup/"+name {
		t.Errorf("its children's are made in %s", dir)
	}
	must(t, os.Mkdir(filepath.Join(own, "child"), 0o700))
	must(t, write(strconv.Itoa(child.Process.Pid), name, "child", "cgroup.procs"))
	must(t, write(strconv.Itoa(child.Process.Pid), name, serverGroup, "cgroup.procs"))
	must(t, syscall.Rmdir(filepath.Join(own, "child")))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
