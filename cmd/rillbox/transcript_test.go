//go:build !windows

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/tools/txtar"

	"rillbox/cache/cachetest"
	"rillbox/supervisor/job"
)

// TestTranscripts plays conversations with `rillbox serve`, each in one session, in the
// languages that its first line names. A file of testdata/transcripts has calls and what
// comes of them, by turns. A call is a tool with the words of its arguments, the session's
// left out; what is below it is the code of run_code and the text of write_file. Of an
// answer there is each line that must be in it, in their order; `(error)` says that it is
// one, and `(image/png)` that such a picture comes with it.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	dir, err := cachetest.Dir()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(archive.Comment), "\n")
			needLanguages(t, strings.Fields(first)...)
			session := connect(t, append(os.Environ(), "RILLBOX_CACHE_DIR="+dir, "XDG_CONFIG_HOME="+t.TempDir(), "RILLBOX_OFFLINE=true"))
			for i := 0; i+1 < len(archive.Files); i += 2 {
				call, answer := archive.Files[i], archive.Files[i+1]
				if answer.Name != "answer" {
					t.Fatalf("%q stands where an answer must", answer.Name)
				}
				playStep(t, session, call.Name, string(call.Data), string(answer.Data))
			}
		})
	}
}

// needLanguages fetches what languages are made of into the tests' cache. Without a network
// the test is skipped, unless it is there.
func needLanguages(t *testing.T, names ...string) {
	needRuntimes(t)
	a := &app{config: newConfig(), log: cachetest.Logger(t)}
	var err error
	if a.config.CacheDir, err = cachetest.Dir(); err != nil {
		t.Fatal(err)
	}
	engines, err := a.open()
	if err != nil {
		t.Fatal(err)
	}
	defer closeEngines(engines)
	var wanted []job.Language
	for _, name := range names {
		l, err := languageNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		wanted = append(wanted, l.Name)
	}
	for _, toolchain := range engines.Toolchains() {
		cachetest.NeedNetwork(t, toolchain.Prepare(t.Context(), func(job.Event) {}, wanted...))
	}
}

// connect starts a server, which ends with the test.
func connect(t *testing.T, env []string) *mcp.ClientSession {
	cmd := exec.Command("rillbox", "serve")
	cmd.Env = env
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		if t.Failed() {
			t.Logf("the server's log:\n%s", stderr)
		}
	})
	return session
}

// playStep makes one call, and compares what comes of it.
func playStep(t *testing.T, session *mcp.ClientSession, call, text, want string) {
	t.Helper()
	words := strings.Fields(call)
	arguments := map[string]any{"session_id": "transcript"}
	for _, word := range words[1:] {
		name, given, _ := strings.Cut(word, "=")
		var value any
		if json.Unmarshal([]byte(given), &value) != nil {
			value = given
		}
		arguments[name] = value
	}
	switch words[0] {
	case "run_code":
		arguments["code"] = text
	case "write_file":
		arguments["text"] = text
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: words[0], Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	said := strings.Builder{}
	if result.IsError {
		said.WriteString("(error)\n")
	}
	for _, content := range result.Content {
		switch c := content.(type) {
		case *mcp.TextContent:
			said.WriteString(c.Text + "\n")
		case *mcp.ImageContent:
			fmt.Fprintf(&said, "(%s)\n", c.MIMEType)
		}
	}
	t.Logf("%s\n%s%s", call, text, said.String())
	left := said.String()
	for line := range strings.Lines(want) {
		line = strings.TrimSuffix(line, "\n")
		_, after, found := strings.Cut(left, line)
		if !found {
			t.Fatalf("%s\n%s\nanswers\n%s\nwithout %q, or not in this order", call, text, said.String(), line)
		}
		left = after
	}
	if result.IsError != strings.HasPrefix(want, "(error)\n") {
		t.Errorf("%s\n%s\nanswers\n%s\nwhich the transcript has otherwise (error: %v)", call, text, said.String(), result.IsError)
	}
}
