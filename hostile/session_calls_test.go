//go:build !windows

package hostile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// What a client has of its sessions, by its own calls over MCP.

// TestNamedSessionsAreTheirClientsOwn, the default one and those of a name that
// others choose, too; and a run without a session sees none.
func TestNamedSessionsAreTheirClientsOwn(t *testing.T) {
	needWall(t)
	t.Parallel()
	h := openHouse(t, job.DefaultLimits())
	for _, says := range speeches {
		t.Run(says.language, func(t *testing.T) {
			for _, name := range []string{"default", "analysis-1"} {
				cell(t, h.rude, name, says.language, strings.ReplaceAll(says.set, "%WORD%", "mine"))
				cell(t, h.rude, name, says.language, strings.NewReplacer("%FILE%", says.language, "%WORD%", "mine").Replace(says.write))
				if got := cell(t, h.rude, name, says.language, says.get); string(got.Result) != `"mine"` {
					t.Errorf("the next cell has %s: %+v", got.Result, got)
				}
				other := cell(t, h.polite, name, says.language, says.get)
				if strings.Contains(string(other.Result)+other.Stdout, "mine") || other.Status != "completed" || other.SessionID != name {
					t.Errorf("another client's session %s: %+v", name, other)
				}
				if got, refusal := use[fileAnswer](t, h.polite, "read_file", map[string]any{"session_id": name, "path": says.language}); refusal == "" {
					t.Errorf("another client's session %s has the file: %+v", name, got)
				}
			}
			fresh := call(t, h.rude, map[string]any{"language": says.language, "code": map[bool]string{true: says.get, false: "export default (globalThis as { word?: string }).word ?? null"}[says.language == "python"], "files": map[string]any{}})
			if strings.Contains(string(fresh.Result)+fresh.Stdout, "mine") {
				t.Errorf("a run without a session: %+v", fresh)
			}
		})
	}
}

// TestLanguagesShareASession: its files, not its grants, variables or ends.
func TestLanguagesShareASession(t *testing.T) {
	needWall(t)
	t.Parallel()
	granted := t.TempDir()
	write(t, filepath.Join(granted, "granted.txt"), "granted")
	h := openHouseOf(t, houseOptions{limits: job.DefaultLimits(), grants: []string{"--allow-read=" + granted}, pythonApart: true})
	for _, writer := range speeches {
		if a := cell(t, h.rude, "both", writer.language, strings.NewReplacer("%FILE%", writer.language, "%WORD%", "by "+writer.language).Replace(writer.write)); a.Status != "completed" {
			t.Errorf("%s writes: %+v", writer.language, a)
		}
		cell(t, h.rude, "both", writer.language, strings.ReplaceAll(writer.set, "%WORD%", writer.language))
	}
	for _, reader := range speeches {
		for _, writer := range speeches {
			a := cell(t, h.rude, "both", reader.language, strings.ReplaceAll(reader.read, "%FILE%", writer.language))
			if string(a.Result) != fmt.Sprintf("%q", "by "+writer.language) {
				t.Errorf("what %s wrote, %s reads: %+v", writer.language, reader.language, a)
			}
		}
		if a := cell(t, h.rude, "both", reader.language, reader.get); string(a.Result) != fmt.Sprintf("%q", reader.language) {
			t.Errorf("%s has the variable %s", reader.language, a.Result)
		}
		code := fmt.Sprintf("Deno.readTextFileSync(%q)", filepath.Join(granted, "granted.txt"))
		if reader.language == "python" {
			code = "from pyodide.code import run_js\nrun_js(" + fmt.Sprintf("%q", code) + ")"
		}
		if a := cell(t, h.rude, "both", reader.language, code); (a.Status == "completed") != (reader.language != "python") {
			t.Errorf("what is granted to JavaScript, %s reads: %+v", reader.language, a)
		}
	}
	// The end of one is none of the others', and is told to its own next cell.
	if a := cell(t, h.rude, "both", "javascript", "Deno.exit(3)"); a.State != "lost" {
		t.Errorf("%+v", a)
	}
	for _, says := range speeches {
		want := map[bool]string{true: "null", false: fmt.Sprintf("%q", says.language)}[says.language == "javascript"]
		if a := cell(t, h.rude, "both", says.language, says.get); string(a.Result) != want {
			t.Errorf("after JavaScript's end %s has %s: %+v", says.language, a.Result, a)
		}
	}
	// Who fills the disk is ended, and nobody else.
	if a := cell(t, h.rude, "both", "javascript", "for (let i = 0;; i++) Deno.writeFileSync(`f${i}`, new Uint8Array(30 << 20))"); a.State != "lost" {
		t.Errorf("%+v", a)
	}
	if _, refusal := use[sessionAnswer](t, h.rude, "reset_session", map[string]any{"session_id": "both", "files": true, "variables": false}); refusal != "" {
		t.Error(refusal)
	}
	for _, language := range []string{"typescript", "python"} {
		if a := cell(t, h.rude, "both", language, speechOf(t, language).get); string(a.Result) != fmt.Sprintf("%q", language) {
			t.Errorf("after JavaScript filled the disk %s has %s: %+v", language, a.Result, a)
		}
	}
}

