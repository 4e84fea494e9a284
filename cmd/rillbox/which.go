//go:build !windows

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"rillbox/cache"
	"rillbox/cmd/rillbox/terminal"
	"rillbox/deno/binary"
	"rillbox/pyodide"
	"rillbox/supervisor/job"
)

// newWhichCommand is for those who work on rillbox: its checks run with the same
// Deno as its programs, and its measurements load the same Pyodide.
func newWhichCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:       "which deno|pyodide",
		Short:     "Print where the Deno or the Pyodide in use is, fetching it if need be",
		Hidden:    true,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"deno", "pyodide"},
		RunE: a.withCache(func(cmd *cobra.Command, store *cache.Cache) error {
			progress := terminal.NewProgress(a.quiet)
			defer progress.Clear()
			tell := func(stage string, done, total int64) {
				progress.Show(job.Event{Text: stage, Done: done, Total: total})
			}
			if cmd.Flags().Arg(0) == "deno" {
				found, err := binary.Locate(cmd.Context(), binary.LocateOptions{Cache: store, Path: a.config.Engine.DenoPath, Progress: tell})
				return printPath(cmd, found, err)
			}
			found, err := pyodide.LocateDistribution(cmd.Context(), pyodide.LocateOptions{
				Cache: store, Path: a.config.Engine.Path, Mirror: a.config.Engine.Mirror, Progress: tell,
			})
			return printPath(cmd, found.Dir, err)
		}),
	}
	a.config.bindFlags(cmd.Flags(), ofRun)
	return cmd
}

func printPath(cmd *cobra.Command, path string, err error) error {
	if err == nil {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
	}
	return err
}
