//go:build !windows

package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
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

// testLimits are low enough to be hit soon. Memory is what Python needs to say
// MemoryError itself before the watchdog says it.
func testLimits() job.Limits {
	l := job.DefaultLimits()
	l.Timeout = 2 * time.Second
	l.MaxTimeout = 20 * time.Second
	l.Memory = 256 << 20
	l.Running, l.Waiting = 2, 1
	return l
}

// house is one server with two clients that know nothing of each other: what
// the rude one does must not be felt by the polite one.
type house struct {
	rude, polite *mcp.ClientSession
	connect      func(name string, o *mcp.ClientOptions) *mcp.ClientSession // one more client
	server       *server.Server
	supervisor   *supervisor.Supervisor
}

func openHouse(t testing.TB, limits job.Limits, grants ...string) house {
	t.Helper()
	return openHouseOf(t, houseOptions{limits: limits, grants: grants})
}

// houseOptions are what a house's operator chose.
type houseOptions struct {
	limits      job.Limits
	withoutWall bool
	grants      []string
	pythonApart bool               // Python has none of them
	index       string             // of Python packages; empty means the usual one
	shared      *supervisor.Shared // a directory of the operator's own
}

func openHouseOf(t testing.TB, o houseOptions) house {
	t.Helper()
	store, limits, withoutWall := openShared(t), o.limits, o.withoutWall
	permissions, err := permission.Parse(o.grants)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := deno.New(deno.Options{Cache: store, Limits: limits, Permissions: permissions, WithoutSecondWall: withoutWall})
	if err != nil {
		t.Fatal(err)
	}
	if o.pythonApart {
		permissions = permission.Permissions{}
	}
	python, err := pyodide.New(pyodide.Options{Options: deno.Options{Cache: store, Limits: limits, Permissions: permissions, WithoutSecondWall: withoutWall}, IndexURL: o.index})
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []job.Toolchain{scripts, python} {
		cachetest.NeedNetwork(t, engine.Prepare(t.Context(), func(job.Event) {}))
	}
	s := supervisor.New(limits, slog.New(slog.DiscardHandler), scripts, python)
	t.Cleanup(s.Close)
	if o.shared != nil {
		s.Share(*o.shared)
	}
	srv := server.New(server.Options{Supervisor: s, Version: "test"})
	connect := func(name string, o *mcp.ClientOptions) *mcp.ClientSession {
		here, there := mcp.NewInMemoryTransports()
		if _, err := srv.Connect(context.WithoutCancel(t.Context()), supervisor.NewID(), nil, there); err != nil {
			t.Fatal(err)
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: name, Version: "test"}, o).Connect(context.WithoutCancel(t.Context()), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close() })
		return session
	}
	return house{connect("rude", nil), connect("polite", nil), connect, srv, s}
}

// answer is run_code's structured result, or the text of a refusal.
type answer struct {
	Status    string          `json:"status"`
	ExitCode  int             `json:"exit_code"`
	Stdout    string          `json:"stdout"`
	Stderr    string          `json:"stderr"`
	Result    json.RawMessage `json:"result"`
	Truncated struct {
		Stdout, Stderr int64
	} `json:"truncated"`
	Error struct {
		Name, Message string
	} `json:"error"`
	DurationMS int64  `json:"duration_ms"`
	PeakMemory int64  `json:"peak_memory_bytes"`
	SessionID  string `json:"session_id"`
	State      string `json:"state"`
	Files      []struct {
		Path, Change, URI string
	} `json:"files"`
	Notes   []string `json:"notes"`
	refusal string
}

func call(t testing.TB, client *mcp.ClientSession, arguments map[string]any) answer {
	t.Helper()
	result, err := client.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "run_code", Arguments: arguments})
	if err != nil {
		return answer{refusal: err.Error()}
	}
	a, err := decodeAnswer(result)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func decodeAnswer(result *mcp.CallToolResult) (a answer, err error) {
	if result.StructuredContent == nil {
		text, _ := result.Content[0].(*mcp.TextContent)
		return answer{refusal: text.Text}, nil
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, fmt.Errorf("%w: %s", err, raw)
	}
	return a, nil
}

