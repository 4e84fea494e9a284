//go:build !windows

package main

import (
	"os/exec"
	"strings"
	"testing"
)

// allowed says which packages of ours each package may import; docs/design.md
// has the picture. cmd and scripts may import all.
var allowed = map[string]string{
	"rillbox/cache":               "rillbox/cache/egress",
	"rillbox/cache/egress":        "",
	"rillbox/cache/cachetest":     "rillbox/cache",
	"rillbox/supervisor/launcher": "",
	"rillbox/workspace":           "",
	"rillbox/supervisor":          "rillbox/supervisor/launcher rillbox/workspace",
	"rillbox/deno":                "rillbox/cache rillbox/cache/egress rillbox/supervisor rillbox/supervisor/launcher rillbox/workspace",
	"rillbox/pyodide/gateway":     "rillbox/cache rillbox/cache/egress",
	"rillbox/pyodide":             "rillbox/cache rillbox/deno rillbox/pyodide/gateway rillbox/supervisor rillbox/supervisor/launcher",
	"rillbox/server":              "rillbox/cache rillbox/supervisor rillbox/workspace",
	"rillbox/server/stdio":        "",
}

func TestPackagesImportOnlyWhatTheDesignAllows(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "rillbox/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(pkg, "rillbox/cmd/") || strings.HasPrefix(pkg, "rillbox/scripts/") || strings.HasPrefix(pkg, "rillbox/hostile") {
			continue
		}
		seen++
		may, ok := allowed[pkg]
		if !ok {
			t.Errorf("%s is in no row of the table: say what it may import", pkg)
		}
		for _, imported := range strings.Fields(imports) {
			if strings.HasPrefix(imported, "rillbox/") && !strings.Contains(" "+may+" ", " "+imported+" ") {
				t.Errorf("%s imports %s, which it may not", pkg, imported)
			}
		}
	}
	if seen < 5 {
		t.Errorf("go list told of %d packages only", seen)
	}
}
