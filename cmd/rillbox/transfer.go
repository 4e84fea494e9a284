//go:build !windows

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rillbox/cache"
	"rillbox/cmd/rillbox/terminal"
	"rillbox/deno"
	"rillbox/pyodide"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/wasm"
)

// newExportCommand and newImportCommand take what programs need to a machine that has no
// network.
func newExportCommand(a *app) *cobra.Command {
	f := &runFlags{}
	without := false
	cmd := &cobra.Command{
		Use:   "export [flags] PROGRAM... -o FILE",
		Short: "Write all that programs need into a file, for a machine without a network",
		Long: `Write what programs need to run offline into one file: the runtimes, the install
plans, and the packages that these name. PROGRAM is what rillbox run takes: a
file, a directory, a URL, npm:NAME, pypi:NAME; give flags as for the run. What is
missing in the cache is fetched; none of the programs' code runs. The programs
themselves are not in the file, except those at URLs.

It prints the file's SHA-256. rillbox cache import asks for that: take it to the
other machine by another way than the file.

What is made on each machine (Python's snapshot, compiled code) is not in the file.`,
		Example: `  rillbox cache export report.py main.ts -o programs.rbx
  rillbox cache export -p 'pandas<3' report.py -o report.rbx
  rillbox cache export --without-runtimes main.ts -o packages.rbx`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.export(cmd, f, args, without) },
	}
	set := cmd.Flags()
	set.StringVarP(&f.out, "out", "o", "", "`FILE` to write")
	set.BoolVar(&without, "without-runtimes", false, "leave Deno and Pyodide out")
	f.bind(set, "")
	a.config.bindFlags(set, ofRun)
	return cmd
}

func newImportCommand(a *app) *cobra.Command {
	digest := ""
	cmd := &cobra.Command{
		Use:   "import FILE --sha256 HEX",
		Short: "Take what rillbox cache export wrote into the cache, without a network",
		Long: `Take what rillbox cache export wrote into the cache. The file's SHA-256 is
compared before anything of it is used: what is imported is what programs run, so
it stands for your trust in who exported it. Then each entry is verified by
itself: Deno and Pyodide against the hashes in rillbox, packages against those that
their registry gave. If one is refused, nothing is taken.`,
		Example: `  rillbox cache import programs.rbx --sha256 9f86d081884c7d65…`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.importArchive(cmd, args[0], digest) },
	}
	cmd.Flags().StringVar(&digest, "sha256", "", "the file's SHA-256 in `HEX`, as rillbox cache export printed it")
	a.config.bindFlags(cmd.Flags(), ofRun)
	return cmd
}

// portable are the kinds of the cache's entries that are exported.
var portable = slices.Concat(deno.Portable, pyodide.Portable, wasm.Portable, []string{programKind})

// importer is an engine whose packages can be exported and imported.
type importer interface {
	PortableKey(kind, key string) string
	Admit(a *cache.Archive, p cache.Portable) (store func(context.Context) error, note string, err error)
}

func (a *app) export(cmd *cobra.Command, f *runFlags, args []string, withoutRuntimes bool) (err error) {
	if f.out == "" {
		return usageError{errors.New("want -o FILE, the file to write")}
	}
	if err := checkOutput(f.out); err != nil {
		return usageError{err}
	}
	var programs []named
	for _, arg := range args {
		program, err := f.program(cmd, []string{arg}, a.config.Limits.Code)
		if err != nil {
			return usageError{err}
		}
		if program.notebook != nil {
			return usageError{fmt.Errorf("%s: notebooks can't be exported, as each cell finds its packages when it runs: export a program that imports the same", arg)}
		}
		if cmd.Flags().Changed("permissions") { // they say where it may import from
			a.config.permit(program.Language, f.permissions)
		}
		programs = append(programs, program)
	}
	ctx, stop := untilEnded(cmd.Context())
	defer stop()
	a.config.Engine.Warm = 0
	engines, err := a.open()
	if err != nil {
		return err
	}
	defer engines.Close()
	out := terminal.NewOutput(a.quiet)
	defer out.End()
	for i, program := range programs {
		if err := a.fetchFor(ctx, engines, out, program); err != nil {
			if ctx.Err() != nil {
				return exitStatus(statusCancelled)
			}
			return fmt.Errorf("%s: %w", args[i], err)
		}
	}
	out.End()
	for _, own := range [][2]string{{"deno", a.config.Engine.DenoPath}, {"pyodide", a.config.Engine.Path}} {
		if own[1] != "" && !withoutRuntimes {
			fmt.Fprintf(os.Stderr, "rillbox: %s is your own (%s) and is not exported\n", own[0], own[1])
		}
	}
	kinds := slices.DeleteFunc(slices.Clone(portable), func(kind string) bool { return withoutRuntimes && kind == "runtime" })
	return a.writeArchive(ctx, engines, f.out, kinds)
}

