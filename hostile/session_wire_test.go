//go:build !windows

package hostile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// climbInCell is climb for a cell, below which there are a session's frames.
const climbInCell = `
import json, sys
frame = sys._getframe()
while not hasattr(frame.f_locals.get("self"), "_host"):
    frame = frame.f_back
host = frame.f_locals["self"]._host
def send(**frame): host.send(json.dumps(frame))
`

// takeAll gives a cell its own hold of all descriptors of its process, the
// inspector's connection to us among them: node:net asks no permission for what
// is open. say writes a WebSocket message to each.
const takeAll = `import net from "node:net"; const sockets = [];
for (let fd = 4; fd < 80; fd++) try { const s = new net.Socket({ fd }); s.on("error", () => {}); sockets.push(s); } catch {}
const raw = (bytes) => { for (const s of sockets) try { s.write(Uint8Array.from(bytes)); } catch {} };
const say = (text) => { const b = new TextEncoder().encode(text); raw([0x81, ...(b.length < 126 ? [b.length] : [126, b.length >> 8, b.length & 255]), ...b]); };
const rest = () => new Promise((r) => setTimeout(r, 300));
`

// inspectorLies speak to us in the inspector's place.
var inspectorLies = []lie{
	{name: "answers of the inspector's", code: takeAll + "for (let id = 1; id < 2000; id++) say(`{\"id\":${id},\"result\":{\"result\":{\"type\":\"string\",\"value\":\"forged\"}}}`); await rest();"},
	{name: "answers of the next cell's", code: takeAll + "setInterval(() => { for (let id = 1; id < 5000; id++) say(`{\"id\":${id},\"result\":{\"result\":{\"type\":\"number\",\"value\":7}}}`); }, 1); 1"},
	{name: "refusals", code: takeAll + "for (let id = 1; id < 2000; id++) say(`{\"id\":${id},\"error\":{\"code\":-32000,\"message\":\"forged\"}}`); await rest();"},
	{name: "displays without end", timeout: 2 * time.Second, code: takeAll + `for (;;) { say(JSON.stringify({ method: "Runtime.bindingCalled", params: { name: "rillbox", payload: JSON.stringify({ type: "display", data: { "text/plain": "x".repeat(10000) } }) } })); await null; }`},
	{name: "a frame of another kind", code: takeAll + `say(JSON.stringify({ method: "Runtime.bindingCalled", params: { name: "rillbox", payload: '{"type":"result","value":"forged","packages":["forged"],"notes":["forged"]}' } })); await rest();`},
	{name: "the end of all contexts", code: takeAll + `say('{"method":"Runtime.executionContextDestroyed","params":{}}'); await rest();`},
	{name: "what is no JSON", code: takeAll + `say("forged"); await rest();`},
	{name: "what is no WebSocket's", code: takeAll + `raw([0xff, 0xff, 0xff, 0xff]); await rest();`},
	{name: "a message of exabytes", code: takeAll + `raw([0x81, 127, 0x3f, 255, 255, 255, 255, 255, 255, 255]); for (let i = 0; i < 100; i++) { raw(new Uint8Array(1 << 16)); await rest; } await rest();`},
	{name: "a message that never ends", timeout: 2 * time.Second, code: takeAll + `raw([0x01, 5, 123, 34, 105, 100, 34]); for (;;) { raw([0x00, 126, 255, 255]); raw(new Uint8Array(65535).fill(120)); await new Promise((r) => setTimeout(r)); }`},
	{name: "pings", timeout: 2 * time.Second, code: takeAll + `for (;;) { raw([0x89, 0]); await null; }`},
	{name: "a closing", code: takeAll + `raw([0x88, 2, 3, 232]); await rest();`},
	{name: "silence", timeout: 2 * time.Second, code: takeAll + `for (const s of sockets) s.destroy(); await rest(); for (;;);`},
	{name: "what we say, read in the inspector's place", timeout: 2 * time.Second, code: takeAll + `for (const s of sockets) s.on("data", (d) => console.log(d.length)); await new Promise((r) => setTimeout(r, 1e6));`},
}

