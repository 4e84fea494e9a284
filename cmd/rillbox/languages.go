//go:build !windows

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"rillbox/deno"
	"rillbox/supervisor"
)

// A language is what this package knows of a language: the rest is its engine's.
type language struct {
	name       supervisor.Language
	aliases    []string
	extensions []string // of files
	// permissions is the setting that grants its programs something.
	permissions func(*config) *deno.Permissions
	// banner names what its REPL runs on; ${deno} stands for Deno's version.
	banner       string
	prompt, more string
	exits        []string // what a person types to end a REPL
	// readsLines says that a cell reads no more of a terminal than the lines it
	// asks for. The others read ahead, which is the next cell.
	readsLines bool
	// continues matches a line of piped input that belongs to the statement before it.
	continues *regexp.Regexp
	// hostile is a program that tries what must be refused, endless one that never
	// ends. They are empty where another language's are run in the same way.
	hostile, endless string
}

var languages = []language{
	{
		name: supervisor.JavaScript, aliases: []string{"js", "node"}, extensions: []string{".js", ".mjs", ".cjs", ".jsx"},
		permissions: func(c *config) *deno.Permissions { return &c.DenoPermissions },
		banner:      "JavaScript in Deno ${deno} (V8 ${v8})", prompt: "> ", more: "  ", exits: []string{"exit()", "quit()"},
		continues: scriptContinues, hostile: probeJS, endless: "for (;;);",
	},
	{
		name: supervisor.TypeScript, aliases: []string{"ts"}, extensions: []string{".ts", ".mts", ".tsx"},
		permissions: func(c *config) *deno.Permissions { return &c.DenoPermissions },
		banner:      "TypeScript ${typescript} in Deno ${deno}", prompt: "> ", more: "  ", exits: []string{"exit()", "quit()"},
		continues: scriptContinues,
	},
	{
		name: supervisor.Python, aliases: []string{"py"}, extensions: []string{".py"},
		permissions: func(c *config) *deno.Permissions { return &c.PyodidePermissions },
		banner:      "Python ${python} in Pyodide ${pyodide}", prompt: ">>> ", more: "... ", exits: []string{"exit()", "quit()", "exit", "quit"},
		readsLines: true, continues: regexp.MustCompile(`^(\s|#|(elif|else|except|finally)\b)`),
		hostile: probePython, endless: "while True: pass",
	},
}

var scriptContinues = regexp.MustCompile(`^\s*(\.[^0-9]|[?:,)}\]*%&|^=]|(else|catch|finally|instanceof)\b)`)

// defaultLanguage is the REPL's.
const defaultLanguage = string(supervisor.Python)

// words are all that a person may call a language: also what its files end with.
func (l language) words() []string {
	words := append([]string{string(l.name)}, l.aliases...)
	for _, extension := range l.extensions {
		words = append(words, extension[1:])
	}
	return words
}

// languageNamed finds a language by what a person calls it.
func languageNamed(word string) (language, error) {
	var known []string
	for _, l := range languages {
		if slices.Contains(l.words(), strings.ToLower(word)) {
			return l, nil
		}
		known = append(known, l.words()...)
	}
	return language{}, fmt.Errorf("unknown language %q; want %s%s", word, languageChoice(), didYouMean(word, known))
}

// languageOfFile finds a file's language by its extension; it has no name if there is
// none.
func languageOfFile(path string) language {
	for _, l := range languages {
		if slices.Contains(l.extensions, filepath.Ext(path)) {
			return l
		}
	}
	return language{}
}

// languageChoice is the list of languages for help: "javascript or python (js, py)".
func languageChoice() string {
	var names, short []string
	for _, l := range languages {
		names, short = append(names, string(l.name)), append(short, l.aliases[0])
	}
	last := len(names) - 1
	return fmt.Sprintf("%s or %s (%s)", strings.Join(names[:last], ", "), names[last], strings.Join(short, ", "))
}

// extensionList lists the extensions of all languages.
func extensionList() string {
	var list []string
	for _, l := range languages {
		list = append(list, l.extensions...)
	}
	return strings.Join(list, " ")
}
