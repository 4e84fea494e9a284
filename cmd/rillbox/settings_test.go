//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"rillbox/supervisor/launcher"
)

// load reads a configuration from a TOML text, an environment and flags.
func load(t *testing.T, file string, environ []string, args ...string) (*config, error) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := newConfig()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.bindFlags(flags, func(string) bool { return true })
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return c, c.load(path, environ, flags)
}

func TestFlagsBeatEnvironmentBeatsFileBeatsDefaults(t *testing.T) {
	file := `memory = "1GiB"
timeout = 5
`
	for _, step := range []struct {
		name    string
		file    string
		environ []string
		args    []string
		want    time.Duration
		from    string
	}{
		{"default", "", nil, nil, 30 * time.Second, "default"},
		{"file", file, nil, nil, 5 * time.Second, "config.toml"},
		{"environment", file, []string{"RILLBOX_TIMEOUT=6s"}, nil, 6 * time.Second, "RILLBOX_TIMEOUT"},
		{"flag", file, []string{"RILLBOX_TIMEOUT=6s"}, []string{"--timeout", "7s"}, 7 * time.Second, "--timeout"},
	} {
		t.Run(step.name, func(t *testing.T) {
			c, err := load(t, step.file, step.environ, step.args...)
			if err != nil {
				t.Fatal(err)
			}
			if c.Limits.Timeout != step.want || filepath.Base(c.from("timeout")) != step.from {
				t.Errorf("timeout = %v from %s, want %v from %s", c.Limits.Timeout, c.from("timeout"), step.want, step.from)
			}
		})
	}
}

func TestWrongSettingsAreRefusedByName(t *testing.T) {
	for _, row := range []struct {
		name    string
		file    string
		environ []string
		want    string
	}{
		{"unknown key", "tiemout = 3", nil, `unknown key "tiemout"`},
		{"unknown key of a table", "[server]\nnmae = 3", nil, `unknown key "server.nmae"`},
		{"name of two lines", `server.name = "a\nb"`, nil, "server.name = a\nb: want one line"},
		{"unknown table", "[limits]\ntimeout = 3", nil, `unknown key "limits"`},
		{"unknown variable", "", []string{"RILLBOX_TIEMOUT=3"}, "RILLBOX_TIEMOUT"},
		{"bad time", `timeout = "soon"`, nil, "timeout = soon"},
		{"negative time", "", []string{"RILLBOX_TIMEOUT=-1s"}, "RILLBOX_TIMEOUT"},
		{"endless time", "", []string{"RILLBOX_TIMEOUT=inf"}, "RILLBOX_TIMEOUT"},
		{"bad size", "", []string{"RILLBOX_MEMORY=12 parsecs"}, "RILLBOX_MEMORY"},
		{"too large a size", "", []string{"RILLBOX_MEMORY=9999999999TiB"}, "RILLBOX_MEMORY"},
		{"no processor", "cpus = 0.0", nil, "cpus = 0"},
		{"no number of processors", "", []string{"RILLBOX_CPUS=nan"}, "RILLBOX_CPUS"},
		{"bad bool", "", []string{"RILLBOX_OFFLINE=perhaps"}, "RILLBOX_OFFLINE"},
		{"bad level", `log_level = "loud"`, nil, "log_level = loud"},
		{"wrong type", `timeout = [1]`, nil, "timeout"},
		{"variable that Deno reads", `env = ["DENO_DIR=/x"]`, nil, "DENO_DIR can't be given to programs"},
		{"variable of the loader", "", []string{"RILLBOX_ENV=LD_PRELOAD"}, "LD_PRELOAD can't be given to programs"},
		{"no variable", "", []string{"RILLBOX_ENV=a b"}, "want names of variables"},
		{"value with a comma", "", []string{"RILLBOX_ENV=A=x,y"}, "put names first"},
		{"no file of variables", "", []string{"RILLBOX_ENV_FILE=/missing"}, "env_file: open /missing"},
		{"list of numbers", `env = [1]`, nil, "env"},
		{"no TOML", "timeout", nil, "config.toml:1"},
		{"no permission flag", "", []string{"DENO_PERMISSION_ARGS=--inspect"}, "--inspect"},
		{"shell operator", "", []string{"DENO_PERMISSION_ARGS=--allow-net; rm"}, "DENO_PERMISSION_ARGS"},
		{"open quote", "", []string{"DENO_PERMISSION_ARGS=--allow-read='a"}, "DENO_PERMISSION_ARGS"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := load(t, row.file, row.environ)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("err = %v, want one that names %q", err, row.want)
			}
		})
	}
}

