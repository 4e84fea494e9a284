package deno

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A cell is evaluated as a script, in which import and export are no statements.
// V8 says exactly where it meets the first of them; what stands there is then
// written in a way that a script can have:
//
//	import a, { b as c } from "x"       const { default: a, b: c } = await import("x")
//	import * as n from "x"              const n = await import("x")
//	import "x", export … from "x"       void (await import("x"))
//	export const a = 1, export { a }    const a = 1, nothing
//	export default a                    ;0, a
//	import.meta                         $importMeta
//
// Lines stay lines.

// maxRewrites is how often a cell is looked at again: a block of imports is
// rewritten at once.
const maxRewrites = 1000

// place is a position as V8 tells it: a line and a column in UTF-16 units, both
// from 0.
type place struct{ line, column int }

// offset is where the place is in the code, in bytes; false when it is not there.
func (p place) offset(code string) (int, bool) {
	at := 0
	for range p.line {
		end := strings.IndexByte(code[at:], '\n')
		if end < 0 {
			return 0, false
		}
		at += end + 1
	}
	for units := 0; units < p.column; {
		r, size := utf8.DecodeRuneInString(code[at:])
		if size == 0 || r == '\n' {
			return 0, false
		}
		units += max(utf16.RuneLen(r), 1)
		at += size
	}
	return at, true
}

// mayHaveModuleSyntax says that the code may have statements that have to be
// rewritten.
func mayHaveModuleSyntax(code string) bool {
	return strings.Contains(code, "import") || strings.Contains(code, "export")
}

// rewriteAt rewrites what stands at a byte, where V8 met a statement of modules;
// false when that is none.
func rewriteAt(code string, at int) (string, bool) {
	rest := code[at:]
	switch {
	case strings.HasPrefix(rest, "meta"):
		start := strings.LastIndex(code[:at], "import")
		if start < 0 {
			return "", false
		}
		return code[:start] + "$importMeta" + lines(code[start:at]) + rest[len("meta"):], true
	case strings.HasPrefix(rest, "import"):
		return rewriteImports(code, at)
	case strings.HasPrefix(rest, "export"):
		s := statement{text: code, at: at + len("export")}
		return s.rewriteExport(at)
	}
	return "", false
}

// rewriteImports rewrites the import statement at a byte, and those that follow
// it directly.
func rewriteImports(code string, at int) (string, bool) {
	var out strings.Builder
	done := 0
	for {
		s := statement{text: code, at: at + len("import")}
		to, ok := s.importing()
		if !ok {
			break
		}
		out.WriteString(code[done:at] + to + lines(code[at:s.at]))
		done = s.at
		s.space()
		if at = s.at; !strings.HasPrefix(code[at:], "import") {
			break
		}
	}
	return out.String() + code[done:], done > 0
}

// statement is a statement of modules that is being read; its methods advance
// over what they find.
type statement struct {
	text string
	at   int
}

// importing reads what follows the word import, the semicolon included, and
// gives the statement that replaces it.
func (s *statement) importing() (string, bool) {
	s.space()
	if from, ok := s.source(); ok {
		return "void (await import(" + from + "));", true
	}
	names, all := "", ""
	if name, ok := s.name(); ok {
		names = "default: " + name
		if !s.sign(",") && !s.peek("from") {
			return "", false // import defer, import source
		}
	}
	switch {
	case s.sign("*"):
		if !s.word("as") {
			return "", false
		}
		name, ok := s.name()
		if !ok {
			return "", false
		}
		all = name
	case s.sign("{"):
		list, ok := s.list()
		if !ok {
			return "", false
		}
		names = strings.TrimPrefix(names+list, ", ")
	}
	if !s.word("from") {
		return "", false
	}
	from, ok := s.source()
	switch {
	case !ok:
		return "", false
	case all == "":
		return "const { " + names + " } = await import(" + from + ");", true
	case names == "":
		return "const " + all + " = await import(" + from + ");", true
	}
	return "const " + all + " = await import(" + from + "), { " + names + " } = " + all + ";", true
}

// list reads the names between braces, after the first, as a pattern's, each
// with a comma in front.
func (s *statement) list() (list string, ok bool) {
	ok = s.braced(func() bool {
		start := s.at
		if !s.anyName() {
			return false
		}
		list += ", " + s.text[start+codeStart(s.text[start:]):s.at]
		if !s.word("as") {
			return true
		}
		inner, ok := s.name()
		list += ": " + inner
		return ok
	})
	return list, ok
}

