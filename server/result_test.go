package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/deno"
	"rillbox/pyodide"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/wasm"
)

func kept(s string) job.Captured { return job.Captured{Head: []byte(s)} }

const anyRun = `{"language":"python","code":"1"}`

// results are runs' results and what must become of them.
var results = []struct {
	name   string
	result job.Result
	text   []string // parts of the text
	check  func(t *testing.T, out runOutput)
}{{
	name: "completed",
	result: job.Result{
		Status: job.Completed, Stdout: kept("hello\n"), Stderr: kept("careful"), Value: json.RawMessage(`{"b":1,"a":[2]}`),
		Duration: 1500 * time.Millisecond, CPU: 900 * time.Millisecond, PeakMemory: 64 << 20,
		Packages: []job.Package{{Name: "lodash", Version: "4.17.21", Source: "npm", Cached: true}},
		Notes:    []string{`something was chosen`},
	},
	text: []string{"completed: exit code 0, 1500 ms (CPU 900 ms, peak memory 64 MiB)\n", "\nstdout:\nhello\n", "\nstderr:\ncareful\n",
		`result: {"b":1,"a":[2]}`, "packages: lodash 4.17.21 (npm, cached)", `note: something was chosen`},
	check: func(t *testing.T, out runOutput) {
		if out.DurationMS != 1500 || out.CPUMS != 900 || out.PeakMemoryBytes != 64<<20 || out.Truncated != nil || out.Error != nil || len(out.ExecutionID) < 20 {
			t.Errorf("got %+v", out)
		}
	},
}, {
	name:   "nothing said",
	result: job.Result{Status: job.Completed},
	text:   []string{"printed nothing and has no value"},
	check: func(t *testing.T, out runOutput) {
		if out.Result != nil || out.Packages == nil {
			t.Errorf("got %+v", out)
		}
	},
}, {
	name:   "a null value",
	result: job.Result{Status: job.Completed, Value: json.RawMessage("null")},
	text:   []string{"result: null"},
	check: func(t *testing.T, out runOutput) {
		if string(out.Result) != "null" {
			t.Errorf("got %s", out.Result)
		}
	},
}, {
	name:   "a value of several lines",
	result: job.Result{Status: job.Completed, Value: json.RawMessage(`"a: 1\nb: 2"`)},
	text:   []string{"\nresult: a string:\na: 1\nb: 2\n"},
	check: func(t *testing.T, out runOutput) {
		if string(out.Result) != `"a: 1\nb: 2"` {
			t.Errorf("got %s", out.Result)
		}
	},
}, {
	name: "failed",
	result: job.Result{Status: job.Failed, ExitCode: 1, Stdout: kept("before\n"), Error: &job.GuestError{
		Name: "ZeroDivisionError", Message: "division by zero",
		Traceback: "Traceback (most recent call last):\n  File \"main.py\", line 1, in <module>\nZeroDivisionError: division by zero\n"}},
	text: []string{"failed: exit code 1", "error: Traceback (most recent call last):\n  File \"main.py\", line 1", "stdout:\nbefore\n"},
	check: func(t *testing.T, out runOutput) {
		if out.Error.Name != "ZeroDivisionError" || out.ExitCode != 1 {
			t.Errorf("got %+v", out)
		}
	},
}, {
	name: "an error whose traceback does not name it",
	result: job.Result{Status: job.Failed, ExitCode: 1, Error: &job.GuestError{
		Name: "Error", Message: "boom", Traceback: "    at main.ts:1:7"}},
	text:  []string{"error: Error: boom\n    at main.ts:1:7\n"},
	check: func(*testing.T, runOutput) {},
}, {
	name:   "timed out",
	result: job.Result{Status: job.TimedOut, ExitCode: 137, Error: &job.GuestError{Name: "TimedOut", Message: "it ran longer than 1 s"}},
	text:   []string{"timed_out: exit code 137", "error: TimedOut: it ran longer than 1 s\n"},
	check:  func(*testing.T, runOutput) {},
}, {
	name:   "out of memory",
	result: job.Result{Status: job.OutOfMemory, ExitCode: 137},
	text:   []string{"out_of_memory: exit code 137"},
	check:  func(*testing.T, runOutput) {},
}, {
	name:   "crashed",
	result: job.Result{Status: job.Crashed, ExitCode: 139},
	text:   []string{"crashed: exit code 139"},
	check:  func(*testing.T, runOutput) {},
}, {
	name: "truncated in the middle of characters",
	result: job.Result{Status: job.Completed,
		Stdout: job.Captured{Head: []byte("héé")[:4], Tail: []byte("éz")[1:], Omitted: 10}},
	text: []string{"stdout:\nhé\n… 12 bytes left out …\nz\n"},
	check: func(t *testing.T, out runOutput) {
		if out.Truncated == nil || out.Truncated.Stdout != 12 || out.Truncated.Stderr != 0 {
			t.Errorf("truncated: %+v", out.Truncated)
		}
	},
}, {
	name:   "not UTF-8",
	result: job.Result{Status: job.Completed, Stdout: kept("a\xff\xfeb"), Stderr: kept("ok")},
	text:   []string{"a\uFFFD\uFFFDb", "2 bytes of stdout are not UTF-8"},
	check: func(t *testing.T, out runOutput) {
		if out.Stdout != "a\uFFFD\uFFFDb" || len(out.Notes) != 1 {
			t.Errorf("got %+v", out)
		}
	},
}, {
	name:   "a value too deep for clients",
	result: job.Result{Status: job.Completed, Value: json.RawMessage(strings.Repeat("[", 500) + strings.Repeat("]", 500))},
	text:   []string{"nests 500 levels deep"},
	check: func(t *testing.T, out runOutput) {
		var s string
		if err := json.Unmarshal(out.Result, &s); err != nil || len(s) != 1000 {
			t.Errorf("got %s", out.Result)
		}
	},
}, {
	name:   "a value with half a surrogate pair",
	result: job.Result{Status: job.Completed, Value: json.RawMessage(`["\ud83d\ude00","\ud83d"]`)},
	text:   []string{"halves of surrogate pairs"},
	check: func(t *testing.T, out runOutput) {
		var list []string
		if err := json.Unmarshal(out.Result, &list); err != nil || list[0] != "😀" || list[1] != "\uFFFD" {
			t.Errorf("got %s", out.Result)
		}
	},
}, {
	name:   "a value that is no JSON",
	result: job.Result{Status: job.Completed, Value: json.RawMessage(`{"a":NaN}`)},
	text:   []string{"not valid JSON"},
	check: func(t *testing.T, out runOutput) {
		if string(out.Result) != `"{\"a\":NaN}"` {
			t.Errorf("got %s", out.Result)
		}
	},
}, {
	name:   "an error that is not UTF-8",
	result: job.Result{Status: job.Failed, ExitCode: 1, Error: &job.GuestError{Name: "E\xff", Message: "m\xff", Traceback: "t\xff"}},
	text:   []string{"E\uFFFD"},
	check:  func(*testing.T, runOutput) {},
}}

