package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// TestRefusalNamesTheSetting tells what machines say of themselves, and what is to
// be said of them.
func TestRefusalNamesTheSetting(t *testing.T) {
	clone := func(errno syscall.Errno) error { return fmt.Errorf("start /nothing: fork: %w", errno) }
	at := func(s step, about string, errno syscall.Errno) error {
		return fmt.Errorf("start /nothing: %w", &stepError{s, about, errno})
	}
	for _, row := range []struct {
		name string
		machine
		err  error
		want string
	}{
		{"no namespaces for anybody", machine{maxNamespaces: "0"}, clone(syscall.ENOSPC),
			"clone: no space left on device (user.max_user_namespaces is 0)"},
		{"as many as there may be", machine{maxNamespaces: "7"}, clone(syscall.ENOSPC),
			"clone: no space left on device (a limit of user.max_*_namespaces is reached)"},
		{"Debian, hardened", machine{unprivilegedClone: "0", maxNamespaces: "7"}, clone(syscall.EPERM),
			"clone: operation not permitted (kernel.unprivileged_userns_clone is 0)"},
		{"Ubuntu", machine{appArmorRestricts: "1", unprivilegedClone: "1", appArmor: "unconfined"}, clone(syscall.EPERM),
			"clone: operation not permitted (kernel.apparmor_restrict_unprivileged_userns is 1)"},
		{"Ubuntu, where the namespace comes without capabilities", machine{appArmorRestricts: "1"}, at(stepUser, "/proc/self/uid_map", syscall.EACCES),
			"become nobody: /proc/self/uid_map: permission denied (kernel.apparmor_restrict_unprivileged_userns is 1)"},
		{"Docker", machine{appArmor: "docker-default (enforce)", seccomp: "2"}, clone(syscall.EPERM),
			"clone: operation not permitted (a seccomp profile is around us, as in a container; AppArmor's profile docker-default is around us)"},
		{"Docker without seccomp", machine{appArmor: "docker-default (enforce)", seccomp: "0"}, at(stepRoot, "", syscall.EACCES),
			"make its root: permission denied (AppArmor's profile docker-default is around us)"},
		{"an old kernel", machine{seccomp: "0"}, at(stepPlace, "/dev/null", syscall.ENOSYS),
			"find what it is to see: /dev/null: function not implemented (the kernel may be older than Linux 5.12, or built without namespaces)"},
		{"a profile that knows no new calls", machine{seccomp: "2"}, at(stepPlace, "/dev/null", syscall.ENOSYS),
			"find what it is to see: /dev/null: function not implemented (a seccomp profile is around us, as in a container)"},
		{"nothing to be seen", machine{appArmor: "unconfined", seccomp: "0"}, clone(syscall.EPERM), "clone: operation not permitted"},
		{"something else", machine{seccomp: "2"}, errors.New("look at /dev/null"), "look at /dev/null"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := row.refusal(row.err); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// inContainer runs the test once more in a process of its own, in which it returns
// true, under a filter.
func inContainer(t *testing.T, refused ...seccomp.SyscallGroup) bool {
	t.Helper()
	const inside = "RILLBOX_TEST_IN_A_CONTAINER"
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return false
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: refused}
	if err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: policy}); err != nil {
		t.Fatal(err)
	}
	return true
}

// TestLandlockInAContainer raises the wall under a filter like that of Docker's
// default profile, which refuses namespaces, mounts and keyrings.
func TestLandlockInAContainer(t *testing.T) {
	if !inContainer(t, seccomp.SyscallGroup{
		Action: seccomp.ActionErrno,
		Names:  []string{"keyctl", "mount", "open_tree", "unshare"},
		NamesWithCondtions: []seccomp.NameWithConditions{{Name: "clone", Conditions: seccomp.ArgumentConditions{
			{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_NEWUSER},
		}}},
	}) {
		return
	}
	want := Landlock
	if _, err := landlock.LandlockGetABIVersion(); err != nil {
		want = Deno
	}
	got := Offered()
	if got.Level != want || !strings.Contains(got.Detail, "a seccomp profile is around us") {
		t.Errorf("the machine offers %v: %s; want %v", got.Level, got.Detail, want)
	}
	if err := probe(Deno); err != nil {
		t.Errorf("a child without a wall: %v", err)
	}
}

// TestOurContainerProfileLetsNamespacesBe raises the best wall under the profile
// that we give people for Docker and Kubernetes.
func TestOurContainerProfileLetsNamespacesBe(t *testing.T) {
	text, err := os.ReadFile("../../packaging/walls/seccomp-docker.json")
	if err != nil {
		t.Fatal(err)
	}
	var profile struct {
		DefaultAction string
		Syscalls      []struct {
			Names  []string
			Action string
		}
	}
	if err := json.Unmarshal(text, &profile); err != nil {
		t.Fatal(err)
	}
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	refused := seccomp.SyscallGroup{Action: seccomp.ActionErrno}
	for _, group := range profile.Syscalls {
		if group.Action != "SCMP_ACT_ERRNO" || profile.DefaultAction != "SCMP_ACT_ALLOW" {
			t.Fatalf("the profile has the actions %s and %s, which this test does not know", profile.DefaultAction, group.Action)
		}
		for _, name := range group.Names {
			if _, known := info.SyscallNames[name]; known {
				refused.Names = append(refused.Names, name)
			}
		}
	}
	if Offered().Level < Namespaces {
		t.Skip(Offered().Detail)
	}
	if inContainer(t, refused) {
		if err := probe(Namespaces); err != nil {
			t.Error(err)
		}
		if _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false); err != unix.EPERM {
			t.Errorf("the profile is not around us: keyctl gives %v", err)
		}
	}
}
