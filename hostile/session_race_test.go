//go:build !windows

package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/cache/cachetest"
	"rillbox/cache/egress"
	"rillbox/pyodide"
	"rillbox/supervisor/job"
)

// TestClientsRaceWithTheirSessions: clients make, use, reset and destroy sessions
// all at once, with each other's handles too. Each marks what it keeps; nobody
// ever sees another's mark, and at the end nothing is left.
func TestClientsRaceWithTheirSessions(t *testing.T) {
	needWall(t)
	needProc(t)
	const clients = 4
	lasts := time.Duration(cachetest.Rounds(3, 5, 60)) * time.Second
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	limits := job.DefaultLimits()
	limits.Sessions, limits.AllSessions, limits.Waiting = 4, 14, 200 // two of each client's are its default ones
	h := openHouse(t, limits)
	var mu sync.Mutex
	var handles []string // of all clients, ended ones included
	calls := map[string]int{}
	end := time.Now().Add(lasts)
	var working sync.WaitGroup
	marks := make([]string, clients)
	for i := range marks {
		marks[i] = fmt.Sprintf("mark%d%s", i, newSecret())
	}
	for i := range clients {
		client := h.connect(fmt.Sprint("client", i), nil)
		// Two at a time of each client's, so that it races with itself as well.
		for part := range 2 {
			luck := rand.New(rand.NewPCG(seed, uint64(2*i+part)))
			working.Go(func() {
				own := []string{"default"}
				for time.Now().Before(end) {
					says := speeches[luck.IntN(len(speeches))]
					session := own[luck.IntN(len(own))]
					if luck.IntN(4) == 0 {
						mu.Lock()
						if len(handles) > 0 {
							session = handles[luck.IntN(len(handles))]
						}
						mu.Unlock()
					}
					fill := strings.NewReplacer("%WORD%", marks[i], "%FILE%", "f.txt").Replace
					run := func(code string) (string, map[string]any) {
						return "run_code", map[string]any{"session_id": session, "language": says.language, "code": fill(code)}
					}
					var tool string
					var arguments map[string]any
					switch luck.IntN(14) {
					case 0, 1:
						tool, arguments = "create_session", map[string]any{"language": says.language}
					case 2:
						tool, arguments = "destroy_session", map[string]any{"session_id": session}
					case 3:
						tool, arguments = "reset_session", map[string]any{"session_id": session}
					case 4:
						tool, arguments = run(says.set)
					case 5:
						tool, arguments = run(says.get)
					case 6:
						tool, arguments = run(says.write)
					case 7:
						tool, arguments = run(says.read)
					case 8:
						tool, arguments = run(says.forever)
						arguments["timeout_seconds"] = 0.2
					case 9:
						tool, arguments = "write_file", map[string]any{"session_id": session, "path": "f.txt", "text": marks[i]}
					case 10:
						tool, arguments = "read_file", map[string]any{"session_id": session, "path": "f.txt"}
					case 11:
						tool, arguments = "list_files", map[string]any{"session_id": session}
					case 12:
						tool, arguments = "list_sessions", map[string]any{}
					case 13:
						tool, arguments = "delete_file", map[string]any{"session_id": session, "path": "f.txt"}
					}
					result, err := client.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: tool, Arguments: arguments})
					if err != nil {
						t.Errorf("%s: %v", tool, err)
						return
					}
					said := fmt.Sprint(contentOf(result), result.StructuredContent)
					for j, mark := range marks {
						if j != i && strings.Contains(said, mark) {
							t.Errorf("client %d sees in the answer of %s %v what is client %d's: %.2000s", i, tool, arguments, j, said)
						}
					}
					if strings.Contains(said, "internal error") {
						t.Errorf("%s: %s", tool, said)
					}
					made, _ := result.StructuredContent.(map[string]any)
					mu.Lock()
					calls[fmt.Sprint(tool, " ", result.IsError)]++
					if id, _ := made["session_id"].(string); tool == "create_session" && id != "" {
						own = append(own, id)
						handles = append(handles, id)
					}
					mu.Unlock()
				}
			})
		}
		t.Cleanup(func() { _ = client.Close() })
	}
	working.Wait()
	t.Logf("%d sessions, calls %v", len(handles), calls)
	if len(handles) == 0 {
		t.Error("no session was ever made")
	}
}

// contentOf is the text of an answer's content.
func contentOf(result *mcp.CallToolResult) string {
	var text strings.Builder
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	return text.String()
}

