//go:build !windows

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"rillbox/deno"
	"rillbox/supervisor"
)

// newWhichCommand is for those who work on rillbox: its checks run with the same
// Deno as its programs.
func newWhichCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:       "which deno",
		Short:     "Print where the Deno in use is, fetching it if need be",
		Hidden:    true,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"deno"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := a.openCache()
			if err != nil {
				return err
			}
			defer store.Close()
			progress := a.newProgress()
			defer progress.clear()
			binary, err := deno.Locate(cmd.Context(), deno.LocateOptions{
				Cache: store,
				Path:  a.config.DenoPath,
				Progress: func(stage string, done, total int64) {
					progress.show(supervisor.Event{Text: stage, Done: done, Total: total})
				},
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), binary.Path)
			return err
		},
	}
	a.config.bindFlags(cmd.Flags(), ofRun)
	return cmd
}
