//go:build !windows

package hostile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rillbox/cache"
	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/deno/binary"
	"rillbox/deno/permission"
	"rillbox/pyodide"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
	"rillbox/wasm"
)

// attack is one row. Its texts (code, earlier, meanwhile, args, grants) name
// what the attack goes for by these words:
//
//	%DIR%       a directory of the operator's outside of every grant, with
//	            secret.txt, secret.json, secret.mjs, secret.cjs, secret.ts,
//	            secret.py, a file named by the secret in names/, and run.sh, which
//	            makes the file ran; each holds the secret. A change there counts as
//	            evidence.
//	%GRANTED%   an empty directory that grants may name; no evidence
//	%HTTP%      host:port of a server of the operator's on loopback that answers
//	            every connection with the secret; %HTTPPORT% its port
//	%UNIX%      a socket's path, %ABSTRACT% an abstract socket's name (without
//	            its NUL), %UDP% a UDP port: what comes there counts as evidence
//	%VICTIM%    the ID of a process of the same user with the secret in its
//	            environment (VICTIM_SECRET) and memory; a signal to it, or its end,
//	            counts as evidence
//	%SERVER%    our own process ID; our environment holds the secret too
//	            (RILLBOX_HOSTILE_SECRET)
//	%RUNS%      the directory that holds all runs' directories
//	%CACHE%     the cache's directory
//	%SECRET%    the secret itself, for earlier and meanwhile alone
type attack struct {
	name     string // what it tries
	language job.Language
	file     string // the program's file name; empty is the language's default
	code     string
	args     []string
	stdin    string
	packages []string
	timeout  time.Duration // zero is runTimeout
	// earlier is a program that runs to its end before, meanwhile one that runs
	// at the same time (from its first output on); both with the same grants.
	earlier, meanwhile string

	// workspace gives a run a workspace of its own, as files that come with it do; a
	// session has one anyway.
	workspace bool

	grants []string // what the operator granted in the bounded run
	// narrowed is what the run asks for, of what was granted, in the control too;
	// nil is all of it.
	narrowed []string
	// control is what is granted in the control, which has no second wall
	// either; nil means everything.
	control []string
	// bare runs the control as a bare Deno process with all permissions and our
	// environment, outside of Rillbox. JavaScript and TypeScript only.
	bare bool
	// bareFlags are the bare process's flags beside --allow-all; they imply bare.
	bareFlags []string
	// noControl says why there is no control.
	noControl string
	// noCellControl says why the row shows nothing as a cell of a session without
	// the boundary, where it does as a program of its own.
	noCellControl string
	// spoils says that the row leaves its session of no use to others.
	spoils bool
	// waits says that the bounded cell waits for what does not come: an error in a
	// callback, which ends a program, ends no session.
	waits bool
	// prepare makes what the attack needs beside the scene.
	prepare func(t *testing.T, s *scene)
	// evidence tells what the run shows of success beside the secret and what
	// happened in the scene; empty is nothing.
	evidence func(s *scene, o outcome) string
	// ends are the ways that the bounded run may end in beside completed and
	// failed.
	ends []job.Status
	// least is the lowest wall behind which the attack comes to nothing; what levels
	// says, if it is not set.
	least launcher.Level
	// linux says that the attack exists on Linux alone.
	linux bool
}

// outcome is all that came of a run.
type outcome struct {
	job.Result
	err    error  // of the engine
	events string // what was emitted, in order
	frames string // what came on descriptor 3 of a bare process
}

// text is all that reached the client.
func (o outcome) text() string {
	text := []string{o.events, o.frames, o.Stdout.String(), o.Stderr.String(), string(o.Value), fmt.Sprint(o.Notes, o.Packages)}
	if o.Error != nil {
		text = append(text, o.Error.Name, o.Error.Message, o.Error.Traceback)
	}
	if o.err != nil {
		text = append(text, o.err.Error())
	}
	return strings.Join(text, "\n")
}

