//go:build !windows

package main

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newTokenCommand(*app) *cobra.Command {
	return &cobra.Command{
		Use:   "token NAME",
		Short: "Make a token for a client of `serve --http`",
		Long: `Make a token for a client of ` + "`rillbox serve --http`" + `. The token is printed on stderr, once,
for the client; nothing keeps it. The lines for the server's tokens file (setting
auth_tokens) are printed on stdout: they hold its SHA-256. NAME is the client's
identity: what it makes belongs to that name. Beside its SHA-256, a token's table can have
limits, permissions, tools and packages of its own, within those of the settings:
docs/http.md lists them.`,
		Example: `  rillbox token ci >> tokens.toml && chmod 600 tokens.toml
  rillbox serve --http 127.0.0.1 --auth-tokens tokens.toml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errors.New("want one NAME, of the client that gets the token: rillbox token ci")}
			}
			if !isTokenName(args[0]) {
				return usageError{fmt.Errorf("%.80q can't name a token: use up to 64 letters, digits, dashes and underscores, but not %s", args[0], strings.Join(ownNames, " or "))}
			}
			token := "rillbox_" + rand.Text()
			if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "The token of %s, which is not shown again:\n%s\n", args[0], token); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "[%s]\nsha256 = \"%x\"\n", args[0], sha256.Sum256([]byte(token)))
			return err
		},
	}
}