// TestSessionsTellOfThemselves: what list_sessions says is so.
func TestSessionsTellOfThemselves(t *testing.T) {
	needWall(t)
	t.Parallel()
	wheels := newIndex(t)
	wheels.put("harmless", zipOf(t, wheelFiles("harmless", "text = 'harmless'")...))
	wheels.put("another", zipOf(t, wheelFiles("another", "text = 'another'")...))
	h := openHouseOf(t, houseOptions{limits: job.DefaultLimits(), index: wheels.url()})
	if _, refusal := use[sessionAnswer](t, h.rude, "create_session", map[string]any{"language": "python", "packages": []string{"none-of-the-index"}}); !strings.Contains(refusal, "none-of-the-index") {
		t.Errorf("a package that is not there: %q", refusal)
	}
	if list := listSessions(t, h.rude); len(list) != 0 {
		t.Errorf("what could not be made is there: %+v", list)
	}
	id := createSession(t, h.rude, "python", map[string]any{"packages": []string{"harmless"}, "idle_timeout_seconds": 50})
	a := cell(t, h.rude, id, "python", "import harmless\nopen('f', 'w').write('12345')\nharmless.text")
	if string(a.Result) != `"harmless"` {
		t.Errorf("a package of create_session: %+v", a)
	}
	if _, refusal := use[map[string]any](t, h.rude, "install_packages", map[string]any{"session_id": id, "packages": []string{"another"}}); refusal != "" {
		t.Errorf("install_packages: %s", refusal)
	}
	if a := cell(t, h.rude, id, "python", "__import__('an' + 'other').text"); string(a.Result) != `"another"` {
		t.Errorf("a package of install_packages: %+v", a)
	}
	time.Sleep(20 * time.Millisecond) // an age to tell
	list := listSessions(t, h.rude)
	if len(list) != 1 {
		t.Fatalf("there are %+v", list)
	}
	s := list[0]
	if s.SessionID != id || s.Language != "python" || s.IdleTimeoutSeconds != 50 || s.Files != 1 || s.FileBytes != 5 || s.Running ||
		s.AgeSeconds <= s.IdleSeconds || s.IdleSeconds <= 0 || s.MemoryBytes < 20<<20 || fmt.Sprint(s.Packages) != "[{harmless 1.0} {another 1.0}]" {
		t.Errorf("it tells %+v", s)
	}
	if _, refusal := use[sessionAnswer](t, h.rude, "reset_session", map[string]any{"session_id": id}); refusal != "" {
		t.Error(refusal)
	}
	if s := listSessions(t, h.rude)[0]; len(s.Packages) != 0 || s.MemoryBytes != 0 || s.FileBytes != 5 {
		t.Errorf("after the reset it tells %+v", s)
	}
	if a := cell(t, h.rude, id, "python", "import harmless"); a.Status != "completed" || listSessions(t, h.rude)[0].MemoryBytes == 0 {
		t.Errorf("and then a cell: %+v", a)
	}
}

// TestPermissionsOfSessionsNarrow what the operator granted, and never widen it.
func TestPermissionsOfSessionsNarrow(t *testing.T) {
	needWall(t)
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "granted.txt"), "granted")
	h := openHouse(t, job.DefaultLimits(), "--allow-read="+dir)
	read := fmt.Sprintf("Deno.readTextFileSync(%q)", filepath.Join(dir, "granted.txt"))
	for language, code := range map[string]string{"javascript": read, "python": "from pyodide.code import run_js\nrun_js(" + fmt.Sprintf("%q", read) + ")"} {
		all := createSession(t, h.rude, language, nil)
		if a := cell(t, h.rude, all, language, code); string(a.Result) != `"granted"` {
			t.Errorf("%s with what was granted: %+v", language, a)
		}
		none := createSession(t, h.rude, language, map[string]any{"permissions": []string{}})
		if a := cell(t, h.rude, none, language, code); a.Status != "failed" || !strings.Contains(a.Error.Message, "read access") {
			t.Errorf("%s with nothing: %+v", language, a)
		}
		if _, refusal := use[sessionAnswer](t, h.rude, "create_session", map[string]any{"language": language, "permissions": []string{"--allow-net"}}); !strings.Contains(refusal, "net") {
			t.Errorf("%s with more: %q", language, refusal)
		}
	}
	if list := listSessions(t, h.rude); len(list) != 4 {
		t.Errorf("there are %+v", list)
	}
}

