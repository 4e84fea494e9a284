//go:build !windows

// Command rillbox runs JavaScript, TypeScript and Python with any package, and other
// languages, in a sandbox, for a person at a terminal (`rillbox run`) and for an MCP client
// (`rillbox serve`).
//
// This package is wiring: the table of settings (settings.go), the table of languages
// (languages.go) and one file for each subcommand. What a terminal shows is in package
// terminal.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rillbox/cmd/rillbox/terminal"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
)

func main() {
	os.Exit(execute(os.Args[1:]))
}

// app is what the subcommands share.
type app struct {
	config     *config
	configFile string
	quiet      bool
	log        *slog.Logger
	parsed     bool // flags and settings were in order
}

// execute runs the command line and returns the exit status.
func execute(args []string) int {
	a := &app{config: newConfig()}
	root := a.rootCommand()
	root.SetArgs(afterModule(root, args))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go cancelOnQuit(cancel)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var exit exitStatus
	if errors.As(err, &exit) {
		return int(exit)
	}
	if errors.Is(err, syscall.EPIPE) { // SIGPIPE is ignored here, or it had ended us
		return statusPipe
	}
	terminal.PrintError(err)
	refused := (*job.ProgramError)(nil)
	if usage := (usageError{}); !a.parsed || errors.As(err, &usage) || errors.As(err, &refused) {
		return statusUsage
	}
	return statusBroken
}

// untilEnded is a context that is cancelled by a signal that asks us to end.
func untilEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// Exit statuses that are not the program's own.
const (
	statusUsage     = 2   // the command line or a setting is wrong
	statusTimedOut  = 124 // the program's time was up, as timeout(1) has it
	statusBroken    = 125 // we failed, not the program
	statusCancelled = 130 // Ctrl-C or SIGTERM
	statusMemory    = 137 // the program used too much memory (128 + SIGKILL)
	statusPipe      = 141 // our output is closed (128 + SIGPIPE)
)

// usageError is the error of a wrong argument, or of a setting that can't be used.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitStatus is an error that sets the exit status, and was reported already.
type exitStatus int

func (exitStatus) Error() string { return "" }

// statusOf is the exit status that tells how a program ended.
func statusOf(r job.Result) error {
	switch r.Status {
	case job.Completed:
		return nil
	case job.TimedOut:
		return exitStatus(statusTimedOut)
	case job.OutOfMemory:
		return exitStatus(statusMemory)
	case job.Cancelled:
		return exitStatus(statusCancelled)
	}
	if r.ExitCode == 0 { // a crash that left no status of its own
		return exitStatus(1)
	}
	return exitStatus(r.ExitCode)
}

// cancelOnQuit makes Ctrl-\ cancel like Ctrl-C, also where Ctrl-C only interrupts a
// cell. Go would dump its stacks. A second one exits at once.
func cancelOnQuit(cancel func()) {
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	<-quit
	cancel()
	<-quit
	os.Exit(128 + int(syscall.SIGQUIT))
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "rillbox",
		Short: "Run JavaScript, TypeScript and Python with any package, and other languages, in a sandbox",
		Long: `Rillbox runs JavaScript, TypeScript and Python with packages from npm, JSR, URLs
and the Python package index, and bash, C, C++, SQL, R, Ruby and others with their
standard libraries. Programs run in a sandbox that by default has no files, no
network, no environment and no other programs. What ran once runs again without a
network.`,
		Example: `  rillbox run report.py                     a file; its packages are found by its imports
  rillbox run -l ts -c 'console.log(6 * 7)' code on the command line
  rillbox run -l sh -c 'seq 3 | tac'        another language; it is fetched once
  rillbox repl                              Python, statement by statement
  rillbox serve                             MCP on stdio, for a chat or an agent
  rillbox setup                             fetch everything now, to be offline later
  rillbox doctor                            does the sandbox hold on this machine?`,
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.config.load(a.configFile, os.Environ(), cmd.Flags()); err != nil {
				return err
			}
			a.log = a.newLogger(cmd.Name() == "serve")
			for _, text := range a.config.renamed {
				a.log.Warn(text)
			}
			a.parsed = true
			return nil
		},
	}
	root.PersistentFlags().StringVar(&a.configFile, "config", "", "TOML `file` of settings (default: rillbox/config.toml in your configuration directory)")
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no log but errors on stderr")
	a.config.bindFlags(root.PersistentFlags(), common, commonSettings...)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		near := ""
		if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) && invalid.GetFlag().Name == secretSetting {
			err = fmt.Errorf("--%s: %w", secretSetting, invalid.Unwrap())
		}
		if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
			var names []string
			cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
			flag := "--" + unknown.GetSpecifiedName()
			near = didYouMean(flag, names)
			if short := unknown.GetSpecifiedShortnames(); short != "" {
				flag, near = "-"+short, ""
			}
			if p, err := permission.Parse([]string{flag}); err == nil && len(p.Args()) > 0 && slices.Contains(names, "--permissions") {
				near = "; it is a permission flag of Deno: give it with --permissions"
			}
		}
		return fmt.Errorf("%w%s\n`%s --help` shows how to use it", err, near, cmd.CommandPath())
	})
	root.SetVersionTemplate(versionLine())
	root.AddCommand(
		newRunCommand(a),
		newLockCommand(a),
		newReplCommand(a),
		newServeCommand(a),
		newSetupCommand(a),
		newCacheCommand(a),
		newDoctorCommand(a),
		newConfigCommand(a),
		newTokenCommand(a),
		newVersionCommand(a),
		newWhichCommand(a),
		newLanguagesTopic(),
	)
	return root
}

// newLogger logs to stderr: lines for people, or JSON lines where a server's
// stderr is not a terminal.
func (a *app) newLogger(server bool) *slog.Logger {
	level, _ := zerolog.ParseLevel(a.config.LogLevel) // the setting admits known levels only
	if !server && a.config.from("log_level") == "default" {
		level = zerolog.WarnLevel
	}
	if a.quiet {
		level = zerolog.ErrorLevel
	}
	var out io.Writer = os.Stderr
	if !server || terminal.Is(os.Stderr) {
		console := zerolog.ConsoleWriter{Out: os.Stderr, NoColor: !terminal.Colours(os.Stderr), TimeFormat: time.TimeOnly}
		if !server {
			console.PartsExclude = []string{zerolog.TimestampFieldName}
		}
		out = console
	}
	return slog.New(zerolog.NewSlogHandler(zerolog.New(out).Level(level)))
}
