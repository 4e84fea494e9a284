package workspace

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"a":                            "a",
		"a/b.txt":                      "a/b.txt",
		"./a//b/./c/":                  "a/b/c",
		".":                            ".",
		"./":                           ".",
		"/workspace":                   ".",
		"/workspace/":                  ".",
		"/workspace/a":                 "a",
		"//workspace//a":               "a",
		"/workspace/workspace":         "workspace",
		"workspace/a":                  "workspace/a",
		"...":                          "...",
		"..a":                          "..a",
		"~/x":                          "~/x",
		"a\nb":                         "a\nb",
		`a\b`:                          `a\b`,
		" ":                            " ",
		"größe":                        "größe",
		strings.Repeat("a", 255):       strings.Repeat("a", 255),
		strings.Repeat("a/", 63) + "a": strings.Repeat("a/", 63) + "a",
	} {
		if got, err := parse(name); err != nil || got != want {
			t.Errorf("%q gave %q, %v, want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"":                                "is empty",
		"..":                              `holds ".."`,
		"../a":                            `holds ".."`,
		"a/../b":                          `holds ".."`,
		"a/..":                            `holds ".."`,
		"/workspace/..":                   `holds ".."`,
		"/workspace/../etc":               `holds ".."`,
		"/":                               "outside the workspace",
		"/etc/passwd":                     "outside the workspace",
		"/workspaces/a":                   "outside the workspace",
		"/../workspace/a":                 "outside the workspace",
		"//etc":                           "outside the workspace",
		"a\x00b":                          "NUL",
		"a\xff":                           "not valid UTF-8",
		strings.Repeat("a", 256):          "a name of 256 bytes",
		strings.Repeat("a/", 2049):        "4098 bytes",
		strings.Repeat("a/", 64) + "a":    "65 folders deep",
		"/workspace/" + "\xed\xa0\x80":    "not valid UTF-8",
		"/workspace/a/" + "..":            `holds ".."`,
		"./" + strings.Repeat("../", 100): `holds ".."`,
	} {
		if got, err := parse(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gave %q, %v, want an error that says %q", name, got, err, want)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, seed := range []string{"a/b", "/workspace/a", "../x", "/etc/passwd", "a\x00", "./", "a//b/", "/workspace/../../x", "\xff", "..."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		local, err := parse(name)
		if err != nil {
			return
		}
		if !filepath.IsLocal(local) || path.Clean(local) != local || len(local) > maxPath || strings.ContainsRune(local, 0) ||
			strings.Count(local, "/") >= maxDepth {
			t.Errorf("%q became %q", name, local)
		}
		for _, again := range []string{local, Mount + "/" + local} {
			if len(again) <= maxPath {
				if second, err := parse(again); err != nil || second != local {
					t.Errorf("%q became %q, and %q becomes %q (%v)", name, local, again, second, err)
				}
			}
		}
	})
}

func TestGlobs(t *testing.T) {
	for _, row := range []struct{ glob, yes, no string }{
		{"", "a a/b a/b/c", ""},
		{"**", "a a/b a/b/c", ""},
		{".", "a a/b", ""},
		{"/workspace", "a a/b", ""},
		{"*", "a .a", "a/b"},
		{"*.csv", "a.csv", "a.txt x/a.csv"},
		{"**/*.csv", "a.csv x/a.csv x/y/a.csv", "a.csv/x"},
		{"x/*", "x/a", "x a y/a x/a/b"},
		{"x/**", "x x/a x/a/b", "y xx/a"},
		{"x/**/y/**/z", "x/y/z x/1/y/z x/y/1/2/z x/y/y/z", "x/z y/z x/y x/y/z/1"},
		{"[a-c]?", "ab cz", "a dz a/b"},
		{`\*`, "*", "a"},
		{"/workspace/x/*", "x/a", "a"},
		{"a**b", "ab axb", "a/b"}, // within a name, as * is
	} {
		p, err := parseGlob(row.glob)
		if err != nil {
			t.Errorf("%q: %v", row.glob, err)
			continue
		}
		for _, name := range strings.Fields(row.yes) {
			if !p.matches(name) {
				t.Errorf("%q does not match %q", row.glob, name)
			}
		}
		for _, name := range strings.Fields(row.no) {
			if p.matches(name) {
				t.Errorf("%q matches %q", row.glob, name)
			}
		}
	}
	for glob, want := range map[string]string{
		"*.{csv,json}": "braces",
		"[a":           "not well-formed",
		`a\`:           "not well-formed",
		"x/[]/y":       "not well-formed",
		"../*":         `holds ".."`,
		"/etc/*":       "outside the workspace",
	} {
		if _, err := parseGlob(glob); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gave %v, want an error that says %q", glob, err, want)
		}
	}
}

// reference matches in the plainest way, which may take long.
func reference(p pattern, parts []string) bool {
	switch {
	case len(p) == 0:
		return len(parts) == 0
	case p[0] == "**":
		return reference(p[1:], parts) || len(parts) > 0 && reference(p, parts[1:])
	default:
		return len(parts) > 0 && matchPart(p[0], parts[0]) && reference(p[1:], parts[1:])
	}
}

func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{{"**/*.csv", "x/y.csv"}, {"a/**/b", "a/b"}, {"**/**/x", "x"}, {"[!a]*", "b"}, {`\**`, "*a"}, {"**/a/**/a", "a/a/a"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		p, err := parseGlob(glob)
		local, bad := parse(name)
		if err != nil || bad != nil || local == "." || len(p)+strings.Count(local, "/") > 16 {
			return
		}
		parts := strings.Split(local, "/")
		got := p.matches(local)
		if want := reference(p, parts); got != want {
			t.Errorf("%q, %q: %v, want %v", glob, local, got, want)
		}
		for i := 1; got && i < len(parts); i++ {
			if folder := strings.Join(parts[:i], "/"); !p.mayHold(folder) {
				t.Errorf("%q matches %q, yet is not looked for in %q", glob, local, folder)
			}
		}
		if plain, ok := p.plain(); ok && plain == local && !got {
			t.Errorf("%q does not match itself", glob)
		}
	})
}