// TestPythonGatewayPathDiesWithItsSession: a session's way to packages can't be
// guessed, and leads nowhere once the session has ended. The control is its use
// by its owner.
func TestPythonGatewayPathDiesWithItsSession(t *testing.T) {
	needWall(t)
	t.Parallel()
	wheels := newIndex(t)
	wheels.put("harmless", zipOf(t, wheelFiles("harmless", "")...))
	wheels.put("denied", zipOf(t, wheelFiles("denied", "")...))
	engine := pythonEngine(t, func(o *pyodide.Options) {
		o.IndexURL, o.Policy = wheels.url(), egress.Policy{Deny: []string{"denied"}}
	})
	house := &rowHouse{sessions: map[string]*rowSession{}}
	t.Cleanup(house.end)
	owner := house.sessionOf(t, "owner", job.Python, engine)
	other := house.sessionOf(t, "other", job.Python, engine)
	run := func(r *rowSession, code string) outcome {
		t.Helper()
		o := runProgram(t.Context(), r, job.Program{Language: job.Python, Code: code}, nil)
		if o.err != nil || o.Status != job.Completed {
			t.Fatal(o.summary())
		}
		return o
	}
	const use = ownGateway + "(await get(%s + 'simple/%s/'))[:3]"
	leaked := fmt.Sprint(string(run(owner, ownGateway+"base").Value))
	for _, row := range []struct {
		who     *rowSession
		path    string
		project string
		want    string
	}{
		{owner, "base", "harmless", `"200"`},
		{owner, "base", "denied", `"403"`},
		{other, "base", "harmless", `"200"`},
		{owner, leaked, "harmless", `"200"`},
		{other, "base[:-2] + '/'", "harmless", `"404"`},
	} {
		if o := run(row.who, fmt.Sprintf(use, row.path, row.project)); string(o.Value) != row.want {
			t.Errorf("%s of %s by %s: %s, want %s", row.project, row.path, row.who.client, o.Value, row.want)
		}
	}
	// A reset session has another path, and a destroyed one has none.
	owner.reset(t)
	if again := string(run(owner, ownGateway+"base").Value); again == leaked {
		t.Error("a reset session has the path of the last")
	}
	for _, end := range []func(){func() {}, func() { owner.supervisor.EndClient(owner.client) }} {
		end()
		if o := run(other, fmt.Sprintf(use, leaked, "harmless")); string(o.Value) != `"404"` {
			t.Errorf("the path of an ended session gives %s", o.Value)
		}
	}
}

// TestASessionsInspectorIsOurs: cells of JavaScript come by Deno's inspector,
// whose port a program with the network granted can find. It tells a stranger
// nothing, and takes none.
func TestASessionsInspectorIsOurs(t *testing.T) {
	needWall(t)
	t.Parallel()
	h := openHouse(t, job.DefaultLimits(), "--allow-net")
	victim := createSession(t, h.polite, "javascript", nil)
	port := string(cell(t, h.polite, victim, "javascript", "process.debugPort").Result)
	// It answers nobody while it is stopped, so that a cell runs meanwhile.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	over := make(chan error, 1)
	go func() {
		_, err := h.polite.CallTool(ctx, &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{
			"session_id": victim, "language": "javascript", "code": "await new Promise((r) => setTimeout(r, 1e6))", "timeout_seconds": 300}})
		over <- err
	}()
	session := createSession(t, h.rude, "javascript", nil)
	for _, at := range []string{port, "${process.debugPort}"} {
		for _, path := range []string{"/", "/json", "/json/list", "/json/version", "/json/protocol", "/json/new", "/json/list?x", "//json/list", "/ws", "/ws/"} {
			a := cell(t, h.rude, session, "javascript", "await (async () => { const r = await fetch(`http://127.0.0.1:"+at+path+"`, { signal: AbortSignal.timeout(10000) }); return [r.status, await r.text()].join(' ') })()")
			if a.Status != "completed" || !strings.HasPrefix(string(a.Result), `"4`) || strings.Contains(string(a.Result), "ws://") {
				t.Errorf("%s%s: %s %+v", at, path, a.Result, a.Error)
			}
		}
		for _, path := range []string{"", "ws/", "ws/${crypto.randomUUID()}", "ws/00000000-0000-0000-0000-000000000000"} {
			a := cell(t, h.rude, session, "javascript", "await new Promise((r) => { const w = new WebSocket(`ws://127.0.0.1:"+at+"/"+path+"`); w.onopen = () => r('open'); w.onerror = () => r('refused'); })")
			if string(a.Result) != `"refused"` {
				t.Errorf("%s/%s: %s %+v", at, path, a.Result, a.Error)
			}
		}
	}
	for _, code := range []string{
		`process.getBuiltinModule("inspector").url()`,
		`process.getBuiltinModule("inspector").open(0)`,
		`process.getBuiltinModule("inspector").close()`,
		`new (process.getBuiltinModule("inspector").Session)().connect()`,
		`new (process.getBuiltinModule("inspector").Session)().connectToMainThread()`,
	} {
		if a := cell(t, h.rude, session, "javascript", code); a.Status == "completed" { // closing it ends the guest's own session
			t.Errorf("%s: %s %s", code, a.Status, a.Result)
		}
	}
	select {
	case err := <-over:
		t.Errorf("the other session's cell ended meanwhile: %v", err)
	default:
		cancel()
		<-over
	}
	cancel()
	for _, s := range []struct {
		client  *mcp.ClientSession
		session string
	}{{h.polite, victim}, {h.rude, session}} {
		if a := cell(t, s.client, s.session, "javascript", "6 * 7"); string(a.Result) != "42" {
			t.Errorf("afterwards: %+v", a)
		}
	}
}
