//go:build !windows

package hostile

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestLimitsOfCellsEndInAResult runs the rows of TestLimitsEndInAResult in
// sessions. What is said of the state must be so: kept, and what an earlier cell
// left is there; lost, and the next begins in an empty session, with the files.
func TestLimitsOfCellsEndInAResult(t *testing.T) {
	needWall(t)
	t.Parallel()
	h := openHouse(t, testLimits())
	sessions := map[string]string{}
	for i, row := range limitRows() {
		t.Run(row.name, func(t *testing.T) {
			language := row.arguments["language"].(string)
			says := speechOf(t, language)
			if sessions[language] == "" {
				sessions[language] = createSession(t, h.rude, language, nil)
			}
			session := sessions[language]
			word := fmt.Sprint("word", i)
			leave(t, h.rude, session, says, word)
			arguments := maps.Clone(row.arguments)
			arguments["session_id"] = session
			switch _, has := arguments["timeout_seconds"]; {
			case has:
			case row.status == "timed_out":
				arguments["timeout_seconds"] = 0.5
			default: // of a busy machine's
				arguments["timeout_seconds"] = 20
			}
			a, waits := h.meanwhile(t, arguments)
			if a.refusal != "" {
				t.Fatalf("refused: %s", a.refusal)
			}
			if row.status != "" && a.Status != row.status {
				t.Errorf("the status is %q (%+v), want %q", a.Status, a.Error, row.status)
			}
			if a.Status == "timed_out" && a.State == "" {
				t.Error("what became of the state is not told")
			}
			row.check(t, a)
			t.Logf("%s, state %q: %d ms, peak %d MiB; the other client waited %v at most", a.Status, a.State, a.DurationMS, a.PeakMemory>>20, waits[len(waits)-1])
			checkState(t, h.rude, session, says, a, word)
		})
	}
}

// leave leaves a word in a session's state and in a file of its workspace.
func leave(t *testing.T, client *mcp.ClientSession, session string, says speech, word string) {
	t.Helper()
	for _, code := range []string{says.set, says.write} {
		if a := cell(t, client, session, says.language, strings.NewReplacer("%WORD%", word, "%FILE%", "kept.txt").Replace(code)); a.Status != "completed" {
			t.Fatalf("before: %+v", a)
		}
	}
}

// checkState checks what a cell's answer says of the state, which leave left.
func checkState(t *testing.T, client *mcp.ClientSession, session string, says speech, a answer, word string) {
	t.Helper()
	want := fmt.Sprintf("%q", word)
	if a.State == "lost" {
		want = ""
		if !strings.Contains(fmt.Sprint(a.Notes), "state is lost") {
			t.Errorf("the loss is not told: %q", a.Notes)
		}
	}
	next := cell(t, client, session, says.language, says.get)
	if next.Status != "completed" || strings.TrimPrefix(string(next.Result), "null") != want {
		t.Errorf("state %q, and then the word is %s, want %s: %+v", a.State, next.Result, want, next)
	}
	if read := cell(t, client, session, says.language, strings.ReplaceAll(says.read, "%FILE%", "kept.txt")); string(read.Result) != fmt.Sprintf("%q", word) {
		t.Errorf("then the file is %s: %+v", read.Result, read)
	}
}

