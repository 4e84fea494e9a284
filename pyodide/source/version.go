package source

import (
	"regexp"
	"strings"
)

// version is what a version of a package looks like: PEP 440, appendix B.
var version = regexp.MustCompile(`^v?(?:([0-9]+)!)?([0-9]+(?:\.[0-9]+)*)` +
	`(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?([0-9]*))?` +
	`(?:-([0-9]+)|[-_.]?(post|rev|r)[-_.]?([0-9]*))?` +
	`(?:[-_.]?(dev)[-_.]?([0-9]*))?` +
	`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)

// SameVersion says that two texts name one version: 1.0-beta1 and 1.0.0b1 do.
func SameVersion(a, b string) bool {
	one, ok := canonical(a)
	other, same := canonical(b)
	return ok && same && one == other
}

// canonical is the one form that all spellings of a version have.
func canonical(text string) (string, bool) {
	m := version.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil {
		return "", false
	}
	release := strings.Split(m[2], ".")
	for i, part := range release {
		release[i] = number(part)
	}
	for len(release) > 1 && release[len(release)-1] == "0" {
		release = release[:len(release)-1]
	}
	form := number(m[1]) + "!" + strings.Join(release, ".")
	if m[3] != "" {
		kind := map[string]string{"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
		letter := m[3]
		if short, ok := kind[letter]; ok {
			letter = short
		}
		form += letter + number(m[4])
	}
	if m[5] != "" || m[6] != "" {
		form += ".post" + number(m[5]+m[7])
	}
	if m[8] != "" {
		form += ".dev" + number(m[9])
	}
	if m[10] != "" {
		local := strings.FieldsFunc(m[10], func(r rune) bool { return strings.ContainsRune("-_.", r) })
		for i, part := range local {
			if strings.Trim(part, "0123456789") == "" {
				local[i] = number(part)
			}
		}
		form += "+" + strings.Join(local, ".")
	}
	return form, true
}

// number is a number without what does not change it.
func number(digits string) string {
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0"
	}
	return digits
}
