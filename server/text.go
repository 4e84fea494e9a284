package server

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docker/go-units"

	"rillbox/supervisor/job"
)

// streamText is one of the guest's streams as text: bytes that are not UTF-8
// are each shown as U+FFFD, and counted.
type streamText struct {
	text     string
	omitted  int64 // bytes left out
	replaced int64 // bytes that were not UTF-8
}

func textOf(c job.Captured) streamText {
	if c.Omitted == 0 {
		text, n := utf8Text(append(bytes.Clone(c.Head), c.Tail...))
		return streamText{text: text, replaced: n}
	}
	// A character that the cut runs through belongs to what is left out.
	head, tail := c.Head[:len(c.Head)-partialRune(c.Head)], c.Tail
	for i := 0; i < utf8.UTFMax-1 && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	omitted := c.Omitted + int64(len(c.Head)-len(head)+len(c.Tail)-len(tail))
	headText, n := utf8Text(head)
	tailText, m := utf8Text(tail)
	return streamText{text: headText + leftOut(omitted) + tailText, omitted: omitted, replaced: n + m}
}

// leftOut stands where bytes of the guest's output are missing.
func leftOut(n int64) string {
	return fmt.Sprintf("\n… %d bytes left out …\n", n)
}

// utf8Text returns b as text, each byte that is not UTF-8 as one U+FFFD, and
// how many of those there are.
func utf8Text(b []byte) (text string, replaced int64) {
	if utf8.Valid(b) {
		return string(b), 0
	}
	text = string([]rune(string(b)))
	return text, int64(strings.Count(text, "\uFFFD") - bytes.Count(b, []byte("\uFFFD")))
}

// partialRune is how many bytes at the end of b begin a character that is not
// whole yet.
func partialRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// escapes matches the escapes of JSON's strings, surrogates in pairs.
var escapes = regexp.MustCompile(`\\(?:u[dD][89abAB][[:xdigit:]]{2}\\u[dD][c-fC-F][[:xdigit:]]{2}|u[dD][89a-fA-F][[:xdigit:]]{2}|.)`)

// mendSurrogates replaces each \uD800–\uDFFF escape that is not part of a pair
// with \uFFFD, and says how many there were. Go decodes such JSON, yet clients
// (Python's pydantic among them) refuse the whole message. raw must be valid
// JSON; it is not changed.
func mendSurrogates(raw []byte) (mended []byte, halves int) {
	if !bytes.Contains(raw, []byte(`\ud`)) && !bytes.Contains(raw, []byte(`\uD`)) {
		return raw, 0
	}
	mended = escapes.ReplaceAllFunc(raw, func(escape []byte) []byte {
		if len(escape) != len(`\ud800`) {
			return escape
		}
		halves++
		return []byte(`\ufffd`)
	})
	return mended, halves
}

// depth is how deep arrays and objects nest in valid JSON.
func depth(raw []byte) int {
	deepest, now, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			now++
			deepest = max(deepest, now)
		case c == ']' || c == '}':
			now--
		}
	}
	return deepest
}

// several is a number of things of one kind, for people to read.
func several(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// size writes a number of bytes for people.
func size(n int64) string {
	if n < 1<<10 {
		return several(n, "byte")
	}
	return strings.Replace(units.CustomSize("%.1f %s", float64(n), 1<<10, []string{"", "KiB", "MiB", "GiB"}), ".0 ", " ", 1)
}

func short(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}

// seconds writes a duration for people: "30 s".
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}