// meanwhile makes the rude client's call, and asks the server something as the
// polite one all the while. It gives the call's answer, and how long the polite
// client waited, in the order of time.
func (h house) meanwhile(t *testing.T, arguments map[string]any) (answer, []time.Duration) {
	t.Helper()
	done := make(chan answer, 1)
	go func() { done <- call(t, h.rude, arguments) }()
	var waits []time.Duration
	for {
		start := time.Now()
		if _, err := h.polite.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "list_runtimes"}); err != nil {
			t.Errorf("the polite client got no answer: %v", err)
		}
		waits = append(waits, time.Since(start))
		select {
		case a := <-done:
			slices.Sort(waits)
			return a, waits
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// limitRow is a limit and a program that goes for it.
type limitRow struct {
	name      string
	arguments map[string]any
	status    string
	check     func(t *testing.T, a answer)
}

// memoryBound is the most that a child may ever have: twice the guest's memory
// beside what its runtime has before the guest starts.
const memoryBound = 2*(256<<20) + 256<<20

// limitRows go for each limit in each language.
func limitRows() []limitRow {
	says := func(part string) func(*testing.T, answer) {
		return func(t *testing.T, a answer) {
			if !strings.Contains(a.Error.Message, part) {
				t.Errorf("the error is %+v; it does not say %q", a.Error, part)
			}
		}
	}
	keeps := func(t *testing.T, a answer) {
		if !strings.HasPrefix(a.Stdout, "before\n") {
			t.Errorf("what was written before is lost: %q", a.Stdout)
		}
	}
	bounded := func(t *testing.T, a answer) {
		keeps(t, a)
		if a.PeakMemory > memoryBound {
			t.Errorf("the child had %d MiB", a.PeakMemory>>20)
		}
	}
	program := func(language, code string, more ...any) map[string]any {
		arguments := map[string]any{"language": language, "code": code}
		for i := 0; i < len(more); i += 2 {
			arguments[more[i].(string)] = more[i+1]
		}
		return arguments
	}
	half := func(stream func(answer) (string, int64)) func(*testing.T, answer) {
		return func(t *testing.T, a answer) {
			text, omitted := stream(a)
			if len(text) < 1<<20 || len(text) > 1<<20+100 || omitted != 300_000_000-1<<20 {
				t.Errorf("kept %d bytes, left out %d", len(text), omitted)
			}
		}
	}
	stdout := half(func(a answer) (string, int64) { return a.Stdout, a.Truncated.Stdout })
	stderr := half(func(a answer) (string, int64) { return a.Stderr, a.Truncated.Stderr })

	return []limitRow{
		{"time, javascript", program("javascript", `console.log("before"); for (;;);`), "timed_out", keeps},
		{"time, typescript", program("typescript", `console.log("before"); while (true as boolean);`), "timed_out", keeps},
		{"time, python", program("python", "print('before')\nwhile True: pass"), "timed_out", keeps},
		{"time, awaiting, javascript", program("javascript", `console.log("before"); await new Promise(r => setTimeout(r, 1e6));`), "timed_out", keeps},
		{"time, awaiting, python", program("python", "import asyncio\nprint('before')\nawait asyncio.sleep(1e6)"), "timed_out", keeps},
		{"time, a regular expression, javascript", program("javascript", `console.log("before"); /^(a+)+$/.test("a".repeat(40) + "b");`), "timed_out", keeps},
		{"time, a huge integer, python", program("python", "print('before')\n3 ** (10 ** 9)"), "timed_out", keeps},
		{"time, what the program asked for", program("javascript", `console.log("before"); for (;;);`, "timeout_seconds", 1), "timed_out", says("1s")},

		{"memory, heap, javascript", program("javascript", `console.log("before"); const a = []; for (;;) a.push(new Array(1e5).fill(1.5));`, "timeout_seconds", 20), "out_of_memory", bounded},
		{"memory, heap, typescript", program("typescript", `console.log("before"); const a: string[] = []; for (let i = 0; ; i++) a.push(String(i).repeat(1e4) + i);`, "timeout_seconds", 20), "out_of_memory", bounded},
		{"memory, array buffers, javascript", program("javascript", `console.log("before"); const a = []; for (;;) a.push(new Uint8Array(16 << 20).fill(1));`, "timeout_seconds", 20), "out_of_memory", bounded},
		{"memory, WebAssembly, javascript", program("javascript", `console.log("before"); const a = []; for (;;) { const m = new WebAssembly.Memory({ initial: 256 }); new Uint8Array(m.buffer).fill(1); a.push(m); }`, "timeout_seconds", 20), "out_of_memory", bounded},
		{"memory, shared buffers in workers, javascript", program("javascript", `console.log("before"); const a = []; for (;;) { const s = new SharedArrayBuffer(16 << 20); new Uint8Array(s).fill(1); a.push(s); }`, "timeout_seconds", 20), "out_of_memory", bounded},
		{"memory, uncaught, python", program("python", "print('before')\na = []\nwhile True: a.append(bytearray(4_000_000))", "timeout_seconds", 20), "failed", func(t *testing.T, a answer) {
			bounded(t, a)
			if a.Error.Name != "MemoryError" {
				t.Errorf("the error is %+v", a.Error)
			}
		}},
		{"memory, caught by the program, python", program("python", "print('before')\na = []\ntry:\n  while True: a.append(bytearray(4_000_000))\nexcept MemoryError:\n  n = len(a); del a\nn > 10", "timeout_seconds", 20), "completed", func(t *testing.T, a answer) {
			bounded(t, a)
			if string(a.Result) != "true" {
				t.Errorf("the value is %s", a.Result)
			}
		}},
		{"memory, outside Python's heap, python", program("python", "import js\nprint('before')\na = []\nwhile True:\n  b = js.Uint8Array.new(16 << 20); b.fill(1); a.append(b)", "timeout_seconds", 20), "out_of_memory", bounded},

		{"output, one line, javascript", program("javascript", `const b = new TextEncoder().encode("x".repeat(1e6)); for (let i = 0; i < 300; i++) await Deno.stdout.write(b);`, "timeout_seconds", 20, "max_output_bytes", 2<<20), "completed", stdout},
		{"output, stderr, typescript", program("typescript", `const b: Uint8Array = new TextEncoder().encode("x".repeat(1e6)); for (let i = 0; i < 300; i++) await Deno.stderr.write(b);`, "timeout_seconds", 20, "max_output_bytes", 2<<20), "completed", stderr},
		{"output, one line, python", program("python", "s = 'x' * 1_000_000\nfor i in range(300): print(s, end='')", "timeout_seconds", 20, "max_output_bytes", 2<<20), "completed", stdout},
		{"output, stderr, python", program("python", "import sys\ns = 'x' * 1_000_000\nfor i in range(300): sys.stderr.write(s)\nNone", "timeout_seconds", 20, "max_output_bytes", 2<<20), "completed", stderr},

		{"value, javascript", program("javascript", `export default "x".repeat(5e6);`), "", func(t *testing.T, a answer) {
			if len(a.Result) > 1<<20+1<<10 {
				t.Errorf("a value of %d bytes came through", len(a.Result))
			}
		}},
		{"value, python", program("python", "'x' * 5_000_000"), "", func(t *testing.T, a answer) {
			if len(a.Result) > 1<<20+1<<10 {
				t.Errorf("a value of %d bytes came through", len(a.Result))
			}
		}},
		{"stack, javascript", program("javascript", `function f() { return f() + 1; } f();`), "failed", func(t *testing.T, a answer) {
			if a.Error.Name != "RangeError" {
				t.Errorf("the error is %+v", a.Error)
			}
		}},
		{"stack, python", program("python", "def f(): return f() + 1\nf()", "timeout_seconds", 20), "failed", func(t *testing.T, a answer) {
			if a.Error.Name != "RecursionError" {
				t.Errorf("the error is %+v", a.Error)
			}
		}},
		{"threads, javascript", program("javascript", `const url = "data:application/javascript,setInterval(()=>{},1e3)";
			for (let i = 0; i < 2000; i++) new Worker(url, { type: "module" }); await new Promise(r => setTimeout(r, 1e6));`), "", func(t *testing.T, a answer) {
			if a.Status == "completed" {
				t.Error("two thousand workers were started")
			}
		}},
	}
}

func TestLimitsEndInAResult(t *testing.T) {
	h := openHouse(t, testLimits())
	var all []time.Duration
	for _, row := range limitRows() {
		t.Run(row.name, func(t *testing.T) {
			a, waits := h.meanwhile(t, row.arguments)
			if a.refusal != "" {
				t.Fatalf("refused: %s", a.refusal)
			}
			if row.status != "" && a.Status != row.status {
				t.Errorf("the status is %q (%+v), want %q", a.Status, a.Error, row.status)
			}
			row.check(t, a)
			all = append(all, waits...)
			t.Logf("%s: %d ms, peak %d MiB; the other client waited %v at the median, %v at most, of %d answers",
				a.Status, a.DurationMS, a.PeakMemory>>20, waits[len(waits)/2], waits[len(waits)-1], len(waits))
		})
	}
	slices.Sort(all)
	t.Logf("of %d answers to the other client, the slowest took %v, 99 of 100 at most %v", len(all), all[len(all)-1], all[len(all)*99/100])
	if median := all[len(all)/2]; median > time.Second {
		t.Errorf("the other client waited %v at the median", median)
	}
}

// These limits refuse a program before it starts.
func TestLimitsRefuseWithAWordOnWhatIsAllowed(t *testing.T) {
	h := openHouse(t, testLimits())
	for _, row := range refusedRows {
		t.Run(row.name, func(t *testing.T) {
			if a := call(t, h.rude, row.arguments); !strings.Contains(a.refusal, row.want) {
				t.Errorf("the answer is %.300q %s", a.refusal, a.Status)
			}
		})
	}
}

var refusedRows = []struct {
	name      string
	arguments map[string]any
	want      string
}{
	{"code, javascript", map[string]any{"language": "javascript", "code": "//" + strings.Repeat("x", 1<<20)}, "1048576"},
	{"code, typescript", map[string]any{"language": "typescript", "code": "//" + strings.Repeat("x", 1<<20)}, "1048576"},
	{"code, python", map[string]any{"language": "python", "code": "#" + strings.Repeat("x", 1<<20)}, "1048576"},
	{"stdin", map[string]any{"language": "python", "code": "1", "stdin": strings.Repeat("x", 10<<20+1)}, "10485760"},
	{"timeout", map[string]any{"language": "python", "code": "1", "timeout_seconds": 21}, "20"},
}

func TestABusyServerSaysWhenToTryAgain(t *testing.T) {
	limits := testLimits()
	h := openHouse(t, limits)
	hang := map[string]any{"language": "javascript", "code": "for (;;);"}
	taken := limits.Running + limits.Waiting
	answers := make(chan answer, taken+1)
	for range taken + 1 {
		go func() { answers <- call(t, h.rude, hang) }()
	}
	busy := 0
	for range taken + 1 {
		switch a := <-answers; {
		case strings.Contains(a.refusal, "busy") && strings.Contains(a.refusal, "try again in"):
			busy++
		case a.Status != "timed_out":
			t.Errorf("the answer is %+v", a)
		}
	}
	if busy != 1 {
		t.Errorf("%d of %d calls were told that the server is busy, want 1", busy, taken+1)
	}
	if a := call(t, h.polite, map[string]any{"language": "javascript", "code": "export default 1"}); a.Status != "completed" {
		t.Errorf("afterwards the answer is %+v", a)
	}
}

// TestFileLimits: Python's files are in its memory, which has its own limit.
func TestFileLimits(t *testing.T) {
	limits := testLimits()
	limits.FileBytes, limits.Disk, limits.Files = 4<<20, 6<<20, 50
	h := openHouse(t, limits, "--allow-write", "--allow-read")
	for _, row := range []struct{ name, code, want string }{
		{"one file's size", `try { Deno.writeFileSync("big", new Uint8Array(8 << 20)); console.log("written"); } catch (e) { console.log(e.message); Deno.removeSync("big") }`, "File too large"},
		{"all files' size", `for (let i = 0; i < 40; i++) { Deno.writeFileSync("f" + i, new Uint8Array(1 << 20)); await new Promise(r => setTimeout(r, 50)); } console.log("written")`, "6 MiB"},
		{"the number of files", `for (let i = 0; i < 400; i++) { Deno.writeTextFileSync("f" + i, ""); await new Promise(r => setTimeout(r, 5)); } console.log("written")`, "50 files"},
	} {
		for _, language := range []string{"javascript", "typescript"} {
			t.Run(fmt.Sprintf("%s, %s", row.name, language), func(t *testing.T) {
				a := call(t, h.rude, map[string]any{"language": language, "code": row.code, "timeout_seconds": 10})
				if strings.Contains(a.Stdout, "written") || !strings.Contains(a.Stdout+a.Error.Message, row.want) {
					t.Errorf("the answer is %+v", a)
				}
			})
		}
	}
}
