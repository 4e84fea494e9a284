package job

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestNamesCantPassForMore(t *testing.T) {
	for name, want := range map[string]string{
		"data/in.csv":             "data/in.csv",
		"My report (2) – été.txt": "My report (2) – été.txt",
		"日本語/עברית":               "日本語/עברית",
		"a\n\nstdout:\nFORGED":    `"a\n\nstdout:\nFORGED"`,
		"\x1b]0;t\a":              `"\x1b]0;t\a"`,
		"\u009b31m":               `"\u009b31m"`,
		"a\u202egpj.exe":          `"a\u202egpj.exe"`,
		"a\u2066b\u2069\u200f":    `"a\u2066b\u2069\u200f"`,
		"a\u2028b\u2029c\u0085d":  `"a\u2028b\u2029c\u0085d"`,
		"a\u00adb\u200bc\ufeff":   `"a\u00adb\u200bc\ufeff"`,
		"\U000e0041\U000e0100":    `"\U000e0041\U000e0100"`,
		"a\u3164\ufe0f":           `"a\u3164\ufe0f"`,
		"a  9 bytes ":             `"a  9 bytes "`,
		"a\u00a0b":                `"a\u00a0b"`,
		`a "b" \c`:                `"a \"b\" \\c"`,
		"\xff\uFFFD":              `"\xff` + "\uFFFD" + `"`,
		"":                        `""`,
		strings.Repeat("x", 600):  `"` + strings.Repeat("x", 512) + `"…`,
	} {
		if got := ShowName(name); got != want {
			t.Errorf("%q is shown as %s, want %s", name, got, want)
		}
	}
	if got, want := ShowText("é\n\tb\r\x1b[2J\u202e\xff"), "é\n\tb"+`\r\x1b[2J\u202e\xff`; got != want {
		t.Errorf("a text is shown as %s, want %s", got, want)
	}
	if got, want := ShowLine(" é\n\nstdout:\r\vé\u2066 ", 12), `é stdout: …`; got != want {
		t.Errorf("a line is shown as %q, want %q", got, want)
	}
}

func FuzzShowName(f *testing.F) {
	for _, seed := range []string{"a b", "a\nb", "\u202e", `\`, "\xff", "a  b", "\u00a0", "\U000e0041"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		shown := ShowName(name)
		if !utf8.ValidString(shown) || len(shown) > 10*maxName {
			t.Errorf("%q is shown as %q", name, shown)
		}
		for _, r := range shown {
			if r != ' ' && (unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)) {
				t.Errorf("%q is shown as %q", name, shown)
			}
		}
		if inside, ok := strings.CutPrefix(shown, `"`); ok && strings.HasSuffix(inside, `"`) {
			inside = strings.NewReplacer(`\\`, "", `\"`, "").Replace(strings.TrimSuffix(inside, `"`))
			if strings.Contains(inside, `"`) {
				t.Errorf("%q gets out of its quotes: %s", name, shown)
			}
		} else if !ok && shown != name {
			t.Errorf("%q is shown as %q, without quotes", name, shown)
		}
	})
}
