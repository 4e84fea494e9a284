package launcher

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// If the server is root, a child runs as another user, also as seen from outside of its
// namespaces. Idmapped mounts show root's files as that user's, so that files keep their
// owners and modes. Where a file system has no idmapped mounts, and where the server is
// not root, the child keeps the server's user, without capabilities.

// nobody is a child's user and group in its own user namespace.
const nobody = 65534

// otherUser is that user, and its group. Distributions and systemd leave the range from
// 1879048192 to 2147483647 unused.
const otherUser = 1879048192

// ownNames is where a child's root has our own files.
const ownNames = "/rillbox"

// mapping is a user namespace for idmapped mounts: root is otherUser, and all others are
// themselves. It is -1 where we can't have one.
var mapping = sync.OnceValue(func() int {
	self, err := os.Executable()
	if err != nil || !mayBecomeOther() {
		return -1
	}
	ids := []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: otherUser, Size: 1}, {ContainerID: 1, HostID: 1, Size: otherUser - 1},
		{ContainerID: otherUser + 1, HostID: otherUser + 1, Size: 1<<31 - 1 - otherUser},
	}
	process := exec.Cmd{
		Path: self, Args: KeeperArgv(0), Env: []string{}, Dir: "/", // a keeper waits for the end of its input; no server has this number
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, Pdeathsig: syscall.SIGKILL},
	}
	stdin, err := process.StdinPipe()
	if err != nil || process.Start() != nil {
		return -1
	}
	fd, _ := unix.Open(fmt.Sprintf("/proc/%d/ns/user", process.Process.Pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	_ = stdin.Close()
	_ = process.Wait()
	return fd
})

// mayBecomeOther reports whether we are root with all that this takes.
func mayBecomeOther() bool {
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if os.Geteuid() != 0 || unix.Capget(&header, &data[0]) != nil {
		return false
	}
	for _, c := range []int{unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_KILL, unix.CAP_CHOWN, unix.CAP_SYS_PTRACE} {
		if data[c/32].Effective&(1<<(c%32)) == 0 {
			return false
		}
	}
	// A user namespace around us may have too few users.
	ids, _ := os.ReadFile("/proc/self/uid_map")
	return strings.HasPrefix(strings.Join(strings.Fields(string(ids)), " "), "0 0 4294967295")
}

// mapPlaces makes idmapped mounts of the places, from the files that were judged; the
// child only attaches them. It reports false if that is not possible.
func (f *plan) mapPlaces(found []mounted) bool {
	names := mapping()
	if names < 0 {
		return false
	}
	trees := make([]*call, len(found))
	var opened []int
	for i, m := range found {
		if !m.mapped {
			continue
		}
		fd, err := m.clone(names)
		if err != nil && within(m.name(), ownNames) {
			closeAll(opened)
			return false
		}
		if err == nil { // otherwise the child sees it as any other user does
			opened = append(opened, fd)
			result := int32(fd)
			trees[i] = &call{result: &result}
		}
	}
	for i, tree := range trees {
		found[i].tree = tree
	}
	f.opened = append(f.opened, opened...)
	return true
}

// clone gives an idmapped mount of the place.
func (m mounted) clone(names int) (int, error) {
	at, path := unix.AT_FDCWD, m.Path
	if m.File != nil {
		at, path = int(m.File.Fd()), ""
	}
	fd, err := unix.OpenTree(at, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, err
	}
	attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(names)}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attributes); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// becomeOther makes the process otherUser, in a user namespace of its own. It loses its
// capabilities over the namespaces that it was made in.
func (f *plan) becomeOther(proc *call) {
	f.add(stepUser, unix.SYS_SETGROUPS, 0, 0)
	f.add(stepUser, unix.SYS_SETRESGID, otherUser, otherUser, otherUser)
	f.add(stepUser, unix.SYS_SETRESUID, otherUser, otherUser, otherUser)
	f.add(stepUser, unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1)                       // otherwise root owns its files in /proc
	f.add(stepParent, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(syscall.SIGKILL)) // changing the user cleared it
	f.checkServer()
	f.add(stepUser, unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	f.nobody(proc, otherUser, otherUser)
}

// nobody maps a user and a group to nobody. proc is the child's directory in /proc.
func (f *plan) nobody(proc *call, user, group int) {
	for _, file := range [][2]string{
		{"setgroups", "deny"},
		{"uid_map", fmt.Sprintf("%d %d 1", nobody, user)},
		{"gid_map", fmt.Sprintf("%d %d 1", nobody, group)},
	} {
		fd := f.add(stepUser, unix.SYS_OPENAT, proc, file[0], unix.O_WRONLY|unix.O_CLOEXEC).on(file[0])
		f.add(stepUser, unix.SYS_WRITE, fd, file[1], len(file[1])).on(file[0])
		f.add(stepUser, unix.SYS_CLOSE, fd)
	}
}
