package deno

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rillbox/supervisor/launcher"
)

// A directory that may be both read and written needs the second wall; see
// package hostile for the way out of it.
func TestReadableAndWritableNeedsTheSecondWall(t *testing.T) {
	landlock, none := launcher.Support{Name: "Landlock"}, launcher.Support{Detail: "the kernel has no Landlock"}
	for _, test := range []struct {
		flags   string
		without bool
		offered launcher.Support
		path    string
		refused bool
	}{
		{flags: "-R=/w -W=/w", offered: landlock},
		{flags: "-R=/w -W=/w", offered: none, refused: true},
		{flags: "-R=/w -W=/w", offered: none, without: true, path: "/w"},
		{flags: "-R=/w -W=/w", offered: landlock, without: true, path: "/w"},
		{flags: "-R -W=/w/below", offered: none, refused: true},
		{flags: "-R=/w/below -W=/w", offered: none, refused: true},
		{flags: "-R -W", offered: none, refused: true},
		{flags: "-R=/w -W=/w --allow-run=git", offered: none, refused: true},
		{flags: "-R=/w -W=/v", offered: none},
		{flags: "-R", offered: none},
		{flags: "-W", offered: none},
		{flags: "", offered: none},
		{flags: "-A", offered: none}, // nothing is left to hold
	} {
		p, err := ParseShell(test.flags)
		if err != nil {
			t.Fatal(err)
		}
		path, err := p.checkWall(test.without, test.offered)
		if path != test.path || (err != nil) != test.refused {
			t.Errorf("%q, without %v, offered %q: path %q, error %v", test.flags, test.without, test.offered.Name, path, err)
		}
		if err != nil && !strings.Contains(err.Error(), "--without-second-wall") {
			t.Errorf("%q: the error does not say what to do: %v", test.flags, err)
		}
	}
}

// TestAWorkspaceNeedsTheSecondWall, unless the operator insists or shares it
// read-only: no session starts without.
func TestAWorkspaceNeedsTheSecondWall(t *testing.T) {
	none := launcher.Support{Detail: "the kernel has no Landlock"}
	for _, readOnly := range []bool{true, false} {
		p := withWorkspace(Permissions{}, "/w", readOnly)
		if _, err := p.checkWall(false, none); (err == nil) != readOnly {
			t.Errorf("read-only %v: %v", readOnly, err)
		}
		if _, err := p.checkWall(true, none); err != nil {
			t.Errorf("read-only %v, where the operator insists: %v", readOnly, err)
		}
	}
}

func TestSecondWallIsUpUnlessGivenUp(t *testing.T) {
	for _, test := range []struct {
		flags       string
		without, up bool
	}{
		{flags: "", up: true},
		{flags: "-R=/w", up: true},
		{flags: "--allow-run=git --allow-net", up: true},
		{flags: "--allow-ffi", up: true},
		{flags: "-A"},
		{flags: "", without: true},
		{flags: "-R=/w", without: true},
	} {
		p, err := ParseShell(test.flags)
		if err != nil {
			t.Fatal(err)
		}
		wall, err := p.SecondWall(test.without, slog.New(slog.DiscardHandler), nil, nil, "")
		if err != nil || (wall != nil) != test.up {
			t.Errorf("%q, without %v: wall %v, error %v", test.flags, test.without, wall, err)
		}
	}
}

func TestWritableLeavesTheCacheOut(t *testing.T) {
	dir := t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"home/cache/ours/deno", "home/cache/other", "home/documents", "away"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("cache", filepath.Join(dir, "home/link")); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "home/cache/ours")
	for _, test := range []struct {
		granted string
		want    []string
	}{
		{"away", []string{"away"}},
		{"home", []string{"home/cache/other", "home/documents"}},
		{"home/link", []string{"home/cache/other"}},
		{"home/cache/ours", nil},
		{"home/cache/ours/deno", nil},
		{"home/cache/ours/deno/new", nil},
		{"home/new", []string{"home/cache/other", "home/documents"}},
	} {
		p, err := Parse([]string{"--allow-write=" + filepath.Join(dir, test.granted)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, path := range p.Writable(kept) {
			path, err := filepath.Rel(dir, path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, path)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("with %s granted, %q can be changed; want %q", test.granted, got, test.want)
		}
	}
	p, err := Parse([]string{"--allow-write"})
	if err != nil {
		t.Fatal(err)
	}
	everywhere := p.Writable(kept)
	for _, path := range everywhere {
		if within(kept, path) || within(path, kept) {
			t.Errorf("with everything granted, %s can be changed", path)
		}
	}
	if !slices.Contains(everywhere, filepath.Join(dir, "home/documents")) {
		t.Errorf("with everything granted, what is beside the cache can't be changed: %q", everywhere)
	}
}
