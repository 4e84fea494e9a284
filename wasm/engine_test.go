//go:build !windows

package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// newEngine makes an engine on the tests' cache that has what languages are made of.
func newEngine(t testing.TB, languages []job.Language, change ...func(*Options)) *Engine {
	t.Helper()
	o := Options{deno.Options{Cache: cachetest.Open(t), Log: cachetest.Logger(t), Limits: job.DefaultLimits()}}
	for _, c := range change {
		c(&o)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	cachetest.NeedNetwork(t, e.Prepare(t.Context(), ignore, languages...))
	return e
}

func permit(t testing.TB, words ...string) func(*Options) {
	t.Helper()
	p, err := permission.Parse(words)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.Permissions = p }
}

func ignore(job.Event) {}

// run runs a program, with what it is connected to in place of nothing.
func run(t testing.TB, e *Engine, p job.Program, streams ...job.Streams) job.Result {
	t.Helper()
	s := job.Streams{}
	if len(streams) > 0 {
		s = streams[0]
	}
	if s.Emit == nil {
		s.Emit = ignore
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := e.Run(ctx, p, s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shown is a result as a test tells of it.
func shown(r job.Result) string {
	return fmt.Sprintf("%s %d, error %+v, notes %q\nstdout: %.500s\nstderr: %.500s", r.Status, r.ExitCode, r.Error, r.Notes, r.Stdout, r.Stderr)
}

// newDir makes a directory for a workspace.
func newDir(t testing.TB) string {
	t.Helper()
	dir, err := sandbox.NewRunDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// What a program writes is told when it is written: each of these waits, after its first
// line, for the end of its input, which comes when that line has been told.
func TestOutputIsToldAsItIsWritten(t *testing.T) {
	for language, code := range map[job.Language]string{
		"bash":    "echo first; read -r x; echo last",
		"lua":     "print('first') io.read('a') print('last')",
		"ruby":    "puts 'first'; $stdin.read; puts 'last'",
		"php":     "<?php echo \"first\\n\"; stream_get_contents(STDIN); echo \"last\\n\";",
		"quickjs": "import * as std from 'std'; print('first'); std.in.readAsString(); print('last')",
	} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, []job.Language{language})
			from, to := io.Pipe()
			defer to.Close()
			r := run(t, e, job.Program{Language: language, Code: code, Timeout: 20 * time.Second}, job.Streams{Stdin: from, Emit: func(event job.Event) {
				if event.Kind == job.Stdout && strings.HasPrefix(string(event.Data), "first\n") {
					_ = to.Close()
				}
			}})
			if r.Status != job.Completed || r.Stdout.String() != "first\nlast\n" {
				t.Error(shown(r))
			}
		})
	}
}

// A program that never ends is ended: when its time is up, and when it is cancelled. Of
// neither is anything left.
func TestEnds(t *testing.T) {
	for language, code := range map[job.Language]string{
		"bash": "echo on; while :; do :; done",
		"lua":  "print('on') while true do end",
	} {
		t.Run(string(language), func(t *testing.T) {
			e := newEngine(t, []job.Language{language})
			p := job.Program{Language: language, Code: code, Timeout: 700 * time.Millisecond}
			if r := run(t, e, p); r.Status != job.TimedOut || r.Stdout.String() != "on\n" || r.Duration < p.Timeout || r.Duration > p.Timeout+3*time.Second {
				t.Errorf("after %v: %s", r.Duration, shown(r))
			}
			p.Timeout = time.Minute
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := e.Run(ctx, p, job.Streams{Emit: func(event job.Event) {
				if event.Kind == job.Stdout {
					cancel()
				}
			}})
			if err != nil || r.Status != job.Cancelled {
				t.Errorf("cancelled: %v, %s", err, shown(r))
			}
			if r, err := e.Run(ctx, p, job.Streams{Emit: ignore}); err != nil || r.Status != job.Cancelled || len(r.Stdout.Head) > 0 {
				t.Errorf("cancelled before its start: %v, %s", err, shown(r))
			}
			if n, _ := sandbox.Living(); n > 0 {
				t.Errorf("%d children live", n)
			}
			waitForNoRunDirs(t)
		})
	}
}

// waitForNoRunDirs waits until children's directories are gone: a run does not.
func waitForNoRunDirs(t *testing.T) {
	t.Helper()
	probe := newDir(t)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		dirs, err := filepath.Glob(filepath.Join(filepath.Dir(probe), "run-*"))
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(dirs, []string{probe}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("beside %s there are %q", probe, dirs)
		}
	}
}

