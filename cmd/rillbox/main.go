//go:build !windows

// Command rillbox runs JavaScript, TypeScript and Python with any package, in a
// sandbox, for a person at a terminal (`rillbox run`) and for an MCP client
// (`rillbox serve`).
//
// This package is wiring: the table of settings (settings.go), one file for each
// subcommand, and what is written to a terminal (terminal.go). Exit statuses are
// listed in exit.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rillbox/cmd/rillbox/terminal"
	"rillbox/deno"
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
	parsed     bool // flags, arguments and settings were in order
}

// execute runs the command line and returns the exit status.
func execute(args []string) int {
	a := &app{config: newConfig()}
	root := a.rootCommand()
	root.SetArgs(args)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go quitting(cancel)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var exit exitStatus
	if errors.As(err, &exit) {
		return int(exit)
	}
	if errors.Is(err, syscall.EPIPE) { // where SIGPIPE is ignored, which else ended us
		return statusPipe
	}
	terminal.PrintError(err)
	if !a.parsed {
		return statusUsage
	}
	return statusBroken
}

// untilEnded is a context that ends when a signal asks us to end.
func untilEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// quitting makes of Ctrl-\ another Ctrl-C, that also ends what Ctrl-C does not: Go
// would show its registers. A second one ends us at once.
func quitting(cancel func()) {
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
		Short: "Run JavaScript, TypeScript and Python with any package, in a sandbox",
		Long: `Rillbox runs JavaScript, TypeScript and Python with packages from npm, JSR, URLs
and the Python package index. Programs run in a sandbox that by default has no
files, no network, no environment and no other programs. What ran once runs again
without a network.`,
		Example: `  rillbox run report.py                     a file; its packages are found by its imports
  rillbox run -l ts -c 'console.log(6 * 7)' code on the command line
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
			if p, err := deno.Parse([]string{flag}); err == nil && len(p.Args()) > 0 && slices.Contains(names, "--permissions") {
				near = "; it is a permission flag of Deno: give it with --permissions"
			}
		}
		return fmt.Errorf("%w%s\n`%s --help` shows how to use it", err, near, cmd.CommandPath())
	})
	root.SetVersionTemplate(versionLine())
	root.AddCommand(
		newRunCommand(a),
		newReplCommand(a),
		newServeCommand(a),
		newSetupCommand(a),
		newCacheCommand(a),
		newDoctorCommand(a),
		newConfigCommand(a),
		newVersionCommand(a),
		newWhichCommand(a),
	)
	return root
}