func TestResults(t *testing.T) {
	for _, row := range results {
		t.Run(row.name, func(t *testing.T) {
			session := dial(t, newServer(says(row.result), nil), nil)
			res := call(t, session, "run_code", anyRun)
			checkOutput(t, session, "run_code", res)
			out := structured[runOutput](t, res)
			if out.Status != row.result.Status {
				t.Errorf("status %q, want %q", out.Status, row.result.Status)
			}
			if want := row.result.Status != job.Completed; res.IsError != want {
				t.Errorf("isError %v, want %v", res.IsError, want)
			}
			got := text(t, res)
			for _, want := range row.text {
				if !strings.Contains(got, want) {
					t.Errorf("the text does not hold %q:\n%s", want, got)
				}
			}
			if !utf8.ValidString(got) {
				t.Errorf("the text is not UTF-8: %q", got)
			}
			row.check(t, out)
		})
	}
}

func TestTheTextDoesNotCarryTheOutputTwice(t *testing.T) {
	const marker = "<the output>"
	session := dial(t, newServer(says(job.Result{Status: job.Completed, Stdout: kept(marker)}), nil), nil)
	res := call(t, session, "run_code", anyRun)
	if n := strings.Count(text(t, res), marker); n != 1 {
		t.Errorf("the text holds the output %d times:\n%s", n, text(t, res))
	}
	if json.Valid([]byte(text(t, res))) {
		t.Error("the text is a JSON dump")
	}
}