// fetchFor has all fetched that a program needs.
func (a *app) fetchFor(ctx context.Context, engines *engines, out *terminal.Output, program named) error {
	if program.URL != "" {
		// It may import from its own host, which the others may not.
		defer func(hosts []string) { a.config.Engine.AllowImport = hosts }(slices.Clone(a.config.Engine.AllowImport))
		err := a.config.importFrom(program.URL)
		if err != nil {
			return usageError{err}
		}
		if engines, err = a.openOn(engines.cache, engines.shared); err != nil {
			return err
		}
		defer engines.Supervisor.Close()
		if err := program.fetch(ctx, engines, out.Emit, a.config.Limits.Code); err != nil {
			return err
		}
	}
	program.Workspace, program.ReadOnly = engines.shared.Path, engines.shared.ReadOnly
	if err := program.prepare(a.quiet, false); err != nil {
		return usageError{err}
	}
	program.FetchOnly = true
	result, err := engines.Run(ctx, program.Program, supervisor.Call{Streams: job.Streams{Emit: out.Emit}})
	if err != nil {
		return err
	}
	out.End()
	if result.Status != job.Completed {
		why := string(result.Status)
		if result.Error != nil {
			why = result.Error.Name + ": " + result.Error.Message
		}
		return fmt.Errorf("what it needs can't be found out: %s", why)
	}
	for _, note := range result.Notes {
		fmt.Fprintf(os.Stderr, "rillbox: %s: %s\n", job.ShowLine(program.label(), 200), job.ShowLine(note, 4096))
	}
	return nil
}

// label is what a person knows a program by.
func (n *named) label() string {
	return strings.TrimSpace(strings.Join([]string{n.file, n.URL, n.Command}, ""))
}

// writeArchive writes the file of an export, which is whole once it is there.
func (a *app) writeArchive(ctx context.Context, e *engines, path string, kinds []string) (err error) {
	digest := sha256.New()
	var archive cache.Archive
	err = replaceFile(path, func(w io.Writer) (err error) {
		archive, err = e.cache.Export(ctx, io.MultiWriter(w, digest), kinds, e.portableKey)
		return err
	})
	if err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	sum := hex.EncodeToString(digest.Sum(nil))
	fmt.Printf("sha256:%s  %s\n", sum, path)
	if !a.quiet {
		fmt.Fprintf(os.Stderr, "%d entries, %s\n", len(archive.Entries), megabytes(st.Size()))
	}
	return nil
}

var sha256Text = regexp.MustCompile(`^(?:sha256:)?([0-9a-fA-F]{64})$`)

func (a *app) importArchive(cmd *cobra.Command, path, digest string) error {
	found := sha256Text.FindStringSubmatch(digest)
	switch {
	case digest == "":
		return usageError{errors.New("want --sha256 HEX: programs will run what is imported, and only its SHA-256 tells that the file is the one that was exported\n`rillbox cache export` printed it; get it from who made the file, and not from beside the file")}
	case found == nil:
		return usageError{fmt.Errorf("--sha256 %q is not a SHA-256: want 64 hexadecimal digits", digest)}
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read the export: %w", err)
	}
	defer f.Close()
	ctx, stop := untilEnded(cmd.Context())
	defer stop()
	a.config.Engine.Warm = 0
	engines, err := a.open()
	if err != nil {
		return err
	}
	defer engines.Close()
	var notes []string
	taken, platform := 0, ""
	err = engines.cache.Import(ctx, f, strings.ToLower(found[1]), func(archive *cache.Archive, p cache.Portable) (func(context.Context) error, error) {
		platform = archive.Platform
		store, note, err := engines.admit(archive, p)
		if store != nil {
			taken++
		} else if err == nil && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
		return store, err
	})
	if err != nil {
		if ctx.Err() != nil {
			return exitStatus(statusCancelled)
		}
		return fmt.Errorf("cannot import %s: %w", path, err)
	}
	if here := runtime.GOOS + "/" + runtime.GOARCH; platform != "" && platform != here {
		notes = append(notes, fmt.Sprintf("it was exported on %s: packages with native code in it are for that, and not for %s", platform, here))
	}
	for _, note := range notes {
		fmt.Fprintln(os.Stderr, "rillbox:", job.ShowLine(note, 4096))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d entries imported\n", taken)
	return err
}

// portableKey is the key that an entry has in an archive.
func (e *engines) portableKey(kind, key string) string {
	for _, t := range e.Toolchains() {
		if of, ok := t.(importer); ok {
			key = of.PortableKey(kind, key)
		}
	}
	return key
}

// admit has the engine judge an entry whose it is.
func (e *engines) admit(a *cache.Archive, p cache.Portable) (store func(context.Context) error, note string, err error) {
	for _, t := range e.Toolchains() {
		if to, ok := t.(importer); ok {
			if store, note, err = to.Admit(a, p); !errors.Is(err, cache.ErrNotPortable) {
				return store, note, err
			}
		}
	}
	if at, err := url.Parse(p.Key); p.Kind != programKind || p.Tree || err != nil || at.Host == "" {
		return nil, "", cache.ErrNotPortable
	}
	return func(ctx context.Context) error { // a URL has no registry, and stands on the archive's digest
		f, err := os.Open(a.Path(p.Files[0].SHA256))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = e.cache.Put(ctx, programKind, p.Key, f)
		return err
	}, "", nil
}
