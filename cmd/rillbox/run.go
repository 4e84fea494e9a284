//go:build !windows

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	code string
	json bool
}

func newRunCommand(a *app) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] {FILE | DIR | -c CODE | -} [ARG...]",
		Short: "Run a program",
		Long: `Run a program: a file, a directory's main one (__main__.py, main.ts and so on),
code on the command line (-c), or standard input (-). What follows it are the
program's arguments; flags of rillbox stand before it.

The language is told by -l, by the file's extension:
` + extensionList() + `, or by its #! line. Packages are found by the program's
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
  rillbox run report.py --year 2026                  with arguments for the program
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
	set.SetInterspersed(false) // what follows the program is its own
	return cmd
}

func (a *app) run(cmd *cobra.Command, f *runFlags, args []string) error {
	program, used, file, stdin, err := f.program(cmd, args, a.config.Limits.Code)
	if err != nil {
		return usageError{err}
	}
	if !a.quiet {
		warnOfFlags(cmd.Flags(), program.Args, file)
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
	if file != "" {
		if err := findModules(&program, used, file); err != nil {
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
		pictures.Dir, pictures.Name = filepath.Dir(file), strings.TrimSuffix(program.Name, filepath.Ext(program.Name))
	}
	out.Display(pictures, result.Displays)
	if out.Failed != nil {
		return out.Failed
	}
	out.Report(result)
	return statusOf(result)
}

// program reads the program that the command line tells of. file is the one it is in,
// stdin is nil where it came from there.
func (f *runFlags) program(cmd *cobra.Command, args []string, most int64) (p job.Program, l job.LanguageInfo, file string, stdin io.Reader, err error) {
	fail := func(err error) (job.Program, job.LanguageInfo, string, io.Reader, error) {
		return p, l, file, stdin, err
	}
	source := io.Reader(strings.NewReader(f.code))
	if cmd.Flags().Changed("code") {
		stdin = os.Stdin
	} else if len(args) == 0 {
		return fail(errors.New("no program: name a FILE, give -c CODE, or - for standard input\n`rillbox run --help` shows how"))
	} else {
		file, args = args[0], args[1:]
		if len(args) > 0 && args[0] == "--" { // it may still be there, as it had to be
			args = args[1:]
		}
		if file == "-" {
			file, source = "", os.Stdin
		} else {
			if file, err = mainFile(file); err != nil {
				return fail(err)
			}
			opened, err := os.Open(file)
			if err != nil {
				return fail(fmt.Errorf("cannot read the program: %w", err))
			}
			defer opened.Close()
			source, stdin = opened, os.Stdin
		}
	}
	code, err := io.ReadAll(io.LimitReader(source, most+1)) // there can be no end of it
	if err != nil {
		return fail(fmt.Errorf("cannot read the program: %w", err))
	}
	p.Code, p.Args = strings.TrimPrefix(string(code), byteOrderMark), args
	if err := checkProgram(p.Code, most); err != nil {
		return fail(err)
	}
	if l = languageOfFile(file); l.Name != "" {
		p.Name = filepath.Base(file)
	} else {
		l = languageOfScript(p.Code)
	}
	if f.language != "" {
		named, err := languageNamed(f.language)
		if err != nil {
			return fail(err)
		}
		if named.Name != l.Name {
			l, p.Name = named, ""
		}
	}
	if l.Name == "" {
		return fail(fmt.Errorf("cannot tell the program's language; say it with -l: %s", languageChoice()))
	}
	p.Language = l.Name
	p.Packages, err = f.allPackages()
	return fail(err)
}

// mainFile is the file to run where a path names a directory; else it is that path.
func mainFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path, nil // opening it says what is wrong
	}
	names := []string{"__main__.py"}
	for _, stem := range []string{"main", "index"} {
		for _, l := range languages() {
			for _, extension := range l.Extensions {
				names = append(names, stem+extension)
			}
		}
	}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(path, name)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(path, name), nil
		}
	}
	return "", fmt.Errorf("%s is a directory without a main program: it would be one of %s", path, strings.Join(names, ", "))
}

// allPackages are those that were asked for, also in files.
func (f *programFlags) allPackages() ([]string, error) {
	packages := slices.Clone(f.packages)
	for _, path := range f.requirements {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read the requirements: %w", err)
		}
		for i, line := range strings.Split(strings.TrimPrefix(string(text), byteOrderMark), "\n") {
			line, _, _ = strings.Cut(" "+strings.TrimRight(line, "\r"), " #")
			line = strings.TrimSpace(line)
			switch {
			case line == "":
			case strings.HasPrefix(line, "-"), strings.HasSuffix(line, "\\"):
				return nil, fmt.Errorf("%s, line %d: %q is not a package; options of pip's have settings here (rillbox config --help)", path, i+1, line)
			default:
				packages = append(packages, line)
			}
		}
	}
	return packages, nil
}

// warnOfFlags tells of arguments of the program that look like flags of ours.
func warnOfFlags(ours *pflag.FlagSet, args []string, file string) {
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if flag := ours.Lookup(name); flag != nil && strings.HasPrefix(arg, "--") && name != "help" {
			fmt.Fprintf(os.Stderr, "rillbox: --%s goes to the program, as what follows it does: for rillbox's own, put it before %s\n", name, cmp.Or(file, "the program"))
		}
	}
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
