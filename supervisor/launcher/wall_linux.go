package launcher

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// What every Deno process reads of the system where it has no root of its own:
// shared libraries, the resolver's files, and what V8 and Deno look at to size
// themselves.
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
	// changeDirectory leaves out making devices, and symbolic links: calls that
	// Landlock knows nothing of follow them (chmod, utime, stat). What is moved to
	// another directory (Refer) gains no rights by that: the kernel sees to it.
	changeDirectory = writeFile | landlock.AccessFSRefer | landlock.AccessFSRemoveDir | landlock.AccessFSRemoveFile |
		landlock.AccessFSMakeDir | landlock.AccessFSMakeReg | landlock.AccessFSMakeSock | landlock.AccessFSMakeFifo
)

// The rights that each version of the kernel's interface can refuse; what a
// kernel does not know is left to Deno's own permissions.
const (
	filesOf1    = 1<<13 - 1
	filesOf2    = filesOf1 | landlock.AccessFSRefer
	filesOf3    = filesOf2 | landlock.AccessFSTruncate
	filesOf5    = filesOf3 | landlock.AccessFSIoctlDev
	networkOf4  = landlock.AccessNetBindTCP | landlock.AccessNetConnectTCP
	scopedSince = 6
)

// pathBeneath is landlock_path_beneath_attr, which is packed: 12 bytes.
type pathBeneath struct {
	access uint64
	parent int32
}