// try runs the rows, each as a subtest.
func try(t *testing.T, attacks []attack) {
	t.Helper()
	for _, a := range attacks {
		t.Run(strings.ReplaceAll(a.name, "/", "|"), func(t *testing.T) {
			if a.linux && runtime.GOOS != "linux" {
				t.Skip("this attack exists on Linux alone")
			}
			if len(a.grants) > 0 && launcher.Offered().Level < launcher.Landlock {
				t.Skip("what leads out of a grant is held by the second wall, which this machine does not have")
			}
			t.Parallel()
			if a.language == "" {
				a.language = job.JavaScript
			}
			if a.noControl == "" {
				onceShown(t, func() { a.runControl(t) })
			}
			a.runBounded(t)
		})
	}
	tryInSessions(t, attacks)
}

func (a attack) runBounded(t *testing.T) {
	for _, level := range a.levels(false) {
		s := newScene(t, a)
		engine := newEngine(t, a.language, s.fill(a.grants), level)
		a.checkBounded(t, level, s, a.run(t, s, engine, engine))
	}
}

// noWall is the level of controls.
const noWall launcher.Level = -1

// levels are the walls behind which the attack has to come to nothing: the best of
// this machine, and the least that has to hold it, which is Deno alone without a
// grant and Landlock elsewhere. Each holds all that the ones below it do, so that
// what is between them is for scripts/test --long.
func (a attack) levels(inSession bool) []launcher.Level {
	least := launcher.Deno
	if inSession || a.workspace || len(a.grants) > 0 {
		least = launcher.Landlock
	}
	least = max(least, a.least)
	levels := []launcher.Level{launcher.Best}
	for level := launcher.Offered().Level - 1; level >= least; level-- {
		if level == least || cachetest.Long() {
			levels = append(levels, level)
		}
	}
	return levels
}

// checkBounded checks that the attack came to nothing.
func (a attack) checkBounded(t *testing.T, level launcher.Level, s *scene, o outcome) {
	t.Helper()
	t.Logf("bounded, behind %v: %s", level, o.summary())
	if found := s.evidenceOf(o); len(found) > 0 {
		t.Errorf("behind %v the attack got through: %s\n%s", level, strings.Join(found, "; "), o.text())
	}
	// A run that did not happen holds nothing.
	if program := (*job.ProgramError)(nil); o.err != nil && !errors.As(o.err, &program) {
		t.Errorf("the bounded run failed: %v", o.err)
	}
	if o.Error != nil && o.Error.Name == "ProtocolError" && o.Duration == 0 {
		t.Errorf("the program was never started:\n%s", o.text())
	}
	ends := append(a.ends, job.Completed, job.Failed)
	if o.State == job.StateKept { // a cell that waits for what was refused: an error that nobody catches is no end of a session
		ends = append(ends, job.TimedOut)
	}
	if o.err == nil && !slices.Contains(ends, o.Status) || o.ExitCode == 125 {
		t.Errorf("the bounded run ended as %s\n%s", o.Status, o.text())
	}
}

func (a attack) runControl(t *testing.T) {
	s := newScene(t, a)
	var o outcome
	if a.bare || a.bareFlags != nil {
		o = a.runBare(t, s)
	} else {
		engine := newEngine(t, a.language, s.fill(a.grantedControl()), noWall)
		o = a.run(t, s, engine, engine)
	}
	a.checkControl(t, s, o)
}

// checkControl checks that the attack came to what it goes for.
func (a attack) checkControl(t *testing.T, s *scene, o outcome) {
	t.Helper()
	found := s.evidenceOf(o)
	for start := time.Now(); len(found) == 0 && time.Since(start) < 10*time.Second; found = s.evidenceOf(o) {
		time.Sleep(10 * time.Millisecond) // what was sent is on its way
	}
	if len(found) == 0 {
		t.Errorf("the attack is not shown to work without the boundary, so it shows nothing:\n%s\n%s", o.summary(), o.text())
	}
}

