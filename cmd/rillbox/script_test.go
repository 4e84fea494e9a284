//go:build !windows

package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"rillbox/cache/cachetest"
	"rillbox/supervisor/job"
)

// testCommands are what the tests' binary is under another name.
var testCommands = map[string]func(){"rillbox": main}

func TestMain(m *testing.M) {
	testscript.Main(m, testCommands)
}

// TestScripts runs the command line as a person does: each file of
// testdata/script is a session at a terminal, and its first lines say what it
// shows. Scripts share the tests' cache; one that needs an empty cache sets
// RILLBOX_CACHE_DIR.
func TestScripts(t *testing.T) {
	needRuntimes(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, scriptEnvironment(t, env.WorkDir)...)
			env.Values[websiteKey{}] = &websites{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status, "website": website},
		Condition: func(name string) (bool, error) {
			if name != "namespaces" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			return exec.Command("unshare", "--user", "--map-root-user", "true").Run() == nil, nil
		},
	})
}

// scriptEnvironment is what a script's commands find beside testscript's own
// variables: the shared cache, no configuration of the user's, and the
// machine's network configuration.
func scriptEnvironment(t *testing.T, work string) []string {
	dir, err := cachetest.Dir()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"RILLBOX_CACHE_DIR=" + dir,
		"XDG_CONFIG_HOME=" + filepath.Join(work, "config"),
		"EXAMPLES=" + examples,
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		lower := strings.ToLower(name)
		if name == "HOME" || strings.HasPrefix(lower, "npm_config_") || strings.HasPrefix(lower, "pip_") ||
			strings.HasPrefix(lower, "ssl_cert") || strings.HasSuffix(lower, "_proxy") {
			env = append(env, kv)
		}
	}
	return env
}

// website runs "website DIR": the directory is at $URL from then on, until the next
// website, or the end.
func website(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: website [DIR]")
	}
	if earlier, ok := ts.Value(websiteKey{}).(*websites); ok && earlier.open != nil {
		earlier.open.Close()
		earlier.open = nil
	}
	if len(args) == 0 {
		return
	}
	files := http.FileServer(http.Dir(ts.MkAbs(args[0])))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".ts") {
			w.Header().Set("Content-Type", "text/typescript")
		}
		files.ServeHTTP(w, r)
	}))
	ts.Setenv("URL", site.URL)
	ts.Value(websiteKey{}).(*websites).open = site
	ts.Defer(site.Close)
}

// websites is the one that a script has.
type websites struct{ open *httptest.Server }

type websiteKey struct{}

// status runs "status N COMMAND…": the command must exit with that status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// needRuntimes fetches the runtimes into the shared cache, once for all tests.
// Without a network the test is skipped, unless they are there.
func needRuntimes(t *testing.T) {
	t.Helper()
	cachetest.NeedNetwork(t, setUpOnce(t))
}

var setUpOnce = func() func(t *testing.T) error {
	var once sync.Once
	var err error
	return func(t *testing.T) error {
		once.Do(func() { err = setUp(t) })
		return err
	}
}()

func setUp(t *testing.T) error {
	dir, err := cachetest.Dir()
	if err != nil {
		return err
	}
	a := &app{config: newConfig(), log: cachetest.Logger(t)}
	a.config.CacheDir = dir
	engines, err := a.open()
	if err != nil {
		return err
	}
	defer closeEngines(engines)
	for _, toolchain := range engines.Toolchains() {
		err = errors.Join(err, toolchain.Prepare(t.Context(), func(job.Event) {}))
	}
	return err
}

// closeEngines ends what a test opened in its own process, which may open more: the
// directory of children is left to the next start.
func closeEngines(e *engines) {
	e.Supervisor.Close()
	e.cache.Close()
}