// TestACancelledCallKeepsTheState of its cell's session, and tells a first import's
// stages before.
func TestACancelledCallKeepsTheState(t *testing.T) {
	needWall(t)
	t.Parallel()
	wheels := newIndex(t)
	wheels.put("harmless", zipOf(t, wheelFiles("harmless", "text = 'harmless'")...))
	h := openHouseOf(t, houseOptions{limits: job.DefaultLimits(), index: wheels.url()})
	told := make(chan string, 1000)
	client := h.connect("told", &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
		select {
		case told <- n.Params.Message:
		default:
		}
	}})
	for _, says := range speeches {
		t.Run(says.language, func(t *testing.T) {
			session := createSession(t, client, says.language, nil)
			if a := cell(t, client, session, says.language, strings.ReplaceAll(says.set, "%WORD%", "kept")); a.Status != "completed" {
				t.Fatalf("%+v", a)
			}
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			defer cancel()
			params := &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"session_id": session, "language": says.language, "code": map[bool]string{true: "import harmless\n"}[says.language == "python"] + says.forever, "timeout_seconds": 20}}
			params.SetProgressToken(says.language)
			over := make(chan error, 1)
			go func() {
				_, err := client.CallTool(ctx, params)
				over <- err
			}()
			stages := ""
			for len(listSessions(t, client)) == 0 || !running(t, client, session) {
			}
			if says.language == "python" {
				for !strings.Contains(stages, "harmless") {
					stages += <-told
				}
			}
			cancel()
			<-over
			if a := cell(t, client, session, says.language, says.get); string(a.Result) != `"kept"` {
				t.Errorf("after a cancelled call the session has %s: %+v", a.Result, a)
			}
		})
	}
}

func running(t *testing.T, client *mcp.ClientSession, id string) bool {
	t.Helper()
	for _, s := range listSessions(t, client) {
		if s.SessionID == id {
			return s.Running
		}
	}
	return false
}

// TestASharedDirectoryIsAsTheOperatorSays, read-only or not, for cells and calls.
func TestASharedDirectoryIsAsTheOperatorSays(t *testing.T) {
	needWall(t)
	t.Parallel()
	for _, readOnly := range []bool{true, false} {
		t.Run(fmt.Sprint("read-only ", readOnly), func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "theirs.txt"), "theirs")
			h := openHouseOf(t, houseOptions{limits: job.DefaultLimits(), shared: &supervisor.Shared{Path: dir, ReadOnly: readOnly}})
			for _, says := range speeches {
				session := createSession(t, h.rude, says.language, nil)
				if a := cell(t, h.rude, session, says.language, strings.ReplaceAll(says.read, "%FILE%", "theirs.txt")); string(a.Result) != `"theirs"` {
					t.Errorf("%s reads %s: %+v", says.language, a.Result, a)
				}
				made := "made-by-" + says.language
				a := cell(t, h.rude, session, says.language, strings.NewReplacer("%FILE%", made, "%WORD%", "x").Replace(says.write))
				_, err := os.Stat(filepath.Join(dir, made))
				if wrote := a.Status == "completed" && err == nil; wrote == readOnly || (err == nil) == readOnly {
					t.Errorf("%s writes: %+v, %v", says.language, a, err)
				}
			}
			if got, refusal := use[fileAnswer](t, h.rude, "read_file", map[string]any{"session_id": listSessions(t, h.rude)[0].SessionID, "path": "theirs.txt"}); got.Content != "theirs" {
				t.Errorf("read_file: %+v %s", got, refusal)
			}
			_, refusal := use[fileAnswer](t, h.rude, "write_file", map[string]any{"session_id": listSessions(t, h.rude)[0].SessionID, "path": "by-its-client", "text": "x"})
			if (refusal == "") == readOnly || readOnly && !strings.Contains(refusal, "read-only") {
				t.Errorf("write_file: %q", refusal)
			}
		})
	}
}