// run runs the row's program on an engine, and those before and meanwhile on
// another, which may be the same.
func (a attack) run(t *testing.T, s *scene, engine, others job.Engine) outcome {
	t.Helper()
	if a.earlier != "" {
		o := runProgram(t.Context(), others, job.Program{Language: a.language, Code: s.fillSecret(a.earlier)}, nil)
		if o.err != nil {
			t.Fatalf("the program before: %v", o.err)
		}
	}
	if a.meanwhile != "" {
		defer runMeanwhile(t, others, job.Program{Language: a.language, Code: s.fillSecret(a.meanwhile)})()
	}
	p := job.Program{
		Language: a.language,
		Name:     a.file,
		Code:     s.fillText(a.code),
		Args:     s.fill(a.args),
		Packages: a.packages,
		Timeout:  a.timeout,
	}
	if a.narrowed != nil {
		p.Permissions = s.fill(a.narrowed)
	}
	if _, isSession := engine.(*rowSession); a.workspace && !isSession {
		dir, err := sandbox.NewRunDir()
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		p.Workspace = dir
	}
	return runProgram(t.Context(), engine, p, nil, strings.NewReader(a.stdin))
}

// runMeanwhile starts a program, waits for its first output, and gives the
// function that ends it.
func runMeanwhile(t *testing.T, engine job.Engine, p job.Program) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	speaks, ended := make(chan bool), make(chan outcome, 1)
	var once sync.Once
	go func() {
		ended <- runProgram(ctx, engine, p, func(e job.Event) {
			if e.Kind == job.Stdout {
				once.Do(func() { close(speaks) })
			}
		})
	}()
	select {
	case <-speaks:
	case o := <-ended:
		t.Errorf("the program meanwhile ended before it said anything:\n%s", o.text())
		ended <- o
	}
	return func() {
		cancel()
		<-ended
	}
}

// runTimeout is above what any of the attacks needs.
const runTimeout = 20 * time.Second

func runProgram(ctx context.Context, engine job.Engine, p job.Program, hear func(job.Event), stdin ...io.Reader) outcome {
	p.ID = supervisor.NewID()
	if p.Timeout == 0 {
		p.Timeout = runTimeout
	}
	var o outcome
	var mu sync.Mutex // the engines' callers serialise events, as the supervisor does
	var events strings.Builder
	o.Result, o.err = engine.Run(ctx, p, job.Streams{Stdin: only(stdin), Emit: func(e job.Event) {
		mu.Lock()
		defer mu.Unlock()
		events.WriteString(e.Text)
		if events.Len() < 4<<20 {
			events.Write(e.Data)
		}
		if hear != nil {
			hear(e)
		}
	}})

	o.events = events.String()
	return o
}

// runBare runs the program as `deno run --allow-all` does, with our environment.
func (a attack) runBare(t *testing.T, s *scene) outcome {
	t.Helper()
	dir := t.TempDir()
	name := a.file
	if name == "" {
		name = map[job.Language]string{job.JavaScript: "main.js", job.TypeScript: "main.ts"}[a.language]
	}
	file := filepath.Join(dir, name)
	start := func(code string) outcome {
		write(t, file, code)
		return a.startBare(t, s, dir, file)
	}
	if a.earlier != "" {
		start(s.fillSecret(a.earlier))
	}
	return start(s.fillText(a.code))
}

