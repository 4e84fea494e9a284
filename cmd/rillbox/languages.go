//go:build !windows

package main

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"rillbox/cache/egress"
	"rillbox/deno"
	"rillbox/deno/permission"
	"rillbox/pyodide"
	"rillbox/supervisor/job"
	"rillbox/wasm"
)

// An engineKind is an engine that can be opened: its languages, and what the settings
// say of it. A new language is a row of its engine's; a new engine is a row here.
type engineKind struct {
	// name begins the setting that grants its programs something: deno_permission_args.
	name      string
	languages []job.LanguageInfo
	runtimes  string // what setup fetches
	// many says that most people use few of its languages: each is set up when it is named
	// or first used, and help lists them apart.
	many bool
	// open makes the engine with the options of all, of which it takes its own.
	open func(pyodide.Options) (job.Toolchain, error)
}

var engineKinds = []engineKind{
	{name: "deno", languages: deno.Languages, runtimes: "Deno", open: openDeno},
	{name: "pyodide", languages: pyodide.Languages, runtimes: "Deno and Pyodide", open: openPyodide},
	{name: "wasm", languages: wasm.Languages, runtimes: "built by setup", many: true, open: openWasm},
}

func openDeno(o pyodide.Options) (job.Toolchain, error) { return deno.New(o.Options) }

func openPyodide(o pyodide.Options) (job.Toolchain, error) { return pyodide.New(o) }

func openWasm(o pyodide.Options) (job.Toolchain, error) {
	return wasm.New(wasm.Options{Options: o.Options})
}

// titles are the names of the kind's languages, as in a sentence.
func (k engineKind) titles() string {
	var titles []string
	for _, l := range k.languages {
		titles = append(titles, l.Title)
	}
	return job.Listed(titles, "and")
}

// languages are those of all engines.
func languages() (all []job.LanguageInfo) {
	for _, kind := range engineKinds {
		all = append(all, kind.languages...)
	}
	return all
}

// everyday are the languages that are set up without being named.
func everyday() (all []job.LanguageInfo) {
	for _, kind := range engineKinds {
		if !kind.many {
			all = append(all, kind.languages...)
		}
	}
	return all
}

// permit grants programs in a language what is given, in place of what the settings
// say.
func (c *config) permit(language job.Language, permissions permission.Permissions) {
	for _, kind := range engineKinds {
		if slices.ContainsFunc(kind.languages, func(l job.LanguageInfo) bool { return l.Name == language }) {
			*c.Permissions[kind.name] = permissions
		}
	}
}

// importFrom lets programs import modules also from the host of a URL.
func (c *config) importFrom(address string) error {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.User != nil {
		return fmt.Errorf("%q is not the URL of a program", address)
	}
	if len(c.Engine.AllowImport) == 0 {
		_, c.Engine.AllowImport = c.Permissions[engineKinds[0].name].ImportHosts()
	}
	c.Engine.AllowImport = append(c.Engine.AllowImport, egress.HostPort(at))
	return nil
}

// defaultLanguage is the REPL's.
const defaultLanguage = string(job.Python)

// languageNamed finds a language by what a person calls it.
func languageNamed(word string) (job.LanguageInfo, error) {
	l, _, found := job.FindLanguage(languages(), word)
	if found {
		return l, nil
	}
	return l, job.NoLanguage(languages(), word)
}

// languageOfFile finds a file's language by its extension; it has no name if there is
// none.
func languageOfFile(path string) job.LanguageInfo {
	for _, l := range languages() {
		if slices.Contains(l.Extensions, filepath.Ext(path)) {
			return l
		}
	}
	return job.LanguageInfo{}
}

// launchers are words of a script's first line that stand before its interpreter.
var launchers = []string{"env", "npx", "pnpx", "bunx", "pnpm", "yarn", "npm", "dlx", "exec", "run"}

// languageOfScript finds a program's language by its #! line; it has no name if that
// names none.
func languageOfScript(code string) job.LanguageInfo {
	line, _, _ := strings.Cut(code, "\n")
	line, found := strings.CutPrefix(line, "#!")
	if !found {
		return job.LanguageInfo{}
	}
	for _, word := range strings.Fields(line) {
		word = path.Base(word)
		if slices.Contains(launchers, word) || strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		word = strings.TrimRight(word, ".0123456789")
		for _, l := range languages() {
			if slices.Contains(l.Interpreters, word) {
				return l
			}
		}
		l, _, _ := job.FindLanguage(languages(), word)
		return l
	}
	return job.LanguageInfo{}
}

// languageChoice is what help says of languages: "javascript, typescript, python or 20
// others (`rillbox help languages`)".
func languageChoice() string {
	names := job.LanguageNames(everyday())
	if others := len(languages()) - len(names); others > 0 {
		return fmt.Sprintf("%s or %d others (see rillbox help languages)", strings.Join(names, ", "), others)
	}
	return job.Listed(names, "or")
}

// newLanguagesTopic is a page of help: all languages.
func newLanguagesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "languages",
		Short: "The languages: their names, the extensions of their files, what is fetched",
		Long:  languagesPage(),
	}
}

// languagesPage lists all languages.
func languagesPage() string {
	var page strings.Builder
	page.WriteString(`A program's language is told by -l NAME, by its file's extension, or by its #! line.
What a language is made of is fetched at its first run, or by rillbox setup NAME;
from then on it needs no network. A star marks those that rillbox repl has.

`)
	table := tabwriter.NewWriter(&page, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tEXTENSIONS\tFETCHED\tALSO CALLED")
	for _, kind := range engineKinds {
		for _, l := range kind.languages {
			star, fetched := "", kind.runtimes
			if l.Prompt != "" {
				star = "*"
			}
			if l.Size > 0 {
				fetched = megabytes(l.Size)
			}
			fmt.Fprintf(table, "%s%s\t%s\t%s\t%s\n", l.Name, star, strings.Join(l.Extensions, " "), fetched, strings.Join(l.Aliases, ", "))
		}
	}
	_ = table.Flush() // a Builder takes all
	return page.String()
}
