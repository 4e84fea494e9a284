//go:build !windows

package terminal

import (
	"io"
	"regexp"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi/parser"
)

// A Screen lets through to a terminal what a guest may show there: text, colours,
// and what moves the cursor or erases, as progress bars do. What talks to the
// terminal or changes it is left out: titles, links and the clipboard (OSC), DCS,
// APC and PM, questions whose answers would be typed into the person's shell, modes,
// character sets. So are controls that reorder text (Unicode's Bidi_Control), and
// those of C1 in any form. A sequence is written when it is whole, and known; what
// a guest writes to two streams of one terminal never makes one together.
type Screen struct {
	To     io.Writer
	state  parser.State
	params []byte // of a sequence that is not whole yet
	rest   []byte // of a character that is not whole yet
	styled bool   // what comes next is not in the terminal's own colours
	hidden bool   // the cursor is
}

// maxParams is how long the parameters of a sequence may be, in bytes. Those of a
// longer one are not kept, and it is left out.
const maxParams = 128

func (s *Screen) Write(p []byte) (int, error) {
	in := append(s.rest, p...)
	s.rest = nil
	out := make([]byte, 0, len(in))
	for len(in) > 0 {
		r, n := utf8.DecodeRune(in)
		if r == utf8.RuneError && n == 1 && !utf8.FullRune(in) {
			s.rest = in
			break
		}
		out = s.next(out, r)
		in = in[n:]
	}
	if len(out) == 0 {
		return len(p), nil
	}
	_, err := s.To.Write(out)
	return len(p), err
}

// next appends what is to be written once a character has come.
func (s *Screen) next(out []byte, r rune) []byte {
	if r >= utf8.RuneSelf {
		switch s.state {
		case parser.OscStringState, parser.DcsStringState, parser.SosStringState, parser.PmStringState, parser.ApcStringState:
			return out
		}
		s.state = parser.GroundState
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return out
		}
		return utf8.AppendRune(out, r)
	}
	b, from := byte(r), s.state
	next, action := parser.Table.Transition(from, b)
	s.state = next
	if next != from && (next == parser.EscapeState || next == parser.CsiEntryState) {
		s.params = s.params[:0]
	}
	switch action {
	case parser.PrintAction:
		return append(out, b)
	case parser.ExecuteAction:
		if b >= '\a' && b <= '\r' { // bell, backspace, tab, ends of lines and pages, return
			return append(out, b)
		}
	case parser.PrefixAction, parser.CollectAction, parser.ParamAction:
		if len(s.params) <= maxParams {
			s.params = append(s.params, b)
		}
	case parser.DispatchAction:
		switch from {
		case parser.EscapeState, parser.EscapeIntermediateState:
			if harmlessEscape.Match(append(s.params, b)) {
				return append(out, '\x1b', b)
			}
		case parser.CsiEntryState, parser.CsiParamState, parser.CsiIntermediateState:
			if sequence := append(s.params, b); len(s.params) <= maxParams && harmlessSequence.Match(sequence) {
				s.track(string(s.params), b)
				return append(append(out, "\x1b["...), sequence...)
			}
		}
	}
	return out
}

// track notes what a sequence changes until it is reset.
func (s *Screen) track(params string, command byte) {
	switch command {
	case 'm':
		s.styled = !plainStyle.MatchString(params)
	case 'l', 'h':
		s.hidden = command == 'l'
	}
}

// See ECMA-48, and xterm's ctlseqs for what terminals make of it.
var (
	harmlessEscape   = regexp.MustCompile(`^[78DEM]$`) // save and restore the cursor, move it by a line
	harmlessSequence = regexp.MustCompile(`^(?:` +
		`[0-9;:]*m|` + // colours and the like
		`[0-9;]*[A-IK-MPXZ@` + "`" + `adef]|` + // moves, erases, makes room
		`[0-9]*[ST]|` + // scrolls
		`0*[0-2]?J|` + // erases the screen, not what was scrolled away
		`[su]|` + // saves and restores the cursor
		`\?25[hl])$`) // the cursor is seen, or not
	plainStyle = regexp.MustCompile(`^(?:[0-9;:]*;)?0*$`)
)

// End resets the style and shows the cursor, if a guest left them changed.
func (s *Screen) End() error {
	var out []byte
	if len(s.rest) > 0 {
		out = s.next(out, utf8.RuneError)
	}
	if s.styled {
		out = append(out, "\x1b[m"...)
	}
	if s.hidden {
		out = append(out, "\x1b[?25h"...)
	}
	*s = Screen{To: s.To}
	if len(out) == 0 {
		return nil
	}
	_, err := s.To.Write(out)
	return err
}