func (a attack) startBare(t *testing.T, s *scene, dir, file string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, denoBinary(t), slices.Concat([]string{"run", "--quiet", "--no-prompt", "--allow-all"}, a.bareFlags, []string{file}, s.fill(a.args))...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DENO_DIR="+filepath.Join(dir, "deno"), "NO_COLOR=1")
	cmd.Stdin = strings.NewReader(a.stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	frames, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirs} // descriptor 3, as in a child of ours
	written := make(chan []byte)
	go func() {
		text, _ := io.ReadAll(frames)
		written <- text
	}()
	err = cmd.Run()
	_ = theirs.Close()
	o := outcome{Result: job.Result{Status: job.Completed, ExitCode: cmd.ProcessState.ExitCode()}}
	o.Stdout.Head, o.Stderr.Head = stdout.Bytes(), stderr.Bytes()
	o.frames = string(<-written)
	_ = frames.Close()
	if err != nil {
		o.Status = job.Failed
	}
	return o
}

func (o outcome) summary() string {
	if o.err != nil {
		return "refused: " + o.err.Error()
	}
	text := fmt.Sprintf("%s %d", o.Status, o.ExitCode)
	if o.Error != nil {
		text += " " + o.Error.Name + ": " + o.Error.Message
	}
	return fmt.Sprintf("%s out=%.300q err=%.300q value=%.300s", text, o.Stdout.String(), o.Stderr.String(), o.Value)
}

// Engines

// shared is what all tests use of the machine: made once, as fetching is slow.
var shared struct {
	once  sync.Once
	err   error
	cache *cache.Cache

	mu      sync.Mutex
	engines map[string]job.Toolchain
}

