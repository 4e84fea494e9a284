package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/deno/permission"
	"rillbox/pyodide"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// TestServesAsAnyone: as root, as an ordinary user and in a user namespace, a
// server has the same wall and runs programs and cells of each language.
func TestServesAsAnyone(t *testing.T) {
	if launcher.Offered().Level < launcher.Namespaces {
		lacks(t, launcher.Offered().Detail)
	}
	distribution, err := pyodide.LocateDistribution(t.Context(), pyodide.LocateOptions{Cache: openShared(t)})
	cachetest.NeedNetwork(t, err)
	// The runtimes where all users can read them.
	public, err := os.MkdirTemp("", "anyone-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(public)
	for _, language := range []job.Language{job.JavaScript, job.Python} {
		newEngine(t, language, nil, launcher.Best) // all is in the cache from here on
	}
	for name, from := range map[string]string{"rillbox": buildProgram(t), "deno": denoBinary(t), "pyodide": distribution.Dir} {
		if out, err := exec.Command("cp", "-rL", from, filepath.Join(public, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if out, err := exec.Command("chmod", "-R", "a+rX", public).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const nobody = 65534
	own := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	for _, row := range []struct {
		name  string
		as    *syscall.SysProcAttr
		owner int
	}{
		{"ourselves", &syscall.SysProcAttr{}, os.Geteuid()},
		{"an ordinary user", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}, nobody},
		{"root of a user namespace", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: own, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}, os.Geteuid()},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.as.Credential != nil && os.Geteuid() != 0 {
				t.Skip("only root can become another user; we are an ordinary one ourselves")
			}
			home, err := os.MkdirTemp(public, "home-")
			if err == nil {
				err = os.Chown(home, row.owner, -1)
			}
			if err != nil {
				t.Fatal(err)
			}
			var stderr lockedBuffer
			cmd := exec.Command(filepath.Join(public, "rillbox"), "serve", "--wall", "namespaces")
			cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH"), "RILLBOX_OFFLINE=true"}
			if row.owner == os.Geteuid() {
				cmd.Env = append(cmd.Env, "RILLBOX_CACHE_DIR="+openShared(t).Dir())
			} else { // who can't read ours
				cmd.Env = append(cmd.Env, "RILLBOX_CACHE_DIR="+home+"/cache", "RILLBOX_DENO="+public+"/deno", "RILLBOX_PYODIDE="+public+"/pyodide")
			}
			cmd.Dir, cmd.Stderr, cmd.SysProcAttr = home, &stderr, row.as
			client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			defer func() {
				_ = client.Close()
				if t.Failed() {
					t.Log(stderr.String())
				}
			}()
			for _, call := range []struct {
				language, code, session, want string
			}{
				{"javascript", `export default 6 * 7`, "", "42"},
				{"typescript", `const x: number = 42; export default x`, "", "42"},
				{"python", `6 * 7`, "", "42"},
				{"javascript", `Deno.writeTextFileSync("f", "42"); Deno.readTextFileSync("f")`, "default", `"42"`},
				{"python", `open("f", "w").write("x"); 42`, "default", "42"},
			} {
				arguments := map[string]any{"language": call.language, "code": call.code}
				if call.session != "" {
					arguments["session_id"] = call.session
				}
				result, refusal := use[answer](t, client, "run_code", arguments)
				if string(result.Result) != call.want {
					t.Errorf("%s %q: %s %+v %s", call.language, call.session, result.Result, result, refusal)
				}
			}
		})
	}
}

// TestChildrenOfRootAreAnotherUser, outside of their namespaces too, and what they
// make is root's all the same.
func TestChildrenOfRootAreAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 || launcher.Offered().Level < launcher.Namespaces {
		t.Skip("we are not root, or have no namespaces")
	}
	o := ownSession(t, "javascript", newEngine(t, "javascript", nil, launcher.Best))
	result := runProgram(t.Context(), o, job.Program{Language: job.JavaScript, Code: `Deno.writeTextFileSync("marked-as-mine", "x")`}, nil)
	if result.Status != "completed" {
		t.Fatal(result.summary())
	}
	found, err := filepath.Glob(filepath.Join(runsDir(t), "*", "marked-as-mine"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q %v", found, err)
	}
	info, err := os.Stat(found[0])
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 0 {
		t.Errorf("the file is %d's", owner)
	}
	_, pid := whereItIs(t, "marked-as-mine")
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(status), "\nUid:\t1879048192\t1879048192\t1879048192\t1879048192\n") || !strings.Contains(string(status), "\nCapBnd:\t0000000000000000\n") {
		t.Errorf("%s", status)
	}
}

// TestNoPortOfOursIsOnLoopback: where programs have a network of their own, what we
// listen on for them is there, and neither the server nor a child listens on the
// machine's.
func TestNoPortOfOursIsOnLoopback(t *testing.T) {
	if launcher.Offered().Level < launcher.Namespaces {
		lacks(t, launcher.Offered().Detail)
	}
	s := serve(t, t.TempDir())
	for _, arguments := range []map[string]any{
		{"language": "javascript", "code": "1", "session_id": "default"},
		{"language": "python", "code": "import micropip; 1", "session_id": "default"},
		{"language": "python", "code": "1"},
		{"language": "typescript", "code": "export default 1"},
	} {
		if a := s.run(t, arguments); a.Status != "completed" {
			t.Fatalf("%+v", a)
		}
	}
	table, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	listening := map[string]bool{}
	for _, line := range strings.Split(string(table), "\n") {
		if fields := strings.Fields(line); len(fields) > 9 && fields[3] == "0A" { // TCP_LISTEN
			listening["socket:["+fields[9]+"]"] = true
		}
	}
	found := 0
	for _, p := range append(s.remains(t), process{pid: s.process.Pid, command: "the server"}) {
		descriptors, err := filepath.Glob("/proc/" + strconv.Itoa(p.pid) + "/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range descriptors {
			found++
			if to, err := os.Readlink(fd); err == nil && listening[to] {
				t.Errorf("%v listens on the machine's network", p)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d descriptors were looked at", found)
	}
}

// TestNothingIsOpenedForWhatIsMissing: a write grant that names what is not there
// is refused at the start, and opens no directory that holds it.
func TestNothingIsOpenedForWhatIsMissing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "out")
	permissions, err := permission.Parse([]string{"--allow-write=" + missing, "--allow-read=" + missing})
	if err != nil {
		t.Fatal(err)
	}
	_, scripts := deno.New(deno.Options{Cache: openShared(t), Permissions: permissions, Limits: job.DefaultLimits()})
	_, python := pyodide.New(pyodide.Options{Options: deno.Options{Cache: openShared(t), Permissions: permissions}})
	for _, err := range []error{scripts, python} {
		if err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "make it first, or grant its directory") {
			t.Errorf("it was not refused: %v", err)
		}
	}
}
