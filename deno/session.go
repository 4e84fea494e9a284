//go:build !windows

package deno

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"rillbox/cache/egress"
	"rillbox/deno/modules"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
	"rillbox/supervisor/wire"
)

// A session is one Deno process that evaluates one cell after the other. Its entry
// module is session.ts, its current directory the workspace. Cells are scripts, not
// modules: the process's inspector evaluates them, as a debugger's console does, so
// that what they declare lasts. Their imports are dynamic ones, for which Deno asks
// for permission.
//
// The inspector gives two things that deno repl lacks: a cell that does not end can be
// interrupted with the state kept, and packages can be added that were not known when
// the process started.
//
// The inspector listens on loopback, so the second wall lets the process listen on a
// port of the system's choice, and connect to none. The rest of its address is
// secret: the process told it before any guest code came.
type session struct {
	engine    *Engine
	language  job.Language
	workspace string // the session's directory; empty if it has none
	// permissions are those for imports; what the guest may do was decided at the start.
	permissions permission.Permissions
	policy      egress.Policy
	child       *sandbox.Child
	inspector   *inspector
	object      string // names session.ts's Session
	modules     *sessionModules
	stdin       *cellInput
	pauses      pauses
	ended       chan struct{}
	exit        sandbox.Exit // set when ended is closed

	// Used by the cell that runs; the supervisor runs one at a time.
	cells    int
	packages packages
	asked    []string // what cells named as packages, in place of what a manifest says
	jsx      string   // the package that made the last elements of JSX

	mu    sync.Mutex
	shown *wire.Displays // of the cell that runs
	wrong error          // why a frame can't be used
}

var _ job.SessionOpener = (*Engine)(nil)

// OpenSession starts a process for one session.
func (e *Engine) OpenSession(ctx context.Context, o job.SessionOptions, emit func(job.Event)) (job.Session, error) {
	granted, err := e.options.Permissions.Narrow(o.Most, o.Permissions)
	if err != nil {
		return nil, job.Refuse("%v", err)
	}
	if err := e.locate(ctx, emit); err != nil {
		return nil, err
	}
	s := &session{
		engine: e, language: o.Language, workspace: o.Workspace, permissions: granted, policy: e.options.Narrowed(o.Policy),
		ended:    make(chan struct{}),
		pauses:   pauses{at: make(chan bool, 1), resumed: make(chan struct{}, 1), internal: map[string]bool{}, guest: fileURL(e.guest)},
		packages: packages{exact: map[string]string{}},
	}
	s.child, err = e.start(granted, func(c *sandbox.Command, guest string, around *permission.Surroundings) error {
		return s.command(o, c, guest, around)
	})
	if err != nil {
		return nil, errors.Join(err, s.stdin.close())
	}
	if err := s.begin(ctx); err != nil {
		select {
		case <-s.ended: // by itself, and says how
			err = errors.New("its process has ended")
		case <-time.After(100 * time.Millisecond):
		}
		s.Close()
		return nil, fmt.Errorf("start a session: %w (%s) %s", err, s.exit.Reason, s.exit.Stderr)
	}
	s.child.Pause()
	return s, nil
}

// inspectorLog has Deno tell the inspector's address, and errors, and nothing else.
const inspectorLog = "DENO_LOG=error,deno_inspector_server=info/Debugger listening|rror"

// command writes the session's files into its directory, and completes its command.
func (s *session) command(o job.SessionOptions, c *sandbox.Command, guest string, around *permission.Surroundings) (err error) {
	e := s.engine
	ownPath := filepath.Join(c.Dir, ownDir)
	denoPath, modulesPath := filepath.Join(ownPath, "deno"), filepath.Join(ownPath, "modules")
	if err := modules.MakeDenoDir(denoPath); err != nil {
		return fmt.Errorf("make the session's directory: %w", err)
	}
	if s.modules, err = newSessionModules(modulesPath); err != nil {
		return err
	}
	denoDir := around.See(denoPath, filepath.Join(permission.RunName, "deno"), launcher.Read|launcher.Write)
	readable, err := modules.ShowModules(around, modulesPath, denoPath, denoDir)
	if err != nil {
		return fmt.Errorf("make the session's directory: %w", err)
	}
	around.Dial()
	permissions, cwd := s.permissions.With("allow-read", readable...), o.Workspace
	if cwd != "" {
		cwd = around.Workspace(cwd, o.ReadOnly)
		permissions = permissions.WithWorkspace(cwd, o.ReadOnly)
	}
	if err := permission.CheckPaths(cwd, denoDir, e.options.Cache.Dir()); err != nil {
		return err
	}
	var stdin *os.File
	if s.stdin, stdin, err = newCellInput(filepath.Join(ownPath, "stdin")); err != nil {
		return err
	}
	args := []string{
		"run", "--quiet", "--no-config", "--node-modules-dir=none", "--no-prompt", "--cached-only", "--no-code-cache", "--no-lock",
		"--inspect-wait=127.0.0.1:0", "--inspect-publish-uid=stderr",
		"--v8-flags=--max-old-space-size=" + strconv.FormatInt(max(e.options.Limits.Memory>>20, 16), 10),
	}
	args = append(append(args, e.flags(permissions, around, denoDir)...), filepath.Join(guest, "session.js"))
	c.Args, c.OwnDir, c.WorkDir, c.Cwd, c.Stdin = args, ownPath, o.Workspace, cmp.Or(cwd, denoDir), stdin
	c.Env = append(e.environment(denoDir), inspectorLog, "NPM_CONFIG_REGISTRY="+sessionRegistry, "JSR_NPM_URL="+sessionRegistry)
	c.JoinLater = true // no cell comes before the child has its baseline
	return nil
}

