package hostile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/supervisor/job"
)

// TestOthersDoNotNoticeKilledChildren kills the processes of two sessions at
// random instants, in cells and between them. Two others count their cells
// meanwhile, and miss none. A session that lost its process takes cells again,
// under its handle; what it had of files is whole: the last that was written, or
// the one before where the process that wrote it was killed.
func TestOthersDoNotNoticeKilledChildren(t *testing.T) {
	needWall(t)
	needProc(t)
	t.Parallel()
	kills := cachetest.Rounds(8, 12, 60)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := serve(t, t.TempDir())

	stop := make(chan struct{})
	var others, victims sync.WaitGroup
	counted := make([]int, len(countRuns))
	i := 0
	for language, code := range countRuns {
		session, count := createSession(t, s.session, string(language), nil), &counted[i]
		i++
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				*count++
				if a := s.run(t, map[string]any{"session_id": session, "language": string(language), "code": code}); string(a.Result) != fmt.Sprint(*count) {
					t.Errorf("another session's cell %d gives %+v", *count, a)
					return
				}
			}
		})
	}
	text := func(n int) string { return strings.Repeat(fmt.Sprintf("%06d,", n), 20_000) }
	// As a cell writes a file, so that a reader finds it whole: under another name first.
	writes := map[string]string{
		"javascript": `Deno.writeTextFileSync("new", "%s,".repeat(20000)); Deno.renameSync("new", "own.txt"); 1`,
		"python":     "import os\nwith open('new', 'w') as f: _ = f.write('%s,' * 20000)\nos.replace('new', 'own.txt')\n1",
	}
	marks := map[string]string{}
	var mu sync.Mutex
	ended := map[string]int{}
	for language, code := range writes {
		session := createSession(t, s.session, language, nil)
		marks[session] = newSecret()
		mark := map[string]any{"session_id": session, "path": "mark", "text": marks[session]}
		if _, refusal := use[fileAnswer](t, s.session, "write_file", mark); refusal != "" {
			t.Fatal(refusal)
		}
		victims.Go(func() {
			last := 0 // that the session's cell has acknowledged
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				a := s.run(t, map[string]any{"session_id": session, "language": language, "code": fmt.Sprintf(code, fmt.Sprintf("%06d", n))})
				if strings.Contains(a.refusal, "its process has ended") { // when it was about to start
					a.Status = "not run"
				}
				mu.Lock()
				ended[a.Status]++
				mu.Unlock()
				switch {
				case a.Status == "completed", a.Status == "not run":
				case a.Status == "crashed" && a.State != "kept":
				default:
					t.Errorf("a cell of %s ended so: %+v", language, a)
					return
				}
				if !writeFile(s, session, text(n)) {
					t.Errorf("write_file of the session in %s was refused", language)
					return
				}
				for path, least := range map[string]int{"client.txt": n, "own.txt": last} {
					if least == 0 && a.Status != "completed" {
						continue // there may be none yet
					}
					got, refusal := use[fileAnswer](t, s.session, "read_file", map[string]any{"session_id": session, "path": path, "limit": len(text(n))})
					if got.Content != text(n) && (a.Status == "completed" || path == "client.txt" || got.Content != text(least)) {
						t.Errorf("after cell %d, which %s, %s has %d bytes: %.100s %s", n, a.Status, path, len(got.Content), got.Content, refusal)
						return
					}
					if path == "own.txt" && got.Content == text(n) {
						last = n
					}
				}
			}
		})
	}
	killed := 0
	for range kills {
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		for _, mark := range marks { // in random order
			if pid := s.childAt(t, mark); pid != 0 { // else it has none just now
				if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
					killed++
				}
				break
			}
		}
	}
	close(stop)
	victims.Wait()
	others.Wait()
	t.Logf("%d processes were killed; the cells ended so: %v; the others ran %v cells", killed, ended, counted)
	if killed < kills/4 || ended["crashed"]+ended["not run"] == 0 {
		t.Errorf("only %d processes were killed", killed)
	}
	for _, info := range listSessions(t, s.session) {
		if marks[info.SessionID] == "" {
			continue
		}
		cell := map[string]any{"session_id": info.SessionID, "language": info.Language, "code": "40 + 2"}
		a := s.run(t, cell)
		if a.Status == "crashed" { // the last kill came between two cells
			a = s.run(t, cell)
		}
		if string(a.Result) != "42" {
			t.Errorf("afterwards the session in %s answers %+v", info.Language, a)
		}
	}
}

