package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"rillbox/supervisor"
)

// language is all that this package knows of a language.
type language struct {
	name    supervisor.Language
	title   string   // its name in sentences
	aliases []string // other names
	// Names that are also file extensions, which say how the program is parsed:
	// syntaxes change what can be written and are told to models, modules do not.
	syntaxes, modules []string
	how               string // it runs
	packages          string // examples of the packages argument
	args              string // where a program finds its arguments
	anyFile           string // what to know when it may read any file
}

const howDeno = "JavaScript and TypeScript run on Deno, with top-level await: import npm packages by name " +
	"(import _ from \"lodash\"), or npm:, jsr: and https: specifiers; node: built-ins and, in CommonJS, require() work. " +
	"Types are stripped, not checked. export default gives the result."

// languages has a row for each language, in the order in which they are told.
var languages = []language{{
	name:     supervisor.JavaScript,
	title:    "JavaScript",
	aliases:  []string{"js", "node", "nodejs"},
	syntaxes: []string{"jsx"},
	modules:  []string{"mjs", "cjs"},
	how:      howDeno,
	packages: "lodash@4, jsr:@std/csv, https: URLs",
	args:     "Deno.args, process.argv.slice(2)",
}, {
	name:     supervisor.TypeScript,
	title:    "TypeScript",
	aliases:  []string{"ts", "deno"},
	syntaxes: []string{"tsx"},
	modules:  []string{"mts"},
	how:      howDeno,
	packages: "lodash@4, jsr:@std/csv, https: URLs",
	args:     "Deno.args, process.argv.slice(2)",
}, {
	name:    supervisor.Python,
	title:   "Python",
	aliases: []string{"py", "python3", "pyodide"},
	how: "Python is CPython in WebAssembly (Pyodide), with top-level await: what is imported is installed by itself; " +
		"the last expression's value is the result. No threads, subprocesses or sockets; packages with native code need a WebAssembly build.",
	packages: "numpy>=2, httpx[http2], wheel URLs",
	args:     "sys.argv[1:]",
	anyFile:  " (open() finds files only at paths that a flag names)",
}}

// languages are those that the supervisor has an engine for.
func (s *Server) languages() []language {
	return slices.DeleteFunc(slices.Clone(languages), func(l language) bool {
		_, ok := s.supervisor.Toolchain(l.name)
		return !ok
	})
}

// languageNames lists what a language argument may be: the languages themselves,
// then their other names.
func (s *Server) languageNames() []string {
	var names, others []string
	for _, l := range s.languages() {
		names = append(names, string(l.name))
		others = slices.Concat(others, l.aliases, l.syntaxes, l.modules)
	}
	slices.Sort(others)
	return append(names, others...)
}

// resolve finds the language that a client named, and the name of the program's file
// where that says how it is parsed. A name that may be absent stands for no language.
func (s *Server) resolve(name string, optional bool) (_ supervisor.Language, file string, err error) {
	if name == "" && optional {
		return "", "", nil
	}
	if name == "" {
		return "", "", fmt.Errorf("the call needs language: use one of %s", strings.Join(s.languageNames(), ", "))
	}
	known := strings.ToLower(strings.TrimSpace(name))
	for _, l := range s.languages() {
		switch {
		case known == string(l.name) || slices.Contains(l.aliases, known):
			return l.name, "", nil
		case slices.Contains(l.syntaxes, known) || slices.Contains(l.modules, known):
			return l.name, "main." + known, nil
		}
	}
	return "", "", fmt.Errorf("language %s is not known: use one of %s", quote(name), strings.Join(s.languageNames(), ", "))
}

// describeLanguages completes a schema with what the languages say.
func (s *Server) describeLanguages(schema *jsonschema.Schema) {
	var names, syntaxes []any
	for _, l := range s.languages() {
		names = append(names, string(l.name))
		for _, syntax := range l.syntaxes {
			syntaxes = append(syntaxes, syntax)
		}
	}
	schema.Properties["language"].Enum = append(names, syntaxes...)
}

// each lists what the languages say, once where several say the same.
func (s *Server) each(say func(language) string) (all []string) {
	for _, l := range s.languages() {
		if said := say(l); !slices.Contains(all, said) {
			all = append(all, said)
		}
	}
	return all
}

// packageExamples are examples of packages for the languages that take them.
func (s *Server) packageExamples() (text string) {
	for _, examples := range s.each(func(l language) string { return l.packages }) {
		var titles []string
		for _, l := range s.languages() {
			if l.packages == examples {
				titles = append(titles, l.title)
			}
		}
		text += fmt.Sprintf(" %s: %s.", inWords(titles), examples)
	}
	return text
}

// inWords lists names as in a sentence.
func inWords(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