// source reads where something is imported from, and gives the arguments of
// import that are the same.
func (s *statement) source() (string, bool) {
	from, ok := s.quoted()
	if !ok {
		return "", false
	}
	end := s.at // a line's end may be the statement's
	if s.word("with") {
		start := s.at
		if !s.sign("{") {
			return "", false
		}
		if !s.attributes() {
			return "", false
		}
		from += ", { with: " + strings.TrimSpace(s.text[start:s.at]) + " }"
		end = s.at
	}
	if !s.sign(";") {
		s.at = end
	}
	return from, true
}

// attributes reads an import's attributes, after the first brace.
func (s *statement) attributes() bool {
	return s.braced(func() bool {
		if !s.anyName() || !s.sign(":") {
			return false
		}
		_, ok := s.quoted()
		return ok
	})
}

// braced reads what stands between commas up to a brace, which is read, too.
func (s *statement) braced(one func() bool) bool {
	for !s.sign("}") {
		if !one() || !s.sign(",") && !s.peek("}") {
			return false
		}
	}
	return true
}

// anyName reads a name, which may be in quotes.
func (s *statement) anyName() bool {
	if _, ok := s.quoted(); ok {
		return true
	}
	_, ok := s.name()
	return ok
}

// rewriteExport rewrites the statement that begins at start with the word
// export, which was read.
func (s *statement) rewriteExport(start int) (string, bool) {
	before := s.text[:start]
	blank := func(end int) string { // so that columns stay, too
		return before + blanked(s.text[start:end]) + s.text[end:]
	}
	s.space()
	switch {
	case s.peek("*"), s.peek("{"):
		if s.sign("*") {
			if s.word("as") {
				if _, ok := s.name(); !ok {
					return "", false
				}
			}
		} else {
			s.sign("{")
			if !s.exported() {
				return "", false
			}
			if !s.peek("from") {
				s.sign(";")
				return blank(s.at), true
			}
		}
		if !s.word("from") {
			return "", false
		}
		from, ok := s.source()
		if !ok {
			return "", false
		}
		return before + "void (await import(" + from + "));" + lines(s.text[start:s.at]) + s.text[s.at:], true
	case s.word("default"):
		s.space()
		if m := declaration().FindStringSubmatch(s.text[s.at:]); m != nil && m[1] != "extends" {
			return blank(s.at), true
		}
		return before + ";0," + blanked(s.text[start:s.at])[len(";0,"):] + s.text[s.at:], true
	}
	return blank(s.at), true
}

// declaration is the beginning of a function or class that may have a name.
var declaration = pattern(`^(?:(?:async\s+)?function\s*(?:\*\s*|\s)|class\s+)([\p{L}$_]\pL*)`)

// exported reads the names between braces, after the first.
func (s *statement) exported() bool {
	return s.braced(func() bool { return s.anyName() && (!s.word("as") || s.anyName()) })
}

// blanked is text with all but its line ends replaced by spaces.
func blanked(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text)
}

// lines are the line ends in text.
func lines(text string) string { return strings.Repeat("\n", strings.Count(text, "\n")) }

// space advances over space and comments.
func (s *statement) space() { s.at += codeStart(s.text[s.at:]) }

// peek says whether the word or sign comes next, after space.
func (s *statement) peek(text string) bool {
	s.space()
	return strings.HasPrefix(s.text[s.at:], text)
}

func (s *statement) sign(sign string) bool {
	if !s.peek(sign) {
		return false
	}
	s.at += len(sign)
	return true
}

func (s *statement) word(word string) bool {
	was := s.at
	if name, ok := s.name(); ok && name == word {
		return true
	}
	s.at = was
	return false
}

var (
	aName      = pattern(`^[\p{L}\p{Nl}$_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}$\x{200c}\x{200d}]*`)
	aQuotation = pattern(`^(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')`)
)

func (s *statement) name() (string, bool) { return s.match(aName().FindString) }

// quoted reads a text in quotes.
func (s *statement) quoted() (string, bool) { return s.match(aQuotation().FindString) }

func (s *statement) match(find func(string) string) (string, bool) {
	was := s.at
	s.space()
	found := find(s.text[s.at:])
	if found == "" {
		s.at = was
		return "", false
	}
	s.at += len(found)
	return found, true
}
