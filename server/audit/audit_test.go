package audit

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rillbox/server"
)

var record = server.Record{
	Began: time.Date(2026, 11, 22, 21, 0, 0, 0, time.UTC), Took: 2500 * time.Millisecond,
	Client: "alice", Session: "S", Request: "req-1", Trace: "00-trace", Tool: "run_code", Status: "failed", Language: "python",
	Packages: []string{"numpy"}, Permissions: []string{}, Execution: "exec",
	Waited: time.Millisecond, Installing: 2 * time.Second, Duration: 400 * time.Millisecond, In: 10, Out: 20,
}

const recordLine = `{"time":"2026-11-22T21:00:00Z","identity":"alice","session":"S","request":"req-1","tool":"run_code","status":"failed","language":"python","packages":["numpy"],"permissions":[],"execution":"exec","took_ms":2500,"waited_ms":1,"install_ms":2000,"run_ms":400,"bytes_in":10,"bytes_out":20}` + "\n"

func open(t *testing.T, path string) (*Log, *strings.Builder) {
	t.Helper()
	var told strings.Builder
	l, err := Open(path, slog.New(slog.NewTextHandler(&told, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, &told
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestACallIsALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, told := open(t, path)
	l.Ended(record)
	all := record
	all.Permissions = nil
	l.Ended(all)
	want := "before\n" + recordLine + strings.Replace(recordLine, `"permissions":[],`, "", 1)
	if got := content(t, path); got != want {
		t.Errorf("the file has\n%s, want\n%s", got, want)
	}
	// A program that rotates logs moves the file and sends a signal.
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	l.Ended(record)
	l.Reopen()
	l.Ended(record)
	if got := content(t, path); got != recordLine {
		t.Errorf("the new file has\n%s", got)
	}
	if got := content(t, path+".1"); got != want+recordLine {
		t.Errorf("the old file has\n%s", got)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	if told.Len() > 0 {
		t.Errorf("it tells\n%s", told)
	}
}

// What can't be written is told of at once, then once a minute, and when it is over.
func TestALogThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "none", "audit.jsonl")
	if _, err := Open(path, slog.Default()); err == nil {
		t.Error("a log that can't be made is opened")
	}
	l, told := open(t, filepath.Join(dir, "first.jsonl"))
	now := time.Now()
	l.now = func() time.Time { return now }
	lines := func(what string, want int) {
		t.Helper()
		if got := strings.Count(told.String(), "\n"); got != want {
			t.Errorf("%s: it has told %d times, want %d:\n%s", what, got, want, told)
		}
	}
	l.path = path
	l.Reopen()
	lines("at once", 1)
	for range 3 {
		l.Ended(record)
	}
	lines("soon", 1)
	now = now.Add(2 * tellTime)
	for range 3 {
		l.Ended(record)
	}
	lines("later", 2)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l.Ended(record)
	lines("when it can be written", 3)
	if got := content(t, path); got != recordLine || !strings.Contains(told.String(), "lost=4") || !strings.Contains(told.String(), "lost=2") {
		t.Errorf("the file has\n%s\nand it told\n%s", got, told)
	}
}

// A pipe's reader could have every call wait.
func TestAPipeIsNoAuditLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := Open(path, slog.Default()); err == nil || !strings.Contains(err.Error(), "it is no regular file") {
		t.Errorf("it is opened: %v", err)
	}
}

// A disk that is full in the middle of a line leaves the next line whole.
func TestATornLineIsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, _ := open(t, path)
	if _, err := l.file.WriteString(`{"time":`); err != nil {
		t.Fatal(err)
	}
	l.torn = true
	l.Ended(record)
	l.Ended(record)
	if got, want := content(t, path), `{"time":`+"\n"+recordLine+recordLine; got != want {
		t.Errorf("the file has\n%s", got)
	}
}