// TestCellsEndsAreResults runs the rows of TestGuestsEndsAreResults in sessions.
func TestCellsEndsAreResults(t *testing.T) {
	needWall(t)
	needProc(t)
	t.Parallel()
	s := serve(t, t.TempDir(), "--warm=0", "--memory=128MiB")
	sessions := map[string]string{}
	for i, row := range guestEnds {
		t.Run(row.language+", "+row.name, func(t *testing.T) {
			says := speechOf(t, row.language)
			if sessions[row.language] == "" {
				sessions[row.language] = createSession(t, s.session, row.language, nil)
			}
			session, word := sessions[row.language], fmt.Sprint("word", i)
			leave(t, s.session, session, says, word)
			a := s.run(t, map[string]any{"session_id": session, "language": row.language, "code": row.code, "timeout_seconds": 2})
			t.Logf("%s %d, state %q, %s: %.200s", a.Status, a.ExitCode, a.State, a.Error.Name, a.Error.Message)
			if a.refusal != "" || a.Status == "" {
				t.Errorf("it was refused: %s", a.refusal)
			}
			checkState(t, s.session, session, says, a, word)
		})
	}
	for _, session := range sessions {
		if _, refusal := use[sessionAnswer](t, s.session, "destroy_session", map[string]any{"session_id": session}); refusal != "" {
			t.Error(refusal)
		}
	}
	s.checkWell(t)
}

// These limits refuse a cell before it starts, and cost the session nothing.
func TestLimitsRefuseCellsWithAWordOnWhatIsAllowed(t *testing.T) {
	needWall(t)
	t.Parallel()
	h := openHouse(t, testLimits())
	for _, row := range refusedRows {
		t.Run(row.name, func(t *testing.T) {
			arguments := maps.Clone(row.arguments)
			language := arguments["language"].(string)
			arguments["session_id"] = "default"
			before := cell(t, h.rude, "default", language, speechOf(t, language).add)
			if a := call(t, h.rude, arguments); !strings.Contains(a.refusal, row.want) {
				t.Errorf("the answer is %.300q %s", a.refusal, a.Status)
			}
			after := cell(t, h.rude, "default", language, speechOf(t, language).add)
			if before.Status != "completed" || string(after.Result) == "1" || after.Status != "completed" {
				t.Errorf("before %+v, after %+v", before, after)
			}
		})
	}
}

