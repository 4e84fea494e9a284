//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rillbox/server"
	"rillbox/server/audit"
	"rillbox/server/metrics"
	"rillbox/server/stdio"
	"rillbox/server/traces"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
)

func newServeCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP on standard input and output, or over HTTP",
		Long: `Serve the Model Context Protocol on standard input and output, for a chat or an
agent that starts it. It answers at once; runtimes that are missing are fetched in
the background, and a program that needs one waits for it. Logs go to stderr: lines
for people at a terminal, JSON lines otherwise. Each run is one: whose, in which
language, with which packages, how it ended and what it took; nothing of its code,
input or output.

What programs may do is told by DENO_PERMISSION_ARGS (JavaScript and TypeScript)
and PYODIDE_PERMISSION_ARGS (Python), as Deno permission flags; nothing by default.
Each session has a directory of its own for its files, which ends with it. With
--workspace DIR, all sessions and programs have that one instead, to read and
write, as much as the disk holds; with DIR:ro, to read only.

With --http ADDR it serves many clients over HTTP, at http://ADDR:8848/mcp, with a page
for people at /. Others than this machine's reach it only with tokens and TLS:
docs/http.md tells of these, of metrics, logs and audit.

Every setting that ` + "`rillbox config --help`" + ` lists is a flag here, such as
--memory 1GiB or --running 8.`,
		Example: `  rillbox serve
  rillbox serve --http 127.0.0.1

  In the client's configuration:
  {"mcpServers": {"rillbox": {
    "command": "rillbox", "args": ["serve"],
    "env": {"DENO_PERMISSION_ARGS": "--allow-net=api.github.com"}}}}`,
		Args: cobra.NoArgs,
		RunE: a.serve,
	}
	a.config.bindFlags(cmd.Flags(), ofServer, "timeout", "memory", "workspace", "http")
	cmd.Flags().BoolVar(&a.config.Server.Conformance, "conformance", false, "serve what the conformance suite of MCP asks for too")
	cmd.Flag("conformance").Hidden = true
	return cmd
}

func (a *app) serve(cmd *cobra.Command, _ []string) error {
	sockets, err := activation.Listeners() // before another file has one of their numbers
	if err != nil {
		return fmt.Errorf("take the service manager's sockets: %w", err)
	}
	if err := keepStdoutForMCP(); err != nil {
		return err
	}
	h := a.config.HTTP
	overHTTP := h.Address != "" || len(sockets) > 0
	if len(sockets) > 0 && h.Address != "" && h.Address != fromSystemd {
		a.log.Warn("the sockets of the service manager are not used: http names another address", "http", h.Address)
		for _, socket := range sockets {
			if socket != nil {
				_ = socket.Close() // nobody is to wait at it
			}
		}
	}
	ctx, stop := untilEnded(cmd.Context())
	limit := endTime
	hangups := make(chan os.Signal, 1)
	if overHTTP {
		stop() // for this SIGHUP is no end
		signal.Notify(hangups, syscall.SIGHUP)
		ctx, stop = signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // a second one ends us at once
		limit += h.Grace
	}
	defer stop()
	ended := make(chan struct{})
	defer close(ended)
	go a.exitAfter(limit, ctx, ended)
	engines, err := a.open()
	if err != nil {
		return err
	}
	defer engines.Close() // children first, whatever the reason for the end

	a.log.Info("starting", "version", version(), "workspace", formatShared(engines.shared))
	a.logWall()
	options := a.config.Server
	options.Supervisor, options.Version, options.Offline, options.Log = engines.Supervisor, version(), a.config.Cache.Offline, a.log
	if overHTTP {
		options.CallTime = a.config.Limits.MaxTimeout + a.config.Limits.InstallTimeout + maxWait
	}
	counted := metrics.New(metrics.Options{
		Supervisor: engines.Supervisor, Version: version(), Lookups: engines.cache.Lookups,
		CacheBytes: func() (int64, error) { info, err := engines.cache.Info(); return info.Bytes, err },
	})
	options.Lookups = engines.cache.Lookups
	hear := []func(server.Record){counted.Ended}
	options.Ended = func(r server.Record) {
		for _, ended := range hear {
			ended(r)
		}
	}
	var reload []func()
	if a.config.AuditLog != "" {
		log, err := audit.Open(a.config.AuditLog, a.log)
		if err != nil {
			return usageError{fmt.Errorf("audit_log: %w", err)}
		}
		defer log.Close()
		hear, reload = append(hear, log.Ended), append(reload, log.Reopen)
	}
	var traceRequest func(*http.Request) func(int)
	if traces.Wanted(a.config.OTLP) {
		tracer, err := traces.Open(ctx, a.config.OTLP, version(), a.log)
		if err != nil {
			return usageError{fmt.Errorf("otlp_endpoint: %w", err)}
		}
		defer closeTracer(tracer)
		hear, traceRequest = append(hear, tracer.Ended), tracer.Request
	}
	endAside, err := a.serveAside(counted)
	if err != nil {
		return err
	}
	defer endAside()
	srv := server.New(options)
	if err := checkTools(options.Tools, srv.Tools()); err != nil {
		return usageError{fmt.Errorf("allow_tools and deny_tools: %w", err)}
	}
	preparing, cancel := context.WithCancel(ctx)
	var prepared sync.WaitGroup
	for _, t := range engines.Toolchains() {
		prepared.Go(func() {
			if !overHTTP { // else nobody may call before we are ready
				select {
				case <-srv.Greeted():
				case <-preparing.Done():
					return
				}
			}
			a.prepare(preparing, t)
		})
	}
	defer prepared.Wait()
	defer cancel()
	if overHTTP {
		err = a.serveHTTP(ctx, srv, beside{supervisor: engines.Supervisor, metrics: counted, ready: func() error { return a.ready(engines) }, sockets: sockets, hangups: hangups, reload: reload, trace: traceRequest})
	} else {
		if unused := a.config.ofHTTPAlone(); len(unused) > 0 {
			a.log.Warn("not over HTTP, for http is not set: these settings mean nothing here", "settings", unused)
		}
		a.log.Info("serving MCP on standard input and output")
		err = stdio.Run(ctx, srv, a.log)
	}
	stop() // the end has a limit, whatever its reason
	return err
}

