package hostile

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestClaimsNameTests: what SECURITY.md and docs/walls.md claim names a test that
// is there. A name that ends with … stands for those that begin so.
func TestClaimsNameTests(t *testing.T) {
	var tests strings.Builder
	err := filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]*)(…?)`")
	for _, document := range []string{"../SECURITY.md", "../docs/walls.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		found := name.FindAllStringSubmatch(string(text), -1)
		if len(found) < 10 {
			t.Errorf("%s names %d tests", document, len(found))
		}
		for _, match := range found {
			declared := "func " + match[1]
			if match[2] == "" {
				declared += "("
			}
			if match[1] != "Fuzz" && !strings.Contains(tests.String(), declared) {
				t.Errorf("%s names %s, which is not there", document, match[0])
			}
		}
	}
}