// What a workspace may hold is bounded for programs and for their client. A
// session that went beyond it is of use again once files were deleted.
func TestFileLimitsOfSessions(t *testing.T) {
	needWall(t)
	t.Parallel()
	limits := testLimits()
	limits.FileBytes, limits.Disk, limits.Files, limits.Timeout = 4<<20, 6<<20, 50, 10*time.Second
	h := openHouse(t, limits)
	rows := map[string][]struct{ name, code, want string }{
		"javascript": {
			{"one file's size", `try { Deno.writeFileSync("big", new Uint8Array(8 << 20)); console.log("written"); } catch (e) { console.log(e.message); Deno.removeSync("big") }`, "File too large"},
			{"all files' size", `for (let i = 0; i < 40; i++) { Deno.writeFileSync("f" + i, new Uint8Array(1 << 20)); await new Promise(r => setTimeout(r, 50)); } console.log("written")`, "6 MiB"},
			{"the number of files", `for (let i = 0; i < 400; i++) { Deno.writeTextFileSync("f" + i, ""); await new Promise(r => setTimeout(r, 5)); } console.log("written")`, "50 files"},
			{"the number of folders", `for (let i = 0; i < 400; i++) { Deno.mkdirSync("f" + i); await new Promise(r => setTimeout(r, 5)); } console.log("written")`, "50 files"},
		},
		"python": {
			{"one file's size", "import os\ntry:\n  open('big', 'wb').write(bytes(8 << 20)); print('written')\nexcept OSError as e: print(e); os.remove('big')", "File too large"},
			{"all files' size", "import time\nfor i in range(40):\n  open(f'f{i}', 'wb').write(bytes(1 << 20)); time.sleep(0.05)\nprint('written')", "6 MiB"},
			{"the number of files", "import time\nfor i in range(400):\n  open(f'f{i}', 'w').close(); time.sleep(0.005)\nprint('written')", "50 files"},
		},
	}
	rows["typescript"] = rows["javascript"]
	for _, says := range speeches {
		t.Run(says.language, func(t *testing.T) {
			session := createSession(t, h.rude, says.language, nil)
			for _, row := range rows[says.language] {
				a := cell(t, h.rude, session, says.language, row.code)
				if strings.Contains(a.Stdout, "written") || !strings.Contains(a.Stdout+a.Error.Message, row.want) {
					t.Errorf("%s: the answer is %+v", row.name, a)
				}
				if row.want != "File too large" { // nor does another process begin, before there is room
					if next := cell(t, h.rude, session, says.language, "1"); !strings.Contains(next.refusal, "delete some with delete_file") {
						t.Errorf("%s: the next cell is %+v", row.name, next)
					}
				}
				if row.want == "6 MiB" { // nothing more is written, by its client either
					if _, refusal := use[fileAnswer](t, h.rude, "write_file", map[string]any{"session_id": session, "path": "more", "text": strings.Repeat("x", 1<<20)}); !strings.Contains(refusal, "does not fit") {
						t.Errorf("%s: write_file says %q", row.name, refusal)
					}
				}
				list, _ := use[fileAnswer](t, h.rude, "list_files", map[string]any{"session_id": session})
				for _, f := range list.Files {
					if _, refusal := use[fileAnswer](t, h.rude, "delete_file", map[string]any{"session_id": session, "path": f.Path, "recursive": true}); refusal != "" {
						t.Errorf("delete_file: %s", refusal)
					}
				}
				if a := cell(t, h.rude, session, says.language, says.add); a.Status != "completed" {
					t.Errorf("%s: with the files deleted the session says %+v", row.name, a)
				}
			}
			for i := range 60 {
				_, refusal := use[fileAnswer](t, h.rude, "write_file", map[string]any{"session_id": session, "path": fmt.Sprint("g", i), "text": ""})
				if i < 49 && refusal != "" || i > 50 && !strings.Contains(refusal, "50 at most") {
					t.Errorf("file %d: write_file says %q", i, refusal)
				}
			}
			if a := call(t, h.rude, map[string]any{"session_id": session, "language": says.language, "code": "1", "files": map[string]any{"h": "x"}}); !strings.Contains(a.refusal, "50 at most") {
				t.Errorf("a cell with one more file: %+v", a)
			}
			if _, refusal := use[fileAnswer](t, h.rude, "destroy_session", map[string]any{"session_id": session}); refusal != "" {
				t.Error(refusal)
			}
		})
	}
}

// TestSessionsShareTheirClientsQuota: what one session holds, another one can't, nor
// its client there; the cell that went beyond is ended. What it says of its state is so: a
// busy machine may not interrupt it in time.
func TestSessionsShareTheirClientsQuota(t *testing.T) {
	needWall(t)
	t.Parallel()
	limits := testLimits()
	limits.Disk, limits.ClientDisk, limits.Timeout = 8<<20, 10<<20, 20*time.Second
	h := openHouse(t, limits)
	for _, says := range speeches {
		t.Run(says.language, func(t *testing.T) {
			write := func(bytes int, client *mcp.ClientSession) string {
				_, refusal := use[fileAnswer](t, client, "write_file", map[string]any{"session_id": "one", "path": "held", "content": strings.Repeat("x", bytes)})
				return refusal
			}
			if refusal := write(6<<20, h.rude); refusal != "" {
				t.Fatal(refusal)
			}
			fill := `for (let i = 0; i < 400; i++) { Deno.writeFileSync("f" + i, new Uint8Array(1 << 20)); await new Promise(r => setTimeout(r, 300)); }`
			if says.language == "python" {
				fill = "import time\nfor i in range(400):\n  open(f'f{i}', 'wb').write(bytes(1 << 20)); time.sleep(0.3)"
			}
			cell(t, h.rude, "other", says.language, strings.ReplaceAll(says.set, "%WORD%", "kept"))
			filled := cell(t, h.rude, "other", says.language, fill)
			if filled.Status != "failed" || filled.Error.Name != "DiskQuotaExceeded" || !strings.Contains(filled.Error.Message, "delete_file") {
				t.Errorf("%+v", filled)
			}
			if refusal := write(1, h.rude); !strings.Contains(refusal, "all your sessions") {
				t.Errorf("beyond the quota, write_file says %q", refusal)
			}
			if refusal := write(6<<20, h.polite); refusal != "" {
				t.Errorf("another client: %s", refusal)
			}
			if _, refusal := use[sessionAnswer](t, h.rude, "reset_session", map[string]any{"session_id": "other", "files": true, "variables": false}); refusal != "" {
				t.Error(refusal)
			}
			want := `"kept"`
			if filled.State == "lost" {
				want = ""
			}
			if a := cell(t, h.rude, "other", says.language, says.get); a.Status != "completed" || strings.TrimPrefix(string(a.Result), "null") != want {
				t.Errorf("its state was %q, afterwards %+v", filled.State, a)
			}
			for id, client := range map[string]*mcp.ClientSession{"one": h.rude, "other": h.rude, "": h.polite} {
				if _, refusal := use[sessionAnswer](t, client, "destroy_session", map[string]any{"session_id": cmp.Or(id, "one")}); refusal != "" {
					t.Error(refusal)
				}
			}
		})
	}
}

