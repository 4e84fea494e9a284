//go:build !windows

package hostile

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// handleTools are the tools that take a session's handle, with what else each
// needs.
var handleTools = map[string]map[string]any{
	"run_code":         {"code": "1", "language": ""},
	"install_packages": {"packages": []string{"x"}, "language": ""},
	"reset_session":    {},
	"destroy_session":  {},
	"read_file":        {"path": "secret.txt"},
	"write_file":       {"path": "secret.txt", "text": "forged"},
	"list_files":       {},
	"delete_file":      {"path": "secret.txt"},
}

// TestAnothersSessionIsNoSession: whoever has another client's handle, or
// guesses, is told the same as of a handle that never was, and changes nothing.
func TestAnothersSessionIsNoSession(t *testing.T) {
	needWall(t)
	t.Parallel()
	h := openHouse(t, job.DefaultLimits())
	for _, says := range speeches {
		t.Run(says.language, func(t *testing.T) {
			secret := newSecret()
			fill := strings.NewReplacer("%WORD%", secret, "%FILE%", "secret.txt").Replace
			session := createSession(t, h.polite, says.language, nil)
			for _, code := range []string{says.set, says.write} {
				if a := cell(t, h.polite, session, says.language, fill(code)); a.Status != "completed" {
					t.Fatalf("before: %+v", a)
				}
			}
			never := strings.ToLower(supervisor.NewID())
			// All answers are compared with those for a handle that never was.
			for _, handle := range []string{session, session + "\x00", " " + session, "../" + session, session + "/files/secret.txt"} {
				for tool, needs := range handleTools {
					arguments := maps.Clone(needs)
					if _, has := arguments["language"]; has {
						arguments["language"] = says.language
					}
					ask := func(handle string) string {
						arguments["session_id"] = handle
						_, refusal := use[map[string]any](t, h.rude, tool, arguments)
						return strings.ReplaceAll(refusal, fmt.Sprintf("%.80q", handle), "HANDLE")
					}
					got, want := ask(handle), ask(never)
					if got != want || want == "" || strings.Contains(got, secret) {
						t.Errorf("%s of %q says\n%q, and of a handle that never was\n%q", tool, handle, got, want)
					}
				}
				uri := "rillbox://sessions/" + url.PathEscape(handle) + "/files/secret.txt"
				if res, err := h.rude.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
					t.Errorf("resource %s was read: %+v", uri, res)
				} else if strings.Contains(err.Error(), secret) {
					t.Errorf("resource %s: %v", uri, err)
				}
				completed, err := h.rude.Complete(t.Context(), &mcp.CompleteParams{
					Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: "rillbox://sessions/{session_id}/files/{+path}"},
					Argument: mcp.CompleteParamsArgument{Name: "path", Value: ""},
					Context:  &mcp.CompleteContext{Arguments: map[string]string{"session_id": handle}},
				})
				if err != nil || len(completed.Completion.Values) > 0 {
					t.Errorf("paths of %q are completed: %+v %v", handle, completed, err)
				}
			}
			// What looks like a name of its own choice is a session of its own.
			for _, handle := range []string{strings.ToUpper(session), session[:len(session)-1]} {
				if a := cell(t, h.rude, handle, says.language, says.get); a.Status != "completed" || strings.Contains(string(a.Result)+a.Stdout, secret) {
					t.Errorf("%q has %+v", handle, a)
				}
				if got, refusal := use[fileAnswer](t, h.rude, "read_file", map[string]any{"session_id": handle, "path": "secret.txt"}); refusal == "" {
					t.Errorf("%q has the file: %+v", handle, got)
				}
				if _, refusal := use[map[string]any](t, h.rude, "destroy_session", map[string]any{"session_id": handle}); refusal != "" {
					t.Error(refusal)
				}
			}
			seen := fmt.Sprint(listSessions(t, h.rude), resourcesOf(t, h.rude), handlesOf(t, h.rude))
			if strings.Contains(seen, session) || strings.Contains(seen, "secret.txt") {
				t.Errorf("the other client sees %s", seen)
			}
			// It does show to its own client.
			own := fmt.Sprint(listSessions(t, h.polite), resourcesOf(t, h.polite), handlesOf(t, h.polite))
			if strings.Count(own, session) < 3 || !strings.Contains(own, "secret.txt") {
				t.Errorf("its own client sees %s", own)
			}
			if a := cell(t, h.polite, session, says.language, says.get); string(a.Result) != fmt.Sprintf("%q", secret) {
				t.Errorf("afterwards the state is %+v", a)
			}
			if a := cell(t, h.polite, session, says.language, fill(says.read)); string(a.Result) != fmt.Sprintf("%q", secret) {
				t.Errorf("afterwards the file is %+v", a)
			}
		})
	}
}

