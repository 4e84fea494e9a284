//go:build !windows

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"

	"rillbox/cache"
	"rillbox/deno/permission"
	"rillbox/pyodide"
	"rillbox/server"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// config holds the effective settings: flags over environment over the TOML
// file over defaults. They are merged here and not by koanf: it forgets where a
// value came from, and the table below would still be needed for flags, help,
// unknown names and the values that no error may show.
type config struct {
	CacheDir string
	Cache    cache.Options // its MaxBytes and Offline

	Wall      launcher.Level
	Workspace supervisor.Shared

	Engine                 pyodide.Options                    // of all engines; toolchains fills in the rest
	Permissions            map[string]*permission.Permissions // by the name of the engineKind
	Env                    []string
	EnvFile                string
	FetchPackages          bool
	Output                 int64
	StdoutSize, StderrSize int64 // notSet means Output
	Limits                 job.Limits
	LogLevel               string
	Server                 server.Options // its Name and Instructions
	HTTP                   httpSettings
	AuditLog, OTLP         string

	file     string   // the TOML file read, "" when there is none
	renamed  []string // what was set by its name of earlier versions, one sentence each
	settings []setting
}

// setting is one row of the table that flags, environment, TOML file, help
// text and `rillbox config` are all made from.
type setting struct {
	key   string // the TOML key, with a dot in a table; the flag is the same with dashes
	env   string
	value pflag.Value
	help  string
	from  string // where the value in force came from, for people
	was   string // the key of earlier versions, which is still taken; empty if it had no other
}

func (s setting) flag() string { return flagOf(s.key) }

func flagOf(key string) string { return strings.NewReplacer("_", "-", ".", "-").Replace(key) }

