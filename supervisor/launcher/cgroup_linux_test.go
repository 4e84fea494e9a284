package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
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