// resourcesOf are the URIs of a client's resources.
func resourcesOf(t testing.TB, client *mcp.ClientSession) (uris []string) {
	t.Helper()
	list, err := client.ListResources(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, r := range list.Resources {
		uris = append(uris, r.URI)
	}
	return uris
}

// handlesOf are the handles that a client's own are completed to.
func handlesOf(t testing.TB, client *mcp.ClientSession) []string {
	t.Helper()
	completed, err := client.Complete(context.WithoutCancel(t.Context()), &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: "rillbox://sessions/{session_id}/files/{+path}"},
		Argument: mcp.CompleteParamsArgument{Name: "session_id", Value: ""},
	})
	if err != nil {
		t.Error(err)
		return nil
	}
	return completed.Completion.Values
}

// TestAHandleEndsWithItsSession: destroyed, expired, or with its client gone, a
// handle is none for anybody, and what was in its workspace is nowhere.
func TestAHandleEndsWithItsSession(t *testing.T) {
	needWall(t)
	t.Parallel()
	h := openHouse(t, job.DefaultLimits())
	for _, says := range speeches {
		for _, end := range []struct {
			name string
			idle any
			end  func(t *testing.T, client *mcp.ClientSession, session string)
		}{
			{"destroyed", 600, func(t *testing.T, client *mcp.ClientSession, session string) {
				if _, refusal := use[fileAnswer](t, client, "destroy_session", map[string]any{"session_id": session}); refusal != "" {
					t.Error(refusal)
				}
			}},
			{"expired", 1, func(t *testing.T, client *mcp.ClientSession, session string) {
				allGone(t, "sessions", func() []sessionAnswer { return listSessions(t, client) })
			}},
			{"its client gone", 600, func(t *testing.T, client *mcp.ClientSession, _ string) {
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			}},
		} {
			t.Run(says.language+", "+end.name, func(t *testing.T) {
				secret := newSecret()
				fill := strings.NewReplacer("%WORD%", secret, "%FILE%", "secret.txt").Replace
				client := h.connect(end.name, nil)
				session := createSession(t, client, says.language, map[string]any{"idle_timeout_seconds": end.idle})
				cell(t, client, session, says.language, fill(says.write))
				end.end(t, client, session)
				askers := []*mcp.ClientSession{h.polite}
				if end.name != "its client gone" {
					askers = append(askers, client)
				}
				for _, asker := range askers {
					for tool, needs := range handleTools {
						arguments := maps.Clone(needs)
						arguments["session_id"] = session
						if _, has := arguments["language"]; has {
							arguments["language"] = says.language
						}
						if out, refusal := use[map[string]any](t, asker, tool, arguments); !strings.Contains(refusal, "there is no session") {
							t.Errorf("%s: %v %q", tool, out, refusal)
						}
					}
					if _, err := asker.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "rillbox://sessions/" + session + "/files/secret.txt"}); err == nil {
						t.Error("its file was read as a resource")
					}
				}
				next := createSession(t, h.polite, says.language, nil)
				if a := cell(t, h.polite, next, says.language, fill(says.read)); a.Status == "completed" || strings.Contains(fmt.Sprint(a), secret) {
					t.Errorf("the next session has its file: %+v", a)
				}
				if a := cell(t, h.polite, next, says.language, says.get); strings.Contains(fmt.Sprint(a), secret) {
					t.Errorf("the next session has its state: %+v", a)
				}
				use[fileAnswer](t, h.polite, "destroy_session", map[string]any{"session_id": next})
			})
		}
	}
}

