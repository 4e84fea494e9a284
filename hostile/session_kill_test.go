//go:build !windows

package hostile

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/cache/cachetest"
)

// TestAServerKilledWithSessionsLeavesNothing kills the server at random instants
// of its sessions' cells and writes. No process is left; the workspaces go at the
// next start; and what the operator shares is whole.
func TestAServerKilledWithSessionsLeavesNothing(t *testing.T) {
	needWall(t)
	needProc(t)
	t.Parallel()
	kills := cachetest.Rounds(3, 6, 30)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	temp, shared := t.TempDir(), filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	text := func(n int) string { return strings.Repeat(fmt.Sprintf("%06d,", n), 20_000) }
	acknowledged := ""
	for i := range kills {
		more := []string{"--warm=0"}
		isShared := i%3 == 2
		if isShared {
			more = append(more, "--workspace="+shared)
		}
		s := serve(t, temp, more...)
		if dirs := s.serverDirs(t); len(dirs) > 0 {
			t.Errorf("after the start there still are %v", dirs)
		}
		if isShared && acknowledged != "" {
			if got, err := os.ReadFile(filepath.Join(shared, "client.txt")); string(got) != acknowledged && string(got[min(7, len(got)):]) != string(got[:max(0, len(got)-7)]) || err != nil {
				t.Errorf("the operator's file has %d bytes: %v", len(got), err)
			}
		}
		// A session that waits, one that computes with processes of its own, and one
		// that writes.
		var idle []string
		for _, says := range speeches {
			idle = append(idle, createSession(t, s.session, says.language, nil))
		}
		var runs []*ongoing
		for j, family := range families {
			if family["language"] != speeches[j].language {
				t.Fatalf("the families are not in the order of languages: %v", family["language"])
			}
			runs = append(runs, s.start(t, inSession(family, idle[j])))
		}
		for _, run := range runs {
			run.awaitReady(t)
		}
		s.noteKeeper(t)
		writer := createSession(t, s.session, "javascript", nil)
		wrote := make(chan string, 1)
		go func() {
			last := ""
			for n := 0; ; n++ {
				if !writeFile(s, writer, text(n)) {
					wrote <- last
					return
				}
				last = text(n)
			}
		}()
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		if n := len(s.remains(t)); n < 6*len(families) {
			t.Errorf("only %d processes are there to be left over", n)
		}
		if err := s.process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-s.exited
		allGone(t, "processes", func() []process { return s.remains(t) })
		allGone(t, "keeper", s.keeperLeft)
		if last := <-wrote; isShared && last != "" {
			acknowledged = last
			got, err := os.ReadFile(filepath.Join(shared, "client.txt"))
			if err != nil || len(got) != len(last) || string(got) != strings.Repeat(string(got[:7]), 20_000) || string(got) < last {
				t.Errorf("the operator's file has %d bytes and is not what was written last: %v", len(got), err)
			}
		}
		for _, run := range runs {
			run.cancel()
		}
		if groups := cgroupsOf(t, s.process.Pid); len(groups) > 0 {
			t.Errorf("the keeper left %v", groups)
		}
		if t.Failed() {
			return
		}
	}
	last := serve(t, temp, "--warm=0")
	if dirs := last.serverDirs(t); len(dirs) > 0 {
		t.Errorf("after the last start there still are %v", dirs)
	}
}

// inSession are the arguments of a run, as a cell's.
func inSession(arguments map[string]any, session string) map[string]any {
	arguments = maps.Clone(arguments)
	arguments["session_id"] = session
	return arguments
}

// writeFile writes client.txt; false when the server does not answer any more.
func writeFile(s *served, session, text string) bool {
	result, err := s.session.CallTool(context.Background(), &mcp.CallToolParams{Name: "write_file", Arguments: map[string]any{
		"session_id": session, "path": "client.txt", "text": text}})
	return err == nil && !result.IsError
}

// TestSessionsEndWithAllTheirProcesses: processes that a session's cells started,
// and that left their group, end with the session, however that ends.
func TestSessionsEndWithAllTheirProcesses(t *testing.T) {
	needWall(t)
	needProc(t)
	t.Parallel()
	for _, row := range []struct {
		name string
		idle int // seconds that a session lasts without a call
		end  func(t *testing.T, s *served, sessions []string, runs []*ongoing)
	}{
		{"idle after its cell was cancelled", 2, func(t *testing.T, s *served, _ []string, runs []*ongoing) {
			for _, run := range runs {
				if _, refusal := use[map[string]any](t, s.session, "cancel_execution", map[string]any{"execution_id": <-run.id}); refusal != "" {
					t.Error(refusal)
				}
				run.checkStatus(t, "cancelled")
			}
		}},
		{"destroyed", 60, func(t *testing.T, s *served, sessions []string, _ []*ongoing) {
			for _, session := range sessions {
				if _, refusal := use[fileAnswer](t, s.session, "destroy_session", map[string]any{"session_id": session}); refusal != "" {
					t.Error(refusal)
				}
			}
		}},
		{"reset", 60, func(t *testing.T, s *served, sessions []string, _ []*ongoing) {
			for _, session := range sessions {
				if _, refusal := use[sessionAnswer](t, s.session, "reset_session", map[string]any{"session_id": session}); refusal != "" {
					t.Error(refusal)
				}
			}
		}},
		{"the end of its requests", 60, func(t *testing.T, s *served, _ []string, _ []*ongoing) {
			if err := s.stdin.Close(); err != nil {
				t.Error(err)
			}
		}},
		{"SIGTERM", 60, func(t *testing.T, s *served, _ []string, _ []*ongoing) {
			if err := s.process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := serve(t, t.TempDir(), "--warm=0")
			var sessions []string
			var runs []*ongoing
			for _, family := range families {
				session := createSession(t, s.session, family["language"].(string), map[string]any{"idle_timeout_seconds": row.idle})
				sessions = append(sessions, session)
				runs = append(runs, s.start(t, inSession(family, session)))
			}
			for _, run := range runs {
				run.awaitReady(t)
			}
			if n := len(s.remains(t)); n < 6*len(families) {
				t.Errorf("only %d processes are there to be left over", n)
			}
			row.end(t, s, sessions, runs)
			allGone(t, "processes", func() []process { return s.remains(t) })
			allGone(t, "cgroups", func() []string { return cgroupsOf(t, s.process.Pid) })
			if row.name != "reset" { // whose files stay
				allGone(t, "directories", func() []string { return runDirsIn(t, s.temp) })
			}
		})
	}
}
