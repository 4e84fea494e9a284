//go:build !windows

package hostile

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/cache/cachetest"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// Every way in which a run ends from outside, on a real `rillbox serve`: each
// ends a program that goes on for ever with its whole family.

// startFamilies starts a family of each language and waits until all are there.
func startFamilies(t *testing.T, s *served) []*ongoing {
	t.Helper()
	var runs []*ongoing
	for _, family := range families {
		runs = append(runs, s.start(t, family))
	}
	for _, run := range runs {
		run.awaitReady(t)
	}
	s.noteKeeper(t)
	if n := len(s.remains(t)); n < 6*len(families) {
		t.Errorf("only %d processes run", n)
	}
	return runs
}

// checkStatus waits for a run's answer.
func (o *ongoing) checkStatus(t *testing.T, status string) {
	t.Helper()
	<-o.done
	if o.err != nil || o.answer.Status != status {
		t.Errorf("the answer is %+v %v, want the status %s", o.answer, o.err, status)
	}
}

// checkWell checks that the server runs programs as ever.
func (s *served) checkWell(t *testing.T) {
	t.Helper()
	for language, code := range map[string]string{"javascript": "export default 6 * 7", "python": "6 * 7"} {
		if a := s.run(t, map[string]any{"language": language, "code": code}); a.Status != "completed" || string(a.Result) != "42" {
			t.Errorf("afterwards %s answers %+v", language, a)
		}
	}
	s.checkNothingRuns(t)
}

func TestRunsEndAtTheirDeadline(t *testing.T) {
	needProc(t)
	t.Parallel()
	s := serve(t, t.TempDir(), "--warm=0")
	again := families
	for timeout := 3; len(again) > 0; timeout *= 2 { // whose family was not there yet has more time
		var runs []*ongoing
		for _, family := range again {
			arguments := maps.Clone(family)
			arguments["timeout_seconds"] = timeout
			runs = append(runs, s.start(t, arguments))
		}
		var late []map[string]any
		for i, run := range runs {
			run.checkStatus(t, "timed_out")
			if !strings.Contains(run.answer.Stdout, "ready") && !t.Failed() {
				late = append(late, again[i])
			}
		}
		again = late
	}
	processes, rest := s.checkNothingRuns(t)
	t.Logf("after the last answer all processes were gone within %v, all else within %v", processes, rest)
	s.checkWell(t)
}

func TestRunsEndByCancelExecution(t *testing.T) {
	needProc(t)
	t.Parallel()
	s := serve(t, t.TempDir(), "--warm=0")
	runs := startFamilies(t, s)
	for _, run := range runs {
		id := <-run.id
		result, err := s.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "cancel_execution", Arguments: map[string]any{"execution_id": id}})
		if err != nil || result.IsError {
			t.Errorf("cancel_execution answers %+v %v", result, err)
		}
	}
	processes, rest := s.checkNothingRuns(t)
	t.Logf("all processes were gone after %v, all else after %v", processes, rest)
	for _, run := range runs {
		run.checkStatus(t, "cancelled")
	}
	s.checkWell(t)
}

func TestRunsEndByNotificationsCancelled(t *testing.T) {
	needProc(t)
	t.Parallel()
	s := serve(t, t.TempDir(), "--warm=0")
	for _, run := range startFamilies(t, s) {
		run.cancel()
	}
	processes, rest := s.checkNothingRuns(t)
	t.Logf("all processes were gone after %v, all else after %v", processes, rest)
	s.checkWell(t)
}

func TestRunsEndWithTheirClientAtEOF(t *testing.T) {
	needProc(t)
	t.Parallel()
	s := serve(t, t.TempDir())
	runs := startFamilies(t, s)
	if err := s.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	processes, rest := s.checkNothingRuns(t)
	t.Logf("all processes were gone after %v, all else after %v", processes, rest)
	for _, run := range runs {
		run.checkStatus(t, "cancelled")
	}
	s.checkEnd(t)
}

func TestRunsEndAtSignals(t *testing.T) {
	needProc(t)
	t.Parallel()
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			s := serve(t, t.TempDir())
			runs := startFamilies(t, s)
			if err := s.process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			processes, rest := s.checkNothingRuns(t)
			t.Logf("all processes were gone after %v, all else after %v", processes, rest)
			for _, run := range runs {
				run.checkStatus(t, "cancelled")
			}
			s.checkEnd(t)
		})
	}
}