func TestPermissionArgsAreSplitAsAShellDoes(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                   {},
		"  ":                                 {},
		"--allow-net=a.example --allow-read": {"--allow-net=a.example", "--allow-read"},
		`--allow-read="/a b" '--deny-net=x.example'`: {"--allow-read=/a b", "--deny-net=x.example"},
		"--allow-read=/$HOME":                        {"--allow-read=/$HOME"},
	} {
		c, err := load(t, "", []string{"DENO_PERMISSION_ARGS=" + text})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := c.Permissions["deno"].Args(); !slices.Equal(got, want) {
			t.Errorf("%q gave %q, want %q", text, got, want)
		}
	}
}

func TestAFlagGivenAgainAddsToItsList(t *testing.T) {
	c, err := load(t, "", []string{"RILLBOX_ENV=LANG"}, "--env", "TZ,LANG", "--env", "EDITOR")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"TZ", "LANG", "EDITOR"}; !slices.Equal(c.Env, want) {
		t.Errorf("env = %q, want %q", c.Env, want)
	}
}

// What `rillbox config` prints is a configuration file that gives the same again.
func TestThePrintedConfigurationCanBeReadAgain(t *testing.T) {
	first, err := load(t, "", []string{"DENO_PERMISSION_ARGS=--allow-net=x '--allow-read=/a b'", "RILLBOX_MIN_RELEASE_AGE=7d",
		"RILLBOX_MEMORY=768MiB", "RILLBOX_OFFLINE=1", "RILLBOX_RUNNING=3", "RILLBOX_CPUS=0.5", "RILLBOX_STDERR_SIZE=4KiB", "RILLBOX_SERVER_INSTRUCTIONS=Ours.\n\"Ask\" first.", "RILLBOX_DENY_PACKAGES=left-*,right"})
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	if err := first.print(&printed); err != nil {
		t.Fatal(err)
	}
	second, err := load(t, printed.String(), nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, printed.String())
	}
	for i, s := range first.settings {
		if got := second.settings[i].value.String(); got != s.value.String() {
			t.Errorf("%s = %q when read again, was %q", s.key, got, s.value)
		}
	}
}

func TestEachStreamMayHaveALimitOfItsOwn(t *testing.T) {
	for _, row := range []struct {
		args           []string
		stdout, stderr int64
	}{
		{nil, 1 << 20, 1 << 20},
		{[]string{"--output=2KiB"}, 2 << 10, 2 << 10},
		{[]string{"--output=2KiB", "--stderr-size=0"}, 2 << 10, 0},
		{[]string{"--stdout-size=3KiB", "--output=2KiB"}, 3 << 10, 2 << 10},
	} {
		c, err := load(t, `stderr_size = ""`, nil, row.args...)
		if err != nil {
			t.Fatal(err)
		}
		if c.Limits.Stdout != row.stdout || c.Limits.Stderr != row.stderr {
			t.Errorf("%q: %d, %d", row.args, c.Limits.Stdout, c.Limits.Stderr)
		}
	}
}

func TestALimitThatIsNotHeldIsTold(t *testing.T) {
	bound := launcher.CgroupSupport{Offered: true, Processors: true, Detail: "version 2"}
	unbound := launcher.CgroupSupport{Detail: "there are none"}
	for _, row := range []struct {
		args     []string
		offered  launcher.CgroupSupport
		tellsCPU bool
		problem  string
	}{
		{nil, bound, true, ""},
		{[]string{"--cpus=2", "--cpu-time=5"}, bound, true, ""},
		{nil, unbound, true, "there are none"},
		{nil, bound, false, ""},
		{[]string{"--cpus=2"}, unbound, true, "cpus = 2 is set but not enforced on this machine (there are none)"},
		{[]string{"--cpu-time=5"}, bound, false, "cpu_time = 5s is set but not enforced on this system, which does not tell what a program has used"},
	} {
		c, err := load(t, "", nil, row.args...)
		if err != nil {
			t.Fatal(err)
		}
		if k := c.examineCgroups(row.offered, row.tellsCPU); k.Problem != row.problem {
			t.Errorf("%q, %+v: %q, want %q", row.args, row.offered, k.Problem, row.problem)
		}
	}
}
