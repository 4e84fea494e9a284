//go:build !windows

package hostile

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// caller is an engine whose one program asks for what the test says, as a shell does that
// forges its frames.
type caller struct {
	job.Toolchain
	ask func(ctx context.Context, beside func(context.Context, job.Program, job.Streams) (job.Result, error))
}

func (c caller) Describe() job.Description {
	return job.Description{Languages: []job.LanguageInfo{{Name: "caller", Title: "caller"}}}
}

func (c caller) Close() {}

func (c caller) Run(ctx context.Context, _ job.Program, s job.Streams) (job.Result, error) {
	c.ask(ctx, s.Beside)
	return job.Result{Status: job.Completed}, nil
}

// TestWasmForgedCalls forges what a shell may ask of the supervisor: a program in another
// language is judged as any, whoever asks.
func TestWasmForgedCalls(t *testing.T) {
	t.Parallel()
	s := newScene(t, attack{code: "%DIR%"})
	workspace := t.TempDir()
	if err := os.Symlink(s.dir(), filepath.Join(workspace, "out")); err != nil {
		t.Fatal(err)
	}
	read := `console.log(Deno.readTextFileSync("` + s.dir() + `/secret.txt"))`
	link := `console.log(Deno.readTextFileSync("out/secret.txt"))`
	rows := []struct {
		name    string
		program job.Program
		timeout time.Duration
		refused string
	}{
		{name: "a language that does not exist", program: job.Program{Language: "cobol", Code: read}, refused: "cobol"},
		{name: "a language that is a path", program: job.Program{Language: "../javascript", Code: read}, refused: "language"},
		{name: "no language", program: job.Program{Code: read}, refused: "language"},
		{name: "a language with a NUL", program: job.Program{Language: "javascript\x00", Code: read}, refused: "language"},
		{name: "a path that leads up", program: job.Program{Language: "javascript", Code: read, Path: "../main.js"}, refused: "leads out"},
		{name: "an absolute path", program: job.Program{Language: "javascript", Code: read, Path: s.dir() + "/secret.mjs"}, refused: "leads out"},
		{name: "a path by a link", program: job.Program{Language: "javascript", Code: `console.log((await import("./secret.mjs")).default)`, Path: "out/main.js"}},
		{name: "a file outside, read", program: job.Program{Language: "javascript", Code: read}},
		{name: "a link, read", program: job.Program{Language: "javascript", Code: link}},
		{name: "permissions that nobody granted", program: job.Program{Language: "javascript", Code: read, Permissions: []string{"--allow-all"}}},
		{name: "more than the client may have", program: job.Program{Language: "javascript", Code: read, Permissions: []string{"--allow-read"}, Most: []string{"--allow-read"}}},
		{name: "a timeout beyond the client's", program: job.Program{Language: "javascript", Code: "1", Timeout: time.Hour}, refused: "timeout"},
		{name: "a timeout below none", program: job.Program{Language: "javascript", Code: "1", Timeout: -1}, refused: "timeout"},
		{name: "an argument with a NUL", program: job.Program{Language: "javascript", Code: "1", Args: []string{"a\x00b"}}, refused: "NUL"},
		{name: "a program that is too large", program: job.Program{Language: "javascript", Code: strings.Repeat("1;", 1<<20)}, refused: "bytes"},
		{name: "a program that is no UTF-8", program: job.Program{Language: "javascript", Code: "\xff"}, refused: "UTF-8"},
		{name: "packages that nobody allowed", program: job.Program{Language: "javascript", Packages: []string{"left-pad"}, FetchOnly: true}, refused: "left-pad"},
		{name: "packages of a language that has none", program: job.Program{Language: "lua", Packages: []string{"x"}, FetchOnly: true}, refused: "no packages"},
		{name: "a shell in a shell", program: job.Program{Language: "bash", Code: `node -e '` + read + `'; bash -c 'node -e 1'`}},
	}
	var walls []string
	asks := func(ctx context.Context, beside func(context.Context, job.Program, job.Streams) (job.Result, error)) {
		for _, row := range rows {
			p := row.program
			p.Workspace = workspace
			var o outcome
			o.Result, o.err = beside(ctx, p, job.Streams{Emit: func(job.Event) {}})
			switch {
			case row.refused != "" && (o.err == nil && o.Status == job.Completed || !strings.Contains(o.text(), row.refused)):
				walls = append(walls, row.name+": not refused: "+o.summary())
			case len(s.evidenceOf(o)) > 0:
				walls = append(walls, row.name+": got through: "+o.text())
			case row.refused == "" && o.err == nil && o.Status != job.Completed && o.Status != job.Failed:
				walls = append(walls, row.name+": "+o.summary())
			}
			t.Logf("%s: %s", row.name, o.summary())
		}
		// A call after its caller's end comes to nothing.
		over, cancel := context.WithCancel(ctx)
		cancel()
		var o outcome
		o.Result, o.err = beside(over, job.Program{Language: "javascript", Code: "console.log(1)"}, job.Streams{Emit: func(job.Event) {}})
		if o.err == nil && o.Status == job.Completed {
			walls = append(walls, "a call after the end: "+o.summary())
		}
		// Calls at once take turns, and a panic of one's listener is not another's.
		done := make(chan error, 20)
		for range cap(done) {
			go func() {
				r, err := beside(ctx, job.Program{Language: "javascript", Code: "1"}, job.Streams{Emit: func(job.Event) {}})
				if err == nil && r.Status != job.Completed {
					err = errors.New(string(r.Status))
				}
				done <- err
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				walls = append(walls, "calls at once: "+err.Error())
			}
		}
	}
	sup := supervisor.New(job.DefaultLimits(), slog.New(slog.DiscardHandler), caller{ask: asks},
		newEngine(t, job.JavaScript, nil, launcher.Best), newEngine(t, "bash", nil, launcher.Best))
	sup.SetTerms(func(string) supervisor.Terms {
		return supervisor.Terms{Sessions: 1, Running: 1, Waiting: 1, Timeout: time.Minute, Permissions: map[job.Language][]string{"javascript": {}}, Policy: job.PackagePolicy{AllowPackages: []string{"none"}}}
	})
	if _, err := sup.Run(t.Context(), job.Program{Language: "caller"}, supervisor.Call{Client: "one", Streams: job.Streams{Emit: func(job.Event) {}}}); err != nil {
		t.Fatal(err)
	}
	for _, what := range walls {
		t.Error(what)
	}
}

