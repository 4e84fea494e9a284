package pyodide

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// aCookie is the comment in which one of a file's first two lines says how it is encoded
// (PEP 263).
var aCookie = regexp.MustCompile(`\A(?:[ \t\f]*(?:#[^\n]*)?\r?\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)`)

// decode gives the text of a program's file, which may say how it is encoded. What is
// not UTF-8 and says nothing stays as it is.
func decode(source string) (string, error) {
	found := aCookie.FindStringSubmatch(source)
	if found == nil || !strings.ContainsFunc(source, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return source, nil
	}
	name := encodingName(found[1])
	if name == "utf8" || name == "utf8sig" {
		return source, nil
	}
	for _, one := range charmap.All {
		page, ok := one.(*charmap.Charmap)
		if !ok || encodingName(page.String()) != name {
			continue
		}
		text, err := page.NewDecoder().String(source)
		if err != nil || strings.ContainsRune(text, utf8.RuneError) {
			return "", fmt.Errorf("the program is not what its first lines say: text in %s", found[1])
		}
		return text, nil
	}
	return "", fmt.Errorf("the program's text is in %s, as its first lines say, which is not read here: save it as UTF-8", found[1])
}

// encodingName is an encoding's name in one form: "iso88591", "cp1252".
func encodingName(name string) string {
	name = strings.NewReplacer("-", "", "_", "", " ", "", "windows", "cp").Replace(strings.ToLower(name))
	switch name {
	case "latin1", "l1", "latin":
		return "iso88591"
	case "latin9", "l9":
		return "iso885915"
	}
	return name
}
