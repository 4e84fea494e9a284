package launcher

import (
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	access "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// What every Deno process reads of the system: shared libraries, certificates,
// the resolver's files, and what V8 and Deno look at to size themselves.
var (
	systemDirectories = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ssl", "/etc/pki", "/usr/share/ca-certificates", "/usr/share/zoneinfo", "/sys/fs/cgroup", "/sys/devices/system/cpu"}
	systemFiles       = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/random", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/sys/vm/overcommit_memory"}
)

// The rights to change what is at a path, landlock(7), without those to read it.
const (
	writeFile      landlock.AccessFSSet = access.AccessFSWriteFile | access.AccessFSTruncate
	writeDirectory landlock.AccessFSSet = writeFile | access.AccessFSRemoveDir | access.AccessFSRemoveFile |
		access.AccessFSMakeDir | access.AccessFSMakeReg | access.AccessFSMakeSock | access.AccessFSMakeFifo | access.AccessFSMakeSym
)

// raise restricts the process, for good and for all that it becomes or starts.
// Where the kernel offers an older Landlock, what that one can do is in force.
func (w *Wall) raise() error {
	files, directories := split(w.ReadOnly)
	writtenFiles, writtenDirectories := split(w.WriteOnly)
	writableFiles, writableDirectories := split(w.ReadWrite)
	rules := []landlock.Rule{
		landlock.RODirs(systemDirectories...).IgnoreIfMissing(),
		landlock.ROFiles(systemFiles...).IgnoreIfMissing(),
		landlock.RODirs(fmt.Sprintf("/proc/%d", os.Getpid())).IgnoreIfMissing(),
		landlock.RWFiles("/dev/null").IgnoreIfMissing(),
		landlock.ROFiles(files...).IgnoreIfMissing(),
		landlock.RODirs(directories...).IgnoreIfMissing(),
		landlock.PathAccess(writeFile, writtenFiles...).IgnoreIfMissing(),
		landlock.PathAccess(writeDirectory, writtenDirectories...).IgnoreIfMissing(),
		landlock.RWFiles(writableFiles...).IgnoreIfMissing(),
		landlock.RWDirs(writableDirectories...).IgnoreIfMissing(),
	}
	config := landlock.V6.BestEffort()
	if err := config.RestrictPaths(rules...); err != nil {
		return fmt.Errorf("restrict files: %w", err)
	}
	if !w.AnyNetwork {
		ports := make([]landlock.Rule, len(w.Connect))
		for i, port := range w.Connect {
			ports[i] = landlock.ConnectTCP(port)
		}
		if err := config.RestrictNet(ports...); err != nil {
			return fmt.Errorf("restrict connections: %w", err)
		}
	}
	if err := config.RestrictScoped(); err != nil {
		return fmt.Errorf("restrict signals and abstract sockets: %w", err)
	}
	return refuseSystemCalls(w.Processes)
}

// split tells files from directories, which Landlock has different rights for;
// what does not exist is left out.
func split(paths []string) (files, directories []string) {
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case info.IsDir():
			directories = append(directories, path)
		default:
			files = append(files, path)
		}
	}
	return files, directories
}

// Offered says what second wall this kernel offers.
func Offered() Support {
	const createRulesetVersion = 1 // LANDLOCK_CREATE_RULESET_VERSION, landlock(7)
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, createRulesetVersion)
	if errno != 0 {
		return Support{Detail: fmt.Sprintf("the kernel has no Landlock (%v); it comes with Linux 5.13 and is turned on with lsm=landlock,… at boot", errno)}
	}
	return Support{Name: "Landlock", Detail: fmt.Sprintf("ABI %d", abi)}
}
