package modules

import (
	"iter"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A cell is evaluated as a script, in which import and export are no statements.
// They are rewritten as what a script can have:
//
//	import a, { b as c } from "x"       const { default: a, b: c } = await import("x");
//	import * as n from "x"              const n = await import("x");
//	import "x", export … from "x"       void (await import("x"));
//	export const a = 1, export { a }    const a = 1, nothing
//	export default a                    ;0, a
//	import.meta                         $importMeta
//
// esbuild finds them. In what it prints each statement of modules begins a line and
// has one form, and its source map tells where that is in the cell. Text in a
// template may look the same, but the map has no place for it. The rest of the cell
// stays as it is, and lines stay lines.

// NeedsRewriting reports whether the code may have module syntax, or decorators, which
// only classes have.
func NeedsRewriting(code string) bool {
	return strings.Contains(code, "import") || strings.Contains(code, "export") ||
		strings.Contains(code, "class") && atSign().MatchString(code)
}

var atSign = Pattern(`(?:^|[^\w"'` + "`" + `])@`)

// Parts of JavaScript, for what follows.
const (
	comment = `//[^\n\r\x{2028}\x{2029}]*|/\*(?s:.*?)\*/`
	gap     = `(?:[\s\v\p{Z}\x{feff}]|` + comment + `)*`
	quoted  = `(?s:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')`
	braces  = `\{(?:[^}"'/]|` + comment + `|` + quoted + `)*\}`
	words   = `(?:[^"'/{]|` + comment + `)*`
)

// Module syntax, and decorators, as esbuild prints them.
var (
	printedSyntax      = Pattern(`^(?:import|export) |\bimport\.meta\b|@`)
	printedImport      = Pattern(`^import (?:([^\s,{}*"']+)(?:, )?)?(?:\* as (\S+)|(` + braces + `))?(?: from )?(` + quoted + `)(?: with (` + braces + `))?;`)
	printedSource      = Pattern(`^export (?:\*(?: as (?:` + quoted + `|\S+))?|` + braces + `) from (` + quoted + `)(?: with (` + braces + `))?;`)
	printedDeclaration = Pattern(`^export default (?:(?:async )?function\*? |class )([^\s({]+)`)
	printedAlias       = Pattern(`(` + quoted + `|[^\s,{}"']+) as `)
	printedLineEnd     = Pattern(`\n\s*`)
	noLineEnd          = Pattern(`[^\n]`)
)

// The same as people write it, valid as esbuild found it to be.
var (
	importMeta     = Pattern(`^import` + gap + `\.` + gap + `meta`)
	withSource     = Pattern(`^(?:import|export)` + words + `(?:` + braces + words + `)?` + quoted + `(?:` + gap + `with` + gap + braces + `)?(?:` + gap + `;)?`)
	exportList     = Pattern(`^export` + gap + braces + `(?:` + gap + `;)?`)
	exportDefault  = Pattern(`^export` + gap + `default`)
	exportedBefore = Pattern(`export(?:` + gap + `(?:abstract|async|const))*` + gap + `$`)
)

// withoutModuleSyntax rewrites the module syntax in code; esbuild made printed and
// these mappings of it. For transpiled code, code and printed are the same. decorated
// means that there are decorators, which V8 lacks.
func withoutModuleSyntax(code, printed, mappings string) (script string, decorated bool) {
	candidates := map[place]int{} // in printed
	printedLines := lineStarts(printed)
	for i, start := range printedLines {
		end := len(printed)
		if i+1 < len(printedLines) {
			end = printedLines[i+1]
		}
		line := printed[start:end]
		for _, found := range printedSyntax().FindAllStringIndex(line, -1) {
			candidates[place{i, utf16Length(line[:found[0]])}] = start + found[0]
		}
	}
	var out strings.Builder
	done := 0
	lines := lineStarts(code)
	for to, from := range sourceMappings(mappings) {
		start, candidate := candidates[to]
		if !candidate {
			continue
		}
		statement := printed[start:]
		if strings.HasPrefix(statement, "@") {
			decorated = true
			continue
		}
		at, ok := start, true
		if code != printed {
			at, ok = from.offset(code, lines)
		}
		if !ok || at < done {
			continue
		}
		if strings.HasPrefix(statement, "export ") && !strings.HasPrefix(code[at:], "export") { // the map has the declaration's place
			before := exportedBefore().FindStringIndex(code[done:at])
			if before == nil {
				continue
			}
			at = done + before[0]
		}
		if text, to := rewritten(code[at:], statement); text != "" {
			out.WriteString(code[done:at] + to + strings.Repeat("\n", strings.Count(text, "\n")-strings.Count(to, "\n")))
			done = at + len(text)
		}
	}
	return out.String() + code[done:], decorated
}

// rewritten returns the module syntax at the beginning of code, and what replaces it.
// Both are empty for what V8 does not have either, such as import defer.
func rewritten(code, printed string) (text, to string) {
	if m := printedImport().FindStringSubmatch(printed); m != nil {
		return withSource().FindString(code), declared(m[1], m[2], m[3], imported(m[4], m[5]))
	}
	if m := printedSource().FindStringSubmatch(printed); m != nil {
		return withSource().FindString(code), "void (" + imported(m[1], m[2]) + ");"
	}
	switch {
	case strings.HasPrefix(printed, "import.meta"):
		return importMeta().FindString(code), "$importMeta"
	case strings.HasPrefix(printed, "import "):
		return "", ""
	case strings.HasPrefix(printed, "export {"):
		text = exportList().FindString(code)
	case strings.HasPrefix(printed, "export default "):
		text = exportDefault().FindString(code)
		if m := printedDeclaration().FindStringSubmatch(printed); m == nil || m[1] == "extends" {
			return text, ";0," + blanked(text)[len(";0,"):]
		}
	default:
		text = "export"
	}
	return text, blanked(text) // so that columns stay, too
}

// imported is the expression that imports what a statement does.
func imported(source, attributes string) string {
	if attributes != "" {
		source += ", { with: " + printedLineEnd().ReplaceAllString(attributes, " ") + " }"
	}
	return "await import(" + source + ")"
}

// declared is the statement that declares what an import does: the default export,
// the whole module or the names in braces.
func declared(name, all, list, module string) string {
	list = printedAlias().ReplaceAllString(printedLineEnd().ReplaceAllString(list, " "), "$1: ")
	switch {
	case name == "" && all == "" && list == "":
		return "void (" + module + ");"
	case name != "" && list != "":
		list = "{ default: " + name + "," + list[len("{"):]
	case name != "":
		list = "{ default: " + name + " }"
	}
	switch {
	case all == "":
		return "const " + list + " = " + module + ";"
	case list == "":
		return "const " + all + " = " + module + ";"
	}
	return "const " + all + " = " + module + ", " + list + " = " + all + ";"
}

// blanked is text with all but its line ends replaced by spaces.
func blanked(text string) string { return noLineEnd().ReplaceAllString(text, " ") }

// place is a position in code: a line and a column in UTF-16 units, both from 0.
type place struct{ line, column int }

var lineBreak = Pattern(`\r\n|[\n\r\x{2028}\x{2029}]`)

// lineStarts is where the lines of code begin, in bytes.
func lineStarts(code string) []int {
	starts := []int{0}
	for _, found := range lineBreak().FindAllStringIndex(code, -1) {
		starts = append(starts, found[1])
	}
	return starts
}

// offset is the place's byte offset in code, whose lines start there; false if code
// does not have that place.
func (p place) offset(code string, lines []int) (int, bool) {
	if p.line < 0 || p.line >= len(lines) {
		return 0, false
	}
	at := lines[p.line]
	for units := 0; units < p.column; {
		r, size := utf8.DecodeRuneInString(code[at:])
		if size == 0 {
			return 0, false
		}
		units += max(utf16.RuneLen(r), 1)
		at += size
	}
	return at, true
}

func utf16Length(text string) int { return len(utf16.Encode([]rune(text))) }

// sourceMappings decodes the mappings of a source map: from places in the output to
// places in the source.
func sourceMappings(text string) iter.Seq2[place, place] {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return func(yield func(to, from place) bool) {
		var from place
		for i, line := range strings.Split(text, ";") {
			to := place{line: i}
			for segment := range strings.SplitSeq(line, ",") {
				var fields [5]int // to's column, the source, from's line and column, a name
				field, shift := 0, 0
				for i := 0; i < len(segment) && field < len(fields); i++ {
					digit := strings.IndexByte(digits, segment[i])
					fields[field] |= digit & 31 << shift
					if shift += 5; digit&32 == 0 { // its last; the first bit is the sign
						if fields[field]&1 != 0 {
							fields[field] = -fields[field]
						}
						fields[field], field, shift = fields[field]/2, field+1, 0
					}
				}
				to.column += fields[0]
				from.line += fields[2]
				from.column += fields[3]
				if field >= 4 && !yield(to, from) {
					return
				}
			}
		}
	}
}
