//go:build !windows

package wasm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

func TestMain(m *testing.M) {
	code := m.Run()
	_ = sandbox.RemoveServerDir()
	os.Exit(code)
}

// newTestEngine makes an engine on the tests' cache, with programs' variables.
func newTestEngine(t *testing.T, env ...string) *Engine {
	t.Helper()
	return newEngineOn(t, cachetest.Open(t), env...)
}

func newEngineOn(t *testing.T, c *cache.Cache, env ...string) *Engine {
	t.Helper()
	limits := job.DefaultLimits()
	limits.Timeout, limits.MaxTimeout = 2*time.Minute, 5*time.Minute
	limits.Stdout = 16 << 20
	e, err := New(Options{deno.Options{Cache: c, Limits: limits, Env: env}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// TestPrograms runs the programs of testdata, a folder for each language, offline. A file is a
// program with the files beside it: main.* is the program; args, stdin and env (lines) are
// given to it; stdout is what it must print (of much, stdout-sha256 has the digest), each
// line of stderr what must be in its standard error; status is how it must end ("failed 3"),
// error the error's name and what must be in its message, and out/NAME the content of a file
// that it must leave (the last newline may be missing).
func TestPrograms(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	prepared := map[job.Language]func() error{}
	for _, l := range rows {
		prepared[l.Name] = sync.OnceValue(func() error {
			return newTestEngine(t).Prepare(t.Context(), func(job.Event) {}, l.Name)
		})
	}
	for i, file := range files {
		if left := leftToLong(i, file); left {
			continue
		}
		name := job.Language(filepath.Base(filepath.Dir(file)))
		t.Run(string(name)+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			prepare := prepared[name]
			if prepare == nil {
				t.Fatalf("no language is called %s", name)
			}
			cachetest.NeedNetwork(t, prepare())
			t.Parallel()
			runProgram(t, name, file)
		})
	}
}

// slow are the languages whose hello takes a second of processor time, or more.
var slow = []string{"c", "cpp", "duckdb", "fsharp", "go", "postgresql", "r"}

// leftToLong says that a program is left to `scripts/test --long`: two of three in the slow
// languages, and with -short all but hello.
func leftToLong(i int, file string) bool {
	switch {
	case cachetest.Long():
		return false
	case filepath.Base(file) == "hello.txtar":
		return false
	case testing.Short():
		return true
	}
	return slices.Contains(slow, filepath.Base(filepath.Dir(file))) && i%3 != 0
}

func runProgram(t *testing.T, name job.Language, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	given, out := map[string]string{}, map[string]string{}
	p := job.Program{Language: name, Timeout: 2 * time.Minute}
	dir, err := sandbox.NewRunDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	special := []string{"args", "stdin", "env", "stdout", "stdout-sha256", "stderr", "status", "error"}
	for _, f := range archive.Files {
		switch {
		case slices.Contains(special, f.Name):
			given[f.Name] = string(f.Data)
		case strings.HasPrefix(f.Name, "out/"):
			out[f.Name[len("out/"):]] = string(f.Data)
		case strings.HasPrefix(f.Name, "main."):
			p.Name, p.Code = f.Name, string(f.Data)
		default:
			path := filepath.Join(dir, f.Name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if p.Name == "" {
		t.Fatal("there is no main file")
	}
	p.Workspace, p.Args = dir, lines(given["args"])
	e := newEngineOn(t, cachetest.OpenOffline(t), lines(given["env"])...)
	result, err := e.Run(t.Context(), p, job.Streams{Stdin: strings.NewReader(given["stdin"]), Emit: func(job.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("%s %d, error %+v\nstdout:\n%s\nstderr:\n%s", result.Status, result.ExitCode, result.Error, shortened(result.Stdout.Head), shortened(result.Stderr.Head))
		}
	}()
	if got, want := string(result.Status)+" "+strconv.Itoa(result.ExitCode), cmp.Or(strings.TrimSpace(given["status"]), "completed 0"); got != want {
		t.Errorf("it ended as %s, want %s", got, want)
	}
	if want, said := given["stdout"]; said && string(result.Stdout.Head)+string(result.Stdout.Tail) != want {
		t.Errorf("it printed\n%swant\n%s", shortened(result.Stdout.Head), shortened([]byte(want)))
	}
	if want := strings.TrimSpace(given["stdout-sha256"]); want != "" {
		printed := slices.Concat(result.Stdout.Head, result.Stdout.Tail)
		if got := fmt.Sprintf("%x", sha256.Sum256(printed)); got != want || result.Stdout.Omitted > 0 {
			t.Errorf("it printed %d bytes with the SHA-256 %s, want %s", len(printed), got, want)
		}
	}
	for _, line := range lines(given["stderr"]) {
		if !bytes.Contains(result.Stderr.Head, []byte(line)) && !bytes.Contains(result.Stderr.Tail, []byte(line)) {
			t.Errorf("its standard error lacks %q", line)
		}
	}
	if want := strings.TrimSpace(given["error"]); want != "" {
		name, message, _ := strings.Cut(want, ": ")
		if result.Error == nil || result.Error.Name != name || !strings.Contains(result.Error.Message, message) {
			t.Errorf("its error is %+v, want %s", result.Error, want)
		}
	}
	for name, want := range out {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want && string(got)+"\n" != want {
			t.Errorf("it left %s as %q (%v), want %q", name, shortened(got), err, want)
		}
	}
}

// lines are the lines of a file, without its end.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func shortened(text []byte) []byte {
	if len(text) > 2000 {
		return append(slices.Clone(text[:2000]), "…\n"...)
	}
	return text
}