// TestAnAnswerCostsWhatItSays: of long output the two ends and a count, in the text
// and in the structured result; more when the call asks for it; the whole as a
// resource, to this client only.
func TestAnAnswerCostsWhatItSays(t *testing.T) {
	long := strings.Repeat("é", 400_000)
	deep := `{"rows":[` + strings.Repeat(`"0123456789",`, 20_000) + `"end"]}`
	s := newServer(says(job.Result{Status: job.Failed, Stdout: kept(long), Stderr: kept("short"), Value: json.RawMessage(deep),
		Error:    &job.GuestError{Name: "E", Message: "why", Traceback: strings.Repeat("at x\n", 100_000)},
		Displays: []job.Display{{"text/html": strings.Repeat("h", 20<<10)}, {"text/html": strings.Repeat("h", 200<<10)}}}), nil)
	session := dial(t, s, nil)
	res := call(t, session, "run_code", anyRun)
	checkOutput(t, session, "run_code", res)
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	said := text(t, res)
	if most := maxOutput + 4<<10; len(raw) > most || len(said) > most {
		t.Errorf("the structured content has %d bytes, the text %d: want %d at most", len(raw), len(said), most)
	}
	out := structured[runOutput](t, res)
	head, tail, cut := strings.Cut(out.Stdout, leftOut(out.Truncated.Stdout))
	if !cut || !strings.HasPrefix(long, head) || !strings.HasSuffix(long, tail) || len(head)+len(tail)+int(out.Truncated.Stdout) != len(long) {
		t.Errorf("stdout is not head, tail and a count: %.100q, %+v", out.Stdout, out.Truncated)
	}
	if out.Stderr != "short" || out.Truncated.Stderr != 0 || out.Error.Message != "why" || len(out.Displays[0].Text["text/html"]) != 20<<10 {
		t.Errorf("what is short is not whole: %+v", out.Truncated)
	}
	if strings.Contains(said, out.ExecutionID+" ") || strings.Contains(strings.SplitN(said, "\n", 2)[0], out.ExecutionID) {
		t.Errorf("the text tells the execution's id: %.200s", said)
	}
	for name, want := range map[string]string{"stdout": long, "result": deep} {
		params := &mcp.ReadResourceParams{URI: "rillbox://executions/" + out.ExecutionID + "/" + name}
		if !strings.Contains(said, params.URI) {
			t.Errorf("the text does not name %s", params.URI)
		}
		if whole, err := session.ReadResource(context.Background(), params); err != nil || whole.Contents[0].Text != want {
			t.Errorf("%s is not the whole (%v)", params.URI, err)
		}
		if _, err := dial(t, s, nil).ReadResource(context.Background(), params); err == nil || !strings.Contains(err.Error(), "no output") {
			t.Errorf("another client reads it: %v", err)
		}
	}
	res = call(t, session, "run_code", strings.Replace(anyRun, "}", `,"max_output_bytes":2000000}`, 1))
	if out := structured[runOutput](t, res); out.Stdout != long || out.Truncated != nil || string(out.Result) != deep {
		t.Error("a call that asks for more does not get all")
	}
	for _, wrong := range []string{"1", "100000000000", "-5"} {
		if res := call(t, session, "run_code", strings.Replace(anyRun, "}", `,"max_output_bytes":`+wrong+`}`, 1)); !res.IsError || !strings.Contains(text(t, res), "use 1024 to ") {
			t.Errorf("max_output_bytes %s gave %q", wrong, text(t, res))
		}
	}
}

