//go:build !windows

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rillbox/cache/egress"
	"rillbox/supervisor/job"
	"rillbox/workspace"
	"rillbox/workspace/manifest"
)

// named is a program as the command line names it.
type named struct {
	job.Program
	language job.LanguageInfo
	file     string    // it is in; empty where there is none
	module   bool      // it runs a module that may be in the current directory
	stdin    io.Reader // the program's; nil where the program came from there
	notebook *notebook // whose cells it is, if there is one
	asked    asked
}

// program finds the program that the command line names, and reads it unless it is at a
// URL.
func (f *runFlags) program(cmd *cobra.Command, args []string, most int64) (n named, err error) {
	n = named{stdin: os.Stdin}
	if n.asked, err = f.asked(); err != nil {
		return n, err
	}
	n.Packages = n.asked.packages
	if f.language != "" {
		if n.language, err = languageNamed(f.language); err != nil {
			return n, err
		}
	}
	isCode := cmd.Flags().Changed("code")
	if !isCode && f.module == "" {
		if len(args) == 0 {
			return n, errors.New("no program: name a FILE, give -c CODE, or - for standard input\n`rillbox run --help` shows how")
		}
		n.file, args = args[0], args[1:]
	}
	if len(args) > 0 && args[0] == "--" { // it may still be there, as it had to be
		args = args[1:]
	}
	n.Args = args
	scheme, rest, _ := strings.Cut(n.file, ":")
	switch {
	case f.module != "":
		return n, n.readModule(f.module)
	case isCode:
		return n, n.take(f.code, "", most)
	case n.file == "-":
		n.file, n.stdin = "", nil
		return n, n.read(os.Stdin, "", most)
	case scheme == "https" || scheme == "http":
		return n, n.isAt(n.file)
	case n.isCommand(scheme, rest):
		if rest == "" {
			return n, fmt.Errorf("%s: names no package: want %[1]s:NAME", scheme)
		}
		return n, nil
	case scheme == "jsr":
		return n, fmt.Errorf("modules of JSR can't be run as programs: import %s in one, or name a package of npm's or PyPI's that has commands (npm:NAME, pypi:NAME)", n.file)
	}
	if n.file, err = mainFile(n.file); err != nil {
		return n, err
	}
	opened, err := os.Open(n.file)
	if err != nil {
		return n, fmt.Errorf("cannot read the program: %w", err)
	}
	defer opened.Close()
	if filepath.Ext(n.file) == ".ipynb" {
		return n, n.readNotebook(opened)
	}
	return n, n.read(opened, filepath.Base(n.file), most)
}

func (n *named) readNotebook(source io.Reader) error {
	read, language, err := readNotebook(source)
	if err != nil {
		return fmt.Errorf("cannot read the notebook %s: %w", n.file, err)
	}
	if len(n.Args) > 0 {
		return fmt.Errorf("a notebook takes no arguments: %q", n.Args)
	}
	told, _, found := job.FindLanguage(languages(), language)
	if !found && language != "" && n.language.Name == "" {
		return fmt.Errorf("the notebook %s is of %s, which can't be run here; say another language with -l", n.file, language)
	}
	n.notebook, n.Code = read, read.code()
	return n.tell(told)
}

// readModule makes it the program that runs a module.
func (n *named) readModule(module string) (err error) {
	for _, l := range languages() {
		if l.Module != nil && (n.language.Name == "" || n.language.Name == l.Name) {
			n.language, n.Language, n.module = l, l.Name, true
			n.Code, err = l.Module(module)
			return err
		}
	}
	return fmt.Errorf("-m runs modules of Python, and %s has none: name its FILE", n.language.Title)
}

// afterModule leaves what follows `run -m MODULE` to the program, as Python does: no flag
// of ours stands there.
func afterModule(root *cobra.Command, args []string) []string {
	run, _, err := root.Find([]string{"run"})
	begin := slices.Index(args, "run") + 1
	if err != nil || begin == 0 {
		return args
	}
	for i := begin; i < len(args); i++ {
		arg := args[i]
		if !strings.HasPrefix(arg, "-") || arg == "-" || arg == "--" {
			break
		}
		name, _, given := strings.Cut(arg, "=")
		flag := run.Flag(strings.TrimPrefix(name, "--"))
		if !strings.HasPrefix(arg, "--") { // letters, of which the last may take what follows
			for letters := arg[1:]; letters != ""; letters = letters[1:] {
				flag, given = run.Flags().ShorthandLookup(letters[:1]), len(letters) > 1
				if flag == nil {
					flag = root.PersistentFlags().ShorthandLookup(letters[:1])
				}
				if flag == nil || flag.NoOptDefVal == "" {
					break
				}
			}
		}
		switch {
		case flag == nil || flag.NoOptDefVal != "":
			continue
		case !given:
			i++
		}
		if flag.Name == "module" && i < len(args) {
			return slices.Insert(slices.Clone(args), i+1, "--")
		}
	}
	return args
}