// Programs that hold more than they may end, by an error of their language's or by ours.
func TestMemory(t *testing.T) {
	for language, code := range map[job.Language]string{
		"lua":  "print('on') local t = {} while true do t[#t + 1] = string.rep('x', 1000000) .. #t end",
		"ruby": "puts 'on'; $stdout.flush; a = []; loop { a << 'x' * 1_000_000 }",
		"php":  "<?php echo \"on\\n\"; ini_set('memory_limit', -1); $a = []; while (true) $a[] = str_repeat('x', 1000000);",
		"bash": "echo on; x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; y[${#y[@]}]=$x; done",
	} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, []job.Language{language}, func(o *Options) { o.Limits.Memory = 128 << 20 })
			r := run(t, e, job.Program{Language: language, Code: code, Timeout: 30 * time.Second})
			told := r.Error != nil && strings.Contains(strings.ToLower(r.Error.Name+" "+r.Error.Message), "memory")
			if r.Status != job.OutOfMemory && (r.Status != job.Failed || !told) || r.Stdout.String() != "on\n" {
				t.Error(shown(r))
			}
			if r.PeakMemory > 512<<20 {
				t.Errorf("it had %d MiB", r.PeakMemory>>20)
			}
		})
	}
}

// Of much that is written the beginning and the end are kept.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	e := newEngine(t, []job.Language{"lua"}, func(o *Options) { o.Limits.Stdout, o.Limits.Stderr = 1000, 100 })
	r := run(t, e, job.Program{Language: "lua", Code: "for i = 1, 10000 do print(i) end io.stderr:write(string.rep('e', 5000), 'END')"})
	out := r.Stdout
	if r.Status != job.Completed || !strings.HasPrefix(string(out.Head), "1\n2\n") || !strings.HasSuffix(string(out.Tail), "\n10000\n") ||
		len(out.Head)+len(out.Tail) > 1000 || out.Omitted != int64(48894-len(out.Head)-len(out.Tail)) {
		t.Errorf("%d bytes are left out: %s", out.Omitted, shown(r))
	}
	if r.Stderr.Omitted != 5003-100 || !strings.HasSuffix(string(r.Stderr.Tail), "eEND") {
		t.Errorf("of standard error %d bytes are left out, and %q is there", r.Stderr.Omitted, r.Stderr.Tail)
	}
}

// Input that no pipe holds at once comes whole.
func TestMuchInput(t *testing.T) {
	text := strings.Repeat("0123456789abcde\n", 200_000) // 3.2 MB
	for language, code := range map[job.Language]string{
		"bash": "wc -c",
		"lua":  "print(#io.read('a'))",
		"ruby": "puts $stdin.read.bytesize",
	} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, []job.Language{language})
			r := run(t, e, job.Program{Language: language, Code: code}, job.Streams{Stdin: strings.NewReader(text)})
			if r.Status != job.Completed || strings.TrimSpace(r.Stdout.String()) != "3200000" {
				t.Error(shown(r))
			}
		})
	}
}

// A program's two streams as one have what was written in its order.
func TestCombinedOutputIsInOrder(t *testing.T) {
	var want strings.Builder
	for i := range 100 {
		fmt.Fprintf(&want, "out %d\nerr %d\nagain %d\n", i, i, i)
	}
	for language, code := range map[job.Language]string{
		"bash": "for ((i = 0; i < 100; i++)); do echo out $i; echo err $i >&2; echo again $i | cat; done; exit 3",
		"lua":  "for i = 0, 99 do print('out', i) io.stderr:write('err ', i, '\\n') print('again ' .. i) end os.exit(3)",
	} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, []job.Language{language})
			r := run(t, e, job.Program{Language: language, Code: code, Combined: true})
			if got := strings.ReplaceAll(r.Stdout.String(), "\t", " "); r.ExitCode != 3 || !r.Combined || len(r.Stderr.Head) > 0 || got != want.String() {
				t.Error(shown(r))
			}
		})
	}
}

// What the operator grants of the machine's files is there, by the same path, and
// nothing else.
func TestGrants(t *testing.T) {
	granted, other, workspace := t.TempDir(), t.TempDir(), newDir(t)
	for _, name := range []string{filepath.Join(granted, "x"), filepath.Join(other, "x")} {
		if err := os.WriteFile(name, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	granted, other = realPath(t, granted), realPath(t, other)
	for language, code := range map[job.Language]string{
		"bash": `cat "$1/x"; echo; cat "$2/x" 2>/dev/null || echo refused; (echo y > "$1/y") 2>/dev/null || echo refused; cat /etc/shadow 2>/dev/null || echo refused`,
		"ruby": `def try = begin; yield; rescue SystemCallError; 'refused'; end
puts File.read(ARGV[0] + '/x'), try { File.read(ARGV[1] + '/x') }, try { File.write(ARGV[0] + '/y', 'y') }, try { File.read('/etc/shadow') }`,
		"lua": `local function try(...) local f = io.open(...) return f and f:read('a') or 'refused' end
print(try(arg[1] .. '/x')) print(try(arg[2] .. '/x')) print(try(arg[1] .. '/y', 'w')) print(try('/etc/shadow'))`,
	} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, []job.Language{language}, permit(t, "--allow-read="+granted))
			p := job.Program{Language: language, Code: code, Args: []string{granted, other}, Workspace: workspace}
			if r := run(t, e, p); r.Status != job.Completed || r.Stdout.String() != "content\nrefused\nrefused\nrefused\n" {
				t.Error(shown(r))
			}
			p.Permissions = []string{} // that none of it is left for this one
			if r := run(t, e, p); strings.Contains(r.Stdout.String(), "content") {
				t.Errorf("with no permissions: %s", shown(r))
			}
			p.Permissions = []string{"--allow-read=" + other}
			if _, err := e.Run(t.Context(), p, job.Streams{Emit: ignore}); !refused(err, "not granted") {
				t.Errorf("more than was granted: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(granted, "y")); err == nil {
			t.Error("a program wrote where it may only read")
		}
	})
}

