//go:build !windows

package hostile

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/launcher"
)

// What the tests of sessions over MCP share: calls of the tools, and what is
// said in each language.

// needWall skips where there is no second wall, without which there are no
// sessions; it fails where CI is set.
func needWall(t testing.TB) {
	t.Helper()
	if launcher.Offered().Level < launcher.Landlock {
		lacks(t, "there are no sessions without the second wall, which this machine does not have")
	}
}

// lacks skips a test that the machine has not what is needed for, and fails it
// where CI is set.
func lacks(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// speech is how a language says what the tests of sessions need.
type speech struct {
	language string
	set      string // keeps the word %WORD% in the session's state
	get      string // gives it, or null
	write    string // writes %WORD% to the file %FILE%
	read     string // gives the text of the file %FILE%
	forever  string // computes without end
	add      string // x is one more each time; gives it
}

// speeches has a row for each language that has sessions.
var speeches = []speech{
	{
		language: "javascript",
		set:      `globalThis.word = "%WORD%"; 0`,
		get:      `globalThis.word ?? null`,
		write:    `Deno.writeTextFileSync("%FILE%", "%WORD%")`,
		read:     `Deno.readTextFileSync("%FILE%")`,
		forever:  `for (;;);`,
		add:      `globalThis.x = (globalThis.x ?? 0) + 1`,
	},
	{
		language: "typescript",
		set:      `(globalThis as { word?: string }).word = "%WORD%"; 0`,
		get:      `(globalThis as { word?: string }).word ?? null`,
		write:    `Deno.writeTextFileSync("%FILE%" as string, "%WORD%")`,
		read:     `Deno.readTextFileSync("%FILE%" as string)`,
		forever:  `while (true as boolean);`,
		add:      `(globalThis as { x?: number }).x = ((globalThis as { x?: number }).x ?? 0) + 1`,
	},
	{
		language: "python",
		set:      `word = "%WORD%"; 0`,
		get:      `globals().get("word", 0) or print("none")`,
		write:    `open("%FILE%", "w").write("%WORD%"); None`,
		read:     `open("%FILE%").read()`,
		forever:  "while True: pass",
		add:      "x = globals().get('x', 0) + 1\nx",
	},
}

// speechOf is the row of a language.
func speechOf(t testing.TB, language string) speech {
	t.Helper()
	for _, s := range speeches {
		if s.language == language {
			return s
		}
	}
	t.Fatalf("no speech for %s", language)
	return speech{}
}

// use calls a tool and decodes its structured result; refusal is what it says
// instead.
func use[T any](t testing.TB, client *mcp.ClientSession, tool string, arguments map[string]any) (out T, refusal string) {
	t.Helper()
	result, err := client.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return out, err.Error()
	}
	if result.StructuredContent == nil {
		text, _ := result.Content[0].(*mcp.TextContent)
		return out, text.Text
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", tool, err, raw)
	}
	return out, ""
}

// sessionAnswer is what tools tell of a session.
type sessionAnswer struct {
	SessionID   string `json:"session_id"`
	Language    string `json:"language"`
	Running     bool   `json:"running"`
	MemoryBytes int64  `json:"memory_bytes"`
	Files       int64  `json:"files"`
	FileBytes   int64  `json:"file_bytes"`

	AgeSeconds         float64 `json:"age_seconds"`
	IdleSeconds        float64 `json:"idle_seconds"`
	IdleTimeoutSeconds float64 `json:"idle_timeout_seconds"`
	Packages           []struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"packages"`
}

// createSession makes a session, or ends the test.
func createSession(t testing.TB, client *mcp.ClientSession, language string, more map[string]any) string {
	t.Helper()
	arguments := map[string]any{"language": language}
	maps.Copy(arguments, more)
	made, refusal := use[sessionAnswer](t, client, "create_session", arguments)
	if refusal != "" || made.SessionID == "" {
		t.Fatalf("create_session: %s", refusal)
	}
	return made.SessionID
}

func listSessions(t testing.TB, client *mcp.ClientSession) []sessionAnswer {
	t.Helper()
	list, refusal := use[struct {
		Sessions []sessionAnswer `json:"sessions"`
	}](t, client, "list_sessions", nil)
	if refusal != "" {
		t.Errorf("list_sessions: %s", refusal)
	}
	return list.Sessions
}

// cell runs a cell in a session.
func cell(t testing.TB, client *mcp.ClientSession, session, language, code string) answer {
	t.Helper()
	return call(t, client, map[string]any{"session_id": session, "language": language, "code": code})
}

// fileAnswer is what the tools for files tell, as far as tests look.
type fileAnswer struct {
	Path      string `json:"path"`
	Content   string `json:"content"`
	Encoding  string `json:"encoding"`
	SizeBytes int64  `json:"size_bytes"`
	Deleted   bool   `json:"deleted"`
	Files     []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"files"`
	MaxBytes int64 `json:"max_bytes"`
	MaxFiles int64 `json:"max_files"`
}