func openShared(t testing.TB) *cache.Cache {
	t.Helper()
	shared.once.Do(func() {
		shared.engines = map[string]job.Toolchain{}
		dir, err := cachetest.Dir()
		if err == nil {
			shared.cache, err = cache.Open(dir, cache.Options{})
		}
		shared.err = err
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cache
}

func denoBinary(t testing.TB) string {
	t.Helper()
	b, err := binary.Locate(t.Context(), binary.LocateOptions{Cache: openShared(t)})
	cachetest.NeedNetwork(t, err)
	return b
}

// newEngine gives the engine for a language with these grants, with all of it
// on this machine.
func newEngine(t testing.TB, language job.Language, grants []string, wall launcher.Level) job.Toolchain {
	t.Helper()
	store := openShared(t)
	permissions, err := permission.Parse(grants)
	if err != nil {
		t.Fatal(err)
	}
	python, assembled := language == job.Python, isAssembled(language)
	key := fmt.Sprint(python, assembled, wall, permissions.Args())
	withoutWall := wall == noWall
	if withoutWall {
		wall = launcher.Best
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if engine, made := shared.engines[key]; made {
		return engine
	}
	var engine job.Toolchain
	switch {
	case assembled:
		engine, err = wasm.New(wasm.Options{Options: deno.Options{Cache: store, Permissions: permissions, Limits: job.DefaultLimits(), Wall: wall, WithoutSecondWall: withoutWall}})
	case python:
		engine, err = pyodide.New(pyodide.Options{Options: deno.Options{Cache: store, Permissions: permissions, Limits: job.DefaultLimits(), Wall: wall, WithoutSecondWall: withoutWall}})
	default:
		warm := 0
		if len(grants) == 0 && wall == launcher.Best { // many rows share this one
			warm = 1
		}
		engine, err = deno.New(deno.Options{Cache: store, Permissions: permissions, Limits: job.DefaultLimits(), Wall: wall, WithoutSecondWall: withoutWall, Warm: warm})
	}
	if err != nil {
		t.Fatal(err)
	}
	cachetest.NeedNetwork(t, engine.Prepare(context.WithoutCancel(t.Context()), func(job.Event) {}))
	shared.engines[key] = engine
	return engine
}

// endEngines ends the engines that rows share, with what they keep started
// ahead; the next row makes its own anew.
func endEngines() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for _, engine := range shared.engines {
		engine.Close()
	}
	clear(shared.engines)
}

// TestMain puts a secret into our environment, where /proc shows it too, and
// plays the victim.
func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		playVictim()
		return
	}
	if os.Getenv(serverSecretEnv) == "" {
		self, err := os.Executable()
		if err == nil {
			err = syscall.Exec(self, os.Args, append(os.Environ(), serverSecretEnv+"="+newSecret()))
		}
		fmt.Fprintln(os.Stderr, "put a secret into the environment:", err)
		os.Exit(1)
	}
	code := m.Run()
	removeProgram()
	endEngines()
	if shared.cache != nil {
		if err := shared.cache.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if err := sandbox.RemoveServerDir(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Scenes

const (
	serverSecretEnv = "RILLBOX_HOSTILE_SECRET"
	victimEnv       = "RILLBOX_HOSTILE_VICTIM"
)

// newSecret is a text that nothing shows by chance.
func newSecret() string { return "secret" + strings.ToLower(rand.Text()) }

// scene is what an attack may go for: new for every run.
type scene struct {
	attack attack
	secret string
	words  map[string]string // by what texts name them
	before map[string]string // what dir held

	mu       sync.Mutex
	happened []string // side effects, as they came
}

// newScene makes what the attack's texts name.
func newScene(t *testing.T, a attack) *scene {
	t.Helper()
	s := &scene{attack: a, secret: newSecret()}
	dir, err := os.MkdirTemp("", "hostile-") // t.TempDir's may have a comma in it, which no permission flag can
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	granted, outside := filepath.Join(dir, "granted"), filepath.Join(dir, "outside")
	s.words = map[string]string{"%DIR%": outside, "%GRANTED%": granted, "%SERVER%": strconv.Itoa(os.Getpid()), "%CACHE%": openShared(t).Dir()}
	if err := errors.Join(os.MkdirAll(filepath.Join(outside, "names"), 0o755), os.Mkdir(granted, 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"secret.txt":        s.secret,
		"secret.json":       `{"secret":"` + s.secret + `"}`,
		"secret.mjs":        `export default "` + s.secret + `";`,
		"secret.ts":         `const text: string = "` + s.secret + `"; export default text;`,
		"secret.cjs":        `module.exports = "` + s.secret + `";`,
		"secret.py":         `secret = "` + s.secret + `"`,
		"names/" + s.secret: s.secret,
		"run.sh":            "#!/bin/sh\n: >" + filepath.Join(outside, "ran") + "\necho " + s.secret + "\n",
	} {
		write(t, filepath.Join(outside, name), text)
	}
	if err := os.Chmod(filepath.Join(outside, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if s.names("%RUNS%") {
		s.words["%RUNS%"] = runsDir(t)
	}
	if s.names("%HTTP") {
		s.serveHTTP(t)
	}
	if s.names("%UDP%") {
		s.serveUDP(t)
	}
	if s.names("%UNIX%") {
		s.words["%UNIX%"] = s.serveUnix(t, filepath.Join(outside, "socket"))
	}
	if s.names("%ABSTRACT%") {
		s.words["%ABSTRACT%"] = strings.TrimPrefix(s.serveUnix(t, "@"+newSecret()), "@")
	}
	if s.names("%VICTIM%") {
		s.words["%VICTIM%"] = s.startVictim(t)
	}
	if a.prepare != nil {
		a.prepare(t, s)
	}
	s.before = tree(outside)
	return s
}

func (s *scene) dir() string { return s.words["%DIR%"] }

// names says that one of the attack's texts has the word.
func (s *scene) names(word string) bool {
	a := s.attack
	texts := slices.Concat([]string{a.code, a.earlier, a.meanwhile}, a.args, a.grants, a.narrowed, a.control)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, word) })
}

func (s *scene) fillText(text string) string {
	for _, word := range slices.Sorted(maps.Keys(s.words)) {
		text = strings.ReplaceAll(text, word, s.words[word])
	}
	return text
}

func (s *scene) fill(texts []string) []string {
	filled := make([]string, len(texts))
	for i, text := range texts {
		filled[i] = s.fillText(text)
	}
	return filled
}

func (s *scene) fillSecret(text string) string {
	return strings.ReplaceAll(s.fillText(text), "%SECRET%", s.secret)
}

// happen notes a side effect of the attack.
func (s *scene) happen(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.happened = append(s.happened, fmt.Sprintf(format, args...))
}

// evidenceOf lists what shows that the attack succeeded.
func (s *scene) evidenceOf(o outcome) []string {
	s.mu.Lock()
	found := slices.Clone(s.happened)
	s.mu.Unlock()
	text := o.text()
	if strings.Contains(text, s.secret) {
		found = append(found, "the secret came out")
	}
	if strings.Contains(text, os.Getenv(serverSecretEnv)) {
		found = append(found, "the server's environment came out")
	}
	after := tree(s.dir())
	for _, path := range slices.Sorted(maps.Keys(s.before)) {
		if now, there := after[path]; !there {
			found = append(found, path+" is gone")
		} else if now != s.before[path] {
			found = append(found, path+" was changed")
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if _, there := s.before[path]; !there {
			found = append(found, path+" was made")
		}
	}
	if s.attack.evidence != nil {
		if what := s.attack.evidence(s, o); what != "" {
			found = append(found, what)
		}
	}
	return found
}

// tree describes everything in a directory: kinds, rights, times and contents.
func tree(dir string) map[string]string {
	held := map[string]string{}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			held[path] = err.Error()
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			held[path] = err.Error()
			return nil
		}
		owner := info.Sys().(*syscall.Stat_t)
		what := fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), owner.Uid, owner.Gid)
		if info.Mode().IsRegular() {
			text, _ := os.ReadFile(path)
			what += fmt.Sprintf(" %x", sha256.Sum256(text))
		}
		held[path] = what
		return nil
	})
	return held
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// runsDir is where runs' directories are made.
func runsDir(t *testing.T) string {
	t.Helper()
	dir, err := sandbox.NewRunDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(dir)
}

