//go:build !windows

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/server/web"
)

// httpServer is a process that serves over HTTP.
type httpServer struct {
	*exec.Cmd
	url   string // of MCP
	base  string
	ended chan error

	mu  sync.Mutex
	log strings.Builder
}

// startHTTP starts `rillbox serve`; prepare, if any, changes its command first.
func startHTTP(t *testing.T, prepare func(*exec.Cmd), flags ...string) *httpServer {
	t.Helper()
	s := &httpServer{Cmd: exec.CommandContext(t.Context(), "rillbox", append([]string{"serve"}, flags...)...), ended: make(chan error, 1)}
	s.Env = append(os.Environ(), scriptEnvironment(t, t.TempDir())...)
	if prepare != nil {
		prepare(s.Cmd)
	}
	stderr, err := s.StderrPipe()
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	serving := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			s.mu.Lock()
			fmt.Fprintln(&s.log, lines.Text())
			s.mu.Unlock()
			var line struct{ URL string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.URL != "" {
				serving <- line.URL
			}
		}
		close(serving)
		s.ended <- s.Wait()
	}()
	s.url = <-serving
	s.base = strings.TrimSuffix(s.url, "/mcp")
	if s.url == "" {
		t.Fatalf("it does not serve: %s", s.logged())
	}
	t.Cleanup(func() {
		_ = s.Process.Kill() // it may have ended
		if t.Failed() {
			t.Log(s.logged())
		}
	})
	return s
}

func (s *httpServer) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func (s *httpServer) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	r, err := http.Get(s.base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// await asks until the answer has a text.
func (s *httpServer) await(t *testing.T, path, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, body := s.get(t, path)
		if strings.Contains(body, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s never has %q:\n%s", path, want, body)
		}
	}
}

// run has a program run, and gives the answer's text.
func (s *httpServer) run(ctx context.Context, t *testing.T, code string) (text string, err error) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	c, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: s.url, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
	if err != nil {
		return "", err
	}
	defer c.Close()
	r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": "javascript", "code": code}})
	if err != nil {
		return "", err
	}
	return r.Content[0].(*mcp.TextContent).Text, nil
}

func (s *httpServer) awaitEnd(t *testing.T, within time.Duration) error {
	t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(within):
		t.Fatalf("it does not end within %v", within)
		return nil
	}
}

func TestAddressesToListenOn(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1":        "127.0.0.1:8848",
		"localhost":        "127.0.0.1:8848",
		"127.0.0.1:":       "127.0.0.1:8848",
		"127.0.0.1:9":      "127.0.0.1:9",
		":9":               ":9",
		"::1":              "[::1]:8848",
		"[::1]":            "[::1]:8848",
		"[::1]:9":          "[::1]:9",
		"9":                `http: "9" is no address: want one of this machine's, such as 127.0.0.1:8848`,
		"example.com":      `http: "example.com" is no address: want one of this machine's, such as 127.0.0.1:8848`,
		"http://127.0.0.1": `http: "http://127.0.0.1" is no address: want one of this machine's, such as 127.0.0.1:8848`,
		"127.0.0.1:99999":  `http: "99999" is no port: want a number up to 65535, as in 127.0.0.1:8848`,
	} {
		host, port, _, err := parseAddress("http", text, defaultPort)
		got := net.JoinHostPort(host, port)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	for want, at := range map[string]*net.TCPAddr{"r.example:9": {IP: net.IPv6unspecified, Port: 9}, "127.0.0.1:9": {IP: net.IPv4(127, 0, 0, 1), Port: 9}} {
		if got := reachedAs(at, []string{"*.example", "r.example"}); got != want {
			t.Errorf("%v is reached as %s, want %s", at, got, want)
		}
	}
}