// begin waits until the process takes cells.
func (s *session) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("the start of Deno took longer than %v", startTime))
	defer cancel()
	var told bytes.Buffer
	address := make(chan string, 1)
	s.child.Attach(context.Background(), func(ev job.Event) {
		if ev.Kind != job.Stderr || told.Len() > modules.MaxExplained {
			return
		}
		told.Write(ev.Data)
		if m := inspectorAddress().FindSubmatch(told.Bytes()); m != nil {
			select {
			case address <- string(m[1]):
			default:
			}
		}
	})
	go func() {
		s.exit = s.child.Wait()
		s.disconnect()
		_ = s.stdin.close()
		close(s.ended)
	}()
	select {
	case to := <-address:
		if err := s.connect(ctx, to); err != nil {
			return err
		}
	case <-s.child.Ended():
		return errors.New("its process has ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.child.EndCell()
	s.child.MarkBaseline()
	return nil
}

var inspectorAddress = modules.Pattern(`Debugger listening on (ws://127\.0\.0\.1:\d+/[0-9a-f-]{36})\n`)

// connect gives the entry module what it waits for, and takes what it offers.
func (s *session) connect(ctx context.Context, address string) error {
	limits := s.engine.options.Limits
	ready := make(chan struct{})
	begun := false
	limit := 2*(limits.Result+limits.Displays) + frameRoom // a text in a text has its quotes escaped
	i, err := dialInspector(ctx, s.child, address, int(min(limit, math.MaxInt32)), func(n notification) {
		switch n.Method {
		case "Runtime.bindingCalled":
			if begun {
				s.takeFrame(n.Params)
				return
			}
			begun = true // the first call says so
			close(ready)
		case "Runtime.executionContextDestroyed":
			go s.disconnect() // else Deno waits for it before it exits
		default:
			s.pauses.take(n)
		}
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.inspector = i
	s.mu.Unlock()
	if err := i.call(ctx, "Runtime.addBinding", map[string]any{"name": "rillbox"}, nil); err != nil {
		return err
	}
	if err := i.call(ctx, "Runtime.runIfWaitingForDebugger", nil, nil); err != nil {
		return err
	}
	select {
	case <-ready:
	case <-i.ended:
		return errInspectorEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var taken evaluated
	take := "(() => { const { rillbox } = globalThis; delete globalThis.rillbox; return rillbox; })()"
	if err := i.call(ctx, "Runtime.evaluate", map[string]any{"expression": take}, &taken); err != nil {
		return err
	}
	if s.object = taken.Result.ObjectID; s.object == "" {
		return fmt.Errorf("%w: session.ts offers nothing", wire.ErrProtocol)
	}
	return nil
}

// disconnect ends the inspector's connection, if there is one.
func (s *session) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inspector != nil {
		s.inspector.close()
	}
}

// takeFrame takes a display of the guest's. Frames and answers come in order, so all
// displays of a cell are there when its value is.
func (s *session) takeFrame(params json.RawMessage) {
	var called struct {
		Payload string `json:"payload"`
	}
	err := json.Unmarshal(params, &called)
	var frame wire.Frame
	if err == nil {
		frame, err = wire.DecodeFrame([]byte(called.Payload))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
	case frame.Type != wire.DisplayFrame:
		err = fmt.Errorf("%w: a frame of type %.40q in a session", wire.ErrProtocol, frame.Type)
	case s.shown != nil: // nil between two cells
		err = s.shown.Add(frame)
	}
	if err != nil {
		s.wrong = err
		s.child.Kill(job.Crashed, err.Error())
	}
}

// Memory is how many bytes the process uses now.
func (s *session) Memory() int64 { return s.child.Memory() }

// Ended is closed when the process has ended.
func (s *session) Ended() <-chan struct{} { return s.ended }

// Close ends the process and waits for its end.
func (s *session) Close() {
	s.child.Kill(job.Cancelled, "the session was ended")
	<-s.ended
}
