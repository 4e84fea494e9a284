package launcher

import (
	"errors"
	"fmt"
	"os"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// What every Deno process reads of the system: shared libraries, certificates,
// the resolver's files, and what V8 and Deno look at to size themselves.
var systemPaths = []string{
	"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ssl", "/etc/pki", "/usr/share/ca-certificates", "/usr/share/zoneinfo", "/sys/fs/cgroup", "/sys/devices/system/cpu",
	"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/ld.so.cache", "/etc/localtime",
	"/dev/urandom", "/dev/random", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/sys/vm/overcommit_memory",
}

// Rights to what is at and below a path, landlock(7).
const (
	readFile      = landlock.AccessFSExecute | landlock.AccessFSReadFile
	readDirectory = readFile | landlock.AccessFSReadDir
	writeFile     = landlock.AccessFSWriteFile | landlock.AccessFSTruncate
	// changeDirectory leaves making devices out. What is moved to another directory
	// (Refer) gains no rights by that: the kernel sees to it.
	changeDirectory = writeFile | landlock.AccessFSRefer | landlock.AccessFSRemoveDir | landlock.AccessFSRemoveFile |
		landlock.AccessFSMakeDir | landlock.AccessFSMakeReg | landlock.AccessFSMakeSock | landlock.AccessFSMakeFifo | landlock.AccessFSMakeSym
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

const rulePathBeneath = landlock.RuleTypePathBeneath

// ruleset makes a Landlock ruleset of the wall, which lacks only what is known
// in the child: its own directory in /proc. It gives -1 where the kernel has no
// Landlock. Where it has an older one, what that one can do is used.
func (w *Wall) ruleset() (int, error) {
	version, err := landlock.LandlockGetABIVersion()
	if err != nil {
		return -1, nil
	}
	handled := landlock.RulesetAttr{HandledAccessFS: filesOf1}
	switch {
	case version >= 5:
		handled.HandledAccessFS = filesOf5
	case version >= 3:
		handled.HandledAccessFS = filesOf3
	case version == 2:
		handled.HandledAccessFS = filesOf2
	}
	if version >= 4 && !w.AnyNetwork {
		handled.HandledAccessNet = networkOf4
	}
	if version >= scopedSince {
		handled.Scoped = landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal
	}
	set, err := landlock.LandlockCreateRuleset(&handled, 0)
	if err != nil {
		return -1, fmt.Errorf("make a ruleset: %w", err)
	}
	rules := []struct {
		paths           []string
		file, directory uint64
	}{
		{systemPaths, readFile, readDirectory},
		{w.ReadOnly, readFile, readDirectory},
		{w.WriteOnly, writeFile, changeDirectory},
		{w.ReadWrite, readFile | writeFile, readDirectory | changeDirectory},
		{[]string{"/dev/null"}, readFile | writeFile, 0},
	}
	for _, rule := range rules {
		for _, path := range rule.paths {
			if err := allow(set, path, rule.file&handled.HandledAccessFS, rule.directory&handled.HandledAccessFS); err != nil {
				return -1, errors.Join(err, unix.Close(set))
			}
		}
	}
	if handled.HandledAccessNet != 0 {
		var ports []landlock.NetPortAttr
		for _, port := range w.Connect {
			ports = append(ports, landlock.NetPortAttr{AllowedAccess: landlock.AccessNetConnectTCP, Port: uint64(port)})
		}
		if w.Listen { // port 0 stands for those that the system chooses
			ports = append(ports, landlock.NetPortAttr{AllowedAccess: landlock.AccessNetBindTCP, Port: 0})
		}
		for _, rule := range ports {
			if err := landlock.LandlockAddNetPortRule(set, &rule, 0); err != nil {
				return -1, errors.Join(fmt.Errorf("allow TCP port %d: %w", rule.Port, err), unix.Close(set))
			}
		}
	}
	return set, nil
}

// allow gives rights to a file, or to a directory and what is below it. What
// does not exist is passed over.
func allow(set int, path string, file, directory uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, os.ErrPermission) {
			return nil // the child can't reach it either
		}
		return fmt.Errorf("open %s for a rule: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("look at %s for a rule: %w", path, err)
	}
	rule := landlock.PathBeneathAttr{ParentFd: fd, AllowedAccess: file}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		rule.AllowedAccess = directory
	}
	if rule.AllowedAccess == 0 {
		return nil
	}
	if err := landlock.LandlockAddPathBeneathRule(set, &rule, 0); err != nil {
		return fmt.Errorf("add a rule for %s: %w", path, err)
	}
	return nil
}

// Offered says what second wall this kernel offers.
func Offered() Support {
	version, err := landlock.LandlockGetABIVersion()
	if err != nil {
		return Support{Detail: fmt.Sprintf("the kernel has no Landlock (%v); it comes with Linux 5.13 and is turned on with lsm=landlock,… at boot", err)}
	}
	return Support{Name: "Landlock", Detail: fmt.Sprintf("ABI %d", version)}
}
