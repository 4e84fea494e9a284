//go:build !windows

package main

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/evanw/esbuild/pkg/api"

	"rillbox/supervisor"
)

// A cell ends where its language says that a statement does. At a terminal a
// line is added to what is unfinished; of piped input, lines are taken until the
// next one is no part of the cell any more.

// unfinished says whether text, typed at a terminal, waits for another line. A
// block of Python ends with an empty line, as in Python's own REPL.
func unfinished(language supervisor.Language, text string) bool {
	if language != supervisor.Python {
		return unfinishedScript(language, text)
	}
	end := scanPython(text)
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return end.open || end.block && strings.TrimSpace(last) != ""
}

// goesOn says whether next, a line of piped input, belongs to the cell text.
func goesOn(language supervisor.Language, text, next string) bool {
	if unfinishedAsIs(language, text) {
		return true
	}
	if language != supervisor.Python {
		return scriptGoesOn.MatchString(next)
	}
	end := scanPython(text)
	trimmed := strings.TrimSpace(next)
	return end.decorated || end.block && (trimmed == "" || trimmed[0] == '#' ||
		next[0] == ' ' || next[0] == '\t' || pythonGoesOn.MatchString(next))
}

// unfinishedAsIs says whether text is no whole cell, whatever follows.
func unfinishedAsIs(language supervisor.Language, text string) bool {
	if language != supervisor.Python {
		return unfinishedScript(language, text)
	}
	return scanPython(text).open
}

var (
	// What a line begins with that goes on with a statement of the line before.
	pythonGoesOn = regexp.MustCompile(`^(elif|else|except|finally)\b`)
	scriptGoesOn = regexp.MustCompile(`^\s*(\.[^0-9]|[?:,)}\]*%&|^=]|(else|catch|finally|instanceof)\b)`)
	// What a statement of several lines in Python begins with.
	pythonBlock = regexp.MustCompile(`^(async|class|def|for|if|try|while|with)\b`)
)

// unfinishedScript says whether JavaScript or TypeScript ends too early, as its
// parser sees it.
func unfinishedScript(language supervisor.Language, text string) bool {
	loader := api.LoaderJSX
	if language == supervisor.TypeScript {
		loader = api.LoaderTS
	}
	text += "\n"
	end := strings.Count(text, "\n") + 1 // the last line's number
	result := api.Transform(text, api.TransformOptions{Loader: loader, LogLevel: api.LogLevelSilent})
	for _, e := range result.Errors {
		switch {
		case strings.Contains(e.Text, "end of file"), strings.HasPrefix(e.Text, `Expected "*/"`):
			return true
		case strings.HasPrefix(e.Text, "Unterminated") && e.Location != nil && e.Location.Line == end:
			return true // a template: other strings end with their line
		}
	}
	return false
}

// pythonEnd is what the end of a text of Python is part of.
type pythonEnd struct {
	open      bool // brackets, a string of several lines, a line that goes on
	block     bool // a statement of several lines
	decorated bool // decorators that wait for their function
}

// scanPython reads a text as far as brackets, strings and lines go.
func scanPython(text string) (end pythonEnd) {
	depth, line, last := 0, 0, ' ' // of brackets; where the logical line began; its last character that is not blank
	endLine := func(at int) {
		switch logical := strings.TrimLeft(text[line:at], "\n"); {
		case last == ' ': // nothing, or a comment
		case logical[0] == '@':
			end.decorated, end.block = true, true
		default:
			end.decorated = false
			end.block = end.block || last == ':' || pythonBlock.MatchString(logical)
		}
		line, last = at, ' '
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case '"', '\'':
			length, closed := pythonString(text[i:])
			if !closed {
				end.open = true
				return end
			}
			i, last = i+length-1, rune(c)
		case '\\':
			if i+1 == len(text) {
				end.open = true
				return end
			}
			i++
		case '\n':
			if depth == 0 {
				endLine(i)
			}
		case '(', '[', '{':
			depth++
			last = rune(c)
		case ')', ']', '}':
			depth = max(0, depth-1)
			last = rune(c)
		default:
			if !unicode.IsSpace(rune(c)) {
				last = rune(c)
			}
		}
	}
	end.open = depth > 0
	if !end.open {
		endLine(len(text))
	}
	return end
}

// pythonString is the length of the string that text begins with. One of a
// single line ends with it, as an error that Python tells.
func pythonString(text string) (length int, closed bool) {
	quote := text[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text, triple) {
		quote = triple
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '\n' && len(quote) == 1:
			return i, true
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote), true
		}
	}
	return len(text), len(quote) == 1 && !strings.HasSuffix(text, "\\")
}
