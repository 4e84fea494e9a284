package job

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names come from guests, packages and registries, and stand in texts between words
// of ours, for people, models and terminals. So that none passes for more than a
// name, what can't be seen as it is stands there as an escape, as Go writes them.

// maxName is how much is shown of a name, in bytes.
const maxName = 512

// ShowName is a name as it stands in a text: as it is, or, where that could be
// misread, in quotes. A path that is not too long can be told from what is shown.
func ShowName(name string) string {
	plain := name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, misread) &&
		name == strings.Join(strings.Fields(name), " ")
	if plain {
		return name
	}
	return QuoteName(name, maxName)
}

// ShowNameIn is a text of a guest's, such as a traceback, in which a name stands as
// ShowName shows it.
func ShowNameIn(text, name string) string {
	if name == "" {
		return text
	}
	return strings.ReplaceAll(text, name, ShowName(name))
}

// QuoteName is a name in quotes, of which at most so many bytes are shown.
func QuoteName(name string, most int) string {
	cut := ""
	if len(name) > most {
		for most > 0 && !utf8.RuneStart(name[most]) {
			most--
		}
		name, cut = name[:most], "…"
	}
	return `"` + escaped(name, misread) + `"` + cut
}

// misread says whether a character can't stand in a name without quotes.
func misread(r rune) bool {
	return r == '"' || r == '\\' || unsettling(r) || unicode.IsSpace(r) && r != ' '
}

// ShowText is text that a name may have got into, on as many lines as it has.
func ShowText(text string) string {
	return escaped(text, func(r rune) bool { return unsettling(r) && r != '\n' && r != '\t' })
}

// ShowLine is ShowText on one line, of at most so many bytes and what was escaped.
func ShowLine(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return ShowText(text)
}

// unsettling says whether a character is not one to be seen, but one that changes
// how others are, or ends a line: controls, Unicode's format characters (Cf; those
// for text from right to left are among them), its separators of lines and paragraphs,
// and what else is not shown by default (fillers, selectors of variants), which can
// hide text from people.
func unsettling(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// escaped writes what is to be hidden, and each byte that is not UTF-8, as an escape.
func escaped(text string, hide func(rune) bool) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !hide(r):
			b.WriteRune(r)
		default:
			quoted := fmt.Sprintf("%+q", string(r)) // \n, \u202e, \"
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