// TestAnothersCellIsNotCancelled: who knows the ID of another client's cell can
// do nothing with it.
func TestAnothersCellIsNotCancelled(t *testing.T) {
	needWall(t)
	t.Parallel()
	h := openHouse(t, job.DefaultLimits())
	started := make(chan string, 16)
	owner := h.connect("owner", &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
		if m := startedExecution.FindStringSubmatch(n.Params.Message); m != nil {
			started <- m[1]
		}
	}})
	for _, says := range speeches {
		t.Run(says.language, func(t *testing.T) {
			session := createSession(t, owner, says.language, nil)
			begin := func() (id string, done <-chan answer) {
				params := &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"session_id": session, "language": says.language, "code": says.forever, "timeout_seconds": 20}}
				params.SetProgressToken(says.language)
				ended := make(chan answer, 1)
				go func() {
					result, err := owner.CallTool(context.WithoutCancel(t.Context()), params)
					a := answer{}
					if err == nil {
						a, err = decodeAnswer(result)
					}
					if err != nil {
						t.Error(err)
					}
					ended <- a
				}()
				return <-started, ended
			}
			id, done := begin()
			for _, tool := range []struct{ name, argument, value string }{
				{"cancel_execution", "execution_id", id},
				{"cancel_execution", "execution_id", session},
				{"reset_session", "session_id", session},
				{"reset_session", "session_id", id},
				{"destroy_session", "session_id", session},
			} {
				if _, refusal := use[map[string]any](t, h.rude, tool.name, map[string]any{tool.argument: tool.value}); refusal == "" {
					t.Errorf("another client's %s of %s was taken", tool.name, tool.value)
				}
			}
			select {
			case a := <-done:
				t.Errorf("the cell ended: %+v", a)
			default:
			}
			// Its own client can.
			if _, refusal := use[map[string]any](t, owner, "cancel_execution", map[string]any{"execution_id": id}); refusal != "" {
				t.Error(refusal)
			}
			if a := <-done; a.Status != "cancelled" || a.State != "kept" && a.State != "lost" {
				t.Errorf("the cell ended as %+v", a)
			}
		})
	}
}

// TestOnlyItsClientHearsOfAnExpiredSession: when a session ends for its idle time,
// its client is told that the list of its files has changed, and nobody else.
func TestOnlyItsClientHearsOfAnExpiredSession(t *testing.T) {
	needWall(t)
	t.Parallel()
	h := openHouse(t, job.DefaultLimits())
	listen := func(name string) (*mcp.ClientSession, chan struct{}) {
		told := make(chan struct{}, 100)
		return h.connect(name, &mcp.ClientOptions{
			ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { told <- struct{}{} },
		}), told
	}
	owner, told := listen("owner")
	other, toldOther := listen("other")
	own := createSession(t, other, "javascript", nil)
	await := func(told chan struct{}, what string) {
		t.Helper()
		select {
		case <-told:
		case <-time.After(stays):
			t.Fatalf("nothing was told of %s", what)
		}
	}
	await(toldOther, "a session that was made")
	session := createSession(t, owner, "javascript", map[string]any{"idle_timeout_seconds": 2})
	await(told, "a session that was made")
	await(told, "a session that expired")
	if list := listSessions(t, owner); len(list) > 0 {
		t.Errorf("the session %s is still there: %+v", session, list)
	}
	// What else there was to tell has come before this.
	if _, refusal := use[fileAnswer](t, other, "write_file", map[string]any{"session_id": own, "path": "x", "text": "x"}); refusal != "" {
		t.Fatal(refusal)
	}
	await(toldOther, "a file")
	if len(toldOther) > 0 {
		t.Error("another client was told, too")
	}
}