// What others can reach is not served without authentication and encryption. With insecure
// it is, loudly.
func TestWhatOthersCanReachIsRefused(t *testing.T) {
	tokens, proxies, encrypted := web.Options{Tokens: &web.TokenSet{}}, web.Options{Tokens: &web.TokenSet{}}, web.Options{Tokens: &web.TokenSet{}, TLS: &tls.Config{}}
	proxies.Proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, test := range []struct {
		address string
		o       web.Options
		want    string
	}{
		{"127.0.0.1", web.Options{}, ""},
		{"::1", web.Options{}, ""},
		{"::ffff:127.0.0.1", tokens, ""},
		{"127.0.0.1", web.Options{Proxies: proxies.Proxies}, "others can reach this server through the proxy"},
		{"0.0.0.0", web.Options{}, "whoever does could run programs here"},
		{"0.0.0.0", web.Options{TLS: encrypted.TLS}, "whoever does could run programs here"},
		{"192.0.2.1", tokens, "tokens would travel unencrypted"},
		{"192.0.2.1", proxies, ""},
		{"192.0.2.1", encrypted, ""},
	} {
		var log strings.Builder
		test.o.Log = slog.New(slog.NewTextHandler(&log, nil))
		err := httpSettings{}.checkReach(test.address, netip.MustParseAddr(test.address), test.o)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || log.Len() > 0 {
			t.Errorf("%s: %v, want %s: %s", test.address, err, test.want, &log)
		}
		err = httpSettings{Insecure: true}.checkReach(test.address, netip.MustParseAddr(test.address), test.o)
		if err != nil || strings.Contains(log.String(), "level=WARN msg=\"INSECURE") != (test.want != "") || !strings.Contains(log.String(), test.want) {
			t.Errorf("%s, insecure: %v: %s", test.address, err, &log)
		}
	}
}

