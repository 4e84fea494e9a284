//go:build !windows

package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// program is the real program, built once for all tests; TestMain removes it.
var program struct {
	once sync.Once
	dir  string
	err  error
}

func buildProgram(t testing.TB) (path string) {
	t.Helper()
	program.once.Do(func() {
		if program.dir, program.err = os.MkdirTemp("", "rillbox-built-"); program.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", program.dir, "rillbox/cmd/rillbox").CombinedOutput()
		if err != nil {
			program.err = fmt.Errorf("build rillbox: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return filepath.Join(program.dir, "rillbox")
}

func removeProgram() {
	if program.dir != "" {
		_ = os.RemoveAll(program.dir)
	}
}

// served is a `rillbox serve` with one client on its standard input and output.
type served struct {
	temp    string // its TMPDIR
	process *os.Process
	keeper  int // the process ID of its keeper, once it had a child
	stdin   *os.File
	gate    *gate
	session *mcp.ClientSession
	stderr  *lockedBuffer

	exited chan struct{} // closed when it has ended, and state is known
	state  *os.ProcessState

	mu    sync.Mutex
	calls map[string]*ongoing // by progress token
}

// serve starts a server of programs that may start processes.
func serve(t testing.TB, temp string, more ...string) *served {
	t.Helper()
	path := buildProgram(t)
	for _, language := range []job.Language{job.JavaScript, job.Python} {
		newEngine(t, language, nil, launcher.Best) // all is in the cache from here on
	}
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &served{temp: temp, stdin: inWrite, gate: newGate(outRead), stderr: &lockedBuffer{}, exited: make(chan struct{}), calls: map[string]*ongoing{}}
	cmd := exec.Command(path, append([]string{"serve"}, more...)...)
	cmd.Env = []string{
		"HOME=" + temp, "TMPDIR=" + temp, "PATH=" + os.Getenv("PATH"),
		"RILLBOX_CACHE_DIR=" + openShared(t).Dir(), "RILLBOX_OFFLINE=true",
		"DENO_PERMISSION_ARGS=--allow-run", "PYODIDE_PERMISSION_ARGS=--allow-run",
	}
	cmd.Dir = temp
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inRead, outWrite, s.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = inRead.Close()
	_ = outWrite.Close()
	s.process = cmd.Process
	go func() {
		_ = cmd.Wait() // what it says is in state
		s.state = cmd.ProcessState
		close(s.exited)
	}()
	t.Cleanup(func() {
		_ = s.process.Kill()
		<-s.exited
		s.gate.open()
		_ = s.stdin.Close()
		_ = outRead.Close()
		if t.Failed() {
			for _, p := range s.remains(t) {
				_ = syscall.Kill(p.pid, syscall.SIGKILL)
			}
			t.Logf("the server's log:\n%s", s.stderr.String())
		}
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "test"}, &mcp.ClientOptions{ProgressNotificationHandler: s.hear})
	s.session, err = client.Connect(context.WithoutCancel(t.Context()), &mcp.IOTransport{Reader: s.gate, Writer: s.stdin}, nil)
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, s.stderr.String())
	}
	return s
}

// ongoing is a call of run_code.
type ongoing struct {
	id     chan string   // its execution ID, when it was told
	ready  chan struct{} // closed when it printed "ready"
	once   sync.Once
	cancel context.CancelFunc // takes the call back
	done   chan struct{}      // closed when there is an answer
	answer answer
	err    error
}

// start calls run_code.
func (s *served) start(t *testing.T, arguments map[string]any) *ongoing {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	o := &ongoing{id: make(chan string, 1), ready: make(chan struct{}), cancel: cancel, done: make(chan struct{})}
	s.mu.Lock()
	token := fmt.Sprint("call ", len(s.calls))
	s.calls[token] = o
	s.mu.Unlock()
	params := &mcp.CallToolParams{Name: "run_code", Arguments: arguments}
	params.SetProgressToken(token)
	go func() {
		defer close(o.done)
		var result *mcp.CallToolResult
		if result, o.err = s.session.CallTool(ctx, params); o.err == nil {
			o.answer, o.err = decodeAnswer(result)
		}
	}()
	return o
}

// run calls run_code and waits for the answer.
func (s *served) run(t *testing.T, arguments map[string]any) answer {
	t.Helper()
	o := s.start(t, arguments)
	<-o.done
	if o.err != nil {
		t.Errorf("no answer: %v", o.err)
	}
	return o.answer
}

// awaitReady waits until the program printed "ready".
func (o *ongoing) awaitReady(t *testing.T) {
	t.Helper()
	select {
	case <-o.ready:
	case <-o.done:
		t.Fatalf("the program ended before it was ready: %+v %v", o.answer, o.err)
	}
}

var startedExecution = regexp.MustCompile(`^started execution (\w+)$`)

func (s *served) hear(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
	token, _ := n.Params.ProgressToken.(string)
	s.mu.Lock()
	o := s.calls[token]
	s.mu.Unlock()
	if o == nil {
		return
	}
	if m := startedExecution.FindStringSubmatch(n.Params.Message); m != nil {
		o.id <- m[1]
	}
	if strings.Contains(n.Params.Message, "ready") {
		o.once.Do(func() { close(o.ready) })
	}
}

// remains are the processes of the server's children, their descendants, and
// its keeper: whoever has the server's TMPDIR or cgroups about them.
func (s *served) remains(t testing.TB) []process {
	t.Helper()
	var left []process
	for _, p := range belonging(t, s.temp, cgroupWord(s.process.Pid)) {
		if p.pid != s.process.Pid {
			left = append(left, p)
		}
	}
	return left
}

// noteKeeper finds the server's keeper, which has nothing of it about itself.
func (s *served) noteKeeper(t testing.TB) {
	t.Helper()
	for _, p := range childrenOf(t, s.process.Pid) {
		if strings.HasPrefix(p.command, "rillbox-keeper") {
			s.keeper = p.pid
		}
	}
	if s.keeper == 0 {
		t.Error("the server has no keeper")
	}
}

// keeperLeft is the keeper while it lives.
func (s *served) keeperLeft() []process {
	if p, alive := readProcess(s.keeper); alive && strings.HasPrefix(p.command, "rillbox-keeper") {
		return []process{p}
	}
	return nil
}

// checkNothingRuns checks that within a second of now nothing is left of what
// the server ran, and says how long the last process, and the last directory
// and cgroup, took.
func (s *served) checkNothingRuns(t *testing.T) (processes, rest time.Duration) {
	t.Helper()
	start := time.Now()
	processes = allGone(t, "processes", func() []process { return s.remains(t) })
	allGone(t, "directories", func() []string { return runDirsIn(t, s.temp) })
	allGone(t, "cgroups", func() []string { return cgroupsOf(t, s.process.Pid) })
	return processes, time.Since(start)
}

// checkEnd checks that the server ends by itself, with exit status 0, and that
// nothing of it is left.
func (s *served) checkEnd(t *testing.T) {
	t.Helper()
	select {
	case <-s.exited:
	case <-time.After(stays):
		t.Fatalf("the server did not end within %v", stays)
	}
	if code := s.state.ExitCode(); code != 0 {
		t.Errorf("the server's exit status is %d (%v)", code, s.state)
	}
	s.checkNothingRuns(t)
	allGone(t, "keeper", s.keeperLeft)
	allGone(t, "directories of the server", func() []string { return s.serverDirs(t) })
}

// serverDirs lists the servers' directories in TMPDIR.
func (s *served) serverDirs(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(s.temp, "rillbox-*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// gate is a reader that can be made to wait.
type gate struct {
	io.ReadCloser
	mu     sync.Mutex
	closed chan struct{} // closed itself when the gate is open
}

func newGate(r io.ReadCloser) *gate {
	g := &gate{ReadCloser: r}
	g.open()
	return g
}

func (g *gate) Read(p []byte) (int, error) {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	<-closed
	return g.ReadCloser.Read(p)
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		select {
		case <-g.closed:
			return
		default:
		}
	} else {
		g.closed = make(chan struct{})
	}
	close(g.closed)
}

// lockedBuffer is a buffer that can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// families start processes beside and below their own, some of which try to
// leave their group, their parents and their terminal, say "ready" when all are
// there, and go on for ever. Each has six processes at least.
var families = []map[string]any{
	{"language": "javascript", "code": familyOf + `for (;;);`},
	{"language": "typescript", "code": familyOf + `await new Promise((r) => setTimeout(r, 1e6));`},
	{"language": "python", "code": "from pyodide.code import run_js\nrun_js(" + fmt.Sprintf("%q", familyOf) + ")\nwhile True: pass"},
}

const familyOf = `
new Deno.Command("/bin/sh", {
  args: ["-c", "PATH=/usr/bin:/bin; sleep 1000 & (setsid sleep 1000 || sleep 1000) 2>/dev/null & (trap '' TERM HUP INT; sleep 1000 &); (sh -c 'sleep 1000 & exec sleep 1000' &); echo ready; wait"],
  stdin: "null",
  stdout: "inherit",
}).spawn();
`