// TestSessionsAreLimited: how many sessions there are, and how many calls wait
// for one of them.
func TestSessionsAreLimited(t *testing.T) {
	needWall(t)
	t.Parallel()
	limits := testLimits()
	limits.Sessions, limits.AllSessions, limits.Timeout = 2, 3, 20*time.Second
	limits.Running, limits.Waiting = 4, 64
	h := openHouse(t, limits)
	for range limits.Sessions {
		createSession(t, h.rude, "javascript", nil)
	}
	session := createSession(t, h.polite, "javascript", nil)
	for _, row := range []struct {
		name    string
		refusal func() string
		want    string
	}{
		{"one more of a client's", func() string {
			_, refusal := use[sessionAnswer](t, h.rude, "create_session", map[string]any{"language": "python"})
			return refusal
		}, "you have 2 sessions"},
		{"a default one more", func() string { return cell(t, h.rude, "default", "python", "1").refusal }, "you have 2 sessions"},
		{"one more of all", func() string {
			_, refusal := use[sessionAnswer](t, h.polite, "create_session", map[string]any{"language": "python"})
			return refusal
		}, "this server has 3 sessions"},
		{"too long an idle time", func() string {
			_, refusal := use[sessionAnswer](t, h.polite, "create_session", map[string]any{"language": "python", "idle_timeout_seconds": 3601})
			return refusal
		}, "3600"},
		{"permissions of a cell's own", func() string {
			return call(t, h.polite, map[string]any{"session_id": session, "language": "javascript", "code": "1", "permissions": []string{"--allow-read"}}).refusal
		}, "create_session"},
		{"a named one more", func() string { return cell(t, h.rude, "named", "python", "1").refusal }, "you have 2 sessions"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if refusal := row.refusal(); !strings.Contains(refusal, row.want) {
				t.Errorf("it says %q, want %q in it", refusal, row.want)
			}
		})
	}
	t.Run("waiting cells", func(t *testing.T) {
		const calls = 30
		answers := make(chan answer, calls)
		for range calls {
			go func() {
				answers <- call(t, h.polite, map[string]any{"session_id": session, "language": "javascript", "code": "for (;;);", "timeout_seconds": 0.5})
			}()
		}
		busy, ran := 0, 0
		for range calls {
			switch a := <-answers; {
			case strings.Contains(a.refusal, "busy"):
				busy++
			case a.Status == "timed_out":
				ran++
			default:
				t.Errorf("the answer is %+v", a)
			}
		}
		if busy == 0 || ran == 0 {
			t.Errorf("%d cells ran, %d were told that the session is busy", ran, busy)
		}
		t.Logf("%d ran, %d were refused", ran, busy)
	})
}
