//go:build !windows

package wasm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rillbox/supervisor/job"
)

// A shell's `lua x.lua` runs beside it, in its workspace, with its input, arguments and
// permissions, and in what is left of its time; and can't run others itself.
func TestAShellsPrograms(t *testing.T) {
	e := newEngine(t, []job.Language{"bash", "lua"})
	dir := newDir(t)
	for name, code := range map[string]string{
		"x.lua":     "print(arg[1], arg[2], io.read('a')) io.stderr:write('said\\n') io.open('made.txt', 'w'):write('made') os.exit(7)",
		"inner.sh":  "lua -e 'print(1)'; echo $?",
		"sub/y.lua": "print('sub')",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var asked []job.Program
	beside := func(ctx context.Context, p job.Program, s job.Streams) (job.Result, error) {
		asked = append(asked, p)
		if p.Language == "python" {
			return job.Result{}, job.Refuse("language python is not known")
		}
		return e.Run(ctx, p, s)
	}
	for _, row := range []struct{ code, stdout, stderr string }{
		{"printf 'in' | lua x.lua 'a b' c | tr a-z A-Z; echo ${PIPESTATUS[1]}; cat made.txt", "A B\tC\tIN\n7\nmade", "said\n"},
		{"lua -e 'error(\"bad\")'; echo $?", "1\n", "bad"},
		{"cd sub && lua y.lua", "sub\n", ""},
		{"python3 -c 'print(1)' || echo $?", "126\n", "language python is not known"},
		{"lua ../../x.lua || echo $?", "", "x.lua"},
	} {
		r := run(t, e, job.Program{Language: "bash", Code: row.code, Workspace: dir, Timeout: time.Minute}, job.Streams{Beside: beside})
		if row.stdout != "" && r.Stdout.String() != row.stdout || !strings.Contains(r.Stderr.String(), row.stderr) {
			t.Errorf("%s: %s", row.code, shown(r))
		}
	}
	for _, p := range asked {
		if p.Workspace != dir || p.Timeout <= 0 || p.Timeout > time.Minute {
			t.Errorf("%+v was asked for", p)
		}
	}
	asked = nil
	p := job.Program{Language: "bash", Code: "lua -e 'while true do end'; echo after", Workspace: dir, ReadOnly: true, Permissions: []string{}, Timeout: 1500 * time.Millisecond}
	r := run(t, e, p, job.Streams{Beside: beside})
	if r.Status != job.TimedOut || strings.Contains(r.Stdout.String(), "after") || r.Duration > 6*time.Second {
		t.Errorf("its time is the caller's: after %v %s", r.Duration, shown(r))
	}
	if len(asked) != 1 || !asked[0].ReadOnly || asked[0].Permissions == nil || asked[0].Timeout > p.Timeout {
		t.Errorf("%+v was asked for", asked)
	}
	r = run(t, e, job.Program{Language: "bash", Code: "lua -e 'print(1)'; echo $?", Workspace: dir})
	if r.Stdout.String() != "126\n" || !strings.Contains(r.Stderr.String(), "can't run others") {
		t.Errorf("one that runs beside another: %s", shown(r))
	}
}

func TestWhatIsLeftOutOfAStreamIsTold(t *testing.T) {
	if got := string(whole(job.Captured{Head: []byte("a"), Tail: []byte("b"), Omitted: 3})); got != "a\n… 3 bytes are left out …\nb" {
		t.Errorf("%q", got)
	}
	head := append(make([]byte, 0, 10), "a"...)
	if got := string(whole(job.Captured{Head: head, Tail: []byte("b")})); got != "ab" || string(head[:2]) == "ab" {
		t.Errorf("%q of %q", got, head[:2])
	}
}