// Of what was kept for a client, the oldest goes first.
func TestOldOutputsGo(t *testing.T) {
	o := outputs{kept: map[string][]output{}}
	for i := range 20 {
		o.keep("c", fmt.Sprint(i), strings.Repeat("x", 1<<20))
	}
	if _, ok := o.read("c", "3"); ok {
		t.Error("an output beyond the bound is still kept")
	}
	if _, ok := o.read("c", "4"); !ok || o.keep("c", "large", strings.Repeat("x", maxKept+1)) {
		t.Error("not the last ones are kept")
	}
	o.forget("c")
	if _, ok := o.read("c", "19"); ok {
		t.Error("the outputs of a client that left are kept")
	}
}

// A value that is also shown, and whose plain text is its result, is given once.
func TestTheResultIsNotShownAgain(t *testing.T) {
	session := dial(t, newServer(says(job.Result{Status: job.Completed, Value: json.RawMessage(`"   a\n0  1"`),
		Displays: []job.Display{{"text/plain": "   a\n0  1", "text/html": "<table>"}}}), nil), nil)
	res := call(t, session, "run_code", anyRun)
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if n, m := strings.Count(text(t, res), "0  1"), strings.Count(string(raw), "0  1"); n != 1 || m != 1 || !strings.Contains(string(raw), "table") {
		t.Errorf("the value stands %d times in\n%s\nand %d times in\n%s", n, text(t, res), m, raw)
	}
}

func TestTheProgramArrivesAsSent(t *testing.T) {
	var got job.Program
	var stdin []byte
	session := dial(t, newServer(scripted{run: func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
		got = p
		return job.Result{Status: job.Completed}, nil
	}, stdin: func(from io.Reader) {
		stdin = nil
		if from != nil {
			stdin, _ = io.ReadAll(from)
		}
	}}, nil), nil)

	call(t, session, "run_code", `{"language":"TSX","code":"export default 1\n","packages":["lodash"],"stdin":"in\u0000put","args":["--x",""],"timeout_seconds":2.5,"permissions":[]}`)
	if got.Language != job.TypeScript || got.Name != "main.tsx" || got.Code != "export default 1\n" || got.Packages[0] != "lodash" ||
		string(stdin) != "in\x00put" || len(got.Args) != 2 || got.Timeout != 2500*time.Millisecond || got.Permissions == nil || len(got.Permissions) != 0 {
		t.Errorf("got %+v", got)
	}
	call(t, session, "run_code", `{"language":"py","code":"1","permissions":null,"stdin":null}`)
	if got.Language != job.Python || got.Name != "" || stdin != nil || got.Permissions != nil || got.Timeout != testLimits().Timeout {
		t.Errorf("got %+v", got)
	}
	call(t, session, "run_code", `{"language":"py","code":"\ufeffprint(1)"}`)
	if got.Code != "print(1)" {
		t.Errorf("with a byte order mark the code is %q", got.Code)
	}
	for _, l := range slices.Concat(deno.Languages, pyodide.Languages, wasm.Languages) {
		for _, name := range l.Words() {
			file := ""
			if slices.Contains(l.Extensions[1:], "."+name) {
				file = "main." + name
			}
			call(t, session, "run_code", `{"language":"`+name+`","code":"1"}`)
			if got.Language != l.Name || got.Name != file {
				t.Errorf("%s became %s %q", name, got.Language, got.Name)
			}
		}
	}
}

