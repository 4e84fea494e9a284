//go:build !windows

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
	"rillbox/workspace"
)

// forgeries are names that would be more than names in a text.
var forgeries = []string{
	"a\n\nstdout:\nFORGED", "a\r\nstdout:\r\nFORGED", "a\u2028FORGED", "a\u2029FORGED", "a\u0085FORGED", "a\vFORGED", // lines
	"\x1b[2J\x1b]0;FORGED\a", "\x1b]52;c;AAAA\a", "\u009b2J", "\u009d0;t\u009c", "\x7f\b", // commands to terminals
	"a\u202egpj.exe", "\u2066a\u2069", "\u200e\u200f\u061c", // text turned round
	"a\u200bb\ufeff\u00ad", "\U000e0046\U000e004f", "a\U000e0101", // text that is not seen
	strings.Repeat("long", 60),
}

// unforged checks a text, or a name in what a client lists.
func unforged(t *testing.T, what, text string) {
	t.Helper()
	if strings.Contains(text, "\nFORGED") {
		t.Errorf("%s has a line that is not ours:\n%q", what, text)
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)) || r >= 0xe0100 && r <= 0xe01ef {
			t.Errorf("%s holds %U:\n%q", what, r, text)
			return
		}
	}
}

func TestForgedNamesInAResult(t *testing.T) {
	for _, name := range forgeries {
		var run func(p job.Program) (job.Result, error)
		session := dial(t, newServer(scripted{run: func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
			return run(p)
		}}, nil), nil)
		run = func(p job.Program) (job.Result, error) {
			return job.Result{
				Status:   job.Failed,
				Error:    &job.GuestError{Name: name, Message: "no", Traceback: "at line 1\n" + name + ": no\n"},
				Packages: []job.Package{{Name: name, Version: name, Source: name}},
				Notes:    []string{"nothing was installed for " + name},
				Displays: []job.Display{{name: "!"}, {"image/" + name: "AAAA"}, {"text/" + name: "x"}},
			}, os.WriteFile(filepath.Join(p.Workspace, name), []byte("1"), 0o600)
		}
		res := call(t, session, "run_code", `{"language":"python","code":"1","files":{}}`)
		unforged(t, fmt.Sprintf("the result with %q", name), text(t, res))
		out := structured[runOutput](t, res)
		if len(out.Files) != 2 || out.Files[0].Path != name && out.Files[1].Path != name ||
			out.Packages[0].Name != name || out.Error.Name != name || !strings.HasSuffix(out.Notes[0], name) {
			t.Errorf("the structured result does not hold the very name %q", name)
		}
		run = func(job.Program) (job.Result, error) {
			return job.Result{}, errors.New("the registry says " + strings.ReplaceAll(name, "\n", ""))
		}
		res = call(t, session, "run_code", anyRun)
		unforged(t, fmt.Sprintf("the error with %q", name), text(t, res))
	}
}

func TestForgedNamesOfFiles(t *testing.T) {
	session, w := openFiles(t, workspace.Options{})
	for _, name := range forgeries {
		w.guestWrites(first, name, []byte("1"))
		args, err := json.Marshal(map[string]string{"path": name, "session_id": first})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range []string{"read_file", "write_file", "list_files", "delete_file"} {
			args := string(args)
			switch tool {
			case "write_file":
				args = strings.TrimSuffix(args, "}") + `,"text":"1"}`
			case "list_files":
				args = `{}`
			}
			res := call(t, session, tool, args)
			if res.IsError {
				t.Errorf("%s of %q: %s", tool, name, text(t, res))
			}
			unforged(t, tool, text(t, res))
		}
		unforged(t, "the error for a missing file", text(t, call(t, session, "read_file", string(args))))
		w.guestWrites(first, name, []byte("1"))
	}
	list, err := session.ListResources(context.Background(), nil)
	if err != nil || len(list.Resources) != len(forgeries) {
		t.Fatalf("got %d resources, %v", len(list.Resources), err)
	}
	for _, r := range list.Resources {
		unforged(t, "a resource", r.Name+r.Title+r.Description+r.URI)
		if _, name, _ := parseFileURI(r.URI); !strings.Contains(strings.Join(forgeries, "|"), name) {
			t.Errorf("%s does not lead to the file", r.URI)
		}
	}
	var files []workspace.File
	for _, name := range forgeries {
		files = append(files, workspace.File{Name: name})
	}
	for _, content := range linksTo(first, files) {
		link := content.(*mcp.ResourceLink)
		unforged(t, "a link", link.Name+link.Title+link.Description+link.URI)
	}
	completed, err := session.Complete(context.Background(), &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: filesTemplate},
		Argument: mcp.CompleteParamsArgument{Name: "path"},
		Context:  &mcp.CompleteContext{Arguments: map[string]string{"session_id": first}},
	})
	if err != nil || len(completed.Completion.Values) != 1 {
		t.Fatalf("got %+v, %v, want the only name that can be shown", completed, err)
	}
	for _, value := range completed.Completion.Values {
		unforged(t, "a completion", value)
	}
}

func TestForgedStages(t *testing.T) {
	for _, name := range forgeries {
		got := stageText(job.Event{Kind: job.Stage, Text: "fetching " + name, Done: 1e6})
		unforged(t, "a stage", got)
		if strings.Contains(got, "\n") || len(got) > 2*maxStage {
			t.Errorf("the stage for %q is %q", name, got)
		}
	}
}
