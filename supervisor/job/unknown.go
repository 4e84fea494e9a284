package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// elsewhere are languages that people ask for and that nothing here can run, by all that
// they are called, with those that come nearest, the best first.
var elsewhere = []struct {
	title, words string
	nearest      []Language
}{
	{"Java", "java jshell", []Language{"go", "cpp", TypeScript}},
	{"Kotlin", "kotlin kt kts", []Language{"typescript", "go"}},
	{"Scala", "scala sc", []Language{"fsharp", "clojure"}},
	{"Groovy", "groovy", []Language{"ruby", Python}},
	{"C#", "csharp c# cs csx dotnet", []Language{"fsharp", TypeScript}},
	{"Visual Basic", "vb vbnet vbscript vbs basic", []Language{Python, "lua"}},
	{"Rust", "rust rs", []Language{"cpp", "go"}},
	{"Swift", "swift", []Language{TypeScript, "go"}},
	{"Objective-C", "objectivec objc objective-c", []Language{"c", "cpp"}},
	{"Dart", "dart", []Language{TypeScript}},
	{"Haskell", "haskell hs ghc", []Language{"fsharp", "scheme"}},
	{"OCaml", "ocaml ml reasonml", []Language{"fsharp", "scheme"}},
	{"Julia", "julia jl", []Language{"r", Python}},
	{"MATLAB", "matlab octave", []Language{"r", Python}},
	{"Fortran", "fortran f90 f95", []Language{"c", Python}},
	{"PowerShell", "powershell pwsh ps1", []Language{"bash", Python}},
	{"a Windows batch file", "bat batch cmd", []Language{"bash"}},
	{"AppleScript", "applescript osascript", []Language{"bash", JavaScript}},
	{"AutoHotkey", "ahk autohotkey", []Language{JavaScript, "lua"}},
	{"AutoIt", "autoit au3", []Language{JavaScript, "lua"}},
	{"Raku (Perl 6)", "raku perl6 p6", []Language{"perl"}},
	{"Crystal", "crystal cr", []Language{"ruby"}},
	{"Elixir", "elixir ex exs", []Language{"ruby", "clojure"}},
	{"Erlang", "erlang erl", []Language{"prolog", "clojure"}},
	{"Racket", "racket rkt", []Language{"scheme"}},
	{"Common Lisp", "lisp commonlisp common-lisp sbcl clisp", []Language{"scheme", "clojure"}},
	{"Nim", "nim", []Language{"c", Python}},
	{"Zig", "zig", []Language{"c", "cpp"}},
	{"V", "v vlang", []Language{"go", "c"}},
	{"D", "d dlang", []Language{"cpp", "c"}},
	{"Kit", "kit", []Language{"c"}},
	{"Pascal", "pascal delphi pas", []Language{"c", "lua"}},
	{"Ada", "ada", []Language{"cpp"}},
	{"COBOL", "cobol cob", []Language{Python}},
	{"MySQL", "mysql mariadb", []Language{"sql", "postgresql"}},
	{"Less", "less", []Language{"scss"}},
}

// NoLanguage is the error that none of the rows is called by a word. It says what to use
// instead.
func NoLanguage(rows []LanguageInfo, word string) error {
	asked := strings.ToLower(strings.TrimSpace(word))
	names := LanguageNames(rows)
	for _, other := range elsewhere {
		if !slices.Contains(strings.Fields(other.words), asked) {
			continue
		}
		var near []string
		for _, name := range other.nearest {
			if slices.Contains(names, string(name)) {
				near = append(near, string(name))
			}
		}
		if len(near) == 0 {
			near = names
		}
		return fmt.Errorf("%s can't run here, as nothing that runs it is WebAssembly: the nearest is %s", other.title, Listed(near, "or"))
	}
	var known []string
	for _, l := range rows {
		known = append(known, l.Words()...)
	}
	meant := ""
	if best := Nearest(asked[:min(len(asked), 40)], known); best != "" {
		meant = " (did you mean " + best + "?)"
	}
	return fmt.Errorf("language %s is not known%s: use one of %s", QuoteName(word, 40), meant, strings.Join(names, ", "))
}

// Nearest is the one of some words that is nearest to one that is none of them; empty when
// none is near. Two letters in the wrong order count as two mistakes.
func Nearest(word string, known []string) string {
	best, least := "", 3
	if len(word) < 4 {
		least = 2
	}
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}
