package main

import "testing"

// A pattern matches what it says, and "dir/..." all below a directory.
func TestMatches(t *testing.T) {
	for _, row := range []struct {
		pattern, name string
		want          bool
	}{
		{"dist/x.js", "dist/x.js", true},
		{"dist/*.js", "dist/x.js", true},
		{"dist/*.js", "dist/sub/x.js", false},
		{"dist/...", "dist/sub/x.js", true},
		{"dist/...", "distant/x.js", false},
		{"dist/...", "other/dist/x.js", false},
		{"...", "a/b", true},
	} {
		if got, err := matches(row.pattern, row.name); err != nil || got != row.want {
			t.Errorf("%s matches %s: %v, %v", row.pattern, row.name, got, err)
		}
	}
	if _, err := matches("[", "x"); err == nil {
		t.Error("a broken pattern is taken")
	}
}
