//go:build !windows

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rillbox/cmd/rillbox/terminal"
	"rillbox/deno/permission"
	"rillbox/server"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// programFlags are flags of `rillbox run` and `rillbox repl` that are not settings.
type programFlags struct {
	language     string
	packages     []string
	requirements []string // files of packages
	permissions  permission.Permissions
}

func (f *programFlags) bind(set *pflag.FlagSet, language string) {
	set.StringVarP(&f.language, "language", "l", language, "`LANG`: "+languageChoice())
	set.StringArrayVarP(&f.packages, "package", "p", nil, "`SPEC` of a package to have: npm:chalk@5, requests>=2 (repeatable; also --with)")
	set.StringArrayVarP(&f.requirements, "requirements", "r", nil, "`FILE` of packages to have, as pip reads it (repeatable)")
	set.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "with" { // what others call it
			name = "package"
		}
		return pflag.NormalizedName(name)
	})
	set.Var(flags{&f.permissions}, "permissions", "Deno permission flags, in place of those in the settings")
}

// runFlags are the flags of `rillbox run` that are not settings.
type runFlags struct {
	programFlags
	code   string
	module string
	out    string
	watch  bool
	check  bool
	frozen bool
	json   bool
}

func newRunCommand(a *app) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] {FILE | DIR | URL | npm:NAME | pypi:NAME | -m MODULE | -c CODE | -} [ARG...]",
		Short: "Run a program",
		Long: `Run a program: a file, a directory's main one (__main__.py, main.ts and so on),
what is at a URL, a package's command (npm:cowsay, pypi:tabulate; with a version
or another command of it as npm:eslint@9/eslint, pypi:httpie==3.2.4/http), a
module of Python's (-m), code on the command line (-c), or standard input (-).
What follows it are the program's arguments; flags of rillbox stand before it.

Of a Jupyter notebook (FILE.ipynb) the cells are run one after the other, up to
one that fails; --out FILE keeps the notebook with their outputs.

The language is told by -l, by the file's extension or by its #! line; rillbox help
languages lists all. Packages, of JavaScript, TypeScript and Python, are found by
the program's imports and fetched once; -p asks for more, or for certain versions.
The program has no files, no network and no environment unless --permissions or
DENO_PERMISSION_ARGS, PYODIDE_PERMISSION_ARGS or (for all other languages)
WASM_PERMISSION_ARGS grant them, or --workspace DIR gives it a directory: its
current one, to read and write; with DIR:ro, to read only.

What a program in a file imports from beside it, by a relative path or by the
name of a module there, is part of it; no path or link leads out of its
directory. Data is not: --workspace . lets a program read the current directory.
Versions of packages come from the project's package.json, deno.json,
pyproject.toml and lock files (see rillbox lock).

Pictures that it displays (figures, display()) are kept next to the program:
report-1.png, report-2.svg and so on, in place of those of the run before; as
display-1.png in the current directory when it has no file. Terminals that can
(kitty, iTerm2, sixel) show them as well. What it displays as text is printed.

A program has 30 s, or what --timeout says; at a terminal, where it may wait for
what is typed, it has no limit unless --timeout sets one.

The exit status is the program's; 124 when its time was up, 137 when it used too
much memory, 130 when it was cancelled, 128+n when signal n ended it, 2 when the
command line is wrong, and 125 when rillbox itself failed.

Every setting that ` + "`rillbox config --help`" + ` lists is a flag here, such as
--memory 1GiB or --index-url URL.`,
		Example: `  rillbox run report.py                              a file
  rillbox run report.py --year 2026                  with arguments for the program
  rillbox run -l py -c 'print(input())' < notes.txt  code, and its standard input
  rillbox run npm:cowsay hello                       a package's command
  rillbox run -m json.tool < data.json               a module, as python -m does
  rillbox run -l sh -c 'sort | uniq -c' < notes.txt  another language, fetched once
  rillbox run --check --watch main.ts                types first; again at each change
  rillbox run -p 'pandas<3' -p openpyxl report.py    packages beside those imported
  rillbox run --permissions '--allow-net=api.github.com' stars.ts
  rillbox run --workspace ./data clean.py            reads and writes the files in ./data
  rillbox run --json -l js -c 'export default 6 * 7' the result as JSON`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd, f, args)
		},
	}
	set := cmd.Flags()
	set.StringVarP(&f.code, "code", "c", "", "run `CODE`; needs -l")
	set.StringVarP(&f.module, "module", "m", "", "run `MODULE` as python -m does, with all that follows as its arguments")
	set.StringVarP(&f.out, "out", "o", "", "write the notebook with its cells' outputs to `FILE`")
	f.bind(set, "")
	set.BoolVar(&f.check, "check", false, "check the types of TypeScript before it runs, as Deno does")
	set.BoolVar(&f.watch, "watch", false, "run it again whenever its file, a module beside it or a manifest changes")
	set.BoolVar(&f.frozen, "frozen", false, "use no package that the lock file beside the program does not have (rillbox lock)")
	set.BoolVar(&f.json, "json", false, "print the structured result on stdout, and nothing else")
	a.config.bindFlags(set, ofRun, "timeout", "memory", "workspace")
	set.SetInterspersed(false) // what follows the program is its own
	return cmd
}