// wrongArgs are arguments of run_code that are refused, and what the error must
// say.
var wrongArgs = map[string][]string{
	`{}`:                                                                                       {"run_code needs code"},
	`{"language":"python"}`:                                                                    {"run_code needs code"},
	`{"language":"python","code":null}`:                                                        {"run_code needs code"},
	`{"language":"python","code":""}`:                                                          {"code is empty"},
	`{"language":"cobol","code":"1"}`:                                                          {"COBOL can't run here", "the nearest is python"},
	`{"language":"pyton","code":"1"}`:                                                          {`"pyton" is not known (did you mean python?)`, "javascript, typescript, python"},
	`{"language":"","code":"1"}`:                                                               {"needs language"},
	`{"language":"python\u0000","code":"1"}`:                                                   {"is not known"},
	`{"language":"python","code":"1","output":"both"}`:                                         {`output "both" is not known`, `use "combined"`},
	`{"language":7,"code":"1"}`:                                                                {"language must be a string, got a number"},
	`{"language":"python","code":["1"]}`:                                                       {"code must be a string, got a list"},
	`{"language":"python","code":{"a":1}}`:                                                     {"code must be a string, got an object"},
	`{"language":"python","code":true}`:                                                        {"code must be a string, got a boolean"},
	`{"language":"python","code":"a\u0000b"}`:                                                  {"code holds a NUL character (at byte 1)"},
	`{"language":"python","code":"\ud83d"}`:                                                    {"half of a surrogate pair"},
	`{"language":"python","code":"1","cod":"2"}`:                                               {`no argument "cod"`, "language, code, session_id, files, packages, stdin, args, timeout_seconds, max_output_bytes, output, permissions"},
	`{"language":"python","Code":"1"}`:                                                         {"needs code"},
	`{"language":"python","code":"1","packages":"six"}`:                                        {`packages must be a list of strings (["one", "two"]), got a string`},
	`{"language":"python","code":"1","packages":[1]}`:                                          {"packages must be a list", "got a list with a number in it"},
	`{"language":"python","code":"1","args":[null]}`:                                           {"args must be a list", "got a list with null in it"},
	`{"language":"python","code":"1","args":[["a"]]}`:                                          {"got a list with a list in it"},
	`{"language":"python","code":"1","packages":["a\u0000"]}`:                                  {"packages[0] holds a NUL"},
	`{"language":"python","code":"1","permissions":[""]}`:                                      {"permissions[0] is empty"},
	`{"language":"python","code":"1","timeout_seconds":"5"}`:                                   {"timeout_seconds must be a number, got a string"},
	`{"language":"python","code":"1","timeout_seconds":0}`:                                     {"timeout_seconds 0 is out of range: use 0.1 to 300, or leave it out for 30"},
	`{"language":"python","code":"1","timeout_seconds":-1}`:                                    {"out of range"},
	`{"language":"python","code":"1","timeout_seconds":301}`:                                   {"out of range"},
	`{"language":"python","code":"1","timeout_seconds":1e999}`:                                 {"out of range"},
	`{"language":"python","code":"` + strings.Repeat("a", 1<<20+1) + `"}`:                      {"code has 1048577 bytes: the most is 1048576 (1 MiB)"},
	`{"language":"python","code":"1","stdin":"` + strings.Repeat("a", 10<<20+1) + `"}`:         {"stdin has 10485761 bytes: the most is 10485760 (10 MiB)"},
	`{"language":"python","code":"1","args":["` + strings.Repeat("a", 17<<10) + `"]}`:          {"args[0] has 17408 bytes: the most is 16384 (16 KiB)"},
	`{"language":"python","code":"1","args":["a"` + strings.Repeat(`,"a"`, 256) + `]}`:         {"args has 257 items: the most is 256"},
	`{"language":"python","code":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`: {"code must be a string, got a list"},
	`{"` + strings.Repeat("k", 10_000) + `":1,"language":"python","code":"1"}`:                 {"has no argument", "…"},
	`"{\"language\":\"python\"}"`:                                                              {"must be an object, got a string"},
	`["python","1"]`:                                                                           {"must be an object, got a list"},
	`12`:                                                                                       {"must be an object, got a number"},
	`true`:                                                                                     {"must be an object, got a boolean"},
	`{"language":"python","code":1e5}`:                                                         {"code must be a string, got a number"},
	`{"language":"python","code":"1","stdin":["a"]}`:                                           {"stdin must be a string, got a list"},
	`{"language":"python","code":"1","stdin":"\udc00\ud800"}`:                                  {"half of a surrogate pair"},
	`{"language":"python","code":"1","permissions":{"net":true}}`:                              {"permissions must be a list", "got an object"},
	`{"language":"python","code":"1","permissions":["--allow-net\u0000"]}`:                     {"permissions[0] holds a NUL"},
	`{"language":"python","code":"1","timeout_seconds":[]}`:                                    {"timeout_seconds must be a number, got a list"},
	`{"language":"python","code":"1","x\u0000y":1}`:                                            {`has no argument "x\x00y"`},
	`{"language":"` + strings.Repeat("a", 10<<20) + `","code":"1"}`:                            {"is not known", "…"},
	`{"language":"python","code":"` + strings.Repeat("é", 5<<20) + `"}`:                        {"code has 10485760 bytes: the most is 1048576 (1 MiB)"},
	`{"language":"python","code":"1","packages":["` + strings.Repeat("a", 10<<20) + `"]}`:      {"packages[0] has 10485760 bytes: the most is 16384 (16 KiB)"},
	`{"language":"python","code":"1","x":"` + strings.Repeat("a", 10<<20) + `"}`:               {`has no argument "x"`},
	`{"language":"python","code":"1","timeout_seconds":` + strings.Repeat("9", 5000) + `}`:     {"out of range", "…"},
	`{"language":"python","code":"1","x":` + strings.Repeat(`{"a":`, 900) + "1" + strings.Repeat("}", 900) + `}`: {`has no argument "x"`},
}

