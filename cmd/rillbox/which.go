//go:build !windows

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"rillbox/cache"
	"rillbox/cmd/rillbox/terminal"
	"rillbox/deno"
	"rillbox/pyodide"
	"rillbox/supervisor"
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
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.openCache()
			if err != nil {
				return err
			}
			defer store.Close()
			progress := terminal.NewProgress(a.quiet)
			defer progress.Clear()
			path, err := a.locate(cmd.Context(), args[0], store, func(stage string, done, total int64) {
				progress.Show(supervisor.Event{Text: stage, Done: done, Total: total})
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
	a.config.bindFlags(cmd.Flags(), ofRun)
	return cmd
}

// locate finds Deno's binary or Pyodide's directory.
func (a *app) locate(ctx context.Context, what string, store *cache.Cache, tell func(stage string, done, total int64)) (string, error) {
	if what == "deno" {
		binary, err := deno.Locate(ctx, deno.LocateOptions{Cache: store, Path: a.config.DenoPath, Progress: tell})
		return binary.Path, err
	}
	distribution, err := pyodide.LocateDistribution(ctx, pyodide.LocateOptions{
		Cache: store, Path: a.config.PyodidePath, CDN: a.config.CDNURL, Progress: tell,
	})
	return distribution.Dir, err
}