// Profiles tell much of what a server does: no address that others reach has them. Metrics
// need insecure there.
func TestAddressesAsideAreOfThisMachine(t *testing.T) {
	for _, test := range []struct {
		address  string
		mayReach bool
		want     string
	}{
		{"127.0.0.1:0", false, ""},
		{"[::1]:0", false, ""},
		{"0.0.0.0:0", true, ""},
		{"0.0.0.0:0", false, "others can reach 0.0.0.0:0"},
		{":0", false, "others can reach :0"},
		{"192.0.2.1:9", false, "others can reach 192.0.2.1:9"},
		{"127.0.0.1", false, "has no port"},
	} {
		listener, err := listenAside("pprof_address", test.address, test.mayReach)
		if err == nil {
			_ = listener.Close()
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// SIGHUP ends nothing. After SIGTERM nothing new is taken; what runs may end, or is
// cancelled when the grace is over, and is answered in either case.
func TestAServerOverHTTPEndsInOrder(t *testing.T) {
	needRuntimes(t)
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	s := startHTTP(t, nil, "--http", "127.0.0.1:0", "--http-grace", "3s", "--running", "4", "--audit-log", audit)
	s.await(t, "/readyz", "ready\n")
	if err := s.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if text, err := s.run(t.Context(), t, "console.log(6 * 7)"); err != nil || !strings.Contains(text, "42") {
		t.Fatalf("%v: %s", err, text)
	}
	s.await(t, "/metrics", `rillbox_runs_total{language="javascript",status="completed"} 1`)
	answers := map[string]string{}
	var mu sync.Mutex
	var runs sync.WaitGroup
	for name, code := range map[string]string{
		"short":   "setTimeout(() => console.log('enough'), 1500)",
		"endless": "console.log('so far'); for (;;);",
	} {
		runs.Go(func() {
			text, err := s.run(t.Context(), t, code)
			if err != nil {
				text = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			answers[name] = text
		})
	}
	s.await(t, "/metrics", "rillbox_running 2\n")
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.await(t, "/readyz", "shutting down")
	if status, _ := s.get(t, "/healthz"); status != 200 {
		t.Errorf("healthz says %d", status)
	}
	if text, err := s.run(t.Context(), t, "1"); err == nil {
		t.Errorf("a new program was taken: %s", text)
	}
	runs.Wait()
	if text := answers["short"]; !strings.HasPrefix(text, "completed") || !strings.Contains(text, "enough") {
		t.Errorf("the short program's answer is\n%s", text)
	}
	if text := answers["endless"]; !strings.HasPrefix(text, "cancelled") || !strings.Contains(text, "so far") {
		t.Errorf("the endless program's answer is\n%s", text)
	}
	if err := s.awaitEnd(t, 10*time.Second); err != nil {
		t.Errorf("it ends with %v", err)
	}
	lines, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	var statuses []string
	for text := range strings.Lines(string(lines)) {
		var line struct{ Identity, Request, Tool, Status, Language, Execution string }
		if err := json.Unmarshal([]byte(text), &line); err != nil || line.Identity == "" || line.Request == "" || line.Execution == "" || line.Tool != "run_code" || line.Language != "javascript" {
			t.Errorf("a line of the audit log is %s (%v)", text, err)
		}
		statuses = append(statuses, line.Status)
	}
	if slices.Sort(statuses); !slices.Equal(statuses, []string{"cancelled", "completed", "completed"}) || strings.Contains(string(lines), "console") {
		t.Errorf("the audit log is\n%s", lines)
	}
}

func TestASecondSignalEndsAServerAtOnce(t *testing.T) {
	needRuntimes(t)
	s := startHTTP(t, nil, "--http", "127.0.0.1:0", "--http-grace", "5m")
	lost := make(chan error, 1)
	go func() {
		_, err := s.run(t.Context(), t, "for (;;);")
		lost <- err
	}()
	s.await(t, "/metrics", "rillbox_running 1\n")
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.await(t, "/readyz", "shutting down")
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := s.awaitEnd(t, 5*time.Second)
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("it ends with %v", err)
	}
	if err := <-lost; err == nil {
		t.Error("the program was answered")
	}
}

// Each figure of the dashboard is one that a server has, with the labels that are asked
// for.
func TestTheDashboardShowsWhatThereIs(t *testing.T) {
	needRuntimes(t)
	text, err := os.ReadFile("../../packaging/grafana/rillbox.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	traced := make(chan struct{}, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && strings.Contains(string(body), "run_code") && r.URL.Path == "/v1/traces" {
			traced <- struct{}{}
		}
	}))
	defer collector.Close()
	s := startHTTP(t, nil, "--http", "127.0.0.1:0", "--timeout", "200ms", "--otlp-endpoint", collector.URL)
	if text, err := s.run(t.Context(), t, "for (;;);"); err != nil || !strings.HasPrefix(text, "timed_out") {
		t.Fatalf("%v: %s", err, text)
	}
	s.await(t, "/metrics", `rillbox_kills_total{reason="timed_out"} 1`)
	if !regexp.MustCompile(`"identity":"http","request":"\w+".*"message":"ran a program"`).MatchString(s.logged()) {
		t.Errorf("the run's line has no request")
	}
	s.await(t, "/metrics", "rillbox_cache_bytes")
	_, metrics := s.get(t, "/metrics")
	labels := map[string]string{} // of each metric's lines
	for line := range strings.Lines(metrics) {
		if m := regexp.MustCompile(`^(\w+)({.*})? `).FindStringSubmatch(line); m != nil {
			labels[m[1]] += m[2]
		}
	}
	name := regexp.MustCompile(`\b((?:rillbox|process|go)_\w+)(?:{([^}]*)})?`)
	by := regexp.MustCompile(`by \(([^)]*)\)`)
	shown := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			grouped := by.FindStringSubmatch(target.Expr)
			for _, m := range name.FindAllStringSubmatch(target.Expr, -1) {
				shown++
				has, is := labels[m[1]]
				if !is {
					t.Errorf("%s: there is no %s", panel.Title, m[1])
				}
				var wanted []string
				if grouped != nil {
					wanted = strings.Split(grouped[1], ", ")
				}
				for _, part := range strings.Split(m[2], ",") {
					label, _, _ := strings.Cut(part, "=")
					wanted = append(wanted, label)
				}
				for _, label := range wanted {
					if label != "" && label != "instance" && !strings.Contains(has, label+`="`) { // Prometheus itself adds the instance
						t.Errorf("%s: %s has no label %s", panel.Title, m[1], label)
					}
				}
			}
		}
	}
	if shown < 20 {
		t.Errorf("the dashboard shows %d figures", shown)
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.awaitEnd(t, 10*time.Second); err != nil || len(traced) != 1 {
		t.Errorf("it ends with %v, and sent %d traces", err, len(traced))
	}
}

// A server that can run nothing says so, and why, and lives on.
func TestAServerThatCanRunNothingIsNotReady(t *testing.T) {
	needRuntimes(t)
	dir := filepath.Join(t.TempDir(), "cache")
	s := startHTTP(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "RILLBOX_CACHE_DIR="+dir) }, "--http", "127.0.0.1:0", "--offline")
	if status, body := s.get(t, "/readyz"); status != 503 || !strings.Contains(body, "is not in the cache, and this server is offline") {
		t.Errorf("without a runtime: %d %s", status, body)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s.await(t, "/readyz", "nothing can be written to the cache: it was removed; restart the server")
	if text, err := s.run(t.Context(), t, "1"); err != nil || !strings.Contains(text, "the program was not run") {
		t.Errorf("a program gives %v: %s", err, text)
	}
	if status, _ := s.get(t, "/healthz"); status != 200 {
		t.Errorf("healthz says %d", status)
	}
}