// TestWrongArgumentsOfTheOtherTools takes each through the same reader.
func TestWrongArgumentsOfTheOtherTools(t *testing.T) {
	session := dial(t, newServer(says(job.Result{}), nil), nil)
	for _, row := range []struct{ tool, args, want string }{
		{"install_packages", `{}`, "install_packages needs packages"},
		{"install_packages", `{"packages":["six"]}`, "needs language"},
		{"install_packages", `{"language":"python"}`, "install_packages needs packages"},
		{"install_packages", `{"language":"python","packages":"six"}`, "packages must be a list of strings"},
		{"install_packages", `{"language":"python","packages":[]}`, "packages"},
		{"install_packages", `{"language":"python","packages":["a\u0000"]}`, "packages[0] holds a NUL"},
		{"install_packages", `{"language":"python","packages":["\ud800"]}`, "half of a surrogate pair"},
		{"install_packages", `{"language":"python","packages":["` + strings.Repeat("a", 10<<20) + `"]}`, "packages[0] has 10485760 bytes: the most is 16384 (16 KiB)"},
		{"install_packages", `{"language":"python","packages":["six"],"upgrade":true}`, `install_packages has no argument "upgrade"`},
		{"cancel_execution", `{}`, "cancel_execution needs execution_id"},
		{"cancel_execution", `{"execution_id":5}`, "execution_id must be a string, got a number"},
		{"cancel_execution", `{"execution_id":"\u0000"}`, `"\x00"`},
		{"cancel_execution", `{"execution_id":"` + strings.Repeat("a", 10<<20) + `"}`, "…"},
		{"list_runtimes", `{"all":true}`, "list_runtimes takes no arguments"},
		{"list_runtimes", `[]`, "must be an object, got a list"},
	} {
		res, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: row.tool, Arguments: json.RawMessage(row.args)})
		if err != nil {
			t.Errorf("%s %.80s: %v", row.tool, row.args, err)
			continue
		}
		if said := text(t, res); !res.IsError || !strings.Contains(said, row.want) || len(said) > 1000 {
			t.Errorf("%s %.80s gave %.500q, want %q", row.tool, row.args, said, row.want)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	session := dial(t, newServer(scripted{run: func(context.Context, job.Program, func(job.Event)) (job.Result, error) {
		t.Error("the program was run")
		return job.Result{}, nil
	}}, nil), nil)
	for args, wants := range wrongArgs {
		res, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "run_code", Arguments: json.RawMessage(args)})
		if err != nil {
			t.Errorf("%.80s: %v", args, err)
			continue
		}
		for _, want := range wants {
			if !res.IsError || !strings.Contains(text(t, res), want) {
				t.Errorf("%.80s gave %q, want %q", args, text(t, res), want)
			}
		}
		if len(text(t, res)) > 1000 {
			t.Errorf("%.80s gave an error of %d bytes", args, len(text(t, res)))
		}
	}
}