// Without a keeper it is the kernel that ends the children, and the next start
// that removes what they had.
func TestRunsEndWhenTheKeeperIsKilledFirst(t *testing.T) {
	needProc(t)
	t.Parallel()
	s := serve(t, t.TempDir(), "--warm=0")
	run := s.start(t, map[string]any{"language": "javascript", "code": `console.log("ready"); for (;;);`})
	run.awaitReady(t)
	s.noteKeeper(t)
	if err := syscall.Kill(s.keeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	allGone(t, "keeper", s.keeperLeft)
	if a := s.run(t, map[string]any{"language": "javascript", "code": "export default 6 * 7"}); a.Status != "completed" {
		t.Errorf("without its keeper the server answers %+v", a)
	}
	if err := s.process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.exited
	allGone(t, "processes", func() []process { return s.remains(t) })
	next := serve(t, s.temp)
	if dirs := next.serverDirs(t); len(dirs) > 0 {
		t.Errorf("the next start left %v", dirs)
	}
	if groups := cgroupsOf(t, s.process.Pid); len(groups) > 0 {
		t.Errorf("the next start left %v", groups)
	}
}

func TestRunsEndThoughTheirClientStopsReading(t *testing.T) {
	needProc(t)
	t.Parallel()
	floods := []map[string]any{
		{"language": "javascript", "code": `console.log("ready"); const b = new Uint8Array(1 << 16).fill(120); for (;;) await Deno.stdout.write(b);`, "timeout_seconds": 2},
		{"language": "python", "code": "print('ready')\nwhile True: print('x' * 65536)", "timeout_seconds": 2},
	}
	begin := func(t *testing.T) (*served, []*ongoing) {
		s := serve(t, t.TempDir(), "--warm=0")
		var runs []*ongoing
		for _, flood := range floods {
			run := s.start(t, flood)
			run.awaitReady(t)
			runs = append(runs, run)
		}
		s.noteKeeper(t)
		s.gate.shut()
		return s, runs
	}
	t.Run("at their deadline", func(t *testing.T) {
		s, runs := begin(t)
		allGone(t, "processes of runs of two seconds", func() []process { return s.remains(t) })
		s.checkNothingRuns(t)
		s.gate.open()
		for _, run := range runs {
			run.checkStatus(t, "timed_out")
		}
		s.checkWell(t)
	})
	t.Run("at the end of its requests", func(t *testing.T) {
		s, _ := begin(t)
		if err := s.stdin.Close(); err != nil {
			t.Fatal(err)
		}
		s.checkNothingRuns(t)
		s.checkEnd(t)
	})
	t.Run("at SIGTERM", func(t *testing.T) {
		s, _ := begin(t)
		if err := s.process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		s.checkNothingRuns(t)
		s.checkEnd(t)
	})
}

// killSelf sends its own process a signal. The first is taken by a handler of the
// runtime's, which looks for the fault.
func killSelf(signal string) string {
	return `for (let i = 0; i < 3; i++) Deno.kill(Deno.pid, "` + signal + `"); await new Promise((r) => setTimeout(r, 1e6));`
}

// guestEnd is what a guest does to its own process.
type guestEnd struct {
	name, language, code string
	status               string
	exit                 int
	says                 string // in the error, or on a stream
}

var guestEnds = []guestEnd{
	{"Deno.exit", "javascript", `Deno.exit(3);`, "failed", 3, ""},
	{"process.exit", "typescript", `import process from "node:process"; process.exit(4);`, "failed", 4, ""},
	{"exit with success before its value", "javascript", `Deno.exit(0); export default 1;`, "completed", 0, ""},
	{"exit in a callback", "javascript", `setTimeout(() => Deno.exit(5)); await new Promise(() => {});`, "failed", 5, ""},
	{"exit in a worker", "javascript", `new Worker("data:text/javascript,Deno.exit(6)", { type: "module" }); await new Promise((r) => setTimeout(r, 1000)); export default 1;`, "completed", 0, ""},
	{"an error", "typescript", `throw new RangeError("boom");`, "failed", 1, "boom"},
	{"an error that is none", "javascript", `throw undefined;`, "failed", 1, "undefined"},
	{"an error that can't be shown", "javascript", `throw { toString() { throw 1; }, get message() { throw 2; }, get stack() { throw 3; } };`, "failed", 1, ""},
	{"an error in a callback", "javascript", `setTimeout(() => { throw new Error("boom"); });`, "failed", 1, "boom"},
	{"an unhandled rejection", "javascript", `Promise.reject(new Error("boom")); await new Promise((r) => setTimeout(r, 1e6));`, "failed", 1, "boom"},
	{"an unhandled rejection of nothing", "typescript", `Promise.reject(); await new Promise((r) => setTimeout(r, 1e6));`, "failed", 1, ""},
	{"an unhandled error in a worker", "javascript", `new Worker("data:text/javascript,throw new Error('boom')", { type: "module" }); await new Promise((r) => setTimeout(r, 1e6));`, "failed", 1, "boom"},
	{"a promise that never settles", "javascript", `await new Promise(() => {});`, "failed", 1, ""},
	{"a stack overflow", "javascript", `(function f() { f(); })();`, "failed", 1, "Maximum call stack"},
	{"a stack overflow in the parser", "typescript", `new Function("[".repeat(1e6));`, "failed", 1, "Maximum call stack"},
	{"a trap in WebAssembly", "javascript", `const m = new WebAssembly.Module(new Uint8Array([0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,8,1,0,10,5,1,3,0,0,11])); new WebAssembly.Instance(m);`, "failed", 1, "unreachable"},
	{"process.abort", "javascript", `import process from "node:process"; process.abort();`, "crashed", 134, ""},
	{"a full heap", "javascript", `const a = []; for (;;) a.push({ a: [a.length, {}] });`, "out_of_memory", 0, ""},
	{"a segmentation fault", "javascript", killSelf("SIGSEGV"), "crashed", 139, ""},
	{"a bus error", "javascript", killSelf("SIGBUS"), "crashed", 135, ""},
	{"an illegal instruction", "typescript", killSelf("SIGILL"), "crashed", 132, ""},
	{"SIGTERM to itself", "javascript", killSelf("SIGTERM"), "crashed", 143, ""},
	{"SIGKILL to itself", "javascript", killSelf("SIGKILL"), "crashed", 137, ""},
	{"SIGSTOP to itself", "javascript", killSelf("SIGSTOP"), "timed_out", 0, ""},
	{"SIGKILL to its group", "javascript", `import process from "node:process"; process.kill(-process.pid, "SIGKILL"); await new Promise((r) => setTimeout(r, 1e6));`, "crashed", 137, ""},
	{"its streams closed", "javascript", `Deno.stdin.close(); Deno.stdout.close(); Deno.stderr.close(); export default 1;`, "completed", 0, ""},

	{"sys.exit", "python", "import sys\nsys.exit(3)", "failed", 3, ""},
	{"sys.exit with success", "python", "import sys\nsys.exit()", "completed", 0, ""},
	{"sys.exit with a text", "python", "import sys\nsys.exit('a text')", "failed", 1, "a text"},
	{"os._exit", "python", "import os\nos._exit(3)", "failed", 3, ""},
	{"os.abort", "python", "import os\nos.abort()", "crashed", 0, ""},
	{"SIGABRT to itself", "python", "import signal\nsignal.raise_signal(signal.SIGABRT)", "", 0, ""},
	{"SIGSEGV to itself", "python", "import signal\nsignal.raise_signal(signal.SIGSEGV)", "", 0, ""},
	{"faulthandler's fault", "python", "import faulthandler\nfaulthandler._sigsegv()", "", 0, ""},
	{"a read outside of memory", "python", "import ctypes\nctypes.string_at(0xfffffff0, 64)", "", 0, ""},
	{"a write over the interpreter", "python", "import ctypes\nctypes.memset(0, 255, 40_000_000)", "", 0, ""},
	{"a recursion", "python", "def f(): f()\nf()", "failed", 1, "RecursionError"},
	{"a recursion without a limit", "python", "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()", "", 0, ""},
	{"a recursion in C", "python", "a = []\nfor i in range(10**6): a = [a]\nrepr(a)", "", 0, ""},
	{"a KeyboardInterrupt", "python", "raise KeyboardInterrupt", "failed", 0, "KeyboardInterrupt"},
	{"an error that can't be shown", "python", "class E(Exception):\n  def __str__(self): raise self\nraise E", "failed", 1, ""},
	{"an error of a task that nobody awaits", "python", "import asyncio\nasync def f(): raise ValueError('boom')\nt = asyncio.ensure_future(f())\nawait asyncio.sleep(0.1)", "", 0, ""},
	{"a rejection in JavaScript", "python", "from pyodide.code import run_js\nimport asyncio\nrun_js('Promise.reject(new Error(\"boom\"))')\nawait asyncio.sleep(10)", "", 0, ""},
	{"Deno.exit from Python", "python", "import js\njs.Deno.exit(3)", "failed", 3, ""},
	{"a segmentation fault of its process", "python", "import asyncio, js\nfor i in range(3): js.Deno.kill(js.Deno.pid, 'SIGSEGV')\nawait asyncio.sleep(1e6)", "crashed", 139, ""},
	{"SIGSTOP to its process", "python", "import asyncio, js\njs.Deno.kill(js.Deno.pid, 'SIGSTOP')\nawait asyncio.sleep(1e6)", "timed_out", 0, ""},
	{"its process's own stack", "python", "from pyodide.code import run_js\nrun_js('(function f() { f(); })()')", "failed", 1, "Maximum call stack"},
}

// TestGuestsEndsAreResults: whatever a guest does to its own process is a
// result, and the server goes on.
func TestGuestsEndsAreResults(t *testing.T) {
	needProc(t)
	t.Parallel()
	s := serve(t, t.TempDir(), "--warm=0", "--memory=128MiB")
	t.Run("rows", func(t *testing.T) {
		for _, row := range guestEnds {
			tryGuestsEnd(t, s, row)
		}
	})
	s.checkWell(t)
}

func tryGuestsEnd(t *testing.T, s *served, row guestEnd) {
	if launcher.Offered().Level == launcher.Namespaces {
		// The first process of a PID namespace gets no signal of its own that it does
		// not handle; abort(3) ends it by a fault then.
		switch {
		case strings.Contains(row.code, ".kill("):
			row.status, row.exit = "", 0
		case row.exit == 134:
			row.exit = 139
		}
	}
	t.Run(row.language+", "+row.name, func(t *testing.T) {
		t.Parallel()
		timeout := 2
		if row.status != "" && row.status != "timed_out" { // it ends by itself, however busy the machine is
			timeout = 60
		}
		a := s.run(t, map[string]any{"language": row.language, "code": row.code, "timeout_seconds": timeout})
		t.Logf("%s %d %s: %.200s", a.Status, a.ExitCode, a.Error.Name, a.Error.Message)
		switch {
		case a.refusal != "":
			t.Errorf("it was refused: %s", a.refusal)
		case row.status != "" && a.Status != row.status:
			t.Errorf("the status is %q (%+v), want %q", a.Status, a, row.status)
		case row.exit != 0 && a.ExitCode != row.exit:
			t.Errorf("the exit code is %d, want %d", a.ExitCode, row.exit)
		case !strings.Contains(a.Error.Name+a.Error.Message+a.Stdout+a.Stderr, row.says):
			t.Errorf("the answer is %+v, want %q in it", a, row.says)
		}
		select {
		case <-s.exited:
			t.Fatalf("the server ended: %v", s.state)
		default:
		}
	})
}

// TestMemoryIsReturned: what runs used is the machine's again, and the server
// keeps none of it.
func TestMemoryIsReturned(t *testing.T) {
	needProc(t)
	s := serve(t, t.TempDir(), "--warm=0", "--memory=256MiB")
	for _, language := range []string{"javascript", "python"} {
		s.run(t, map[string]any{"language": language, "code": "1"})
	}
	before := residentOf(t, s.process.Pid)
	var runs sync.WaitGroup
	for range 3 {
		for _, arguments := range []map[string]any{
			{"language": "javascript", "code": `const a = []; for (;;) a.push(new Uint8Array(16 << 20).fill(1));`},
			{"language": "typescript", "code": `const b = new Uint8Array(1 << 20).fill(120); for (let i = 0; i < 300; i++) await Deno.stdout.write(b);`},
			{"language": "python", "code": "import js\na = []\nwhile True:\n  b = js.Uint8Array.new(16 << 20); b.fill(1); a.append(b)"},
		} {
			runs.Go(func() { s.run(t, arguments) })
		}
	}
	runs.Wait()
	s.checkNothingRuns(t)
	after := residentOf(t, s.process.Pid)
	t.Logf("the server has %.1f MiB resident before and %.1f MiB after", float64(before)/(1<<20), float64(after)/(1<<20))
	if after-before > 64<<20 {
		t.Errorf("the server grew by %d MiB", (after-before)>>20)
	}
}

// TestNoClientsRunsDelayAnothers measures a small program of one client while
// another client's runs do their worst.
func TestNoClientsRunsDelayAnothers(t *testing.T) {
	limits := job.DefaultLimits()
	limits.MaxTimeout = time.Minute
	h := openHouse(t, limits)
	hellos := cachetest.Rounds(3, 5, 15)
	measure := func(t *testing.T) []time.Duration {
		t.Helper()
		var took []time.Duration
		for i := range hellos {
			start := time.Now()
			if a := call(t, h.polite, map[string]any{"language": "javascript", "code": fmt.Sprintf("export default %d", i)}); a.Status != "completed" || string(a.Result) != fmt.Sprint(i) {
				t.Errorf("the answer is %+v", a)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		return took
	}
	quiet := measure(t)
	t.Logf("in quiet times: %v at the median, %v at most", quiet[hellos/2], quiet[hellos-1])
	for _, row := range []struct {
		name      string
		arguments map[string]any
	}{
		{"a hang, javascript", map[string]any{"language": "javascript", "code": `for (;;);`}},
		{"a hang, python", map[string]any{"language": "python", "code": `while True: pass`}},
		{"sleep, javascript", map[string]any{"language": "javascript", "code": `await new Promise((r) => setTimeout(r, 1e6));`}},
		{"a flood, javascript", map[string]any{"language": "javascript", "code": `const b = new Uint8Array(1 << 16).fill(120); for (;;) await Deno.stdout.write(b);`}},
		{"a flood of lines, typescript", map[string]any{"language": "typescript", "code": `for (;;) console.error("x");`}},
		{"a flood, python", map[string]any{"language": "python", "code": `while True: print("x" * 1000)`}},
		{"threads, javascript", map[string]any{"language": "javascript", "code": `for (let i = 0; i < 16; i++) new Worker("data:text/javascript,for(;;);", { type: "module" }); for (;;);`}},
	} {
		for kind, session := range map[string]string{"program": "", "cell": "default"} {
			t.Run(row.name+", "+kind, func(t *testing.T) {
				arguments := maps.Clone(row.arguments)
				arguments["timeout_seconds"] = 60
				if session != "" {
					needWall(t)
					arguments["session_id"] = session
				}
				ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
				over := make(chan error, 1)
				go func() {
					_, err := h.rude.CallTool(ctx, &mcp.CallToolParams{Name: "run_code", Arguments: arguments})
					over <- err
				}()
				took := measure(t)
				select {
				case err := <-over:
					t.Errorf("the rude client's run ended before the measurement did: %v", err)
				default:
					cancel()
					<-over
				}
				cancel()
				t.Logf("meanwhile: %v at the median, %v at most", took[hellos/2], took[hellos-1])
				if took[hellos/2] > 10*quiet[hellos/2]+time.Second {
					t.Errorf("another client's run makes %v of %v", took[hellos/2], quiet[hellos/2])
				}
			})
		}
	}
}

// Deno's flags split values at commas: the part of a path before one must not be
// granted in the path's place.
func TestATMPDIRWithAComma(t *testing.T) {
	temp := filepath.Join(t.TempDir(), "a,b")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	s := serve(t, temp, "--warm=0")
	a := s.run(t, map[string]any{"language": "javascript", "code": "export default 1"})
	if named := launcher.Offered().Level < launcher.Namespaces; named != strings.Contains(a.refusal, "comma") || !named && string(a.Result) != "1" {
		t.Errorf("the answer is %+v", a)
	}
	allGone(t, "directories", func() []string { return runDirsIn(t, temp) })
}