// landlock has the child restrict itself. In a root of its own what is left to
// restrict is what the machine's network has beside ports, abstract Unix sockets,
// and reading what may only be written, which mounts can't.
func (f *forked) landlock(w *Wall) error {
	version, err := landlock.LandlockGetABIVersion()
	if err != nil || w.Level < Landlock {
		return nil
	}
	writeOnly := slices.ContainsFunc(f.found, func(m mounted) bool { return m.Access == Write })
	if w.Level == Namespaces && !writeOnly && (!w.Network || version < scopedSince) {
		return nil
	}
	set, err := w.ruleset(version, writeOnly)
	if err != nil {
		return err
	}
	f.opened = append(f.opened, set)
	if writeOnly {
		for _, m := range f.found {
			if m.Access != Write {
				f.allowRead(set, m)
			}
		}
	}
	if w.Level == Landlock { // what is below /proc/self is known only in the child
		own := &pathBeneath{access: readDirectory}
		f.add(stepWall, unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self", unix.O_PATH|unix.O_CLOEXEC).gives = &own.parent
		f.add(stepWall, unix.SYS_LANDLOCK_ADD_RULE, set, landlock.RuleTypePathBeneath, own, 0)
	}
	f.add(stepWall, unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0)
	return nil
}

// allowRead adds a rule for what has been mounted.
func (f *forked) allowRead(set int, m mounted) {
	rule := &pathBeneath{access: readFile}
	if m.directory {
		rule.access = readDirectory
	}
	place := f.add(stepWall, unix.SYS_OPENAT, unix.AT_FDCWD, m.name(), unix.O_PATH|unix.O_CLOEXEC).on(m.name())
	place.gives = &rule.parent
	f.add(stepWall, unix.SYS_LANDLOCK_ADD_RULE, set, landlock.RuleTypePathBeneath, rule, 0).on(m.name())
	f.add(stepWall, unix.SYS_CLOSE, place)
}

// ruleset makes a Landlock ruleset of the wall. Where the kernel has an older
// Landlock, what that one can do is used.
func (w *Wall) ruleset(version int, writeOnly bool) (int, error) {
	var handled landlock.RulesetAttr
	if writeOnly {
		handled.HandledAccessFS = readDirectory
	}
	if version >= scopedSince {
		handled.Scoped = landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal
	}
	if w.Level == Landlock {
		switch {
		case version >= 5:
			handled.HandledAccessFS = filesOf5
		case version >= 3:
			handled.HandledAccessFS = filesOf3
		case version == 2:
			handled.HandledAccessFS = filesOf2
		default:
			handled.HandledAccessFS = filesOf1
		}
		if version >= 4 && !w.Network {
			handled.HandledAccessNet = networkOf4
		}
	}
	set, err := landlock.LandlockCreateRuleset(&handled, 0)
	if err != nil {
		return -1, fmt.Errorf("make a ruleset: %w", err)
	}
	if w.Level == Landlock {
		if err := w.allowAll(set, handled); err != nil {
			return -1, errors.Join(err, unix.Close(set))
		}
	}
	return set, nil
}

func (w *Wall) allowAll(set int, handled landlock.RulesetAttr) error {
	places := slices.Clone(w.Places)
	for _, path := range systemPaths {
		places = append(places, Place{Path: path, Access: Read})
	}
	places = append(places, Place{Path: "/dev/null", Access: Read | Write})
	for _, p := range places {
		if err := p.allow(set, handled.HandledAccessFS); err != nil {
			return err
		}
	}
	if handled.HandledAccessNet == 0 {
		return nil
	}
	var ports []landlock.NetPortAttr
	for _, port := range w.Connect {
		ports = append(ports, landlock.NetPortAttr{AllowedAccess: landlock.AccessNetConnectTCP, Port: uint64(port)})
	}
	if w.AnyPort { // port 0 stands for those that the system chooses
		ports = append(ports, landlock.NetPortAttr{AllowedAccess: landlock.AccessNetBindTCP, Port: 0})
	}
	for _, rule := range ports {
		if err := landlock.LandlockAddNetPortRule(set, &rule, 0); err != nil {
			return fmt.Errorf("allow TCP port %d: %w", rule.Port, err)
		}
	}
	return nil
}

// allow gives rights to a place. What does not exist is passed over.
func (p Place) allow(set int, handled uint64) error {
	fd := -1
	if p.File != nil {
		fd = int(p.File.Fd())
	} else {
		var err error
		if fd, err = unix.Open(p.Path, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, os.ErrPermission) {
				return nil // the child can't reach it either
			}
			return fmt.Errorf("open %s for a rule: %w", p.Path, err)
		}
		defer func() { _ = unix.Close(fd) }()
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("look at %s for a rule: %w", p.Path, err)
	}
	var access uint64
	directory := stat.Mode&unix.S_IFMT == unix.S_IFDIR
	if p.Access&(Read|Execute) != 0 {
		access |= readFile
		if directory {
			access |= readDirectory
		}
	}
	if p.Access&Write != 0 {
		access |= writeFile
		if directory {
			access |= changeDirectory
		}
	}
	rule := landlock.PathBeneathAttr{ParentFd: fd, AllowedAccess: access & handled}
	if rule.AllowedAccess == 0 {
		return nil
	}
	if err := landlock.LandlockAddPathBeneathRule(set, &rule, 0); err != nil {
		return fmt.Errorf("add a rule for %s: %w", p.Path, err)
	}
	return nil
}

// Offered says which wall this machine offers, by raising it once.
var Offered = sync.OnceValue(func() Support {
	err := probe(Namespaces)
	if err == nil {
		return Support{Level: Namespaces, Detail: "each program has a root, processes and a network of its own"}
	}
	why := lookAtMachine().refusal(err)
	version, err := landlock.LandlockGetABIVersion()
	if err == nil {
		err = probe(Landlock)
	}
	if err != nil {
		return Support{Level: Deno, Detail: fmt.Sprintf("no namespaces: %s; no Landlock: %v; docs/walls.md says what helps", why, err)}
	}
	return Support{Level: Landlock, Detail: fmt.Sprintf("ABI %d; no namespaces: %s; docs/walls.md says what helps", version, why)}
})

// probe raises a wall around a process that ends at once: it has nothing to execute
// there.
func probe(level Level) error {
	_, err := Start(Command{Path: "/nothing", Dir: "/", Policy: Policy{Wall: &Wall{Level: level}}})
	var failed *stepError
	if errors.As(err, &failed) && failed.step == stepExecute {
		return nil // all that comes before has been done
	}
	return err
}