// checkTools refuses lists that name what is no tool.
func checkTools(l server.ToolList, tools []string) error {
	var wrong []error
	for _, name := range l.Unknown(tools) {
		wrong = append(wrong, fmt.Errorf("there is no tool %q%s", name, didYouMean(name, tools)))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w: the tools are %s", errors.Join(wrong...), strings.Join(tools, ", "))
	}
	return nil
}

// endTime is how long a shutdown may take: more than each of its waits with a limit.
// Some have none, such as reading a file system that hangs.
const endTime = 12 * time.Second

// exitAfter exits when the shutdown that begins with ctx's end takes longer than limit.
// The children end with the process.
func (a *app) exitAfter(limit time.Duration, ctx context.Context, ended <-chan struct{}) {
	<-ctx.Done()
	select {
	case <-ended:
	case <-time.After(limit):
		a.log.Error("the shutdown takes too long; exiting", "limit", limit)
		os.Exit(statusBroken)
	}
}

// ready says why no program can be run now, in words for anybody.
func (a *app) ready(e *engines) error {
	for _, place := range []struct {
		name  string
		check func() error
	}{{"the cache", e.cache.CheckWritable}, {"the directory of programs", sandbox.CheckWritable}} {
		switch err := place.check(); {
		case err == nil:
		case place.name == "the cache" && (errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)):
			// What is in it can be used: an image with all that is wanted.
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
			return fmt.Errorf("nothing can be written to %s: the disk is full", place.name)
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("nothing can be written to %s: it was removed; restart the server", place.name)
		default:
			a.log.Error("not ready: nothing can be written to "+place.name, "err", err)
			return fmt.Errorf("nothing can be written to %s: the log has the reason", place.name)
		}
	}
	for _, t := range e.Toolchains() {
		if d := t.Describe(); !d.Ready {
			name := job.Listed(job.LanguageNames(d.Languages), "and")
			if a.config.Cache.Offline {
				return fmt.Errorf("the runtime for %s is not in the cache, and this server is offline: run `rillbox setup` with a network", name)
			}
			return fmt.Errorf("the runtime for %s is not here yet: it is being fetched", name)
		}
	}
	return nil
}

// closeTracer sends what is left of traces to a collector that takes them soon.
func closeTracer(t *traces.Tracer) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = t.Close(ctx) // it has told what it lost
}

// logWall logs what confines programs.
func (a *app) logWall() {
	wall := launcher.Offered()
	switch {
	case a.config.Engine.WithoutSecondWall:
		a.log.Warn("programs start without the kernel's wall, as without_second_wall says")
	case wall.Level < launcher.Namespaces:
		a.log.Warn("the wall around programs is not the best one", "wall", wall.Level.String(), "why", wall.Detail)
	default:
		a.log.Info("the wall around programs", "wall", wall.Level.String(), "why", wall.Detail)
	}
}

// prepare fetches what a toolchain lacks. Its failure is not the server's: a
// program that needs the toolchain tries again, and tells its client.
func (a *app) prepare(ctx context.Context, t job.Toolchain) {
	d := t.Describe()
	there := slices.DeleteFunc(slices.Clone(d.Languages), func(l job.LanguageInfo) bool { return slices.Contains(d.Missing, l.Name) })
	if len(there) == 0 {
		return // their first programs fetch what they need
	}
	name := job.Listed(job.LanguageNames(there), "and")
	stage := ""
	err := t.Prepare(ctx, func(e job.Event) {
		if e.Text != stage {
			stage = e.Text
			a.log.Info(stage, "language", name)
		}
	})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		a.log.Error("cannot prepare "+name+"; the next program that needs it tries again", "err", err)
	default:
		a.log.Info(name + " is ready")
	}
}

// keepStdoutForMCP gives os.Stdout a descriptor of its own and points
// descriptor 1 at stderr, so that a stray print, also of a library or of a child
// that inherits it, can't reach the client.
func keepStdoutForMCP() error {
	own, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return fmt.Errorf("cannot duplicate standard output: %w", err)
	}
	if err := unix.Dup2(int(os.Stderr.Fd()), 1); err != nil {
		return fmt.Errorf("cannot point descriptor 1 at standard error: %w", err)
	}
	os.Stdout = os.NewFile(uintptr(own), "MCP client")
	return nil
}
