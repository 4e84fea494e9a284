package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheBundleIsOfItsSources: who changes the page's sources makes page.js again.
func TestTheBundleIsOfItsSources(t *testing.T) {
	digest, err := inputs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := os.ReadFile(filepath.Join("../..", assets, "page.js"))
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(bundle), "\n"); first != banner(digest) {
		t.Errorf("page.js is not made of these sources: run go run ./scripts/page\n got %s\nwant %s", first, banner(digest))
	}
}