// TestWasmCalls has a shell call other languages, whose programs get no further than it.
func TestWasmCalls(t *testing.T) {
	t.Parallel()
	s := newScene(t, attack{code: "%DIR% %HTTP%"})
	limits := job.DefaultLimits()
	sup := supervisor.New(limits, slog.New(slog.DiscardHandler), newEngine(t, job.JavaScript, s.fill([]string{"--allow-read=%DIR%"}), launcher.Best), newEngine(t, "bash", s.fill([]string{"--allow-read=%DIR%"}), launcher.Best))
	run := func(t *testing.T, code string, permissions []string, timeout time.Duration) outcome {
		t.Helper()
		var o outcome
		var out strings.Builder
		o.Result, o.err = sup.Run(t.Context(), job.Program{Language: "bash", Code: s.fillText(code), Permissions: permissions, Timeout: timeout},
			supervisor.Call{Client: "one", Streams: job.Streams{Emit: func(e job.Event) { out.Write(e.Data) }}})
		o.events = out.String()
		t.Logf("%s", o.summary())
		return o
	}
	t.Run("control", func(t *testing.T) {
		if o := run(t, `node -e 'console.log(Deno.readTextFileSync("%DIR%/secret.txt"))'`, nil, 0); len(s.evidenceOf(o)) == 0 {
			t.Errorf("a call does not work at all: %s", o.text())
		}
	})
	t.Run("a shell that was given less", func(t *testing.T) {
		o := run(t, `node -e 'console.log(Deno.readTextFileSync("%DIR%/secret.txt"))'; qjs -e 'import * as std from "std"; console.log(std.loadFile("%DIR%/secret.txt"))'; cat %DIR%/secret.txt
cat > x.js <<'E'
console.log(Deno.readTextFileSync("%DIR%/secret.txt"))
E
node x.js; ln -s %DIR%/secret.mjs l.mjs; node l.mjs; node %DIR%/secret.mjs; node ../../../../../..%DIR%/secret.mjs; node --allow-all x.js; node -- x.js`, []string{}, 0)
		if found := s.evidenceOf(o); len(found) > 0 || o.err != nil {
			t.Errorf("it got through: %v\n%s", found, o.text())
		}
	})
	t.Run("a call that never ends", func(t *testing.T) {
		began := time.Now()
		o := run(t, `node -e 'for (;;);'; echo after`, nil, 2*time.Second)
		if o.Status != job.TimedOut || time.Since(began) > 30*time.Second || strings.Contains(o.text(), "after") {
			t.Errorf("it ended as %s after %v", o.summary(), time.Since(began))
		}
	})
	t.Run("calls in calls", func(t *testing.T) {
		o := run(t, `f() { node -e 'console.log("in")'; }; for i in 1 2 3; do f | f | cat; done; (f & f & wait); echo out`, nil, time.Minute)
		if o.Status != job.Completed || !strings.Contains(o.text(), "out") {
			t.Errorf("%s", o.text())
		}
	})
	t.Run("a fork bomb", func(t *testing.T) {
		o := run(t, `:(){ :|:& };: ; for i in $(seq 1000); do :; done; wait`, nil, 5*time.Second)
		if o.err != nil || o.Status == job.Completed && o.Duration > 30*time.Second {
			t.Errorf("%s", o.text())
		}
		if next := run(t, `echo alive`, nil, 0); !strings.Contains(next.text(), "alive") {
			t.Errorf("the next program: %s", next.text())
		}
	})
	t.Run("outputs without end", func(t *testing.T) {
		o := run(t, `x=$(node -e 'const b = "x".repeat(1e6); for (let i = 0; i < 30; i++) console.log(b)'); echo ${#x}`, nil, time.Minute)
		if o.err != nil || len(o.text()) > 1<<20 {
			t.Errorf("%d bytes came: %v", len(o.text()), o.err)
		}
	})
}