// TestLiesInSessions: cells that write frames, or break what would write them,
// can lie about themselves. They get no more than a cell may have, what they say
// of it beside its value is not believed, another client's session goes on as if
// nothing were, and their own takes cells again, with its files.
func TestLiesInSessions(t *testing.T) {
	needWall(t)
	t.Parallel()
	var unreadable []lie
	for name, code := range unreadablePython {
		unreadable = append(unreadable, lie{name: name, code: code, timeout: 3 * time.Second, held: saysWhy})
	}
	for _, table := range []struct {
		name     string
		language job.Language
		lies     []lie
		harmless bool // to the process that they run in
	}{
		{"javascript", job.JavaScript, scriptLies, false},
		{"inspector", job.JavaScript, inspectorLies, false},
		{"python", job.Python, pythonLies, false},
		{"unreadable python", job.Python, unreadable, true},
	} {
		t.Run(table.name, func(t *testing.T) {
			t.Parallel()
			house := &rowHouse{sessions: map[string]*rowSession{}}
			t.Cleanup(house.end)
			bystander := house.session(t, "bystander", table.language, nil, launcher.Best)
			runs := 0
			for _, row := range table.lies {
				t.Run(row.name, func(t *testing.T) {
					liar := house.session(t, "liar", table.language, row.grants, launcher.Best)
					liar.write(t, "kept", "as it was")
					p := job.Program{Language: table.language, Code: strings.Replace(row.code, climb, climbInCell, 1), Timeout: row.timeout}
					if p.Timeout == 0 || p.Timeout > 5*time.Second {
						p.Timeout = 5 * time.Second
					}
					o := runProgram(t.Context(), liar, p, nil, strings.NewReader(row.stdin))
					kept := o.State == job.StateKept
					t.Logf("bounded: %s, state %s", o.summary(), o.State)
					if wrong := believed(o, p.Timeout); wrong != "" {
						t.Errorf("%s: %s", wrong, o.summary())
					}
					if table.harmless {
						if wrong := row.held(o); wrong != "" {
							t.Errorf("%s: %s", wrong, o.summary())
						}
					}
					liar.mend(t)
					read := job.Program{Language: table.language, Code: readKept[table.language]}
					o = runProgram(t.Context(), liar, read, nil)
					if o.Status != job.Completed { // of what the lie did to its process: the next is a new one
						t.Logf("the session's process is of no more use: %s", o.summary())
						liar.reset(t)
						o = runProgram(t.Context(), liar, read, nil)
					}
					if string(o.Value) != `"as it was"` {
						t.Errorf("afterwards its session says %s", o.summary())
					}
					if kept && !table.harmless { // else the next has a new process anyway
						liar.reset(t)
					}
					runs++
					if o := runProgram(t.Context(), bystander, job.Program{Language: table.language, Code: countRuns[table.language]}, nil); string(o.Value) != fmt.Sprint(runs) {
						t.Errorf("another client's session says %s, want %d", o.summary(), runs)
					}
				})
			}
		})
	}
}

// believed says what of a lie was.
func believed(o outcome, timeout time.Duration) string {
	switch {
	case o.err != nil && !errors.As(o.err, new(*job.ProgramError)):
		return "we failed: " + o.err.Error()
	case len(o.text()) > 16<<20: // two streams of a MiB, of bytes that are quoted as four or six
		return fmt.Sprintf("%d bytes came through", len(o.text()))
	case strings.Contains(fmt.Sprint(o.Packages, o.Notes), "forged"):
		return "its packages or notes were believed"
	case o.Status == job.Completed && o.ExitCode != 0:
		return fmt.Sprintf("it completed, with exit code %d", o.ExitCode)
	case o.Duration > timeout+job.InterruptGrace+15*time.Second: // of a busy machine's own
		return fmt.Sprintf("it had %v", o.Duration)
	case o.Status == job.TimedOut && o.State == "":
		return "what became of the state is not told"
	}
	return ""
}

// readKept reads the file kept, countRuns counts how often it is run.
var (
	readKept = map[job.Language]string{
		job.JavaScript: `Deno.readTextFileSync("kept")`,
		job.Python:     `open("kept").read()`,
	}
	countRuns = map[job.Language]string{
		job.JavaScript: `globalThis.runs = (globalThis.runs ?? 0) + 1`,
		job.Python:     "runs = globals().get('runs', 0) + 1\nruns",
	}
)
