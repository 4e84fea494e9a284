//go:build !windows

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rillbox/deno/permission"
)

func TestVariablesAreRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets")
	text := "\uFEFF# a comment\n\nA = one \r\nB=\"two words\"\nC='it''s'\nD=x=y, z#\nNAMED\nE=\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NAMED", "ours")
	c, err := load(t, "env_file = "+fmt.Sprintf("%q", file), []string{"RILLBOX_ENV=UNSET,A=1,F=a=b"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"A": "1", "B": "two words", "C": "it''s", "D": "x=y, z#", "NAMED": "ours", "E": "", "F": "a=b"}
	if got := permission.Variables(c.Engine.Env); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
	c, err = load(t, `env = ["A=x,y", "TZ"]`, nil)
	if want := []string{"A=x,y", "TZ"}; err != nil || !slices.Equal(c.Engine.Env, want) {
		t.Errorf("%q, %v; want %q", c.Engine.Env, err, want)
	}
}

// A value of a variable may be a secret: programs get it, and nothing shows it.
func TestValuesOfVariablesAreNotShown(t *testing.T) {
	needRuntimes(t)
	const secret = "s3cret"
	work := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(work, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("secrets", "FROM_FILE="+secret+"-2\n")
	env := append(os.Environ(), scriptEnvironment(t, work)...)
	env = append(env, "DENO_PERMISSION_ARGS=--allow-env=GIVEN,FROM_FILE")
	given := slices.Concat(env, []string{"RILLBOX_ENV=GIVEN=" + secret + "-1", "RILLBOX_ENV_FILE=" + file})
	rillbox := func(env []string, args ...string) (out string, status int) {
		cmd := exec.CommandContext(t.Context(), "rillbox", args...)
		cmd.Env = env
		text, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if strings.Contains(string(text), secret) {
			t.Errorf("rillbox %q shows a value:\n%s", args, text)
		}
		return string(text), cmd.ProcessState.ExitCode()
	}
	for _, args := range [][]string{
		{"-l", "py", "-c", `import os; print([os.environ[n][-1] + str(len(os.environ[n])) for n in ("GIVEN", "FROM_FILE")] == ["18", "28"])`},
		{"-l", "js", "-c", `console.log(["GIVEN", "FROM_FILE"].map((n) => Deno.env.get(n)).map((v) => v.at(-1) + v.length).join() === "18,28")`},
	} {
		out, status := rillbox(given, append([]string{"run", "--log-level=debug"}, args...)...)
		if status != 0 || !strings.Contains(strings.ToLower(out), "true") {
			t.Errorf("%q: %d\n%s", args, status, out)
		}
	}
	if out, status := rillbox(given, "config"); status != 0 || !strings.Contains(out, "not shown, as they have values of their own: GIVEN") {
		t.Errorf("config: %d\n%s", status, out)
	}
	rillbox(given, "config", "--help")
	rillbox(given, "doctor", "--json")
	rillbox(given, "run", "--log-level=debug", "--json", "-l", "py", "-c", "import nothing_of_that_name, os; raise OSError")
	for name, args := range map[string][]string{
		"a comma":          {"--env=GIVEN=a," + secret},
		"no name":          {"--env=a b=" + secret},
		"Deno's":           {"--env=DENO_X=" + secret},
		"an unknown flag":  {"--envs=GIVEN=" + secret},
		"no list":          {"--config=" + write("a.toml", `env = "GIVEN=`+secret+`"`)},
		"a list of others": {"--config=" + write("b.toml", `env = ["GIVEN=`+secret+`", 1]`)},
		"no name in TOML":  {"--config=" + write("c.toml", `env = ["a b=`+secret+`"]`)},
		"no TOML":          {"--config=" + write("d.toml", "env = [\"GIVEN="+secret+"\"\nx")},
		"no line":          {"--env-file=" + write("e.env", "GIVEN=1\n"+secret+"-has no name\n")},
		"a missing file":   {"--env=GIVEN=" + secret, "--env-file=missing"},
	} {
		if out, status := rillbox(env, append([]string{"config"}, args...)...); status != 2 || out == "" {
			t.Errorf("%s: %d\n%s", name, status, out)
		}
	}

	var log bytes.Buffer
	t.Run("serve", func(t *testing.T) {
		ask := serveLines(t, given, func(cmd *exec.Cmd) {
			cmd.Args, cmd.Stderr = []string{"rillbox", "serve", "--log-level=debug"}, io.MultiWriter(&log, t.Output())
		})
		for _, call := range []string{
			`"name":"list_runtimes","arguments":{}`,
			`"name":"run_code","arguments":{"language":"js","code":"Deno.env.get('GIVEN').length"}`,
			`"name":"run_code","arguments":{"language":"js","code":"Deno.env.get('HOME')"}`,
			`"name":"run_code","arguments":{"language":"python","code":"import os; [][len(os.environ['GIVEN'])]"}`,
			`"name":"run_code","arguments":{"language":"python","session_id":"default","code":"import os; os.environ['GIVEN'][99]"}`,
		} {
			answer := ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + call + `}}`)
			if strings.Contains(answer, secret) || !strings.Contains(answer, `"result"`) {
				t.Errorf("%s: %s", call, answer)
			}
		}
	})
	if strings.Contains(log.String(), secret) || log.Len() == 0 {
		t.Errorf("the log:\n%s", &log)
	}
}
