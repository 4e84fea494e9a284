package launcher

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Offered says which wall this machine offers, by trying it once.
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

// probe starts a child behind a wall without an executable, so that it ends at once.
func probe(level Level) error {
	_, err := Start(Command{Path: "/nothing", Dir: "/", Wall: &Wall{Level: level}})
	var failed *stepError
	if errors.As(err, &failed) && failed.step == stepExecute {
		return nil // all other steps worked
	}
	return err
}

// machine holds the settings that may forbid namespaces, empty where the kernel has
// none.
type machine struct {
	appArmorRestricts string // kernel.apparmor_restrict_unprivileged_userns, of Ubuntu
	unprivilegedClone string // kernel.unprivileged_userns_clone, of Debian
	maxNamespaces     string // user.max_user_namespaces
	appArmor          string // our profile
	seccomp           string // 2 if we are under a filter
}

func lookAtMachine() machine {
	read := func(path string) string {
		text, _ := os.ReadFile(path) // a kernel without the setting has no such file
		return strings.TrimRight(string(text), "\x00\n")
	}
	m := machine{
		appArmorRestricts: read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		unprivilegedClone: read("/proc/sys/kernel/unprivileged_userns_clone"),
		maxNamespaces:     read("/proc/sys/user/max_user_namespaces"),
		appArmor:          read("/proc/self/attr/current"),
	}
	_, status, _ := strings.Cut(read("/proc/self/status"), "\nSeccomp:\t")
	m.seccomp, _, _ = strings.Cut(status, "\n")
	return m
}

// refusal says what failed when namespaces were tried, and which settings are likely
// to blame.
func (m machine) refusal(err error) string {
	var suspects []string
	suspect := func(is bool, what string) {
		if is {
			suspects = append(suspects, what)
		}
	}
	var failed *stepError
	what := "clone" // it makes the namespaces
	if errors.As(err, &failed) {
		what = failed.Error()
	}
	var errno syscall.Errno
	if errors.As(err, &errno) && failed == nil {
		what += ": " + errno.Error()
	}
	filtered := m.seccomp == "2"
	switch errno {
	case syscall.ENOSPC, syscall.EUSERS:
		suspect(m.maxNamespaces == "0", "user.max_user_namespaces is 0")
		suspect(m.maxNamespaces != "0", "a limit of user.max_*_namespaces is reached")
	case syscall.ENOSYS, syscall.EINVAL:
		suspect(filtered, "a seccomp profile is around us, as in a container")
		suspect(!filtered, "the kernel may be older than Linux 5.12, or built without namespaces")
	case syscall.EPERM, syscall.EACCES:
		suspect(m.unprivilegedClone == "0", "kernel.unprivileged_userns_clone is 0")
		suspect(m.appArmorRestricts == "1", "kernel.apparmor_restrict_unprivileged_userns is 1")
		suspect(filtered, "a seccomp profile is around us, as in a container")
		profile, confined := strings.CutSuffix(m.appArmor, " (enforce)")
		suspect(confined, "AppArmor's profile "+profile+" is around us")
	default:
		return err.Error()
	}
	if suspects == nil {
		return what
	}
	return what + " (" + strings.Join(suspects, "; ") + ")"
}
