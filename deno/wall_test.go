package deno

import (
	"log/slog"
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
		wall, err := p.SecondWall(test.without, slog.New(slog.DiscardHandler), nil, nil)
		if err != nil || (wall != nil) != test.up {
			t.Errorf("%q, without %v: wall %v, error %v", test.flags, test.without, wall, err)
		}
	}
}
