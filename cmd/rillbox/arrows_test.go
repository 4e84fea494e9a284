//go:build !windows

package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rooms are our packages from the bottom to the top, with those below that each may
// import, which docs/design.md says, too. cmd and scripts may import all.
var rooms = []struct{ name, imports string }{
	{"cache/egress", ""},
	{"cache", "cache/egress"},
	{"cache/cachetest", "cache cache/egress"},
	{"workspace", ""},
	{"supervisor/job", ""},
	{"workspace/manifest", "supervisor/job"},
	{"supervisor/launcher", ""},
	{"supervisor/sandbox", "supervisor/job supervisor/launcher workspace"},
	{"supervisor/wire", "supervisor/job supervisor/sandbox"},
	{"supervisor", "supervisor/job supervisor/sandbox workspace workspace/manifest"},
	{"deno/binary", "cache cache/egress"},
	{"deno/permission", "cache/egress supervisor/job supervisor/launcher supervisor/sandbox"},
	{"deno/modules", "cache cache/egress deno/permission supervisor/job supervisor/launcher supervisor/sandbox workspace"},
	{"deno", "cache cache/egress deno/binary deno/modules deno/permission supervisor/job supervisor/launcher supervisor/sandbox supervisor/wire"},
	{"pyodide/source", "cache/egress"},
	{"pyodide/gateway", "cache cache/egress pyodide/source"},
	{"pyodide", "cache cache/egress deno deno/binary deno/modules deno/permission pyodide/gateway pyodide/source supervisor/job supervisor/launcher supervisor/sandbox supervisor/wire"},
	{"wasm", "cache cache/egress deno deno/binary deno/modules deno/permission supervisor/job supervisor/launcher supervisor/sandbox supervisor/wire"},
	{"server", "supervisor supervisor/job workspace workspace/manifest"},
	{"server/stdio", ""},
	{"server/audit", "server"},
	{"server/metrics", "server supervisor supervisor/job"},
	{"server/traces", "server supervisor/job"},
	{"server/web/page", ""},
	{"server/web", "server server/web/page supervisor"},
	{"cmd/rillbox/terminal", "server supervisor/job"},
}

func TestPackagesImportOnlyWhatTheDesignAllows(t *testing.T) {
	allowed := map[string][]string{}
	for _, room := range rooms {
		allowed[room.name] = strings.Fields(room.imports)
		for _, name := range allowed[room.name] {
			if _, below := allowed[name]; !below || name == room.name {
				t.Errorf("%s may import %s, which is not below it", room.name, name)
			}
		}
	}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "rillbox/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		name := strings.TrimPrefix(pkg, "rillbox/")
		may, known := allowed[name]
		if first, _, _ := strings.Cut(name, "/"); !known && slices.Contains([]string{"cmd", "scripts", "hostile"}, first) {
			continue
		}
		seen++
		if !known {
			t.Errorf("%s is in no row of the table: say what it may import", name)
		}
		for _, imported := range strings.Fields(imports) {
			if imported, ours := strings.CutPrefix(imported, "rillbox/"); ours && !slices.Contains(may, imported) {
				t.Errorf("%s imports %s, which it may not", name, imported)
			}
		}
	}
	if seen < len(rooms) {
		t.Errorf("go list told of %d packages, and there are %d rooms", seen, len(rooms))
	}
}

func TestTheDesignSaysWhatEachRoomMayImport(t *testing.T) {
	design, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range rooms {
		_, row, found := strings.Cut(string(design), "\n| `"+room.name+"` |")
		row, _, _ = strings.Cut(row, "\n")
		may := "none"
		if room.imports != "" {
			may = "`" + strings.ReplaceAll(room.imports, " ", "`, `") + "`"
		}
		if !found || !strings.HasSuffix(row, "| "+may+" |") {
			t.Errorf("docs/design.md has no row of %s that ends with what it may import: %s", room.name, may)
		}
	}
}
