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

// Where we are root, a child is another user, outside of its namespaces too: one
// that nobody else is. What is root's in the child's root is that user's there, by
// mounts that map one to the other, so that files need no other owners or modes.
// Where a file system can't do that, the child keeps our user, as it does where we
// are not root, without a capability.

// nobody is the user and the group that a child is to itself.
const nobody = 65534

// otherUser is the user and group of such children. The range from 1879048192 to
// 2147483647 is given to nobody, by the conventions of distributions and systemd.
const otherUser = 1879048192

// ownNames is where a child's root has what is ours.
const ownNames = "/rillbox"

// mapping is a user namespace that maps root to the other user and all others to
// themselves, for mounts; -1 where we can't have one.
var mapping = sync.OnceValues(func() (int, error) {
	if os.Geteuid() != 0 {
		return -1, errors.New("we are not root")
	}
	if err := hasCapabilities(unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_KILL, unix.CAP_CHOWN, unix.CAP_SYS_PTRACE); err != nil {
		return -1, err
	}
	self, err := os.Executable()
	if err != nil {
		return -1, err
	}
	ids := []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: otherUser, Size: 1}, {ContainerID: 1, HostID: 1, Size: otherUser - 1},
		{ContainerID: otherUser + 1, HostID: otherUser + 1, Size: 1<<31 - 1 - otherUser},
	}
	process := exec.Cmd{
		Path: self, Args: KeeperArgv(), Env: []string{}, Dir: "/",
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, Pdeathsig: syscall.SIGKILL},
	}
	stdin, err := process.StdinPipe()
	if err != nil {
		return -1, err
	}
	if err := process.Start(); err != nil {
		return -1, fmt.Errorf("make a user namespace for mounts: %w", err)
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/user", process.Process.Pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	_ = stdin.Close() // it ends
	_ = process.Wait()
	return fd, err
})

func hasCapabilities(wanted ...int) error {
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for _, c := range wanted {
		if data[c/32].Effective&(1<<(c%32)) == 0 {
			return fmt.Errorf("we lack capability %d", c)
		}
	}
	// A user namespace around us may map few users.
	ids, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(strings.Join(strings.Fields(string(ids)), " "), "0 0 4294967295") {
		return errors.New("we are in a user namespace")
	}
	return nil
}

// asOther mounts the places as the other user's and prepares the child to become
// that user; false where a file system can't do it. The mounts are made here, from
// what was judged, and only put into place by the child.
func (f *forked) asOther(found []mounted) bool {
	names, err := mapping()
	if err != nil {
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
		if err == nil { // else it is seen as others see it
			opened = append(opened, fd)
			result := int32(fd)
			trees[i] = &call{gives: &result}
		}
	}
	for i, tree := range trees {
		found[i].tree = tree
	}
	f.opened = append(f.opened, opened...)
	return true
}

// clone gives a mount of the place in which what is root's is the other user's.
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

// becomeOther makes the process the other user, in a user namespace of its own.
// What it was before it gives up with that, and none of its other namespaces is
// its own.
func (f *forked) becomeOther(proc *call) {
	f.add(stepUser, unix.SYS_SETGROUPS, 0, 0)
	f.add(stepUser, unix.SYS_SETRESGID, otherUser, otherUser, otherUser)
	f.add(stepUser, unix.SYS_SETRESUID, otherUser, otherUser, otherUser)
	f.add(stepUser, unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1)                       // else its files in /proc are root's; execve has its own
	f.add(stepParent, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(syscall.SIGKILL)) // another user has none
	if alive, err := life(); err == nil {
		f.isAlive(alive[0])
	}
	f.add(stepUser, unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	f.nobody(proc, otherUser, otherUser)
}

// nobody maps the child's user and group. proc is its directory in /proc.
func (f *forked) nobody(proc *call, user, group int) {
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
