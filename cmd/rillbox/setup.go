//go:build !windows

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rillbox/cmd/rillbox/terminal"
	"rillbox/supervisor/job"
)

func newSetupCommand(a *app) *cobra.Command {
	var fetched []string
	for _, kind := range engineKinds {
		if !kind.many {
			fetched = append(fetched, kind.runtimes+" for "+kind.titles())
		}
	}
	cmd := &cobra.Command{
		Use:   "setup [LANG...]",
		Short: "Fetch and prepare the languages, so that later runs need no network",
		Long: `Fetch and prepare the languages named; without a name
` + strings.Join(fetched, ", ") + `.
Other languages are fetched when they are named here, or at their first run;
rillbox help languages lists them, with how much that is. Go's compiler is built,
with the Go of this machine. Packages are fetched by the programs that use them, at
their first run.`,
		Example: `  rillbox setup
  rillbox setup python
  rillbox setup bash sql r`,
		RunE: a.setup,
	}
	a.config.bindFlags(cmd.Flags(), ofRun)
	return cmd
}

func (a *app) setup(cmd *cobra.Command, args []string) error {
	var wanted []job.LanguageInfo
	if len(args) == 0 {
		wanted = everyday()
	}
	for _, name := range args {
		l, err := languageNamed(name)
		if err != nil {
			return usageError{err}
		}
		wanted = append(wanted, l)
	}
	ctx, stop := untilEnded(cmd.Context())
	defer stop()
	a.config.Engine.Warm = 0
	engines, err := a.open()
	if err != nil {
		return err
	}
	defer engines.Close()
	progress := terminal.NewProgress(a.quiet)
	defer progress.Clear()
	for _, t := range engines.Toolchains() {
		start := time.Now()
		var names []job.Language
		for _, l := range t.Describe().Languages {
			if slices.ContainsFunc(wanted, func(w job.LanguageInfo) bool { return w.Name == l.Name }) {
				names = append(names, l.Name)
			}
		}
		if len(names) == 0 {
			continue
		}
		name := job.Listed(names, "and")
		err := t.Prepare(ctx, progress.Show, names...)
		progress.Clear()
		if ctx.Err() != nil {
			return exitStatus(statusCancelled)
		}
		if err != nil {
			return fmt.Errorf("cannot set %s up: %w", name, err)
		}
		if !a.quiet {
			fmt.Fprintf(os.Stderr, "%s: ready (%.1f s)\n", name, time.Since(start).Seconds())
		}
	}
	return nil
}
