//go:build !windows

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"rillbox/cache/cachetest"
)

// TestLanguagesPage: docs/languages.md has a row for each language, with all of its names
// and extensions, its version, size and licence, and what its sessions keep.
func TestLanguagesPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/languages.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if name, found := strings.CutPrefix(cells[0], "| "); found && len(cells) == 7 && name != "---" && name != "language" {
			rows[name] = line
		}
	}
	a := &app{config: newConfig(), log: cachetest.Logger(t)}
	a.config.CacheDir = t.TempDir()
	engines, err := a.open()
	if err != nil {
		t.Fatal(err)
	}
	defer closeEngines(engines)
	for _, toolchain := range engines.Toolchains() {
		d := toolchain.Describe()
		for _, l := range d.Languages {
			row, found := rows[l.Title]
			if !found {
				t.Errorf("the page has no row for %s", l.Title)
				continue
			}
			keeps := "variables"
			if l.Prompt == "" {
				keeps = "files"
			}
			want := append([]string{fmt.Sprintf("| `%s` ", l.Name), "| " + keeps + " |"}, l.Aliases...)
			want = append(want, "`"+strings.Join(l.Extensions, " ")+"`")
			if l.Size > 0 {
				want = append(want, fmt.Sprintf("| %.1f MB |", float64(l.Size)/1e6), "| "+l.License+" |", d.Versions[string(l.Name)])
			}
			for _, word := range want {
				if !strings.Contains(row, word) {
					t.Errorf("%s: its row in the page lacks %q", l.Title, word)
				}
			}
		}
	}
	if len(rows) != len(languages()) {
		t.Errorf("the page's table has %d rows, of %d languages", len(rows), len(languages()))
	}
}