// A service manager's socket is served on, within the same rules as an address.
func TestASocketOfTheServiceManager(t *testing.T) {
	needRuntimes(t)
	give := func(t *testing.T, address string) func(*exec.Cmd) {
		t.Helper()
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		socket, err := listener.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { socket.Close() })
		return func(cmd *exec.Cmd) {
			args := cmd.Args
			shell := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"`, "sh", cmd.Path}, args[1:]...)...)
			cmd.Path, cmd.Args, cmd.ExtraFiles = shell.Path, shell.Args, []*os.File{socket}
		}
	}
	s := startHTTP(t, give(t, "127.0.0.1:0"))
	if status, body := s.get(t, "/healthz"); status != 200 {
		t.Errorf("%d: %s", status, body)
	}
	cmd := exec.CommandContext(t.Context(), "rillbox", "serve", "--http", "systemd")
	cmd.Env = append(os.Environ(), scriptEnvironment(t, t.TempDir())...)
	give(t, "0.0.0.0:0")(cmd)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "whoever does could run programs here") {
		t.Errorf("a socket that others reach: %v: %s", err, out)
	}
	cmd = exec.CommandContext(t.Context(), "rillbox", "serve", "--http", "systemd")
	cmd.Env = append(os.Environ(), scriptEnvironment(t, t.TempDir())...)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "gave 0 sockets") {
		t.Errorf("no socket: %v: %s", err, out)
	}
}

// withToken sends a token with each request.
type withToken string

func (token withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

// What a token's packages are holds for whatever its client calls, though another's
// programs have fetched the package.
func TestATokensPackages(t *testing.T) {
	needRuntimes(t)
	path := filepath.Join(t.TempDir(), "tokens.toml")
	tokens := row("free", "") + row("denied", `deny_packages = ["python:six", "npm:ms", "npm:is-odd"]`) + row("listed", `allow_packages = ["npm:other"]`) + row("cached", "fetch_packages = false")
	if err := os.WriteFile(path, []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startHTTP(t, nil, "--http", "127.0.0.1:0", "--auth-tokens", path)
	call := func(name, tool string, args map[string]any) string {
		t.Helper()
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		transport := &mcp.StreamableClientTransport{Endpoint: s.url, MaxRetries: -1, HTTPClient: &http.Client{Transport: withToken("secret-" + name)}}
		c, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return r.Content[0].(*mcp.TextContent).Text
	}
	py := map[string]any{"language": "python", "code": "import six; 'it is ' + 'there'"}
	micropip := map[string]any{"language": "python", "code": "import micropip\nawait micropip.install('six')\nimport six; 'it is ' + 'there'"}
	js := map[string]any{"language": "javascript", "code": `import "npm:ms@2"; console.log("it is " + "there")`}
	install := map[string]any{"language": "python", "packages": []string{"six"}}
	in := func(args map[string]any) map[string]any {
		args = maps.Clone(args)
		args["session_id"] = "a"
		return args
	}
	const want = "the operator denied package"
	for _, name := range []string{"free", "denied", "listed"} {
		for _, args := range []map[string]any{py, js, micropip, in(py), in(js)} {
			if got := call(name, "run_code", args); strings.Contains(got, "it is there") != (name == "free") || strings.Contains(got, want) == (name == "free") {
				t.Errorf("%s, %v: %s", name, args, got)
			}
		}
		for _, args := range []map[string]any{install, in(install)} {
			got := call(name, "install_packages", args)
			if installed := strings.Contains(got, "installed: "); installed != (name == "free") || !installed && !strings.Contains(got, want) {
				t.Errorf("%s, %v: %s", name, args, got)
			}
		}
	}
	if got := call("cached", "run_code", py); !strings.Contains(got, "it is there") {
		t.Errorf("what is in the cache: %s", got)
	}
	js["code"] = `import "npm:is-odd@0.1.0"`
	if got := call("cached", "run_code", js); !strings.Contains(got, "is not in the cache, and the operator turned fetching off") {
		t.Errorf("what is not in the cache: %s", got)
	}
}
