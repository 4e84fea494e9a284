package job

import (
	"regexp"
	"slices"
	"strings"
)

// Language names what a program is written in.
type Language string

// The languages that have an engine.
const (
	JavaScript Language = "javascript"
	TypeScript Language = "typescript"
	Python     Language = "python"
)

// LanguageInfo is a language's row in the registry: all that the MCP surface and the
// command line know of it. The rows of an engine stand in its own package; what is
// listed or said of languages anywhere is made from them.
type LanguageInfo struct {
	Name  Language
	Title string // its name in sentences
	// Aliases are other names, of which the first stands in help.
	Aliases []string
	// Extensions are those of its files; the first is that of a program without a file
	// name. Their letters are names of the language, too: the others than the first say
	// how a program is parsed.
	Extensions []string
	// Interpreters are other words by which the #! line of a script names it.
	Interpreters []string
	// Syntaxes are those of these names that change what can be written ("tsx").
	Syntaxes []string

	// How it runs, examples of packages, and where a program finds its arguments: for
	// models. AnyFile is what to know where a program may read any file.
	How, Packages, Arguments, AnyFile string

	// Banner names what its REPL runs on; ${deno} stands for Deno's version. A language
	// without a Prompt has no REPL.
	Banner       string
	Prompt, More string
	Exits        []string // what a person types to end a REPL
	// Decode gives the text, UTF-8, of a program's file, which may say how it is encoded;
	// nil where none does.
	Decode func(source string) (string, error)
	// Mentions begins with a program, and gives what tells the files beside it that one of
	// its files may import, the program's own first, by their paths from its directory;
	// more than those it does. `dir/*.x` are all that are so called.
	Mentions func(p Program) func(file, code string) []string
	// Typed says that its programs' types can be checked.
	Typed bool
	// Commands is the scheme by which a person names the packages whose commands the
	// language runs, "npm"; empty if it is another's. Module is the code that runs a module
	// as the program, nil where there is no such thing.
	Commands string
	Module   func(name string) (code string, err error)
	// LockFile is the name of the lock files that it writes.
	LockFile string
	// Continues matches a line of piped input that belongs to the statement before it;
	// nil matches none.
	Continues *regexp.Regexp
	// ReadsLines says that a cell reads no more of a terminal than the lines it asks
	// for. The others read ahead, which is the next cell.
	ReadsLines bool

	// Size is how many bytes are fetched at its first use, 0 where it comes with its engine.
	// License is that of what is fetched (SPDX).
	Size    int64
	License string

	// Probe is a program that tries what must be refused, and whose value maps what it
	// tried to how it was refused; Endless is one that never ends. They are empty where
	// another language is run in the same way.
	Probe, Endless string
}

// Words are all that the language may be called.
func (l LanguageInfo) Words() []string {
	words := append([]string{string(l.Name)}, l.Aliases...)
	for _, extension := range l.Extensions {
		if word := extension[1:]; !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// FindLanguage finds the language that is called by a word, and the file name that the
// word gives a program, if it says how it is parsed: "main.mjs".
func FindLanguage(rows []LanguageInfo, word string) (l LanguageInfo, file string, found bool) {
	word = strings.ToLower(strings.TrimSpace(word))
	for _, l := range rows {
		switch {
		case !slices.Contains(l.Words(), word):
			continue
		case slices.Contains(l.Extensions[1:], "."+word):
			return l, "main." + word, true
		}
		return l, "", true
	}
	return LanguageInfo{}, "", false
}

// LanguageNames are the names of languages.
func LanguageNames(rows []LanguageInfo) []string {
	names := make([]string, len(rows))
	for i, l := range rows {
		names[i] = string(l.Name)
	}
	return names
}

// Listed lists names as in a sentence, with a word before the last one: "and", "or".
func Listed[S ~string](names []S, word string) string {
	text := ""
	for i, name := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			text += " " + word + " "
		default:
			text += ", "
		}
		text += string(name)
	}
	return text
}