// isCommand says whether a scheme names packages that have commands: npm, pypi. Then it
// is that command.
func (n *named) isCommand(scheme, command string) bool {
	for _, l := range languages() {
		if l.Commands != "" && l.Commands == scheme {
			n.language, n.Language, n.Command, n.file = l, l.Name, command, ""
			return true
		}
	}
	return false
}

// isAt makes it the program at a URL, in the language that its path tells.
func (n *named) isAt(address string) error {
	at, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("%q is not the URL of a program", address)
	}
	n.URL, n.file, n.Name = address, "", path.Base(at.Path)
	return n.tell(languageOfFile(n.Name))
}

func (n *named) read(source io.Reader, name string, most int64) error {
	code, err := io.ReadAll(io.LimitReader(source, most+1)) // there can be no end of it
	if err != nil {
		return fmt.Errorf("cannot read the program: %w", err)
	}
	return n.take(string(code), name, most)
}

// take makes it the program of a text, in a file of that name if it has one.
func (n *named) take(code, name string, most int64) error {
	n.Code = strings.TrimPrefix(code, byteOrderMark)
	told := languageOfFile(name)
	n.Name = name
	if told.Name == "" {
		told, n.Name = languageOfScript(n.Code), ""
	}
	if err := n.tell(told); err != nil {
		return err
	}
	if n.language.Decode != nil && int64(len(n.Code)) <= most {
		var err error
		if n.Code, err = n.language.Decode(n.Code); err != nil {
			return err
		}
	}
	return checkProgram(n.Code, most)
}

// tell says what language its name or its text is of; another may have been asked for.
func (n *named) tell(l job.LanguageInfo) error {
	switch {
	case n.language.Name == "" && l.Name == "":
		return fmt.Errorf("cannot tell the program's language; say it with -l: %s", languageChoice())
	case n.language.Name == "":
		n.language = l
	case n.language.Name != l.Name:
		n.Name = ""
	}
	n.Language = n.language.Name
	return nil
}

// programKind is the cache's kind for programs at URLs.
const programKind = "program"

