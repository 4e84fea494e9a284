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
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rillbox/cmd/rillbox/terminal"
	"rillbox/deno/permission"
	"rillbox/server"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/workspace"
)

// programFlags are flags of `rillbox run` and `rillbox repl` that are not settings.
type programFlags struct {
	language    string
	packages    []string
	permissions permission.Permissions
}

func (f *programFlags) bind(set *pflag.FlagSet, language string) {
	set.StringVarP(&f.language, "language", "l", language, "`LANG`: "+languageChoice())
	set.StringArrayVarP(&f.packages, "package", "p", nil, "`SPEC` of a package to have: npm:chalk@5, requests>=2 (repeatable)")
	set.Var(flags{&f.permissions}, "permissions", "Deno permission flags, in place of those in the settings")
}

// runFlags are the flags of `rillbox run` that are not settings.
type runFlags struct {
	programFlags
	code string
	json bool
}

func newRunCommand(a *app) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] FILE | -c CODE -l LANG | - [-- ARG...]",
		Short: "Run a program",
		Long: `Run a program: a file, code on the command line (-c), or standard input (-).

The language is told by -l or by the file's extension:
` + extensionList() + `. Packages are found by the program's
imports and fetched once; -p asks for more, or for certain versions. The program has no files, no network and
no environment unless --permissions, DENO_PERMISSION_ARGS or
PYODIDE_PERMISSION_ARGS grant them, or --workspace DIR gives it a directory: its
current one, to read and write; with DIR:ro, to read only.

What a program in a file imports from beside it, by a relative path or by the
name of a module there, is part of it; no path or link leads out of its
directory. Data is not: --workspace . lets a program read the current directory.

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
  rillbox run report.py -- --year 2026               with arguments for the program
  rillbox run -l py -c 'print(input())' < notes.txt  code, and its standard input
  curl -s https://example.com/x.ts | rillbox run -l ts -
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
	f.bind(set, "")
	set.BoolVar(&f.json, "json", false, "print the structured result on stdout, and nothing else")
	a.config.bindFlags(set, ofRun, "timeout", "memory", "workspace")
	return cmd
}

func (a *app) run(cmd *cobra.Command, f *runFlags, args []string) error {
	program, used, stdin, err := f.program(cmd, args, a.config.Limits.Code)
	if err != nil {
		return usageError{err}
	}
	if cmd.Flags().Changed("permissions") {
		a.config.permit(used.Name, f.permissions)
	}
	ctx, stop := untilEnded(cmd.Context())
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills us

	if stdin != nil && terminal.Is(os.Stdin) && a.config.from("timeout") == "default" {
		// A person's time to answer does not count.
		a.config.Limits.Timeout, a.config.Limits.MaxTimeout = unlimited, unlimited
	}
	a.config.Engine.Warm, a.config.Engine.LeaveImages = 0, true
	engines, err := a.open()
	if err != nil {
		return err
	}
	defer engines.Close()
	program.Workspace, program.ReadOnly = engines.shared.Path, engines.shared.ReadOnly
	if !cmd.Flags().Changed("code") && args[0] != "-" {
		if err := findModules(&program, used, args[0]); err != nil {
			return usageError{err}
		}
	}

	out := terminal.NewOutput(a.quiet)
	if f.json {
		out = &terminal.Output{Progress: terminal.NewProgress(a.quiet)}
	}
	defer out.End()
	running, stopRun := context.WithCancel(ctx)
	defer stopRun()
	out.Stop = stopRun
	if stdin != nil && terminal.Is(os.Stdin) {
		stdin = terminal.Keyboard{Context: running}
	}
	result, err := engines.Run(running, program, supervisor.Call{Streams: job.Streams{Stdin: stdin, Emit: out.Emit}})
	stopRun()
	out.End()
	if out.Failed != nil {
		return out.Failed
	}
	if err != nil {
		if ctx.Err() != nil {
			return exitStatus(statusCancelled)
		}
		return err
	}
	if f.json {
		var to io.Writer = os.Stdout
		if terminal.Is(os.Stdout) {
			to = &terminal.Screen{To: os.Stdout} // JSON leaves some control characters as they are
		}
		if err := printJSON(to, server.StructuredResult(result)); err != nil {
			return err
		}
		return statusOf(result)
	}
	pictures := &terminal.Gallery{Dir: ".", Name: "display"}
	if program.Name != "" {
		pictures.Dir, pictures.Name = filepath.Dir(args[0]), strings.TrimSuffix(program.Name, filepath.Ext(program.Name))
	}
	out.Display(pictures, result.Displays)
	if out.Failed != nil {
		return out.Failed
	}
	out.Report(result)
	return statusOf(result)
}

// program reads the program that the command line tells of; stdin is nil where it
// came from there.
func (f *runFlags) program(cmd *cobra.Command, args []string, most int64) (p job.Program, l job.LanguageInfo, stdin io.Reader, err error) {
	p.Packages = f.packages
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args, p.Args = args[:dash], args[dash:]
	}
	inline := cmd.Flags().Changed("code")
	switch {
	case inline && len(args) > 0:
		return p, l, stdin, fmt.Errorf("there is a program in -c and another one, %q; put -- before the program's arguments", args[0])
	case !inline && len(args) == 0:
		return p, l, stdin, errors.New("no program: name a FILE, give -c CODE, or - for standard input\n`rillbox run --help` shows how")
	case len(args) > 1:
		return p, l, stdin, fmt.Errorf("%q is one argument too many; put -- before the program's arguments", args[1])
	case inline:
		p.Code, stdin = f.code, os.Stdin
	default:
		file := os.Stdin
		if args[0] != "-" {
			if file, err = os.Open(args[0]); err != nil {
				return p, l, stdin, fmt.Errorf("cannot read the program: %w", err)
			}
			defer file.Close()
			stdin = os.Stdin
			if l = languageOfFile(args[0]); l.Name != "" {
				p.Name = filepath.Base(args[0])
			}
		}
		code, err := io.ReadAll(io.LimitReader(file, most+1)) // there can be no end of it
		if err != nil {
			return p, l, stdin, fmt.Errorf("cannot read the program: %w", err)
		}
		p.Code = string(code)
	}
	p.Code = strings.TrimPrefix(p.Code, byteOrderMark)
	if err := checkProgram(p.Code, most); err != nil {
		return p, l, stdin, err
	}
	if f.language != "" {
		named, err := languageNamed(f.language)
		if err != nil {
			return p, l, stdin, err
		}
		if named.Name != l.Name {
			l, p.Name = named, ""
		}
	}
	if l.Name == "" {
		return p, l, stdin, fmt.Errorf("cannot tell the program's language; say it with -l: %s", languageChoice())
	}
	p.Language = l.Name
	return p, l, stdin, nil
}

// findModules adds the modules that the program in a file imports from beside it; where
// that is in the workspace, it says where.
func findModules(p *job.Program, l job.LanguageInfo, file string) error {
	path, err := filepath.EvalSymlinks(file)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return fmt.Errorf("cannot find the program's directory: %w", err)
	}
	if within, err := filepath.Rel(p.Workspace, path); p.Workspace != "" && err == nil && filepath.IsLocal(within) {
		p.Path = filepath.ToSlash(within)
		return nil
	}
	name := filepath.Base(path)
	if l.Mentions == nil || len(l.Mentions(name, p.Code)) == 0 {
		return nil
	}
	dir, err := workspace.Open(filepath.Dir(path), workspace.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer dir.Close()
	p.Files, err = dir.Modules(name, p.Code, l.Mentions)
	return err
}

// byteOrderMark is what some editors of Windows begin a file with.
const byteOrderMark = "\uFEFF"

// checkProgram says what is wrong with a program's text.
func checkProgram(code string, most int64) error {
	if int64(len(code)) > most {
		return fmt.Errorf("the program has more than %s, which is all that it may have: put data into files, or into its standard input", formatSize(most))
	}
	for i, line := range strings.Split(code, "\n") {
		if !utf8.ValidString(line) {
			return fmt.Errorf("the program is not UTF-8 text (line %d): save it as UTF-8", i+1)
		}
	}
	return nil
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