func realPath(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// refused says whether err tells a client why its program can't be run, in these words.
func refused(err error, words string) bool {
	var program *job.ProgramError
	return errors.As(err, &program) && strings.Contains(err.Error(), words)
}

func TestGrantedPaths(t *testing.T) {
	for words, want := range map[string]string{
		"":                               "",
		"--allow-read":                   "",
		"--allow-read=/data":             "/data",
		"--allow-read=/data/,/data/sub":  "/data",
		"--allow-read=/data,/database":   "/data /database",
		"--allow-write=/out":             "/out",
		"--allow-read=/in,/a/b,/a":       "/a /in",
		"--allow-read=/etc":              "!/etc can't be given",
		"--allow-read=/usr":              "!/usr can't be given",
		"--allow-write=/home":            "!/home can't be given",
		"--allow-read=/":                 "!/ can't be given",
		"--allow-read=/workspace":        "!/workspace can't be given",
		"--allow-read=/home/someone/x":   "/home/someone/x",
		"--allow-read=/tmp/x":            "/tmp/x",
		"--allow-read=/x --allow-net=/y": "?",
	} {
		p, err := permission.ParseShell(words)
		if err != nil {
			if want != "?" {
				t.Error(err)
			}
			continue
		}
		paths, err := grantedPaths(p)
		message, isError := strings.CutPrefix(want, "!")
		switch {
		case isError && (err == nil || !strings.Contains(err.Error(), message)):
			t.Errorf("%s: %v", words, err)
		case !isError && want != "?" && (err != nil || paths == nil || strings.Join(paths, " ") != want):
			t.Errorf("%s: %q, %v", words, paths, err)
		}
		if _, err := New(Options{deno.Options{Cache: cachetest.Open(t), Permissions: p}}); isError && err == nil {
			t.Errorf("%s: an engine is made", words)
		}
	}
}

// Programs have the variables that the operator gives them, and no others of ours.
func TestEnvironment(t *testing.T) {
	t.Setenv("OURS", "secret")
	for language, code := range map[job.Language]string{
		"bash":         `echo "$GIVEN,${OURS-unset},$HOME"`,
		"lua":          "print(os.getenv('GIVEN') .. ',' .. (os.getenv('OURS') or 'unset') .. ',' .. os.getenv('HOME'))",
		"ruby":         "puts [ENV['GIVEN'], ENV.fetch('OURS', 'unset'), ENV['HOME']].join(',')",
		"coffeescript": "console.log [process.env.GIVEN, (try process.env.OURS) ? 'unset', '/home/user'].join ','",
	} {
		t.Run(string(language), func(t *testing.T) {
			e := newEngine(t, []job.Language{language}, func(o *Options) { o.Env = []string{"GIVEN=a b"} })
			if r := run(t, e, job.Program{Language: language, Code: code}); r.Stdout.String() != "a b,unset,/home/user\n" {
				t.Error(shown(r))
			}
		})
	}
}

// What has no packages and no commands of packages says so.
func TestWhatALanguageHasNot(t *testing.T) {
	e := newEngine(t, nil)
	for words, p := range map[string]job.Program{
		"Lua has no packages here (luasocket)": {Language: "lua", Packages: []string{"luasocket"}},
		"Ruby has no packages whose commands":  {Language: "ruby", Command: "rails"},
		"net access":                           {Language: "bash", Permissions: []string{"--allow-net"}},
	} {
		if _, err := e.Run(t.Context(), p, job.Streams{Emit: ignore}); err == nil || !errors.As(err, new(*job.ProgramError)) || words != "net access" && !strings.Contains(err.Error(), words) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if _, err := e.Install(t.Context(), job.Program{Language: "lua", Packages: []string{"x"}}, ignore); !refused(err, "Lua has no packages") {
		t.Errorf("Install: %v", err)
	}
}