// childAt is the process whose current directory, a workspace, has the mark; 0
// when there is none.
func (s *served) childAt(t *testing.T, mark string) int {
	for _, p := range s.remains(t) {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cwd/mark", p.pid)); err == nil && string(text) == mark {
			return p.pid
		}
	}
	return 0
}

// TestAFullDiskUnderSessions: where the disk that workspaces are on is full, a
// session's writes are refused and lose nothing; its state, its cells and other
// sessions are as ever; and when there is room again all is.
func TestAFullDiskUnderSessions(t *testing.T) {
	needWall(t)
	t.Parallel()
	temp := smallDisk(t)
	s := serve(t, temp, "--warm=0")
	sessions := map[job.Language]string{}
	old := strings.Repeat("as it was ", 10_000)
	write := func(session, text string) string {
		_, refusal := use[fileAnswer](t, s.session, "write_file", map[string]any{"session_id": session, "path": "kept", "text": text})
		return refusal
	}
	read := func(session string) string {
		got, refusal := use[fileAnswer](t, s.session, "read_file", map[string]any{"session_id": session, "path": "kept", "limit": len(old) + 1})
		return got.Content + refusal
	}
	cells := 0
	count := func() {
		t.Helper()
		cells++
		for language, session := range sessions {
			if a := s.run(t, map[string]any{"session_id": session, "language": string(language), "code": countRuns[language]}); string(a.Result) != fmt.Sprint(cells) {
				t.Errorf("cell %d in %s gives %+v", cells, language, a)
			}
		}
	}
	for language := range countRuns {
		sessions[language] = createSession(t, s.session, string(language), nil)
		if refusal := write(sessions[language], old); refusal != "" {
			t.Fatal(refusal)
		}
	}
	count()
	fill := map[job.Language]string{
		job.JavaScript: `{ using big = Deno.openSync("big", { create: true, write: true }); for (;;) big.writeSync(new Uint8Array(1 << 16)); }`,
		job.Python:     "with open('more', 'wb', buffering=0) as more:\n    while True: more.write(bytes(1 << 10))",
	}
	for _, language := range []job.Language{job.JavaScript, job.Python} {
		a := s.run(t, map[string]any{"session_id": sessions[language], "language": string(language), "code": fill[language]})
		if a.Status != "failed" || !strings.Contains(strings.ToLower(a.Error.Message), "space") {
			t.Errorf("a cell in %s that fills the disk ends so: %+v", language, a)
		}
	}
	for language, session := range sessions {
		if refusal := write(session, old+old); !strings.Contains(refusal, "full") && !strings.Contains(refusal, "space") {
			t.Errorf("with a full disk write_file answers %q", refusal)
		}
		if got := read(session); got != old {
			t.Errorf("with a full disk the file in %s is %.100q", language, got)
		}
	}
	count()
	if _, refusal := use[sessionAnswer](t, s.session, "create_session", map[string]any{"language": "javascript"}); strings.Contains(refusal, "internal error") {
		t.Errorf("with a full disk create_session answers %q", refusal)
	}
	count()
	for language, path := range map[job.Language]string{job.JavaScript: "big", job.Python: "more"} {
		if _, refusal := use[fileAnswer](t, s.session, "delete_file", map[string]any{"session_id": sessions[language], "path": path}); refusal != "" {
			t.Error(refusal)
		}
	}
	for language, session := range sessions {
		if got := read(session); got != old {
			t.Errorf("the file in %s is %.100q", language, got)
		}
		if refusal := write(session, "new"); refusal != "" || read(session) != "new" {
			t.Errorf("with room again write_file answers %q, and the file is %.100q", refusal, read(session))
		}
	}
	count()
	if dirs, _ := filepath.Glob(filepath.Join(temp, "rillbox-*", "*", "*", ".rillbox-*")); len(dirs) > 0 {
		t.Errorf("left are %v", dirs)
	}
}

