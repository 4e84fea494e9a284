//go:build !windows

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"rillbox/cmd/rillbox/terminal"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// lockFlags are the flags of `rillbox lock` that are not settings.
type lockFlags struct {
	runFlags
	upgrade bool
}

func newLockCommand(a *app) *cobra.Command {
	f := &lockFlags{}
	cmd := &cobra.Command{
		Use:   "lock [flags] FILE | DIR",
		Short: "Write a lock file for a program",
		Long: `Find out which packages a program needs, fetch them, and write their versions and
digests into a lock file beside it: deno.lock, as Deno has it, or pylock.toml (PEP 751).
The program does not run. From then on rillbox run takes these versions, and checks their
digests; with --frozen it takes no others.

What the lock file has already stays; --upgrade finds all versions anew.`,
		Example: `  rillbox lock report.py
  rillbox run --frozen report.py`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.lock(cmd, f, args) },
	}
	set := cmd.Flags()
	f.bind(set, "")
	set.BoolVar(&f.upgrade, "upgrade", false, "forget the versions that the lock file has")
	a.config.bindFlags(set, ofRun)
	return cmd
}

func (a *app) lock(cmd *cobra.Command, f *lockFlags, args []string) error {
	program, err := f.program(cmd, args, a.config.Limits.Code)
	if err == nil && program.file == "" {
		err = errors.New("a lock file is written beside a program: name its FILE")
	}
	if err == nil && program.language.LockFile == "" {
		err = fmt.Errorf("%s has no lock files", program.language.Title)
	}
	if err == nil {
		err = program.prepare(a.quiet, false)
	}
	if err != nil {
		return usageError{err}
	}
	name := program.language.LockFile
	if path.Base(program.Manifest.Lock.File) == name {
		name = program.Manifest.Lock.File
	}
	switch lock := program.Manifest.Lock; {
	case f.upgrade:
		program.Manifest.Lock = job.Lock{}
	case lock.Foreign && lock.File == name:
		return usageError{fmt.Errorf("%s was written by another program: --upgrade replaces it", name)}
	}
	program.FetchOnly, program.Manifest.Frozen = true, false

	ctx, stop := untilEnded(cmd.Context())
	defer stop()
	a.config.Engine.Warm, a.config.Engine.LeaveImages = 0, true
	engines, err := a.open()
	if err != nil {
		return err
	}
	defer engines.Close()
	out := terminal.NewOutput(a.quiet)
	defer out.End()
	result, err := engines.Run(ctx, program.Program, supervisor.Call{Streams: job.Streams{Emit: out.Emit}})
	out.End()
	switch {
	case err != nil && ctx.Err() != nil:
		return exitStatus(statusCancelled)
	case err != nil:
		return err
	case result.Status != job.Completed:
		out.Report(result)
		return statusOf(result)
	}
	to := filepath.Join(filepath.Dir(program.file), filepath.FromSlash(name))
	err = replaceFile(to, func(w io.Writer) error {
		_, err := w.Write(result.Lock)
		return err
	})
	if err != nil {
		return err
	}
	out.Report(result)
	if !a.quiet {
		fmt.Fprintf(os.Stderr, "%s has %d packages that %s needs\n", to, len(result.Packages), strings.TrimPrefix(program.file, "./"))
	}
	return nil
}
