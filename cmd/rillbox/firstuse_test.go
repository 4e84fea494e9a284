//go:build !windows

package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/cache/cachetest"
)

// programs are run after every first use of a cache, with what they print.
var programs = []struct{ language, code, want string }{
	{"javascript", "console.log(6 * 7)", "42\n"},
	{"python", "import json, sys; print(json.dumps(sys.version_info[0]))", "3\n"},
}

// Killed with SIGKILL at any instant of a first set-up, the next start works
// and finds nothing half-written.
func TestASetUpKilledAtRandomInstantsIsTakenUpAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	kills := cachetest.Rounds(0, 3, 40)
	// A later start goes on where the killed one was, so that short lives reach
	// every stage, also on a machine where a whole set-up takes long.
	const longest = 8 * time.Second
	npm := startRegistry(t, 30<<20)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	rillbox(t, npm.environment(t.TempDir()), "setup", "--quiet") // fills the registry's memory
	env := npm.environment(t.TempDir())
	start := time.Now()
	rillbox(t, env, "setup", "--quiet")
	whole := time.Since(start)
	t.Logf("an undisturbed set-up takes %v", whole.Round(10*time.Millisecond))

	env = npm.environment(t.TempDir())
	for killed := 0; killed < kills; {
		instant := time.Duration(random.Int64N(int64(min(whole, longest))))
		if !setupKilledAfter(t, env, instant) {
			// It was done before: it must be whole. Begin again with nothing.
			runAll(t, env)
			env = npm.environment(t.TempDir())
			continue
		}
		killed++
		if out := rillbox(t, env, "cache", "verify"); !strings.Contains(out, " 0 corrupt") {
			t.Fatalf("killed after %v, the cache holds what it should not:\n%s", instant, out)
		}
	}
	rillbox(t, env, "setup", "--quiet")
	runAll(t, env)
}

// setupKilledAfter says whether the set-up was killed; false means that it was
// done before its time.
func setupKilledAfter(t *testing.T, env []string, instant time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), instant)
	defer cancel()
	cmd := exec.CommandContext(ctx, "rillbox", "setup", "--quiet") // SIGKILL when the time is up
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		t.Fatalf("rillbox setup after a kill: %v\n%s", err, out)
	}
	return err != nil
}

// runAll runs the programs without a network.
func runAll(t *testing.T, env []string) {
	t.Helper()
	for _, p := range programs {
		if got := rillbox(t, env, "run", "--offline", "-l", p.language, "-c", p.code); got != p.want {
			t.Errorf("%s prints %q, want %q", p.language, got, p.want)
		}
	}
}

// rillbox runs a command line that must succeed, and returns its output.
func rillbox(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "rillbox", args...)
	cmd.Env = env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("rillbox %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// Two servers started together on an empty cache fetch each runtime once
// between them, and both work.
func TestTwoServersOnAnEmptyCacheFetchOnce(t *testing.T) {
	npm := startRegistry(t, 60<<20)
	env := npm.environment(t.TempDir())
	var servers sync.WaitGroup
	for range 2 {
		servers.Go(func() { serveAndRun(t, env) })
	}
	servers.Wait()

	got := npm.tarballs()
	for name, n := range got {
		if n != 1 {
			t.Errorf("%s was fetched %d times", name, n)
		}
	}
	if len(got) != 2 {
		t.Errorf("fetched %v; want one tarball of Deno and one of Pyodide", got)
	}
}

// serveAndRun starts a server, has it run the programs, and ends it.
func serveAndRun(t *testing.T, env []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.Command("rillbox", "serve")
	cmd.Env = env
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Errorf("connect: %v", err)
		return
	}
	for _, p := range programs {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{
			Name: "run_code", Arguments: map[string]any{"language": p.language, "code": p.code},
		})
		if err != nil {
			t.Errorf("%s: %v", p.language, err)
			continue
		}
		var out struct{ Status, Stdout string }
		text, err := json.Marshal(result.StructuredContent)
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		if err != nil || out.Stdout != p.want {
			t.Errorf("%s: %v, %s, want %q", p.language, err, text, p.want)
		}
	}
	if err := session.Close(); err != nil {
		t.Errorf("end: %v", err)
	}
	if t.Failed() {
		t.Logf("the server's log:\n%s", stderr.String())
	}
}
