//go:build !windows

package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"crypto/sha256"

	"rillbox/cache/egress"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
)

var testTools = []string{"run_code", "read_file", "write_file"}

// row is a token's in a tokens file, whose token is secret-NAME.
func row(name, more string) string {
	return fmt.Sprintf("[%s]\nsha256 = \"%x\"\n%s\n", name, sha256.Sum256([]byte("secret-"+name)), more)
}

func TestATokensFile(t *testing.T) {
	c := newConfig()
	granted, err := permission.ParseShell("--allow-net=api.example.com --allow-env")
	if err != nil {
		t.Fatal(err)
	}
	*c.Permissions["deno"] = granted
	all, err := c.parseTokens([]byte(row("ci", `requests = 10
sessions = 2
running = 1
waiting = 3
timeout = "5s"
allow_tools = ["*_file"]
deno_permission_args = "--allow-net=api.example.com"
pyodide_permission_args = ""
allow_packages = ["npm:*", "six"]
deny_packages = ["left-pad"]
min_release_age = "7d"
fetch_packages = false
`)+row("boss", "admin = true")), testTools)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	boss, ci := all[0].Identity, all[1].Identity
	if !boss.Admin || boss.Terms.Permissions != nil || ci.Admin || ci.Requests != 10 || ci.Terms.Running != 1 || ci.Terms.Waiting != 3 || ci.Terms.Sessions != 2 || ci.Terms.Timeout != 5*time.Second {
		t.Errorf("%+v\n%+v", boss, ci)
	}
	if got := fmt.Sprint(ci.Terms.Permissions); got != "map[javascript:[--allow-net=api.example.com] python:[] typescript:[--allow-net=api.example.com]]" || ci.Terms.Permissions["python"] == nil {
		t.Errorf("permissions are %s", got)
	}
	want := job.PackagePolicy{AllowPackages: []string{"npm:*", "six"}, DenyPackages: []string{"left-pad"}, MinReleaseAge: 7 * 24 * time.Hour, CacheOnly: true}
	if !reflect.DeepEqual(ci.Terms.Policy, want) || !reflect.DeepEqual(boss.Terms.Policy, job.PackagePolicy{}) {
		t.Errorf("the policies are %+v and %+v", ci.Terms.Policy, boss.Terms.Policy)
	}
	for name, test := range map[string]struct{ text, want string }{
		"no TOML":           {"secret-x = = ", "line 1 is no TOML"},
		"a token twice":     {row("ci", "") + row("ci", ""), "line 4 has a token or a key for the second time"},
		"a key twice":       {row("ci", "admin = true\nadmin = false"), "line 4 has a token or a key for the second time"},
		"no boolean":        {row("ci", `admin = "yes"`), "admin: "},
		"nothing":           {"", "no tokens"},
		"no table":          {`ci = "secret-x"`, "want a table"},
		"a plain token":     {"[ci]\ntoken = \"secret-x\"", `unknown key "token"`},
		"a near key":        {row("ci", "request = 3"), "did you mean requests?"},
		"a plain digest":    {"[ci]\nsha256 = \"secret-x\"", "64 hexadecimal digits"},
		"no digest":         {"[ci]\nadmin = true", "64 hexadecimal digits"},
		"a name with dots":  {row("'a.b'", ""), "can't have this name"},
		"a name of ours":    {row("token", ""), "can't have this name"},
		"one token twice":   {row("a", "") + strings.Replace(row("a", ""), "[a]", "[b]", 1), "the same token as a"},
		"more than granted": {row("ci", `deno_permission_args = "--allow-read"`), "--allow-read was not granted by the operator"},
		"imports":           {row("ci", `deno_permission_args = "--allow-import=x.com"`), "the same for all"},
		"a bad pattern":     {row("ci", `deny_packages = ["npm:["]`), `package pattern "npm:["`},
		"a near policy":     {row("ci", `deny_package = ["x"]`), "did you mean deny_packages?"},
		"younger releases":  {row("ci", `min_release_age = "1h"`), "less than the 24h0m0s that hold for all"},
		"a tool's name":     {row("ci", `deny_tools = ["runcode"]`), `no tool "runcode"; did you mean run_code?`},
		"no time at all":    {row("ci", `timeout = 0`), "0 would allow nothing"},
		"no runs at all":    {row("ci", `running = 0`), "0 would allow nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.parseTokens([]byte(test.text), testTools)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret-") {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
	c.Engine.Policy = egress.Policy{NoFetch: true, MinReleaseAge: time.Hour}
	for text, want := range map[string]string{
		"fetch_packages = true": "the settings turned fetching off", "fetch_packages = false": "",
		"min_release_age = 0": "less than the 1h0m0s", `min_release_age = "2h"`: "",
	} {
		if _, err := c.parseTokens([]byte(row("ci", text)), testTools); (want != "" || err != nil) && (err == nil || want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// lockedBuffer is a log that a test reads meanwhile.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestTokensAreReadAgain: when the file changes, is replaced, or a signal says so; a wrong
// one changes nothing, and is told once.
func TestTokensAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.toml")
	put := func(text string, mode os.FileMode) {
		t.Helper()
		fresh := path + ".new"
		if err := os.WriteFile(fresh, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fresh, path); err != nil {
			t.Fatal(err)
		}
	}
	put(row("a", ""), 0o600)
	var log lockedBuffer
	a := &app{config: newConfig(), log: slog.New(slog.NewTextHandler(&log, nil))}
	a.config.HTTP.Tokens, a.config.HTTP.Token = path, "secret-one"
	tokens, err := a.openTokens(testTools)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); tokens.watch(ctx) }()
	defer func() { stop(); <-ended }()
	await := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s; the log is\n%s", what, &log)
			}
		}
	}
	holds := func(token string) bool {
		_, ok := tokens.set.Identify(t.Context(), token)
		return ok
	}
	put(row("b", ""), 0o600)
	await("the replaced file was not read", func() bool { return holds("secret-b") && !holds("secret-a") && holds("secret-one") })
	put(row("c", "wrong = 1"), 0o600)
	await("nothing tells that the file is wrong", func() bool { return strings.Contains(log.String(), "unknown key") })
	for range 3 { // of three, the first was taken and its reading is over
		tokens.asked <- struct{}{}
	}
	if n := strings.Count(log.String(), "unknown key"); n != 1 || !holds("secret-b") || holds("secret-c") {
		t.Errorf("it is told %d times; b holds: %v", n, holds("secret-b"))
	}
	put(row("d", ""), 0o644)
	await("others can read it, and nothing tells", func() bool { return strings.Contains(log.String(), "others can use") })
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	await("it was not read when nobody else could", func() bool { return holds("secret-d") && !holds("secret-b") })
	if strings.Contains(log.String(), "secret-") {
		t.Errorf("the log has a token:\n%s", &log)
	}
}

func TestATokensFileIsOnesOwn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens.toml")
	if err := os.WriteFile(path, []byte(row("a", "")), 0o640); err != nil {
		t.Fatal(err)
	}
	a := &app{config: newConfig(), log: slog.New(slog.DiscardHandler)}
	for at, want := range map[string]string{path: "chmod 600", dir: "is no file", "/dev/null": "is no file", filepath.Join(dir, "missing"): "no such file"} {
		a.config.HTTP.Tokens = at
		if _, err := a.openTokens(testTools); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", at, err)
		}
	}
	a.config.HTTP.Tokens = path
	t.Setenv("CREDENTIALS_DIRECTORY", dir) // of systemd, which has more ways to say whose a file is
	if _, err := a.openTokens(testTools); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(path, 0o604); err != nil {
		t.Fatal(err)
	}
	if _, err := a.openTokens(testTools); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
}
