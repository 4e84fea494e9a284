//go:build !windows

package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestClaimsNameTests: a test that our documents name is there, and in the package
// named before it in its line. In a table of claims each has one. A name that ends
// with … stands for those that begin so.
func TestClaimsNameTests(t *testing.T) {
	packages := declaredTests(t)
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	documents = append(documents, "../../SECURITY.md", "../../README.md")
	claims := map[string]int{"SECURITY.md": 80, "walls.md": 20, "design.md": 25} // the least that each names in tables
	span := regexp.MustCompile("`([^`]+)`")
	test := regexp.MustCompile("^((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)(…?)$")
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for line := range strings.Lines(string(text)) {
			in := ""
			for _, match := range span.FindAllStringSubmatch(line, -1) {
				name := test.FindStringSubmatch(match[1])
				if _, known := packages[match[1]]; known {
					in = match[1]
				}
				if name == nil {
					continue
				}
				if _, claimed := claims[path.Base(document)]; claimed && strings.HasPrefix(line, "|") {
					named++
					if in == "" {
						t.Errorf("%s names %s without its package", document, match[1])
					}
				}
				declaration := "func " + name[1]
				if name[2] == "" {
					declaration += "("
				}
				if !strings.Contains(packages[in], declaration) {
					t.Errorf("%s names %s, which is not in %s", document, match[1], in)
				}
			}
		}
		if least := claims[path.Base(document)]; named < least {
			t.Errorf("%s names %d tests in its tables, of %d at least", document, named, least)
		}
	}
}

// declaredTests are the texts of each package's tests, by its path; those of all
// packages have an empty one.
func declaredTests(t *testing.T) map[string]string {
	packages := map[string]string{}
	err := filepath.WalkDir("../..", func(file string, entry os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		in, _ := filepath.Rel("../..", filepath.Dir(file)) // both are relative
		packages[in] += string(text)
		packages[""] += string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}
