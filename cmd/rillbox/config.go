//go:build !windows

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func newConfigCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the settings in force and where each came from",
		Long: `Print the settings in force and where each came from, as a TOML file.

A setting is taken from its flag, else from its environment variable, else from
the file (--config FILE, else rillbox/config.toml in your configuration
directory), else from its default. Settings:

` + a.config.describe(),
		Example: `  rillbox config
  rillbox config > ~/.config/rillbox/config.toml
  RILLBOX_MEMORY=1GiB rillbox config --timeout 1m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.config.print(cmd.OutOrStdout())
		},
	}
	a.config.bindFlags(cmd.Flags(), ofServer)
	return cmd
}

// describe is the table of settings, for help.
func (c *config) describe() string {
	var b strings.Builder
	for _, s := range c.settings {
		fmt.Fprintf(&b, "  %-24s %s\n  %-24s   (%s, default %q)\n", s.key, s.help, "", s.env, s.value)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// print writes the settings in force as TOML, with a comment on where each is from.
func (c *config) print(w io.Writer) error {
	for _, s := range c.settings {
		line, err := toTOML(s.value)
		if err != nil {
			return fmt.Errorf("setting %s: %w", s.key, err)
		}
		from := s.from
		if v, ok := s.value.(interface{ hidden() string }); ok {
			from += v.hidden()
		}
		if _, err := fmt.Fprintf(w, "%-46s # %s\n", s.key+" = "+line, from); err != nil {
			return err
		}
	}
	return nil
}