func TestABusySupervisorIsAToolError(t *testing.T) {
	started := make(chan string, 1)
	s := newServer(hangs(started), func(o *Options) {
		limits := testLimits()
		limits.Running, limits.Waiting = 1, 0
		o.Supervisor = supervisor.New(limits, o.Log, o.Supervisor.Toolchains()...)
	})
	session := dial(t, s, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		session.CallTool(ctx, &mcp.CallToolParams{Name: "run_code", Arguments: json.RawMessage(anyRun)})
	}()
	<-started
	if res := call(t, session, "run_code", anyRun); !res.IsError || !strings.Contains(text(t, res), "the program was not run: busy") || !strings.Contains(text(t, res), "try again in") {
		t.Errorf("a busy server said %q", text(t, res))
	}
	cancel()
	await(t, ended, "the first call's end")
}

// TestInstallationsAreAdmitted: they start processes as runs do.
func TestInstallationsAreAdmitted(t *testing.T) {
	const running, waiting, calls = 2, 3, 40
	begin, end := make(chan bool, calls), make(chan bool)
	s := newServer(scripted{install: func(context.Context, []string, func(job.Event)) ([]job.Package, error) {
		begin <- true
		<-end
		return nil, nil
	}}, func(o *Options) {
		limits := testLimits()
		limits.Running, limits.Waiting = running, waiting
		o.Supervisor = supervisor.New(limits, o.Log, o.Supervisor.Toolchains()...)
	})
	session := dial(t, s, nil)
	answers := make(chan *mcp.CallToolResult, calls)
	for range calls {
		go func() {
			answers <- call(t, session, "install_packages", `{"language":"python","packages":["a"]}`)
		}()
	}
	for range calls - running - waiting {
		if res := <-answers; !res.IsError || !strings.Contains(text(t, res), "busy") {
			t.Errorf("one too many said %q", text(t, res))
		}
	}
	for range running {
		<-begin
	}
	if n := len(begin); n > 0 {
		t.Errorf("%d installations more than there are places", n)
	}
	close(end)
	for range running + waiting {
		if res := <-answers; res.IsError {
			t.Errorf("an admitted one said %q", text(t, res))
		}
	}
}

func FuzzArguments(f *testing.F) {
	for args := range wrongArgs {
		if len(args) < 1000 {
			f.Add([]byte(args))
		}
	}
	f.Add([]byte(`{"language":"py","code":"1","timeout_seconds":5,"args":["\ud83d\ude00"]}`))
	f.Add([]byte("{\"language\":\"\xff\"}"))
	s := newServer(says(job.Result{Status: job.Completed}), nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		args, err := decodeArgs[runArgs]("run_code", raw)
		if err == nil {
			_, err = s.program(args)
		}
		if err != nil {
			said := text(t, toolError(err))
			if said == "" || len(said) > 2000 || !utf8.ValidString(said) {
				t.Errorf("%q gave the error %q", raw, said)
			}
			return
		}
		if !utf8.ValidString(args.Code) || strings.ContainsRune(args.Code, 0) || args.TimeoutSeconds != nil && *args.TimeoutSeconds > 300 {
			t.Errorf("%q was taken as %+v", raw, args)
		}
	})
}

func FuzzValue(f *testing.F) {
	f.Add([]byte(`{"a":"\ud800"}`))
	f.Add([]byte(`"\\ud800"`))
	f.Add([]byte("[[[[\xff]]]]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, _ := value(raw)
		if !json.Valid(out) || !utf8.Valid(out) || depth(out) > maxValueDepth {
			t.Errorf("%q became %q", raw, out)
		}
		if _, n := mendSurrogates(out); n > 0 {
			t.Errorf("%q became %q, with half a surrogate pair", raw, out)
		}
	})
}
