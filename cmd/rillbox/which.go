//go:build !windows

package main

import (
	"fmt"

	"github.com/spf13/cobra"

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
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.openCache()
			if err != nil {
				return err
			}
			defer store.Close()
			progress := terminal.NewProgress(a.quiet)
			defer progress.Clear()
			tell := func(stage string, done, total int64) {
				progress.Show(job.Event{Text: stage, Done: done, Total: total})
			}
			var path string
			if args[0] == "deno" {
				var located binary.Binary
				located, err = binary.Locate(cmd.Context(), binary.LocateOptions{Cache: store, Path: a.config.DenoPath, Progress: tell})
				path = located.Path
			} else {
				var distribution pyodide.Distribution
				distribution, err = pyodide.LocateDistribution(cmd.Context(), pyodide.LocateOptions{
					Cache: store, Path: a.config.PyodidePath, CDN: a.config.CDNURL, Progress: tell,
				})
				path = distribution.Dir
			}
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
