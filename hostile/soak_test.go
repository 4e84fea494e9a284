//go:build !windows

package hostile

import (
	"context"
	crypto "crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/deno/permission"
	"rillbox/pyodide"
	"rillbox/server"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

const (
	soakRunsEnv = "RILLBOX_TEST_SOAK_RUNS" // set by scripts/soak
	soakRuns    = 40                       // without it: each kind once

	// What the process that holds the server, and here its clients too, may have
	// more of after all runs than after a quarter of them. It does not depend on
	// how many runs there are: three of four are between the two.
	soakHeapGrowth     = 2 << 20
	soakResidentGrowth = 32 << 20
)

// soakClients are how many clients there are.
func soakClients() int { return cachetest.Rounds(4, 4, 8) }

// soakLimits let half of the clients wait.
func soakLimits() job.Limits {
	l := job.DefaultLimits()
	l.Timeout, l.MaxTimeout = time.Minute, time.Minute
	l.Memory = 256 << 20
	l.Running = soakClients() / 2
	return l
}

// TestSoak is many runs of every kind from several clients of one server, after
// which nothing of them may be left.
func TestSoak(t *testing.T) {
	needProc(t)
	endEngines()
	runs := soakRuns
	if text := os.Getenv(soakRunsEnv); text != "" {
		var err error
		if runs, err = strconv.Atoi(text); err != nil || runs < 4 {
			t.Fatalf("%s=%q: want a number of runs, at least 4", soakRunsEnv, text)
		}
	}
	seed := rand.Uint64()
	t.Logf("%d runs, seed %d", runs, seed)

	// A first, short-lived server makes what stays for the life of the process:
	// the keeper, the runs' directory, Go's own descriptors and threads.
	first := openSoak(t)
	first.run(t, rand.New(rand.NewPCG(seed, 0)), 2*len(soakKinds)/3)
	first.close()
	fds, goroutines := settled(t, 0), runtime.NumGoroutine()

	s := openSoak(t)
	start := time.Now()
	random := rand.New(rand.NewPCG(seed, 1))
	s.largest(t)
	s.run(t, random, runs/4)
	quarter := s.quiet(t)
	s.run(t, random, runs-runs/4)
	all := s.quiet(t)
	took := time.Since(start)
	s.tell(t, runs, took)
	s.close()

	t.Logf("after a quarter: %v; after all: %v", quarter, all)
	if grew := all.heap - quarter.heap; grew > soakHeapGrowth {
		t.Errorf("the heap grew by %d KiB", grew>>10)
	}
	if grew := all.resident - quarter.resident; grew > soakResidentGrowth {
		t.Errorf("the resident memory grew by %d KiB", grew>>10)
	}
	allGone(t, "processes", func() []process { return strangers(t, 0) })
	allGone(t, "cgroups", func() []string { return cgroupsOf(t, os.Getpid()) })
	allGone(t, "directories of runs", func() []string { return entriesOf(t, runsDir(t), "lock") })
	var now []string
	for range 2500 { // streams that a descendant could hold are closed after a second
		if now = descriptors(t); len(now) <= len(fds) {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if len(now) != len(fds) {
		t.Errorf("there are %d descriptors, and were %d:\n%s\nbefore:\n%s", len(now), len(fds), strings.Join(now, "\n"), strings.Join(fds, "\n"))
	}
	for range 2500 {
		if runtime.NumGoroutine() <= goroutines {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		t.Errorf("there are %d goroutines, and were %d:\n%s", now, goroutines, stacks.String())
	}
	t.Logf("%d descriptors before, %d after; %d goroutines before, %d after", len(fds), len(now), goroutines, runtime.NumGoroutine())
}

// strangers are children of ours that should not be there: all but the keeper
// and so many warm workers.
func strangers(t *testing.T, warm int) []process {
	t.Helper()
	children := slices.DeleteFunc(childrenOf(t, os.Getpid()), func(p process) bool { return strings.HasPrefix(p.command, "rillbox-keeper") })
	children = append(children, slices.DeleteFunc(belonging(t, cgroupWord(os.Getpid())), func(p process) bool { return p.parent == os.Getpid() })...)
	if len(children) <= warm {
		return nil
	}
	return children
}

// settled waits until nothing of a server's is left beside so many warm
// workers, and lists the descriptors then.
func settled(t *testing.T, warm int) []string {
	t.Helper()
	allGone(t, "processes", func() []process { return strangers(t, warm) })
	last := descriptors(t)
	for quiet := 0; quiet < 600; quiet++ { // a little longer than the second after which streams are closed
		time.Sleep(2 * time.Millisecond)
		if now := descriptors(t); len(now) != len(last) {
			last, quiet = now, 0
		}
	}
	return last
}

func entriesOf(t *testing.T, dir string, except ...string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if !slices.Contains(except, entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names
}

// soak is one server with its clients.
type soak struct {
	clients []*soakClient
	close   func()
	next    atomic.Int64 // which kind comes next
	order   []int        // of the kinds

	mu    sync.Mutex
	ended map[string]int // by kind and status
}

// soakClient is one client. All that it hears must bear the mark of the run
// that it belongs to.
type soakClient struct {
	session *mcp.ClientSession
	name    string // random: the beginning of its runs' marks
	made    int

	mu   sync.Mutex
	runs map[string]*soakRun // by mark, which is the progress token too
}

// soakRun is one run, as its client sees it.
type soakRun struct {
	mark  string
	id    chan string // its execution ID, when it was told
	speak chan bool   // closed when it printed its mark
	once  sync.Once

	mu    sync.Mutex
	heard string // the beginning of its standard output
	wrong []string
}

func openSoak(t *testing.T) *soak {
	t.Helper()
	store, limits := openShared(t), soakLimits()
	// What lets a guest write frames, and leave files.
	writes, err := permission.Parse([]string{"--allow-write"})
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := deno.New(deno.Options{Cache: store, Limits: limits, Permissions: writes})
	if err != nil {
		t.Fatal(err)
	}
	python, err := pyodide.New(pyodide.Options{Options: deno.Options{Cache: store, Limits: limits, Permissions: writes, Warm: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []job.Toolchain{scripts, python} {
		cachetest.NeedNetwork(t, engine.Prepare(t.Context(), func(job.Event) {}))
	}
	super := supervisor.New(limits, slog.New(slog.DiscardHandler), scripts, python)
	srv := server.New(server.Options{Supervisor: super, Version: "test"})
	s := &soak{ended: map[string]int{}}
	var sessions []*mcp.ServerSession
	for range soakClients() {
		c := &soakClient{name: "mark" + crypto.Text(), runs: map[string]*soakRun{}}
		here, there := mcp.NewInMemoryTransports()
		session, err := srv.Connect(context.WithoutCancel(t.Context()), c.name, nil, there)
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, session)
		c.session, err = mcp.NewClient(&mcp.Implementation{Name: c.name, Version: "test"}, &mcp.ClientOptions{
			ProgressNotificationHandler: c.hear,
		}).Connect(context.WithoutCancel(t.Context()), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.clients = append(s.clients, c)
	}
	s.close = sync.OnceFunc(func() {
		for i, c := range s.clients {
			_ = c.session.Close()
			_ = sessions[i].Wait()
		}
		super.Close()
	})
	t.Cleanup(s.close)
	return s
}

// run has the clients make so many runs between them.
func (s *soak) run(t *testing.T, random *rand.Rand, runs int) {
	t.Helper()
	if s.order == nil {
		s.order = random.Perm(len(soakKinds))
	}
	var left atomic.Int64
	left.Store(int64(runs))
	var working sync.WaitGroup
	for _, c := range s.clients {
		luck := rand.New(rand.NewPCG(random.Uint64(), 0))
		working.Go(func() {
			for left.Add(-1) >= 0 {
				i := int(s.next.Add(1)-1) % len(s.order)
				kind := soakKinds[s.order[i]]
				status, err := c.do(t.Context(), kind, luck)
				if err != nil {
					t.Errorf("%s: %v", kind.name, err)
				}
				s.mu.Lock()
				s.ended[kind.name+" "+status]++
				s.mu.Unlock()
			}
		})
	}
	working.Wait()
}

// largest has each client get the largest answer that there is, because the
// SDK's clients keep a buffer of that size for good, and are in this process.
// fillsKept is how many of the largest answers leave as much kept of a client's long
// outputs as is kept at most, 16 MiB.
const fillsKept = 12

func (s *soak) largest(t *testing.T) {
	t.Helper()
	var working sync.WaitGroup
	for _, c := range s.clients {
		working.Go(func() {
			for range fillsKept {
				if _, err := c.do(t.Context(), largestAnswer, nil); err != nil {
					t.Errorf("%s: %v", largestAnswer.name, err)
				}
			}
		})
	}
	working.Wait()
}

// usage is what the process has while nothing runs.
type usage struct {
	heap, resident int64
	goroutines     int
}

func (u usage) String() string {
	return fmt.Sprintf("heap %.1f MiB, resident %.1f MiB, %d goroutines", float64(u.heap)/(1<<20), float64(u.resident)/(1<<20), u.goroutines)
}

// quiet waits until all runs have ended and measures.
func (s *soak) quiet(t *testing.T) usage {
	t.Helper()
	settled(t, 1)
	for _, c := range s.clients {
		// The SDK keeps a connection's last message.
		if _, err := c.session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "list_runtimes"}); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		clear(c.runs)
		c.mu.Unlock()
	}
	runtime.GC() // once more than FreeOSMemory does, for what pools hold through one
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{int64(m.HeapAlloc), residentOf(t, os.Getpid()), runtime.NumGoroutine()}
}

func (s *soak) tell(t *testing.T, runs int, took time.Duration) {
	t.Logf("%d runs took %v", runs, took.Round(time.Second))
	var lines []string
	for what, times := range s.ended {
		lines = append(lines, fmt.Sprintf("%s: %d", what, times))
	}
	slices.Sort(lines)
	t.Log(strings.Join(lines, "\n"))
}

// do makes one run and checks all that came of it.
func (c *soakClient) do(ctx context.Context, kind soakKind, luck *rand.Rand) (status string, err error) {
	c.made++
	r := &soakRun{mark: fmt.Sprintf("%s%06d.", c.name, c.made), id: make(chan string, 1), speak: make(chan bool)}
	c.mu.Lock()
	c.runs[r.mark] = r
	c.mu.Unlock()

	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	over := make(chan bool)
	var meanwhile sync.WaitGroup
	if kind.meanwhile != nil {
		early := luck.IntN(2) == 0
		meanwhile.Go(func() { kind.meanwhile(c, r, cancel, early, over) })
	}
	params := &mcp.CallToolParams{Name: "run_code", Arguments: kind.arguments(r.mark)}
	params.SetProgressToken(r.mark)
	result, err := c.session.CallTool(ctx, params)
	close(over)
	meanwhile.Wait()
	if err != nil {
		if kind.status == "" && ctx.Err() != nil {
			return "abandoned", nil
		}
		return "error", err
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return "error", err
	}
	r.check("the result", string(raw))
	a, err := decodeAnswer(result)
	if err != nil {
		return "error", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case a.refusal != "":
		return "refused", fmt.Errorf("refused: %s", a.refusal)
	case len(r.wrong) > 0:
		return a.Status, fmt.Errorf("%s", strings.Join(r.wrong, "; "))
	case kind.status != "" && a.Status != kind.status:
		return a.Status, fmt.Errorf("the status is %q, want %q: %+v %.300q %.300q", a.Status, kind.status, a.Error, a.Stdout, a.Stderr)
	case kind.says != "" && !strings.Contains(string(raw), kind.says):
		return a.Status, fmt.Errorf("the result does not say %q: %.1000s", kind.says, raw)
	case kind.prelude && (a.Stdout != "" || a.Status == "completed") && !strings.Contains(a.Stdout, "found nothing, planted "+r.mark):
		return a.Status, fmt.Errorf("the run began with %.300q", a.Stdout)
	}
	return a.Status, nil
}

var (
	restOfMark = regexp.MustCompile(`^[A-Z2-7]{26}\d{6}\.`)
	startedAs  = regexp.MustCompile(`^started execution (\w+)$`)
)

// check notes every mark in the text that is not the run's own.
func (r *soakRun) check(where, text string) {
	for {
		_, after, found := strings.Cut(text, "mark")
		if !found {
			return
		}
		text = after
		if strings.HasPrefix(after, r.mark[len("mark"):]) { // most are, and there are many
			continue
		}
		if mark := restOfMark.FindString(after); mark != "" {
			r.mu.Lock()
			r.wrong = append(r.wrong, fmt.Sprintf("%s has the mark mark%s of another run; its own is %s", where, mark, r.mark))
			r.mu.Unlock()
		}
	}
}

// hear takes a notification of a run's.
func (c *soakClient) hear(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
	token, _ := n.Params.ProgressToken.(string)
	c.mu.Lock()
	r := c.runs[token]
	if r == nil { // another client's, or one of long ago: whoever runs now tells
		for _, r = range c.runs {
			break
		}
	}
	c.mu.Unlock()
	if r == nil {
		return
	}
	text := n.Params.Message
	r.check("a notification", token+text)
	if m := startedAs.FindStringSubmatch(text); m != nil {
		select {
		case r.id <- m[1]:
		default:
		}
	}
	r.mu.Lock()
	if written, isOutput := strings.CutPrefix(text, "stdout: "); isOutput && len(r.heard) < 1<<10 {
		r.heard += written
	}
	heard := r.heard
	r.mu.Unlock()
	if strings.Contains(heard, r.mark) {
		r.once.Do(func() { close(r.speak) })
	}
}

// soakKind is one kind of run.
type soakKind struct {
	name     string
	language string
	code     string         // after the prelude; MARK is the run's mark
	more     map[string]any // further arguments
	prelude  bool
	marked   bool   // a file of its directory holds the mark
	status   string // that it must end with; empty: any, or none at all
	says     string // what must be in the result
	// meanwhile happens while the run lasts; early is before its first output.
	meanwhile func(c *soakClient, r *soakRun, abandon func(), early bool, over <-chan bool)
}

func (k soakKind) arguments(mark string) map[string]any {
	code := k.code
	if k.prelude {
		code = preludes[k.language] + code
	}
	arguments := map[string]any{"language": k.language, "code": strings.ReplaceAll(code, "MARK", mark)}
	for name, value := range k.more {
		arguments[name] = value
	}
	if k.marked {
		arguments["files"] = map[string]any{"mark": mark}
	}
	return arguments
}

// preludes look for what a run before could have left, leave it, and say both.
var preludes = map[string]string{
	"javascript": scriptPrelude,
	"typescript": "export {};\ndeclare global { var planted: string | undefined; }\n" + scriptPrelude,
	"python": `
import builtins, js, os, pathlib, sys, tempfile
planted = pathlib.Path(tempfile.gettempdir()) / "planted"
found = [getattr(builtins, "planted", None), getattr(js.globalThis, "planted", None), os.environ.get("PLANTED"),
         planted.read_text() if planted.exists() else None, getattr(sys, "planted", None)]
builtins.planted = js.globalThis.planted = sys.planted = os.environ["PLANTED"] = "MARK"
planted.write_text("MARK")
js.Deno.writeTextFileSync("left", "MARK")
print(" ".join(["found", *([f for f in found if f] or ["nothing,"]), "planted", planted.read_text()]))  # in one write
`,
}

const scriptPrelude = `
const kept = await caches.open("planted"), address = "https://planted.example/";
const found = [globalThis.planted, await (await kept.match(address))?.text()].filter((f) => f);
globalThis.planted = "MARK";
await kept.put(address, new Response("MARK"));
Deno.writeTextFileSync("left", "MARK");
console.log("found", ...(found.length ? found : ["nothing,"]), "planted", await (await kept.match(address))?.text());
`

var largestAnswer = soakKind{name: "the largest answer", language: "javascript", status: "completed",
	code: `const b = new TextEncoder().encode("MARK\n".repeat(1e5)); await Deno.stdout.write(b); await Deno.stderr.write(b); await Deno.stdout.write(b); await Deno.stderr.write(b);
export default "MARK".repeat(2e4);`}

var soakKinds = []soakKind{
	{name: "good, javascript", language: "javascript", prelude: true, status: "completed", says: `"result":"value mark`, code: `console.error("MARK"); export default "value " + globalThis.planted;`},
	{name: "good, typescript", language: "typescript", prelude: true, status: "completed", code: `const n: number = 6 * 7; console.log(n, "MARK"); export default { n, mark: "MARK" };`},
	{name: "good, python", language: "python", prelude: true, status: "completed", code: `print("MARK", file=sys.stderr); {"n": 6 * 7, "mark": "MARK"}`},
	{name: "standard input, javascript", language: "javascript", prelude: true, status: "completed", says: "12 lines", more: map[string]any{"stdin": strings.Repeat("line\n", 12)},
		code: `console.log((await new Response(Deno.stdin.readable).text()).trim().split("\n").length, "lines".toString()); export default "12 lines";`},
	{name: "standard input, python", language: "python", prelude: true, status: "completed", says: "12 lines", more: map[string]any{"stdin": strings.Repeat("line\n", 12)},
		code: `print(len(sys.stdin.readlines()), "lines")`},

	{name: "an error, javascript", language: "javascript", prelude: true, status: "failed", says: "bad", code: `throw new TypeError("bad MARK");`},
	{name: "an error, typescript", language: "typescript", prelude: true, status: "failed", says: "bad", code: `Promise.reject(new Error("bad MARK")); await new Promise((r) => setTimeout(r, 1e6));`},
	{name: "an error, python", language: "python", prelude: true, status: "failed", says: "ZeroDivisionError", code: `1 / 0`},
	{name: "an exit, javascript", language: "javascript", prelude: true, status: "failed", says: `"exit_code":7`, code: `Deno.exit(7);`},
	{name: "an exit, python", language: "python", prelude: true, status: "failed", says: `"exit_code":7`, code: `sys.exit(7)`},
	{name: "bad syntax, typescript", language: "typescript", status: "failed", says: "SyntaxError", code: `const MARK: = 1;`},
	{name: "bad syntax, python", language: "python", status: "failed", says: "SyntaxError", code: `def MARK:`},

	{name: "a hang, javascript", language: "javascript", prelude: true, status: "timed_out", more: short, code: `for (;;);`},
	{name: "a hang, awaiting, typescript", language: "typescript", prelude: true, status: "timed_out", more: short, code: `await new Promise((r) => setTimeout(r, 1e6));`},
	{name: "a hang, python", language: "python", prelude: true, status: "timed_out", more: short, code: `while True: pass`},

	{name: "a flood, javascript", language: "javascript", prelude: true, status: "completed", says: "left out", code: `for (let i = 0; i < 200; i++) await Deno.stdout.write(new TextEncoder().encode("MARK ".repeat(400)));
for (let i = 0; i < 5e5; i++) console.log("MARK");`},
	{name: "a flood, typescript", language: "typescript", prelude: true, status: "completed", says: "left out", code: `const b = new TextEncoder().encode("MARK\n".repeat(1e5)); for (let i = 0; i < 20; i++) await Deno.stderr.write(b);`},
	{name: "a flood, python", language: "python", prelude: true, status: "completed", says: "left out", code: `for i in range(50): print("MARK " * 4000)`},

	{name: "cancelled, javascript", language: "javascript", prelude: true, status: "cancelled", meanwhile: cancelExecution, code: `setInterval(() => console.log("MARK"), 10); await new Promise(() => {});`},
	{name: "cancelled, python", language: "python", prelude: true, status: "cancelled", meanwhile: cancelExecution, code: `while True: pass`},
	{name: "abandoned, typescript", language: "typescript", prelude: true, meanwhile: abandon, code: `for (;;) console.log("MARK");`},
	{name: "abandoned, python", language: "python", prelude: true, meanwhile: abandon, code: `while True: print("MARK")`},

	{name: "killed, javascript", language: "javascript", prelude: true, marked: true, status: "crashed", says: `"exit_code":137`, meanwhile: killProcess, code: `for (;;);`},
	{name: "killed, typescript", language: "typescript", prelude: true, marked: true, status: "crashed", says: `"exit_code":137`, meanwhile: killProcess, code: `await new Promise((r) => setTimeout(r, 1e6));`},
	{name: "killed, python", language: "python", prelude: true, marked: true, status: "crashed", says: `"exit_code":137`, meanwhile: killProcess, code: "while True: pass"},

	{name: "memory, javascript", language: "javascript", prelude: true, status: "out_of_memory", code: `const a = []; for (;;) a.push(new Uint8Array(8 << 20).fill(1));`},
	{name: "memory, typescript", language: "typescript", prelude: true, status: "out_of_memory", code: `const a: Uint8Array[] = []; for (;;) { a.push(new Uint8Array(new SharedArrayBuffer(8 << 20)).fill(1)); }`},
	{name: "memory, caught, python", language: "python", prelude: true, status: "completed", says: `"result":true`, code: "a = []\ntry:\n  while True: a.append(bytearray(8_000_000))\nexcept MemoryError:\n  n = len(a); del a\nn > 10"},
	{name: "memory, outside of Python, python", language: "python", prelude: true, status: "out_of_memory", code: "a = []\nwhile True:\n  b = js.Uint8Array.new(8 << 20); b.fill(1); a.append(b)"},

	{name: "a forged result, javascript", language: "javascript", prelude: true, status: "failed", says: "ProtocolError", code: `Deno.writeTextFileSync("/dev/fd/3", '{"type":"result","value":"MARK"}\n');`},
	{name: "a huge frame, typescript", language: "typescript", prelude: true, status: "failed", says: "ProtocolError", code: `Deno.writeTextFileSync("/dev/fd/3", '{"type":"result","value":"' + "MARK".repeat(1e5)); export default 1;`},
	{name: "no frame, javascript", language: "javascript", prelude: true, status: "failed", says: "ProtocolError", code: `Deno.writeFileSync("/dev/fd/3", new Uint8Array([0, 255, 10]));`},
	{name: "a forged result, python", language: "python", prelude: true, status: "failed", says: "ProtocolError", code: `js.Deno.writeTextFileSync("/dev/fd/3", '{"type":"result","value":"MARK"}\n')`},
}

var short = map[string]any{"timeout_seconds": 0.3}

// await waits for one of a run's signs of life, or for its end.
func await[T any](sign <-chan T, over <-chan bool) (value T, came bool) {
	select {
	case value = <-sign:
		return value, true
	case <-over:
		return value, false
	}
}

func cancelExecution(c *soakClient, r *soakRun, _ func(), early bool, over <-chan bool) {
	id, came := await(r.id, over)
	if !came {
		return
	}
	if !early {
		if _, came := await(r.speak, over); !came {
			return
		}
	}
	_, _ = c.session.CallTool(context.Background(), &mcp.CallToolParams{Name: "cancel_execution", Arguments: map[string]any{"execution_id": id}})
}

// abandon takes the call back: notifications/cancelled.
func abandon(_ *soakClient, r *soakRun, cancel func(), early bool, over <-chan bool) {
	if _, came := await(r.id, over); !came {
		return
	}
	if !early {
		_, _ = await(r.speak, over)
	}
	cancel()
}

// killProcess kills the run's process, if it is one of ours.
func killProcess(_ *soakClient, r *soakRun, _ func(), _ bool, over <-chan bool) {
	if _, came := await(r.speak, over); !came {
		return
	}
	marked, _ := filepath.Glob("/proc/[0-9]*/cwd/mark") // by each process's own root
	for _, file := range marked {
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil {
			continue
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != r.mark {
			continue
		}
		if p, alive := readProcess(pid); alive && p.parent == os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestAnothersMarkIsNoticed(t *testing.T) {
	name := "mark" + crypto.Text()
	r := &soakRun{mark: name + "000007."}
	r.check("its own", strings.Repeat(r.mark, 3)+"mark "+name+"0000")
	if len(r.wrong) > 0 {
		t.Errorf("its own mark is taken for another's: %v", r.wrong)
	}
	r.check("another run's", r.mark+name+"000008.")
	r.check("another client's", r.mark+"mark"+crypto.Text()+"000007."+r.mark)
	if len(r.wrong) != 2 {
		t.Errorf("noticed are %v", r.wrong)
	}
}
