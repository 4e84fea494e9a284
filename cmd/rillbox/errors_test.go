//go:build !windows

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestErrorsSayWhatToDo runs each row of docs/errors.md.
func TestErrorsSayWhatToDo(t *testing.T) {
	needRuntimes(t)
	table, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| (\\w+) \\| `(.+?)` \\| `(.+?)` \\| (.+) \\|$").FindAllStringSubmatch(string(table), -1)
	if want := strings.Count(string(table), "\n| ") - 1; len(rows) != want {
		t.Fatalf("%d rows can be read of %d", len(rows), want)
	}
	env := append(os.Environ(), scriptEnvironment(t, t.TempDir())...)
	ask := serveLines(t, env)
	for _, row := range rows {
		of, what, want := row[1], row[2], row[3]
		t.Run(of+" "+what, func(t *testing.T) {
			var said string
			switch of {
			case "terminal":
				cmd := exec.CommandContext(t.Context(), "sh", "-c", what)
				cmd.Env = env
				out, err := cmd.CombinedOutput()
				if err == nil {
					t.Error("it succeeds")
				}
				said = string(out)
			case "message":
				said = ask(what)
			default:
				code, err := json.Marshal(map[string]string{"language": of, "code": what})
				if err != nil {
					t.Fatal(err)
				}
				said = ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":%s}}`, code))
				var answer struct {
					Result struct {
						IsError bool
						Content []struct{ Text string }
					}
				}
				if err := json.Unmarshal([]byte(said), &answer); err != nil || !answer.Result.IsError {
					t.Fatalf("it is no error (%v): %s", err, said)
				}
				said = answer.Result.Content[0].Text
			}
			if !strings.Contains(said, want) {
				t.Errorf("it says\n%s\nwithout %q", said, want)
			}
			for _, misleading := range []string{"run again with the", "/rillbox/deno", ".rillbox/", "Go value", "unmarshal", "stack trace", "0.0 of"} {
				if strings.Contains(said, misleading) {
					t.Errorf("it says %q, in\n%s", misleading, said)
				}
			}
			if strings.Contains(said, "=/data/in.csv.") {
				t.Errorf("a flag to give ends with a full stop:\n%s", said)
			}
			if strings.Contains(said, "The program is TypeScript") && !strings.Contains(want, "TypeScript") {
				t.Errorf("it takes JavaScript for TypeScript:\n%s", said)
			}
			if strings.Contains(said, "not in WebAssembly's") && !strings.Contains(want, "WebAssembly") {
				t.Errorf("it says that a module is not there which is:\n%s", said)
			}
		})
	}
}

// serveLines starts a server, and gives what it answers to one line after the other.
func serveLines(t *testing.T, env []string, change ...func(*exec.Cmd)) (ask func(line string) string) {
	t.Helper()
	cmd := exec.Command("rillbox", "serve", "--quiet")
	cmd.Env = env
	for _, f := range change {
		f(cmd)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	answers := bufio.NewReader(out)
	ask = func(line string) string {
		if _, err := fmt.Fprintln(in, line); err != nil {
			t.Fatal(err)
		}
		for {
			answer, err := answers.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(answer, `"method":`) {
				return answer
			}
		}
	}
	ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if _, err := fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		t.Fatal(err)
	}
	return ask
}