// smallDisk is a directory with a disk of 24 MiB of its own.
func smallDisk(t *testing.T) string {
	t.Helper()
	temp := t.TempDir()
	if err := syscall.Mount("tmpfs", temp, "tmpfs", 0, "size=24m,mode=0700"); err != nil {
		lacks(t, fmt.Sprintf("a small disk cannot be mounted here: %v", err))
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(temp, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return temp
}

// TestADiskThatIsFullAtRandomPoints of cells and writes: a file is always whole, the
// last that was acknowledged or the one that was being written, and no session
// loses its state.
func TestADiskThatIsFullAtRandomPoints(t *testing.T) {
	needWall(t)
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	temp := smallDisk(t)
	s := serve(t, temp, "--warm=0")
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { // fills the disk and frees it again
		file := filepath.Join(temp, "fills")
		for zeros := make([]byte, 1<<20); ; {
			f, err := os.Create(file)
			for err == nil {
				_, err = f.Write(zeros)
			}
			_ = f.Close()
			time.Sleep(time.Duration(random.Int64N(int64(15 * time.Millisecond))))
			_ = os.Remove(file)
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(random.Int64N(int64(15 * time.Millisecond)))):
			}
		}
	})
	version := func(n int) string { return strings.Repeat(fmt.Sprintf("%06d,", n), 10_000) }
	counted := map[job.Language]int{}
	sessions := map[job.Language]string{}
	for language := range countRuns {
		for sessions[language] == "" { // there may be no room for a new one
			made, _ := use[sessionAnswer](t, s.session, "create_session", map[string]any{"language": string(language)})
			sessions[language] = made.SessionID
		}
	}
	refused, kept := 0, map[job.Language]int{}
	writes := cachetest.Rounds(30, 60, 300)
	for n := 1; n <= writes; n++ {
		for language, session := range sessions {
			a := s.run(t, map[string]any{"session_id": session, "language": string(language), "code": countRuns[language]})
			switch {
			case a.State == "lost" || strings.Contains(fmt.Sprint(a.Notes), "lost"):
				t.Fatalf("cell %d in %s: %+v", n, language, a)
			case a.Status == "completed":
				if counted[language]++; string(a.Result) != fmt.Sprint(counted[language]) {
					t.Fatalf("cell %d in %s gives %s, want %d", n, language, a.Result, counted[language])
				}
			}
			_, refusal := use[fileAnswer](t, s.session, "write_file", map[string]any{"session_id": session, "path": "kept", "text": version(n)})
			if refusal == "" {
				kept[language] = n
			} else {
				refused++
			}
			if kept[language] == 0 {
				continue
			}
			got, _ := use[fileAnswer](t, s.session, "read_file", map[string]any{"session_id": session, "path": "kept", "limit": 100_000})
			if got.Content != version(kept[language]) {
				t.Fatalf("after write %d (%q) the file in %s is %.40q… of %d bytes, want version %d", n, refusal, language, got.Content, len(got.Content), kept[language])
			}
		}
	}
	close(stop)
	all.Wait()
	t.Logf("%d of %d writes were refused; cells that ran: %v", refused, len(sessions)*writes, counted)
	if refused == 0 || refused == len(sessions)*writes {
		t.Error("the disk was never full, or always")
	}
	for language, session := range sessions {
		if a := s.run(t, map[string]any{"session_id": session, "language": string(language), "code": countRuns[language]}); string(a.Result) != fmt.Sprint(counted[language]+1) {
			t.Errorf("with room again a cell in %s gives %+v", language, a)
		}
	}
}