// fetch reads a program that is at a URL: as it is now or, without a network, as it was.
func (n *named) fetch(ctx context.Context, e *engines, emit func(job.Event), most int64) error {
	emit(job.Event{Kind: job.Stage, Text: job.FetchingStage + n.URL})
	dir, err := os.MkdirTemp("", "rillbox-program-")
	if err != nil {
		return fmt.Errorf("cannot keep the program: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "program")
	err = e.cache.Download(ctx, egress.Source{URL: n.URL, MaxBytes: most, NoResume: true}, file, nil)
	if egress.IsOffline(err) {
		kept, missing := e.cache.Get(programKind, n.URL)
		if missing != nil {
			return egress.NotCached(n.URL)
		}
		file, err = kept, nil
	} else if err == nil {
		var opened *os.File
		if opened, err = os.Open(file); err == nil {
			_, err = e.cache.Put(ctx, programKind, n.URL, opened)
			_ = opened.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("cannot fetch the program: %w", err)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the program: %w", err)
	}
	if err := n.take(string(code), n.Name, most); err != nil {
		return usageError{err}
	}
	return nil
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
	return "", fmt.Errorf("%s is a directory without a main program: it would be %s, or main or index with the extension of another language", path, strings.Join(names[:3], ", "))
}

// asked is what the command line says of packages.
type asked struct {
	packages    []string
	constraints []string // of packages that are not named, if they are needed
	lock        job.Lock // the digests of packages, if there are any
	notes       []string // what is not honoured
}

// asked reads what -p and the files of -r say.
func (f *programFlags) asked() (a asked, err error) {
	a.packages = slices.Clone(f.packages)
	var constraints []manifest.Requirement
	for _, path := range f.requirements {
		list, notes, err := readRequirements(path)
		if err != nil {
			return a, err
		}
		a.notes = append(a.notes, notes...)
		for _, r := range list {
			if r.Constraint {
				constraints = append(constraints, r)
			} else {
				a.packages = append(a.packages, r.Text)
			}
			if r.Locked != nil {
				a.lock.File, a.lock.Foreign, a.lock.Asked = path, true, true
				a.lock.Python = append(a.lock.Python, *r.Locked)
			}
		}
	}
	named := map[string]bool{}
	for _, text := range a.packages {
		named[manifest.ProjectOf(text)] = true
	}
	for _, r := range constraints {
		if named[manifest.ProjectOf(r.Text)] {
			a.packages = append(a.packages, r.Text)
		} else {
			a.constraints = append(a.constraints, r.Text)
		}
	}
	return a, nil
}

// readRequirements reads a requirements file with those of its project that it names, and
// calls them by their paths from here.
func readRequirements(path string) (list []manifest.Requirement, notes []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the requirements: %w", err)
	}
	var source manifest.Source = manifest.Files{} // of a pipe
	name := filepath.Base(path)
	if real, err := realPath(path); err == nil {
		dir := manifest.Project(real)
		project, err := manifest.Open(dir)
		if err != nil {
			return nil, nil, err
		}
		defer project.Close()
		source = project
		if name, err = filepath.Rel(dir, real); err != nil {
			return nil, nil, err
		}
	}
	return manifest.ReadRequirements(source, filepath.ToSlash(name), path, text)
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

// prepare adds what the project around the program's file says of its packages, and the
// modules beside it. frozen wants a lock file.
func (n *named) prepare(quiet, frozen bool) error {
	if n.file != "" {
		if err := n.readManifest(quiet); err != nil {
			return err
		}
	}
	tell(n.asked.notes, quiet)
	n.Manifest.Requirements = append(n.Manifest.Requirements, n.asked.constraints...)
	if n.asked.lock.File != "" {
		n.Manifest.Lock = n.asked.lock
	}
	if n.Manifest.Frozen = n.Manifest.Frozen || frozen; n.Manifest.Frozen && n.Manifest.Lock.File == "" {
		return fmt.Errorf("there is no lock file for %s, which --frozen wants: run `rillbox lock FILE`", cmp.Or(n.file, "a program that is in no file"))
	}
	return n.findModules()
}

// readManifest reads what the project around the program's file says of its packages, and
// tells of what is not honoured.
func (n *named) readManifest(quiet bool) error {
	m, notes, _, err := n.manifest()
	n.Manifest = m
	tell(notes, quiet)
	return err
}

// manifest is what the project around the program's file says of its packages, with notes
// of what is not honoured, and the absolute paths of the files that were asked for, there
// or not.
func (n named) manifest() (m job.Manifest, notes, asked []string, err error) {
	path, err := realPath(n.file)
	if err != nil {
		return m, nil, nil, fmt.Errorf("cannot find the program's directory: %w", err)
	}
	dir := manifest.Project(path)
	project, err := manifest.Open(dir)
	if err != nil {
		return m, nil, nil, err
	}
	defer project.Close()
	within, err := filepath.Rel(dir, path)
	if err != nil {
		return m, nil, nil, err
	}
	read := &noted{Source: project}
	m, notes, err = manifest.Read(read, filepath.ToSlash(within), n.Code, n.Language)
	for _, name := range read.names {
		asked = append(asked, filepath.Join(dir, filepath.FromSlash(name)))
	}
	return m, notes, asked, err
}

// noted notes which files are asked for, those that are not there too.
type noted struct {
	manifest.Source
	names []string
}

func (s *noted) ReadFile(name string, limit int64) ([]byte, error) {
	s.names = append(s.names, name)
	return s.Source.ReadFile(name, limit)
}

// tell tells of what is not honoured.
func tell(notes []string, quiet bool) {
	for _, note := range notes {
		if !quiet {
			fmt.Fprintln(os.Stderr, "rillbox: "+job.ShowLine(note, 2<<10))
		}
	}
}

// place is where the program's file is; what runs a module has a place without a file.
func (n named) place() (string, error) {
	file := n.file
	if n.module {
		file = "."
	}
	path, err := realPath(file)
	if n.module {
		path = filepath.Join(path, "-m") // which no module is called
	}
	return path, err
}

// modules are the modules, by their paths from the program's directory, that the program
// may import from beside its place.
func (n named) modules(path string) (map[string][]byte, error) {
	name := filepath.Base(path)
	if n.language.Mentions == nil {
		return nil, nil
	}
	if len(n.language.Mentions(n.Program)(name, n.Code)) == 0 {
		return nil, nil
	}
	dir, err := workspace.Open(filepath.Dir(path), workspace.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Modules(name, n.Code, n.language.Mentions(n.Program))
}

// findModules adds the modules that the program imports from beside it; where its file is
// in the workspace, it says where.
func (n *named) findModules() error {
	if n.file == "" && !n.module {
		return nil
	}
	path, err := n.place()
	if err != nil {
		return fmt.Errorf("cannot find the program's directory: %w", err)
	}
	if within, err := filepath.Rel(n.Workspace, path); n.Workspace != "" && err == nil && filepath.IsLocal(within) {
		n.Path = filepath.ToSlash(within)
		return nil
	}
	if filepath.IsLocal(n.file) { // else its place is nobody's business
		n.Folder = folderOf(n.file)
	}
	n.Files, err = n.modules(path)
	return err
}

// folderOf is the folder of a file by a path from the current directory; empty for that.
func folderOf(file string) string {
	if folder := filepath.ToSlash(filepath.Dir(file)); folder != "." {
		return folder
	}
	return ""
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