func variableOf(key string) string {
	return "RILLBOX_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// secretSetting is the one whose values no error may have.
const secretSetting = "env"

// leastMemory is the least that a program can do something with.
const leastMemory = 16 << 20

// mostWarm is how many children may wait for programs of one kind: 2.3 GB of them in
// all, which go after ten minutes without use.
const mostWarm = 16

// leastDisk is the least that a program's directory has room in.
const leastDisk = 1 << 20

// newConfig returns the defaults.
func newConfig() *config {
	c := &config{
		Cache:         cache.Options{MaxBytes: 10 << 30},
		FetchPackages: true,
		Output:        1 << 20,
		StdoutSize:    notSet,
		StderrSize:    notSet,
		Limits:        job.DefaultLimits(),
		LogLevel:      "info",
		Permissions:   map[string]*permission.Permissions{},
	}
	c.Engine.Warm = 1
	add := func(key string, v pflag.Value, help string) {
		env := variableOf(key)
		if strings.HasSuffix(key, "_permission_args") {
			env = strings.ToUpper(key)
		}
		c.settings = append(c.settings, setting{key: key, env: env, value: v, help: help, from: "default"})
	}
	add("cache_dir", text(&c.CacheDir), "where runtimes and packages are kept")
	add("cache_max_bytes", size(&c.Cache.MaxBytes, 0), "trim the cache to this size by last use; 0 means no limit")
	add("offline", boolean(&c.Cache.Offline), "use the cache only, never the network")
	add("deno", text(&c.Engine.DenoPath), "a Deno binary of your own, of the pinned version")
	add("pyodide", text(&c.Engine.Path), "a Pyodide directory of your own, of the pinned version")
	for _, kind := range engineKinds {
		c.Permissions[kind.name] = &permission.Permissions{}
		add(kind.name+"_permission_args", flags{c.Permissions[kind.name]}, "Deno permission flags for "+kind.titles())
	}
	add("wall", scalar[launcher.Level]{&c.Wall, "level", launcher.ParseLevel, launcher.Level.String}, "the least wall that programs may start behind: namespaces, landlock or deno; best takes what the machine offers")
	add("without_second_wall", boolean(&c.Engine.WithoutSecondWall), "start programs without the kernel's wall around them, also those that may read and write the same directory")
	add("workspace", directory(&c.Workspace), "directory that programs and sessions have as their current one, to read and write; with :ro, to read only")
	add(secretSetting, &variables{list{p: &c.Env}}, "environment variables that programs get: NAME for the one that rillbox has, or NAME=value, which nothing shows again")
	add("env_file", text(&c.EnvFile), "file with more of them, one NAME=value a line, for secrets; env outweighs it")
	add("allow_import", &list{p: &c.Engine.AllowImport}, "hosts that https: imports may reach; empty means Deno's default list")
	add("allow_packages", &list{p: &c.Engine.Policy.Allow}, "the only packages and hosts that may be used, as globs; empty means any")
	add("deny_packages", &list{p: &c.Engine.Policy.Deny}, "packages and hosts that may not be used, as globs")
	add("fetch_packages", boolean(&c.FetchPackages), "fetch packages for programs; false means only those in the cache")
	add("min_release_age", duration(&c.Engine.Policy.MinReleaseAge, 0), "refuse package releases younger than this; 0 means any in Python, and 24 h for npm and JSR")
	add("index_url", text(&c.Engine.IndexURL), "Python package index; empty means the one that pip is configured for")
	add("pyodide_mirror", text(&c.Engine.Mirror), "URL or directory with the files of Pyodide's CDN, such as a full release's; empty means the CDN")
	c.settings[len(c.settings)-1].was = "cdn_url"
	add("warm", count(&c.Engine.Warm, 0, mostWarm), "children that `serve` keeps started ahead at most, for Python (some 105 MB each) and for JavaScript (some 40 MB) each, and for the three other languages that were used last (40 to 300 MB) each, as many as were wanted at once; 0 to 16")
	add("timeout", duration(&c.Limits.Timeout, 0), "time for a program that asks for none")
	add("max_timeout", duration(&c.Limits.MaxTimeout, 0), "most time that a program may ask for")
	add("cpu_time", duration(&c.Limits.CPUTime, 0), "processor time that a program, or a cell of a session, may use, waiting apart; 0 means as much as timeout lets it")
	add("install_timeout", duration(&c.Limits.InstallTimeout, 0), "time for fetching a program's packages")
	add("memory", size(&c.Limits.Memory, leastMemory), "memory of a program, above what its runtime needs")
	add("cpus", processors(&c.Limits.CPUs), "processors' worth of time that a program gets, however many threads it has; 0.5 is half of one")
	add("output", size(&c.Output, 0), "bytes kept of each output stream")
	add("stdout_size", size(&c.StdoutSize, notSet), "bytes kept of standard output, where that is not what output says")
	add("stderr_size", size(&c.StderrSize, notSet), "bytes kept of standard error, where that is not what output says")
	add("code_size", size(&c.Limits.Code, 0), "largest program that a client may send")
	add("stdin_size", size(&c.Limits.Stdin, 0), "largest standard input that a client may send")
	add("file_size", size(&c.Limits.FileBytes, 0), "largest file that a program may write")
	add("disk", size(&c.Limits.Disk, leastDisk), "bytes that the files of a session, or of one program's directory, may have in all")
	add("client_disk", size(&c.Limits.ClientDisk, leastDisk), "bytes that the files of all sessions of one client may have")
	add("displays", size(&c.Limits.Displays, 0), "bytes kept of what a program shows (pictures, tables)")
	add("sessions", count(&c.Limits.Sessions, 0, math.MaxInt), "sessions that one client may have")
	add("all_sessions", count(&c.Limits.AllSessions, 0, math.MaxInt), "sessions that all clients together may have")
	add("session_idle", duration(&c.Limits.SessionIdle, 0), "how long a session lasts without use when its client asks for nothing else")
	add("max_session_idle", duration(&c.Limits.MaxSessionIdle, 0), "most that a client may ask for instead")
	add("running", count(&c.Limits.Running, 1, math.MaxInt), "programs that run at once")
	add("waiting", count(&c.Limits.Waiting, 0, math.MaxInt), "programs that may wait for a place; more are told to come back")
	add("client_running", count(&c.Limits.ClientRunning, 0, math.MaxInt), "programs of one client that run at once; 0 means as many as its share")
	add("client_waiting", count(&c.Limits.ClientWaiting, 0, math.MaxInt), "programs of one client that may wait; 0 means as many as its share")
	add("log_level", choice(&c.LogLevel, "debug", "info", "warn", "error"), "how much is logged on stderr")
	add("server.name", name(&c.Server.Name), "what the MCP server calls itself; empty means rillbox")
	c.HTTP = httpSettings{Path: "/mcp", Requests: 100, Window: time.Minute, Grace: 10 * time.Second}
	add("http", text(&c.HTTP.Address), "serve over HTTP at this address of the machine, such as 127.0.0.1 (port 8848) or 127.0.0.1:9000, or systemd for the socket that systemd opened, in place of standard input and output")
	add("http_path", text(&c.HTTP.Path), "where MCP is on that server")
	add("http_hosts", &list{p: &c.HTTP.Hosts}, "names by which it is reached, beside localhost, addresses, and those of its certificate")
	add("http_origins", &list{p: &c.HTTP.Origins}, "origins of pages of other sites that may call it, such as https://chat.example.com")
	add("http_requests", count(&c.HTTP.Requests, 0, 1_000_000), "requests that one client may send in http_window; 0 means any number")
	add("http_window", duration(&c.HTTP.Window, time.Second), "the time for which http_requests counts")
	add("http_grace", duration(&c.HTTP.Grace, 0), "how long running programs may go on when the server ends")
	add("tls_cert", text(&c.HTTP.Certificate), "file with the server's certificate, for HTTPS")
	add("tls_key", text(&c.HTTP.Key), "file with its key")
	add("behind_proxy", &list{p: &c.HTTP.Proxies}, "addresses of a proxy that does HTTPS in its place, such as 10.0.0.0/8")
	add("insecure", boolean(&c.HTTP.Insecure), "listen for others without authentication or encryption, for tests")
	add("auth_token", secret(&c.HTTP.Token), "token that requests over HTTP must have; nothing shows it again")
	add("metrics_address", text(&c.HTTP.Metrics), "serve Prometheus' /metrics at this address of its own, such as 127.0.0.1:9464, to whoever can reach it")
	add("pprof_address", text(&c.HTTP.Profile), "serve Go's profiles of the server at this address, which must be of this machine alone, such as 127.0.0.1:6060")
	add("otlp_endpoint", text(&c.OTLP), "URL of an OpenTelemetry collector that `serve` sends traces to, such as http://127.0.0.1:4318; empty means what OTEL_EXPORTER_OTLP_ENDPOINT says")
	add("audit_log", text(&c.AuditLog), "file to which `serve` adds a line of JSON for each call: who asked for what, and how it went; nothing of code, input, environment and output")
	add("allow_tools", &list{p: &c.Server.Tools.Allow}, "the only tools that clients may use, as globs; empty means all")
	add("deny_tools", &list{p: &c.Server.Tools.Deny}, "tools that clients may not use, as globs")
	add("auth_tokens", text(&c.HTTP.Tokens), "file of several tokens, each with what it may do; `rillbox token` makes them")
	add("oauth_issuer", text(&c.HTTP.OAuth.Issuer), "URL of the OAuth issuer whose access tokens (JWTs) requests over HTTP may have")
	add("oauth_audience", text(&c.HTTP.OAuth.Audience), "the audience that they must be for, such as this server's URL")
	add("oauth_scopes", &list{p: &c.HTTP.OAuth.Scopes}, "scopes that they must have")
	add("oauth_jwks_url", text(&c.HTTP.OAuth.KeysURL), "where the issuer's keys are; empty for where its metadata says")
	add("server.instructions", text(&c.Server.Instructions), "what clients are told of the server, before what it says of itself")
	return c
}

// Settings whose flags every command has, and those that only a server needs;
// the rest belong to the commands that run programs.
var (
	commonSettings = []string{"cache_dir", "offline", "log_level"}
	serverSettings = []string{"warm", "max_timeout", "code_size", "stdin_size", "sessions", "all_sessions", "session_idle", "max_session_idle", "running", "waiting", "client_running", "client_waiting", "server.name", "server.instructions",
		"http", "http_path", "http_hosts", "http_origins", "http_requests", "http_window", "http_grace", "tls_cert", "tls_key", "behind_proxy", "insecure", "auth_token", "auth_tokens", "oauth_issuer", "oauth_audience", "oauth_scopes", "oauth_jwks_url", "metrics_address", "pprof_address", "audit_log", "otlp_endpoint", "allow_tools", "deny_tools"}
)

// bindFlags adds the flags of those settings for which want says true. Those
// not among shown are left out of the command's help; `rillbox config --help`
// has them all.
func (c *config) bindFlags(fs *pflag.FlagSet, want func(key string) bool, shown ...string) {
	for _, s := range c.settings {
		if !want(s.key) {
			continue
		}
		f := fs.VarPF(s.value, s.flag(), "", s.help)
		f.Hidden = !slices.Contains(shown, s.key)
		if s.value.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
		if s.was != "" {
			fs.Var(s.value, flagOf(s.was), s.help)
			_ = fs.MarkDeprecated(flagOf(s.was), "it is --"+s.flag()+" now") // it fails for a flag that is not there
		}
	}
}

func common(key string) bool { return slices.Contains(commonSettings, key) }

func ofServer(key string) bool { return !common(key) }

func ofRun(key string) bool { return !common(key) && !slices.Contains(serverSettings, key) }

// ofHTTPAlone are the settings of `serve --http` that were given, but for http itself.
func (c *config) ofHTTPAlone() (given []string) {
	for _, s := range c.settings {
		if s.from != "default" && (strings.HasPrefix(s.key, "http_") || strings.HasPrefix(s.key, "tls_") || strings.HasPrefix(s.key, "oauth_") ||
			s.key == "auth_tokens" || s.key == "behind_proxy") { // auth_token may be for doctor
			given = append(given, s.key)
		}
	}
	return given
}

// load fills c from the file at path (the user's own when path is empty, where
// it may be missing), from environ and from the flags that were given.
// Everything wrong is told at once, by name.
func (c *config) load(path string, environ []string, given *pflag.FlagSet) error {
	table, err := c.readFile(path)
	if err != nil {
		return err
	}
	if inTable, ok := table["server"].(map[string]any); ok {
		delete(table, "server")
		for key, v := range inTable {
			table["server."+key] = v
		}
	}
	env := map[string]string{}
	for _, e := range environ {
		name, text, _ := strings.Cut(e, "=")
		env[name] = text
	}
	var wrong []error
	var keys, known []string
	for i := range c.settings {
		s := &c.settings[i]
		keys, known = append(keys, s.key), append(known, s.env)
		inFile, fileHas := table[s.key]
		delete(table, s.key)
		inEnv, envHas := env[s.env]
		delete(env, s.env)
		var err error
		what := ""
		wasFlag := false
		if s.was != "" {
			flag := given.Lookup(flagOf(s.was))
			wasFlag = flag != nil && flag.Changed
			if v, has := table[s.was]; has && !fileHas {
				inFile, fileHas = v, true
				c.renamed = append(c.renamed, fmt.Sprintf("%s: %s is %s now", c.file, s.was, s.key))
			}
			if text, has := env[variableOf(s.was)]; has && !envHas {
				inEnv, envHas = text, true
				c.renamed = append(c.renamed, fmt.Sprintf("%s is %s now", variableOf(s.was), s.env))
			}
			delete(table, s.was)
			delete(env, variableOf(s.was))
		}
		switch flag := given.Lookup(s.flag()); {
		case flag != nil && flag.Changed || wasFlag:
			s.from = "--" + s.flag()
		case envHas:
			s.from, what = s.env, fmt.Sprintf("environment variable %s=%q", s.env, inEnv)
			err = s.value.Set(inEnv)
		case fileHas:
			s.from, what = c.file, fmt.Sprintf("%s: %s = %v", c.file, s.key, inFile)
			err = setTOML(s.value, inFile)
		}
		if _, secret := s.value.(interface{ hidden() string }); secret {
			what = s.key + " from " + s.from
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", what, err))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		wrong = append(wrong, fmt.Errorf("%s: unknown key %q%s", c.file, key, didYouMean(key, keys)))
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if strings.HasPrefix(name, "RILLBOX_") && !strings.HasPrefix(name, "RILLBOX_TEST_") {
			wrong = append(wrong, fmt.Errorf("unknown environment variable %s%s", name, didYouMean(name, known)))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w\n`rillbox config --help` lists all settings", errors.Join(wrong...))
	}
	return c.complete()
}

// complete replaces what has a default that depends on the machine.
func (c *config) complete() error {
	var err error
	if c.CacheDir == "" {
		c.CacheDir, err = cache.DefaultDir()
	} else {
		c.CacheDir, err = filepath.Abs(c.CacheDir)
	}
	if err != nil {
		return fmt.Errorf("cannot tell where to keep the cache: %w; set RILLBOX_CACHE_DIR", err)
	}
	if c.Engine.Env, err = readVariables(c.EnvFile); err != nil {
		return err
	}
	c.Engine.Env = append(c.Engine.Env, c.Env...)
	c.Engine.Policy.NoFetch = !c.FetchPackages
	c.Limits.Stdout, c.Limits.Stderr = c.Output, c.Output
	if c.StdoutSize != notSet {
		c.Limits.Stdout = c.StdoutSize
	}
	if c.StderrSize != notSet {
		c.Limits.Stderr = c.StderrSize
	}
	c.Limits.MaxTimeout = max(c.Limits.MaxTimeout, c.Limits.Timeout)
	c.Limits.MaxSessionIdle = max(c.Limits.MaxSessionIdle, c.Limits.SessionIdle)
	return nil
}

// readFile reads the TOML file as a table. A missing file is an error only when
// it was asked for by name.
func (c *config) readFile(path string) (map[string]any, error) {
	named := path != ""
	if !named {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil, nil // no home, hence no file of the user's
		}
		path = filepath.Join(dir, "rillbox", "config.toml")
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	c.file = path
	table := map[string]any{}
	if err := toml.Unmarshal(data, &table); err != nil {
		if decode := (*toml.DecodeError)(nil); errors.As(err, &decode) {
			row, _ := decode.Position()
			return nil, fmt.Errorf("%s:%d: %w", path, row, err)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return table, nil
}

// from says where the value of the setting key came from.
func (c *config) from(key string) string {
	for _, s := range c.settings {
		if s.key == key {
			return s.from
		}
	}
	panic("no setting " + key)
}
