//go:build !windows

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"rillbox/cache"
	"rillbox/supervisor/job"
)

func newCacheCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Look at the cache, verify it, make it smaller, empty it; take it elsewhere",
		Long: `The cache holds runtimes, packages and what is made of them. Servers and runs
share it, also at once; what a living process uses is never removed.`,
		Example: `  rillbox cache info
  rillbox cache verify
  rillbox cache trim --max 2GiB
  rillbox cache clear
  rillbox cache export report.py -o report.rbx
  rillbox cache import report.rbx --sha256 HEX`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	sub := func(use, short string, body func(*cobra.Command, *cache.Cache) error) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: a.withCache(body)}
		cmd.AddCommand(c)
		return c
	}
	sub("info", "Say what the cache holds", printInfo)
	sub("verify", "Hash every entry anew, and remove those that are corrupt", verifyCache).Long = `Hash every entry anew: runtimes, snapshots, packages, install plans and what is
compiled. Those that are corrupt are removed; they are fetched or made again when
they are wanted next. The exit status is 1 if there were any.`
	var limit int64
	sub("trim", "Remove what was not used for longest, down to a size", func(cmd *cobra.Command, store *cache.Cache) error {
		if !cmd.Flags().Changed("max") {
			limit = a.config.Cache.MaxBytes
		}
		freed, err := store.Trim(cmd.Context(), limit)
		return printFreed(cmd, freed, err)
	}).Flags().Var(size(&limit, 0), "max", "`SIZE` to trim to, such as 2GiB (default: cache_max_bytes)")
	sub("clear", "Remove everything", func(cmd *cobra.Command, store *cache.Cache) error {
		freed, err := store.Clear(cmd.Context())
		return printFreed(cmd, freed, err)
	})
	cmd.AddCommand(newExportCommand(a), newImportCommand(a))
	return cmd
}

func verifyCache(cmd *cobra.Command, store *cache.Cache) error {
	report, err := store.Verify(cmd.Context())
	if err != nil {
		return fmt.Errorf("cannot verify the cache: %w", err)
	}
	out := cmd.OutOrStdout()
	for _, entry := range report.Corrupt {
		fmt.Fprintln(out, "corrupt, removed:", job.ShowLine(entry, 4096))
	}
	for _, entry := range report.Left {
		fmt.Fprintln(out, "corrupt:", job.ShowLine(entry, 4096))
	}
	corrupt := len(report.Corrupt) + len(report.Left)
	fmt.Fprintf(out, "%d entries checked, %d corrupt, %d removed\n", report.Checked, corrupt, len(report.Corrupt))
	fmt.Fprint(out, unknownModules(report.Unknown))
	if corrupt > 0 {
		return exitStatus(1)
	}
	return nil
}

// openCache opens the cache that the settings name.
func (a *app) openCache() (*cache.Cache, error) {
	options := a.config.Cache
	options.Log = a.log
	return cache.Open(a.config.CacheDir, options)
}

// withCache is a command's body that needs nothing but the cache.
func (a *app) withCache(body func(*cobra.Command, *cache.Cache) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		store, err := a.openCache()
		if err != nil {
			return err
		}
		defer store.Close()
		return body(cmd, store)
	}
}

func printInfo(cmd *cobra.Command, store *cache.Cache) error {
	info, err := store.Info()
	if err != nil {
		return fmt.Errorf("cannot look at the cache: %w", err)
	}
	w := cmd.OutOrStdout()
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "kind\tentries\tsize")
	for _, kind := range slices.Sorted(maps.Keys(info.Kinds)) {
		k := info.Kinds[kind]
		fmt.Fprintf(table, "%s\t%d\t%s\n", kind, k.Count, megabytes(k.Bytes))
	}
	fmt.Fprintf(table, "all\t\t%s\tin %s\n", megabytes(info.Bytes), info.Dir)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprint(w, unknownModules(info.Unknown))
	return err
}

// unknownModules is a line on modules of which nothing tells what they should be.
func unknownModules(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d modules that an earlier version fetched can't be verified, and are not used; `rillbox cache clear` removes them\n", n)
}

func printFreed(cmd *cobra.Command, freed cache.Freed, err error) error {
	if err != nil {
		return fmt.Errorf("cannot make the cache smaller: %w", err)
	}
	inUse := ""
	if freed.InUse > 0 {
		inUse = fmt.Sprintf("; %d are in use by a living process", freed.InUse)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d entries removed, %s freed, %s left%s\n", freed.Entries, megabytes(freed.Bytes), megabytes(freed.Kept), inUse)
	return err
}

// megabytes is n bytes for people.
func megabytes(n int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/(1<<20)), ".0") + " MiB"
}
