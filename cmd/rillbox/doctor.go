//go:build !windows

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rillbox/cmd/rillbox/terminal"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
)

// check is one thing that the doctor looked at.
type check struct {
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty"`
	// Problem says what is wrong; empty when nothing is.
	Problem string `json:"problem,omitempty"`
	// Lesser says that the problem takes something away, but breaks no promise.
	Lesser bool   `json:"lesser,omitempty"`
	Advice string `json:"advice,omitempty"`
}

func newDoctorCommand(a *app) *cobra.Command {
	var asJSON bool
	var address string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is installed, and whether the sandbox holds on this machine",
		Long: `Say what is installed, where, and of which version; run a tiny program in each
language that tries what a sandboxed program must not do; and say what to do about
what is wrong. Nothing is fetched: a language that is not set up is not tried.

With --http, say instead what a running server of MCP offers and lacks: how it is
encrypted, whom it lets in, which versions of the protocol and languages it has. Its
token comes from RILLBOX_AUTH_TOKEN.

The exit status is 1 when something is broken.`,
		Example: `  rillbox doctor
  rillbox doctor --json
  rillbox doctor --http https://rillbox.example.com/mcp`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilEnded(cmd.Context())
			defer stop()
			var checks []check
			var err error
			if address != "" {
				checks, err = a.examineHTTP(ctx, address)
			} else {
				checks, err = a.examine(ctx)
			}
			if ctx.Err() != nil { // what was cut short says nothing of the machine
				return exitStatus(statusCancelled)
			}
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), checks)
			} else {
				err = printChecks(cmd.OutOrStdout(), checks)
			}
			if err != nil {
				return err
			}
			if slices.ContainsFunc(checks, check.bad) {
				return exitStatus(1)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the checks as JSON")
	cmd.Flags().StringVar(&address, "http", "", "examine the server at this URL")
	a.config.bindFlags(cmd.Flags(), ofRun)
	return cmd
}

func (c check) bad() bool { return c.Problem != "" && !c.Lesser }

// examine makes all checks.
func (a *app) examine(ctx context.Context) ([]check, error) {
	a.config.Engine.Warm = 0 // nothing runs after it
	var shares []check
	if a.config.Workspace.Path != "" {
		c := check{Name: "workspace"}
		if shared, err := a.shared(); err == nil {
			c.Detail = formatShared(shared)
		} else {
			c.Problem, c.Advice = err.Error(), "nothing starts until the setting names another directory, or none"
			a.config.Workspace = supervisor.Shared{} // the rest can be looked at without it
		}
		shares = append(shares, c)
	}
	engines, err := a.open()
	if err != nil {
		return nil, err
	}
	defer engines.Close()
	checks := []check{{Name: "rillbox", Detail: version()}, a.examineCache(engines),
		a.examineWall(), a.config.examineCgroups(launcher.OfferedCgroup(), sandbox.TellsCPU)}
	checks = append(checks, shares...)
	for i, t := range engines.Toolchains() {
		d := t.Describe()
		if engineKinds[i].many {
			checks = append(checks, examineLanguages(d)...)
			continue
		}
		c := check{Name: job.Listed(job.LanguageNames(d.Languages), "and"), Detail: versions(d)}
		if !d.Ready {
			c.Problem, c.Lesser, c.Advice = "not set up yet", true, "the first program fetches what it needs; `rillbox setup` does it now"
			checks = append(checks, c)
			continue
		}
		checks = append(checks, c)
		for _, language := range d.Languages {
			if language.Probe != "" {
				checks = append(checks, probe(ctx, engines.Supervisor, language)...)
			}
		}
	}
	return checks, nil
}

// examineLanguages says which of a toolchain's many languages are set up.
func examineLanguages(d job.Description) (checks []check) {
	var there []string
	for _, l := range d.Languages {
		if !slices.Contains(d.Missing, l.Name) {
			there = append(there, string(l.Name)+" "+d.Versions[string(l.Name)])
		}
	}
	if len(there) > 0 {
		checks = append(checks, check{Name: "other languages", Detail: strings.Join(there, ", ")})
	}
	if len(d.Missing) > 0 {
		checks = append(checks, check{
			Name: "languages that are not set up", Problem: job.Listed(d.Missing, "and"), Lesser: true,
			Advice: "the first program in one fetches what it needs; `rillbox setup NAME` does it now",
		})
	}
	return checks
}

func (a *app) examineCache(engines *engines) check {
	c := check{Name: "cache"}
	info, err := engines.cache.Info()
	if err != nil {
		c.Problem, c.Advice = err.Error(), "set RILLBOX_CACHE_DIR to a directory that you can write"
		return c
	}
	c.Detail = fmt.Sprintf("%s in %s", megabytes(info.Bytes), info.Dir)
	if a.config.Cache.Offline {
		c.Detail += ", offline"
	}
	return c
}

// examineWall says which wall stands around programs.
func (a *app) examineWall() check {
	offered := launcher.Offered()
	c := check{Name: "wall", Detail: offered.Level.String() + ": " + offered.Detail}
	if offered.Level < launcher.Namespaces {
		c.Problem, c.Lesser = c.Detail, true
	}
	if a.config.Engine.WithoutSecondWall {
		c.Problem, c.Lesser = "programs start without it, as without_second_wall says", true
	}
	return c
}

// examineCgroups says whether the machine can bound what a child starts.
func (c *config) examineCgroups(offered launcher.CgroupSupport, tellsCPU bool) check {
	k := check{Name: "a cgroup for each child", Detail: offered.Detail}
	if offered.Processors {
		processors := fmt.Sprintf("%v processors", c.Limits.CPUs)
		if c.Limits.CPUs == 1 {
			processors = "one processor"
		}
		k.Detail += fmt.Sprintf("; a program gets the time of %s, and no more", processors)
	}
	if list := c.unenforced(offered, tellsCPU); len(list) > 0 {
		k.Problem, k.Lesser = strings.Join(list, "; "), true
	} else if !offered.Offered {
		k.Problem, k.Lesser = offered.Detail, true
	}
	return k
}

// versions lists a toolchain's components.
func versions(d job.Description) string {
	var list []string
	for _, component := range slices.Sorted(maps.Keys(d.Versions)) {
		list = append(list, component+" "+d.Versions[component])
	}
	return strings.Join(list, ", ")
}

func printChecks(w io.Writer, checks []check) error {
	for _, c := range checks {
		mark, text := terminal.Paint(os.Stdout, terminal.Green, "ok  "), c.Detail
		switch {
		case c.bad():
			mark, text = terminal.Paint(os.Stdout, terminal.Red, "BAD "), c.Problem
		case c.Problem != "":
			mark, text = terminal.Paint(os.Stdout, terminal.Yellow, "note"), c.Problem
		}
		if c.Advice != "" {
			text += "; " + c.Advice
		}
		if text != "" {
			text = ": " + text
		}
		if _, err := fmt.Fprintf(w, "%s  %s%s\n", mark, c.Name, job.ShowText(text)); err != nil {
			return err
		}
	}
	return nil
}
