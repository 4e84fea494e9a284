//go:build !windows

package hostile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
)

// TestNoPathLeadsOutOfAWorkspace: whatever a client names, and whatever a guest
// has put there, the tools and resources for files stay in the workspace. The
// guest may do with files here what it likes.
func TestNoPathLeadsOutOfAWorkspace(t *testing.T) {
	needWall(t)
	t.Parallel()
	h := openHouse(t, job.DefaultLimits(), "--allow-read", "--allow-write")
	secret := newSecret()
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret.txt"), secret)
	v := openVictim(t, h, speechOf(t, "javascript"), secret)

	// Where else a file is, by the ways that lead there.
	session := createSession(t, h.rude, "javascript", nil)
	mark := newSecret()
	if a := cell(t, h.rude, session, "javascript", `Deno.writeTextFileSync("`+mark+`", "")`); a.Status != "completed" {
		t.Fatalf("%+v", a)
	}
	dir, _ := whereItIs(t, mark)
	a := cell(t, h.rude, session, "javascript", strings.NewReplacer("%OUT%", outside, "%DIR%", v.dir, "%OWN%", dir).Replace(`
const link = (to, name) => Deno.symlinkSync(to, name);
link("%OUT%", "folder"); link("%OUT%/secret.txt", "file"); link("%OUT%/made", "nothing");
link("../../../../../../../../../..%OUT%", "climbs"); link("/etc/passwd", "passwd"); link("/proc/self/cwd", "cwd"); link("/proc/self/root", "root");
link("/proc/self/environ", "environ"); link("%DIR%", "another"); link("%DIR%/secret.txt", "anothers"); link("self", "self");
link("folder", "chain"); link("chain/secret.txt", "chained"); link("..", "up"); link("/dev/zero", "zero"); link("/dev/fd/3", "wire");
Deno.mkdirSync("in"); link("../../..", "in/up"); link("%OWN%", "absolute");
Deno.writeTextFileSync("own", "own"); link("own", "within");`))
	if a.Status != "completed" {
		t.Fatalf("%+v", a)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, mark)), os.Link(filepath.Join(v.dir, "secret.txt"), filepath.Join(dir, "hard"))); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "locked"), []byte("x"), 0o000); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(tree(outside), tree(v.dir))
	inside := "../" + filepath.Base(dir) + "/own"
	names := []string{
		"", ".", "..", "../secret.txt", inside, "in/../../" + v.base + "/secret.txt", "in/up/" + v.base + "/secret.txt",
		outside + "/secret.txt", v.dir + "/secret.txt", "/etc/passwd", "/workspace/../../etc/passwd", "/workspace/..", "/workspaceX/own", "//etc/passwd",
		"own\x00.txt", "own/", "own/../../x", "~/.bashrc", `..\secret.txt`, `C:\x`, "file:///etc/passwd",
		"folder/secret.txt", "file", "nothing", "climbs/secret.txt", "passwd", "cwd/secret.txt", "root/etc/passwd", "environ", "another/secret.txt", "anothers",
		"self", "chain/secret.txt", "chained", "up/" + v.base + "/secret.txt", "zero", "wire", "absolute/own", "fifo",
		"/proc/self/cwd/own", "/dev/stdin", strings.Repeat("a", 300), strings.Repeat("a/", 3000) + "b", "\xff\xfe",
	}
	for _, name := range names {
		t.Run(fmt.Sprintf("%.60q", name), func(t *testing.T) {
			look := func(what, said string) {
				if strings.Contains(said, secret) || strings.Contains(said, "root:") || strings.Contains(said, outside) && !strings.Contains(name, outside) || strings.Contains(said, dir) {
					t.Errorf("%s says %q", what, said)
				}
			}
			for _, call := range []struct {
				tool      string
				arguments map[string]any
				may       bool // it may be done: it stays within
			}{
				{"read_file", map[string]any{"path": name}, false},
				{"read_file", map[string]any{"path": name, "encoding": "base64", "offset": 1}, false},
				{"list_files", map[string]any{"glob": name}, true},
				{"run_code", map[string]any{"language": "javascript", "code": "0", "files": map[string]any{name + "/x": "forged"}}, true},
				{"delete_file", map[string]any{"path": name + "/secret.txt"}, false},
				{"delete_file", map[string]any{"path": name + "/secret.txt", "recursive": true}, false},
				{"write_file", map[string]any{"path": name + "/made", "text": "forged"}, true},
			} {
				call.arguments["session_id"] = session
				started := time.Now()
				out, refusal := use[map[string]any](t, h.rude, call.tool, call.arguments)
				said := fmt.Sprint(out, refusal)
				look(call.tool, said)
				if refusal == "" && !call.may {
					t.Errorf("%s was done: %v", call.tool, out)
				}
				if took := time.Since(started); took > 20*time.Second {
					t.Errorf("%s took %v", call.tool, took) // it waits for the other end of a FIFO, say
				}
			}
			for _, uri := range []string{fileURIOf(session, name), "rillbox://sessions/" + session + "/files/" + name} {
				res, err := h.rude.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
				look("the resource", fmt.Sprint(res, err))
				if err == nil && string(res.Contents[0].Text) != "own" {
					t.Errorf("the resource %s is %+v", uri, res.Contents[0])
				}
			}
			if now := fmt.Sprint(tree(outside), tree(v.dir)); now != before {
				t.Errorf("outside is now\n%s, and was\n%s", now, before)
			}
		})
	}
	// A link's own place can be written and deleted; what it led to stays.
	for _, name := range []string{"file", "passwd", "anothers", "folder", "another", "nothing", "fifo", "hard", "zero"} {
		for _, call := range []struct {
			tool      string
			arguments map[string]any
		}{{"write_file", map[string]any{"text": "mine"}}, {"delete_file", map[string]any{"recursive": true}}} {
			call.arguments["session_id"], call.arguments["path"] = session, name
			if _, refusal := use[map[string]any](t, h.rude, call.tool, call.arguments); refusal != "" {
				t.Errorf("%s of %s: %s", call.tool, name, refusal)
			}
		}
	}
	if text, err := os.ReadFile(filepath.Join(outside, "secret.txt")); string(text) != secret {
		t.Errorf("what links led to is %q %v", text, err)
	}
	v.check(t, "links were replaced")
}