func (a *app) run(cmd *cobra.Command, f *runFlags, args []string) error {
	program, err := f.program(cmd, args, a.config.Limits.Code)
	if err != nil {
		return usageError{err}
	}
	if !a.quiet {
		warnOfFlags(cmd.Flags(), program.Args, program.file)
	}
	if cmd.Flags().Changed("permissions") {
		a.config.permit(program.Language, f.permissions)
	}
	if program.URL != "" {
		if err := a.config.importFrom(program.URL); err != nil {
			return usageError{err}
		}
	}
	ctx, stop := untilEnded(cmd.Context())
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills us

	if program.stdin != nil && terminal.Is(os.Stdin) && a.config.from("timeout") == "default" {
		// A person's time to answer does not count.
		a.config.Limits.Timeout, a.config.Limits.MaxTimeout = unlimited, unlimited
	}
	if program.notebook != nil {
		a.config.Limits.SessionIdle, a.config.Limits.MaxSessionIdle = unlimited, unlimited
	}
	if f.out != "" {
		if program.notebook == nil {
			return usageError{errors.New("--out writes a notebook, and the program is none: want a FILE.ipynb")}
		}
		if err := checkOutput(f.out); err != nil {
			return usageError{err}
		}
	}
	a.config.Engine.Warm, a.config.Engine.LeaveImages = 0, true
	engines, err := a.open()
	if err != nil {
		return err
	}
	defer engines.Close()
	if f.watch {
		return a.watch(ctx, engines, program, f, func() (named, error) { return f.program(cmd, args, a.config.Limits.Code) })
	}
	return a.runOnce(ctx, engines, program, f)
}

// runOnce runs a program to its end, and shows what comes of it.
func (a *app) runOnce(ctx context.Context, engines *engines, program named, f *runFlags) error {
	program.Check = f.check
	program.Workspace, program.ReadOnly = engines.shared.Path, engines.shared.ReadOnly
	out := terminal.NewOutput(a.quiet)
	if f.json {
		out = &terminal.Output{Progress: terminal.NewProgress(a.quiet)}
	}
	defer out.End()
	if program.URL != "" {
		if err := program.fetch(ctx, engines, out.Emit, a.config.Limits.Code); err != nil {
			return err
		}
	}
	if err := program.prepare(a.quiet, f.frozen); err != nil {
		return usageError{err}
	}
	if program.notebook != nil {
		return a.runNotebook(ctx, engines, out, program, f)
	}
	running, stopRun := context.WithCancel(ctx)
	defer stopRun()
	out.Stop = stopRun
	if program.stdin != nil && terminal.Is(os.Stdin) {
		program.stdin = terminal.Keyboard{Context: running}
	}
	result, err := engines.Run(running, program.Program, supervisor.Call{Streams: job.Streams{Stdin: program.stdin, Emit: out.Emit}})
	stopRun()
	out.End()
	if out.Failed != nil {
		return out.Failed
	}
	if errors.Is(context.Cause(ctx), errChanged) {
		return errChanged
	}
	if err != nil {
		if ctx.Err() != nil {
			return exitStatus(statusCancelled)
		}
		return err
	}
	if program.module && program.Workspace == "" && result.Status == job.Failed && result.Error == nil {
		result.Notes = append(result.Notes, "-m "+f.module+" had the modules of this directory that it imports, and no other files: --workspace . gives it all")
	}
	if f.json {
		if err := printJSON(jsonOutput(), server.StructuredResult(result)); err != nil {
			return err
		}
		return statusOf(result)
	}
	pictures := &terminal.Gallery{Dir: ".", Name: "display"}
	if program.Name != "" {
		pictures.Dir, pictures.Name = filepath.Dir(program.file), strings.TrimSuffix(program.Name, filepath.Ext(program.Name))
	}
	out.Display(pictures, result.Displays)
	if out.Failed != nil {
		return out.Failed
	}
	out.Report(result)
	return statusOf(result)
}

// printJSON writes v on lines of its own, readable.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}