// serveHTTP answers every connection on loopback with the secret.
func (s *scene) serveHTTP(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			_, _ = io.WriteString(w, s.secret)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.happen("a connection came to the server on loopback")
			}
		},
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	s.words["%HTTP%"] = listener.Addr().String()
	s.words["%HTTPPORT%"] = strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

func (s *scene) serveUDP(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 2048)
		for {
			_, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			s.happen("a datagram came")
			_, _ = conn.WriteTo([]byte(s.secret), from)
		}
	}()
	s.words["%UDP%"] = strconv.Itoa(conn.LocalAddr().(*net.UDPAddr).Port)
}

// serveUnix answers every connection to a Unix socket with the secret.
func (s *scene) serveUnix(t *testing.T, name string) string {
	t.Helper()
	listener, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.happen("a connection came to the Unix socket")
			_, _ = io.WriteString(conn, s.secret)
			_ = conn.Close()
		}
	}()
	return name
}

// startVictim starts a process like any other of the user's.
func (s *scene) startVictim(t *testing.T) (pid string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{victimEnv + "=1", "VICTIM_SECRET=" + s.secret}
	cmd.Dir = s.dir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatal("the victim says nothing")
	}
	ended := make(chan bool)
	var over atomic.Bool // the test ends the victim itself
	go func() {
		defer close(ended)
		for lines.Scan() {
			s.happen("the victim got %s", lines.Text())
		}
		if !over.Load() {
			s.happen("the victim was ended")
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		over.Store(true)
		_ = stdin.Close()
		<-ended
	})
	return strconv.Itoa(cmd.Process.Pid)
}

// playVictim lives until its standard input ends, and tells of signals.
func playVictim() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGALRM)
	fmt.Println("ready")
	go func() {
		for s := range signals {
			fmt.Println(s)
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// only is the reader, if there is one.
func only(readers []io.Reader) io.Reader {
	if len(readers) == 0 {
		return nil
	}
	return readers[0]
}
