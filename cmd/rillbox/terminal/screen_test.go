//go:build !windows

package terminal

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// through is what a terminal gets of what a guest writes in parts.
func through(t *testing.T, parts ...string) string {
	t.Helper()
	var out bytes.Buffer
	s := &Screen{To: &out}
	for _, part := range parts {
		if n, err := s.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(part), err)
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAScreenShowsWhatProgramsShow(t *testing.T) {
	for _, text := range []string{
		"", "plain\ttext\r\n", "Grüße, 日本語, עברית, 👩‍💻, ❤️\n", "bell\a back\b page\f",
		"\x1b[31mred\x1b[0m", "\x1b[01;38;5;208mbold\x1b[m", "\x1b[4:3m\x1b[58:2::255:0:0mwavy\x1b[0m",
		"\r 50%|█████     | 1/2\x1b[K\r", "\n\x1b[A\x1b[2Ktwo bars", "\x1b[?25l\x1b[1A\x1b[2K⠋ spinning\x1b[?25h", // tqdm, rich
		"\x1b[2J\x1b[H\x1b[10;20Hthere", "\x1b7\x1b[3;1Hx\x1b8", "\x1b[s\x1b[u\x1bM",
	} {
		if got := through(t, text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestAScreenLeavesOutWhatIsNotForGuests(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b]0;title\a.":                                        ".",
		"\x1b]52;c;cm0gLXJmIH4=\x1b\\.":                          ".",
		"\x1b]8;;https://a.example\x1b\\b.example\x1b]8;;\x1b\\": "b.example",
		"\x1b]0;never ended":                                     "",
		"\x1bP$qm\x1b\\.":                                        ".",
		"\x1b_Ga=T,f=100;AAAA\x1b\\.":                            ".",
		"\x1b^private\x1b\\.\x1bXstring\x1b\\.":                  "..",
		"\x1b_gr\u00fc\u00dfe\x1b\\.":                            ".",
		"\x1b[c\x1b[0c\x1b[>c\x1b[=c\x1bZ\x05.":                  ".", // who are you?
		"\x1b[5n\x1b[6n\x1b[?6n\x1b[x\x1b[>q\x1b[18t.":           ".", // how, where, which, how large?
		"\x1b[?2026$p\x1b[?u\x1b[?4m\x1b[1$}.":                   ".",
		"\x1b[?1049h\x1b[?1000h\x1b[?2004h\x1b[4h.":              ".",
		"\x1b[>1u\x1b[=1u\x1b[>4;2m\x1b[!p\x1bc\x1b=.":           ".",
		"\x1b[3J\x1b[03J\x1b[2;5r\x1b[1;40s.":                    ".",
		"\x1b[1;1;1;1;1T\x1b[8;1;1t\x1b[9b.":                     ".",
		"\x1b(0\x0e\x0fx\x1b)0":                                  "x",
		"\u009b31m\u009d0;t\u009c\u0085.":                        "31m0;t.",
		"\x9b31m\x9d.":                                           "\uFFFD31m\uFFFD.",
		"a\u202egpj.exe\u202c\u2066\u2069\u200e\u200f\u061c":     "agpj.exe",
		"\xc3\x1b[31m\xc3\nx\xe2\x82":                            "\uFFFD\x1b[31m\uFFFD\nx\uFFFD\x1b[m",
		"\x1b[3\n1mred":                                          "\n\x1b[31mred\x1b[m", // as terminals do
		"\x1b[3\x1b]0;t\a1m.":                                    "1m.",
		"\x1b[" + strings.Repeat("1;", 100) + "m.":               ".",
		"\x1b[31":              "",
		"\x1b[?25l\x1b[8mgone": "\x1b[?25l\x1b[8mgone\x1b[m\x1b[?25h",
		"\x1b[1;31;0mplain":    "\x1b[1;31;0mplain",
		"\x00\x11\x13\x7f.":    ".",
	} {
		if got := through(t, text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// What comes through a screen, told without its parser: characters that a terminal
// does not obey, and sequences of a list.
var fitForATerminal = regexp.MustCompile(`^(?:[^\x00-\x1f\x7f-\x{9f}\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]|[\a-\r]|` +
	"\x1b(?:[78DEM]|\\[(?:[0-9:;]*[A-IK-MPXZ@`adefmST]|0*[012]?J|s|u|\\?25[hl])))*$")

func FuzzScreen(f *testing.F) {
	for _, seed := range []string{
		"plain\n", "\x1b[31mred\x1b[m", "\x1b]52;c;AA\a", "\x1bP\x1b\\x", "\x1b[?1049h", "\xc2\x9b6n", "\x1b[\x1b[6n", "\x1b\x1b[c",
		"\u202eabc", "\xe2\x80\xae", "\x9b6n", "\x1b[6\x18n", "\x1b_\u00e9\x1b\\", "\x1b[ 6n", "\x1b[6\x7fn", "\x1b#8", "\x1bO[c", "é\x1b[1;2", "\x1b[?25l",
	} {
		f.Add([]byte(seed), uint16(3))
	}
	f.Fuzz(func(t *testing.T, written []byte, at uint16) {
		whole := through(t, string(written))
		if !utf8.ValidString(whole) || !fitForATerminal.MatchString(whole) {
			t.Errorf("%q became %q", written, whole)
		}
		cut := int(at) % (len(written) + 1)
		if parts := through(t, string(written[:cut]), string(written[cut:])); parts != whole {
			t.Errorf("%q became %q, in two parts %q", written, whole, parts)
		}
		var bytewise []string
		for _, b := range written {
			bytewise = append(bytewise, string([]byte{b}))
		}
		if parts := through(t, bytewise...); parts != whole {
			t.Errorf("%q became %q, byte by byte %q", written, whole, parts)
		}
		if again := through(t, whole); again != whole {
			t.Errorf("%q became %q, then %q", written, whole, again)
		}
	})
}