// fileURIOf is the URI of a file, escaped.
func fileURIOf(session, name string) string {
	var uri strings.Builder
	for i := range len(name) {
		fmt.Fprintf(&uri, "%%%02X", name[i])
	}
	return "rillbox://sessions/" + session + "/files/" + uri.String()
}

// TestALinkSwappedMeanwhileLeadsNowhere: a guest turns a file into a link out of
// its workspace and back while its client reads and writes it. The client gets
// the file, or a refusal, and nothing outside changes.
func TestALinkSwappedMeanwhileLeadsNowhere(t *testing.T) {
	needWall(t)
	t.Parallel()
	h := openHouse(t, job.DefaultLimits(), "--allow-read", "--allow-write")
	secret := newSecret()
	outside := t.TempDir()
	write(t, filepath.Join(outside, "f"), secret)
	session := createSession(t, h.rude, "javascript", nil)
	if a := cell(t, h.rude, session, "javascript", `Deno.mkdirSync("d"); Deno.writeTextFileSync("d/f", "own"); Deno.symlinkSync("`+outside+`", "l");`); a.Status != "completed" {
		t.Fatalf("before: %+v", a)
	}
	done := make(chan answer, 1)
	go func() {
		done <- call(t, h.rude, map[string]any{"session_id": session, "language": "javascript", "timeout_seconds": 4, "code": `
const swap = (a, b) => { Deno.renameSync(a, "t"); Deno.renameSync(b, a); Deno.renameSync("t", b); };
for (let n = 0; ; n++) try { swap("d", "l"); } catch {}`})
	}()
	reads, refused := 0, 0
	for over := false; !over; {
		select {
		case a := <-done:
			if a.Status != "timed_out" {
				t.Errorf("the swapping ended: %+v", a)
			}
			over = true
		default:
		}
		read, refusal := use[fileAnswer](t, h.rude, "read_file", map[string]any{"session_id": session, "path": "d/f"})
		if strings.Contains(read.Content+refusal, secret) {
			t.Fatalf("it was read: %+v %s", read, refusal)
		}
		if refusal == "" {
			reads++
		} else {
			refused++
		}
		use[fileAnswer](t, h.rude, "write_file", map[string]any{"session_id": session, "path": "d/f", "text": "own"})
		use[fileAnswer](t, h.rude, "delete_file", map[string]any{"session_id": session, "path": "d/g"})
		use[fileAnswer](t, h.rude, "list_files", map[string]any{"session_id": session, "glob": "d/**"})
	}
	if text, err := os.ReadFile(filepath.Join(outside, "f")); string(text) != secret {
		t.Errorf("outside there is %q %v", text, err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside there are %v", entries)
	}
	t.Logf("%d reads, %d refusals", reads, refused)
}
