package job

import (
	"strings"
	"testing"
)

// Of a language that is not here the nearest that are here are named, and of one that
// nobody knows the one that is spelled like it.
func TestNoLanguage(t *testing.T) {
	rows := []LanguageInfo{
		{Name: Python, Aliases: []string{"python3"}, Extensions: []string{".py"}},
		{Name: TypeScript, Extensions: []string{".ts"}},
		{Name: "cpp", Aliases: []string{"c++"}, Extensions: []string{".cpp"}},
		{Name: "ruby", Extensions: []string{".rb"}},
		{Name: "scss", Extensions: []string{".scss"}},
	}
	for word, want := range map[string]string{
		"java":       "Java can't run here, as nothing that runs it is WebAssembly: the nearest is cpp or typescript",
		" C# ":       "C# can't run here, as nothing that runs it is WebAssembly: the nearest is typescript",
		"perl6":      "Raku (Perl 6) can't run here, as nothing that runs it is WebAssembly: the nearest is python, typescript, cpp, ruby or scss",
		"less":       "Less can't run here, as nothing that runs it is WebAssembly: the nearest is scss",
		"rubby":      `language "rubby" is not known (did you mean ruby?): use one of python, typescript, cpp, ruby, scss`,
		"pyhton":     `language "pyhton" is not known (did you mean python?): use one of python, typescript, cpp, ruby, scss`,
		"qq":         `language "qq" is not known: use one of python, typescript, cpp, ruby, scss`,
		"whitespace": `language "whitespace" is not known: use one of python, typescript, cpp, ruby, scss`,
	} {
		if got := NoLanguage(rows, word).Error(); got != want {
			t.Errorf("%q: %s", word, got)
		}
	}
	if got := NoLanguage(rows, strings.Repeat("é", 5000)+"\x1b[2J").Error(); len(got) > 400 || strings.Contains(got, "\x1b") {
		t.Errorf("a long word is told as %q", got)
	}
	known := map[string]string{}
	for _, other := range elsewhere {
		for _, word := range strings.Fields(other.words) {
			if known[word] != "" {
				t.Errorf("%s is %s and %s", word, known[word], other.title)
			}
			known[word] = other.title
		}
	}
}
