package launcher

import (
	"errors"
	"fmt"
	"os"
	"slices"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// systemPaths are what every Deno process reads where it has no root of its own: shared
// libraries, the resolver's files, and what V8 and Deno size themselves by.
var systemPaths = slices.Concat(networkPaths, []string{
	"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/sys/fs/cgroup", "/sys/devices/system/cpu",
	"/etc/ld.so.cache", "/etc/localtime",
	"/dev/urandom", "/dev/random", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/sys/vm/overcommit_memory",
})

// Rights to what is at and below a path, landlock(7).
const (
	readFile      = landlock.AccessFSExecute | landlock.AccessFSReadFile
	readDirectory = readFile | landlock.AccessFSReadDir
	writeFile     = landlock.AccessFSWriteFile | landlock.AccessFSTruncate
	// changeDirectory leaves out devices, and symbolic links, which chmod, utime and stat
	// follow without asking Landlock. The kernel lets nothing gain rights by a move to
	// another directory (Refer).
	changeDirectory = writeFile | landlock.AccessFSRefer | landlock.AccessFSRemoveDir | landlock.AccessFSRemoveFile |
		landlock.AccessFSMakeDir | landlock.AccessFSMakeReg | landlock.AccessFSMakeSock | landlock.AccessFSMakeFifo
)

// handledSince are the rights that the kernel can refuse, by the version of its
// interface that brought them; what a kernel does not know is left to Deno's own
// permissions.
var handledSince = []landlock.RulesetAttr{
	1: {HandledAccessFS: 1<<13 - 1},
	2: {HandledAccessFS: landlock.AccessFSRefer},
	3: {HandledAccessFS: landlock.AccessFSTruncate},
	4: {HandledAccessNet: landlock.AccessNetBindTCP | landlock.AccessNetConnectTCP},
	5: {HandledAccessFS: landlock.AccessFSIoctlDev},
	6: {Scoped: landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal},
}

// landlock has the child restrict itself. In a root of its own only two things are
// left: abstract Unix sockets of the machine's network, and reading of places that may
// only be written, which mounts can't refuse.
func (f *plan) landlock(w *Wall) error {
	version, err := landlock.LandlockGetABIVersion()
	if err != nil || w.Level < Landlock {
		return nil
	}
	var handled landlock.RulesetAttr
	for _, more := range handledSince[:min(version+1, len(handledSince))] {
		handled.HandledAccessFS |= more.HandledAccessFS
		handled.HandledAccessNet |= more.HandledAccessNet
		handled.Scoped |= more.Scoped
	}
	if w.Network || w.Level == Namespaces {
		handled.HandledAccessNet = 0
	}
	var readable []mounted
	if w.Level == Namespaces {
		handled.HandledAccessFS = 0
		isWriteOnly := func(m mounted) bool { return m.Access == Write }
		if slices.ContainsFunc(f.found, isWriteOnly) {
			handled.HandledAccessFS = readDirectory
			readable = slices.DeleteFunc(slices.Clone(f.found), isWriteOnly)
		} else if !w.Network {
			return nil
		}
	}
	if handled == (landlock.RulesetAttr{}) {
		return nil
	}
	set, err := landlock.LandlockCreateRuleset(&handled, 0)
	if err != nil {
		return fmt.Errorf("make a ruleset: %w", err)
	}
	f.opened = append(f.opened, set)
	for _, m := range readable {
		f.allowInside(set, m.name(), rights(Read, m.is(unix.S_IFDIR)))
	}
	if w.Level == Landlock {
		if err := w.allowAll(set, handled); err != nil {
			return err
		}
		f.allowInside(set, "/proc/self", readDirectory) // the child's, not ours
	}
	f.add(stepWall, unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0)
	return nil
}

// allowInside has the child add a rule for a name in its root.
func (f *plan) allowInside(set int, name string, access uint64) {
	rule := &unix.LandlockPathBeneathAttr{Allowed_access: access}
	place := f.add(stepWall, unix.SYS_OPENAT, unix.AT_FDCWD, name, unix.O_PATH|unix.O_CLOEXEC).on(name)
	place.result = &rule.Parent_fd
	f.add(stepWall, unix.SYS_LANDLOCK_ADD_RULE, set, landlock.RuleTypePathBeneath, rule, 0).on(name)
	f.add(stepWall, unix.SYS_CLOSE, place)
}

// allowAll adds the rules of a wall without a root of its own.
func (w *Wall) allowAll(set int, handled landlock.RulesetAttr) error {
	for _, p := range slices.Concat(w.Places, placesAt(Read|Write, "/dev/null"), placesAt(Read, systemPaths...)) {
		if err := p.allow(set, handled.HandledAccessFS); err != nil {
			return fmt.Errorf("add a rule for %s: %w", p.Path, err)
		}
	}
	if handled.HandledAccessNet == 0 {
		return nil
	}
	var ports []landlock.NetPortAttr
	if w.AnyPort { // port 0 stands for those that the system chooses
		ports = append(ports, landlock.NetPortAttr{AllowedAccess: landlock.AccessNetBindTCP, Port: 0})
	}
	for _, port := range w.Connect {
		ports = append(ports, landlock.NetPortAttr{AllowedAccess: landlock.AccessNetConnectTCP, Port: uint64(port)})
	}
	for _, rule := range ports {
		if err := landlock.LandlockAddNetPortRule(set, &rule, 0); err != nil {
			return fmt.Errorf("allow TCP port %d: %w", rule.Port, err)
		}
	}
	return nil
}

// allow adds the rule for a place, unless the child can't reach it anyway.
func (p Place) allow(set int, handled uint64) error {
	file := p.File
	if file == nil {
		fd, err := unix.Open(p.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, os.ErrPermission) {
			return nil
		} else if err != nil {
			return err
		}
		file = os.NewFile(uintptr(fd), p.Path)
		defer func() { _ = file.Close() }()
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	rule := landlock.PathBeneathAttr{ParentFd: int(file.Fd()), AllowedAccess: rights(p.Access, info.IsDir()) & handled}
	if rule.AllowedAccess == 0 {
		return nil
	}
	return landlock.LandlockAddPathBeneathRule(set, &rule, 0)
}

// rights are Landlock's rights for an access.
func rights(access Access, directory bool) (r uint64) {
	if access&(Read|Execute) != 0 {
		r |= readFile
		if directory {
			r |= readDirectory
		}
	}
	if access&Write != 0 {
		r |= writeFile
		if directory {
			r |= changeDirectory
		}
	}
	return r
}
