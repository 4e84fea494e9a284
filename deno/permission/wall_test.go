package permission

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rillbox/supervisor/launcher"
)

// A directory that may be both read and written needs the second wall; see
// package hostile for the way out of it.
func TestReadableAndWritableNeedsTheSecondWall(t *testing.T) {
	for _, test := range []struct {
		flags   string
		without bool
		level   launcher.Level
		refused bool
	}{
		{flags: "-R=/w -W=/w", level: launcher.Landlock},
		{flags: "-R=/w -W=/w", level: launcher.Deno, refused: true},
		{flags: "-R=/w -W=/w", level: launcher.Deno, without: true},
		{flags: "-R -W=/w/below", level: launcher.Deno, refused: true},
		{flags: "-R=/w/below -W=/w", level: launcher.Deno, refused: true},
		{flags: "-R -W", level: launcher.Deno, refused: true},
		{flags: "-R=/w -W=/w --allow-run=git", level: launcher.Deno, refused: true},
		{flags: "-R=/w -W=/v", level: launcher.Deno},
		{flags: "-R", level: launcher.Deno},
		{flags: "-W", level: launcher.Deno},
		{flags: "", level: launcher.Deno},
		{flags: "-A", level: launcher.Deno}, // nothing is left to hold
	} {
		p, err := ParseShell(test.flags)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		err = p.checkWall(Walls{Without: test.without, Log: slog.New(slog.NewTextHandler(&log, nil))}, test.level)
		if (err != nil) != test.refused || test.without != strings.Contains(log.String(), "/w") {
			t.Errorf("%q, without %v, at %v: error %v, log %q", test.flags, test.without, test.level, err, log.String())
		}
		if err != nil && !strings.Contains(err.Error(), "--without-second-wall") {
			t.Errorf("%q: the error does not say what to do: %v", test.flags, err)
		}
	}
}

// TestAWorkspaceNeedsTheSecondWall, unless the operator insists or shares it
// read-only: no session starts without.
func TestAWorkspaceNeedsTheSecondWall(t *testing.T) {
	for _, readOnly := range []bool{true, false} {
		p := Permissions{}.WithWorkspace("/w", readOnly)
		if err := p.checkWall(Walls{}, launcher.Deno); (err == nil) != readOnly {
			t.Errorf("read-only %v: %v", readOnly, err)
		}
		if err := p.checkWall(Walls{Without: true, Log: slog.New(slog.DiscardHandler)}, launcher.Deno); err != nil {
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
		{flags: "--allow-run=sh --allow-net", up: true},
		{flags: "--allow-ffi", up: true},
		{flags: "-A"},
		{flags: "", without: true},
		{flags: "-R=/w", without: true},
	} {
		p, err := ParseShell(test.flags)
		if err == nil {
			p, err = p.Open()
		}
		if err != nil {
			t.Fatal(err)
		}
		around, err := p.Surround(Walls{Without: test.without})
		if err != nil {
			t.Fatal(err)
		}
		if (around.Wall() != nil) != test.up {
			t.Errorf("%q, without %v: wall %v", test.flags, test.without, around.Wall())
		}
		want := "none"
		if test.up {
			want = around.Wall().Level.String()
		}
		if got := (Walls{Without: test.without}).Around(p); got != want {
			t.Errorf("%q, without %v: the wall is called %s, want %s", test.flags, test.without, got, want)
		}
		around.Close()
	}
}

// TestBesides leaves the cache out of what may be written where the wall knows no
// exceptions.
func TestBesides(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
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
		{"home/cache", []string{"home/cache/other"}},
		{"home/cache/ours", nil},
		{"home/cache/ours/deno", nil},
	} {
		var got []string
		for _, place := range besides([]launcher.Place{{Path: filepath.Join(dir, test.granted), Access: launcher.Read | launcher.Write}}, []string{kept}) {
			if place.Access&launcher.Write == 0 {
				continue
			}
			path, err := filepath.Rel(dir, place.Path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, path)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("with %s granted, %q can be changed; want %q", test.granted, got, test.want)
		}
	}
	everywhere := besides([]launcher.Place{{Path: "/", Access: launcher.Write}}, []string{kept})
	documents := false
	for _, place := range everywhere {
		if Within(kept, place.Path) || Within(place.Path, kept) {
			t.Errorf("with everything granted, %s can be changed", place.Path)
		}
		documents = documents || place.Path == filepath.Join(dir, "home/documents")
	}
	if !documents {
		t.Error("with everything granted, what is beside the cache can't be changed")
	}
}

// TestAGrantOfTheRootLeavesOutWhatIsTheKernels: by whatever name the root was
// granted, no run narrows it to the machine's /proc, and what it narrows to has one
// name, so that what is hidden is known by it.
func TestAGrantOfTheRootLeavesOutWhatIsTheKernels(t *testing.T) {
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink("/", alias); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"", "/", alias} {
		flag, below := "--allow-read="+root, strings.TrimSuffix(root, "/")
		if root == "" {
			flag = "--allow-read"
		}
		p, err := Parse([]string{flag})
		if err == nil {
			p, err = p.Open()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/proc", "/proc/sys", "/dev", "/sys/kernel"} {
			if _, err := p.Narrow([]string{"--allow-read=" + below + path}); err == nil || !strings.Contains(err.Error(), "not granted") {
				t.Errorf("%s was narrowed to %s: %v", flag, path, err)
			}
		}
		narrowed, err := p.Narrow([]string{"--allow-read=" + below + "/usr/lib"})
		if err != nil {
			t.Fatal(err)
		}
		places, _, err := seen(narrowed)
		if err != nil || len(places) != 1 || places[0].Name != "/usr/lib" {
			t.Errorf("%s narrowed to /usr/lib: %+v %v", flag, places, err)
		}
		hidden := filepath.Join(t.TempDir(), "hidden")
		if err := os.Mkdir(hidden, 0o700); err != nil {
			t.Fatal(err)
		}
		ours, err := p.Narrow([]string{"--allow-read=" + below + hidden})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := ours.Surround(Walls{}, hidden); err == nil {
			s.Close()
			t.Errorf("%s was narrowed to a directory of ours", flag)
		}
	}
}

// seen are the places and links that a child with these permissions has of the machine.
func seen(p Permissions) ([]launcher.Place, map[string]string, error) {
	s := Surroundings{wall: launcher.Wall{Level: launcher.Best.Offered(), Links: map[string]string{}}}
	defer s.Close()
	err := s.grant(p)
	return s.wall.Places, s.wall.Links, err
}

// TestGrantsAreWhatTheyWereAtTheStart: what a program makes of a name that was
// granted changes nothing of what is granted.
func TestGrantsAreWhatTheyWereAtTheStart(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"granted/inner", "granted/other", "secret"} {
		if err := os.MkdirAll(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("granted", path("alias")); err != nil {
		t.Fatal(err)
	}
	parse := func(flags ...string) Permissions {
		t.Helper()
		p, err := Parse(flags)
		if err == nil {
			p, err = p.Open()
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	names := func(p Permissions) (names []string, links map[string]string, err error) {
		places, links, err := seen(p)
		for _, place := range places {
			name, _ := filepath.Rel(dir, place.Name)
			names = append(names, name)
		}
		return names, links, err
	}
	p := parse("--allow-read="+path("alias"), "--allow-write="+path("granted"))
	if got, links, err := names(p); err != nil || !slices.Equal(got, []string{"granted"}) || links[path("alias")] != path("granted") {
		t.Errorf("%q %v %v", got, links, err)
	}
	narrowed, err := p.Narrow([]string{"--allow-read=" + path("alias/inner")})
	if err != nil {
		t.Fatal(err)
	}
	if got, links, err := names(narrowed); err != nil || !slices.Equal(got, []string{"granted/inner"}) || links[path("alias")] != path("granted") {
		t.Errorf("narrowed: %q %v %v", got, links, err)
	}
	// A guest replaces it by a link.
	if err := os.Remove(path("granted/inner")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret", path("granted/inner")); err != nil {
		t.Fatal(err)
	}
	if got, _, err := names(narrowed); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link below a grant is followed: %q %v", got, err)
	}
	if _, err := p.Narrow([]string{"--allow-read=" + path("alias/inner")}); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link below a grant is narrowed to: %v", err)
	}
	// An operator's own link counts as it was at the start.
	if err := os.Remove(path("alias")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("secret", path("alias")); err != nil {
		t.Fatal(err)
	}
	if got, _, err := names(p); err != nil || !slices.Equal(got, []string{"granted"}) {
		t.Errorf("a grant that became another link: %q %v", got, err)
	}
	// So does the directory that the operator shares.
	shared, err := Share(path("granted/other"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path("granted/other"), path("granted/moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret", path("granted/other")); err != nil {
		t.Fatal(err)
	}
	around, err := p.Surround(Walls{Shared: shared})
	if err != nil {
		t.Fatal(err)
	}
	defer around.Close()
	if name := around.Workspace(path("granted/other"), false); name != path("granted/other") {
		t.Errorf("the workspace is called %s", name)
	}
	if wall := around.Wall(); wall != nil {
		place := wall.Places[len(wall.Places)-1]
		opened, err := os.Stat("/proc/self/fd/" + strconv.Itoa(int(place.File.Fd())))
		moved, movedErr := os.Stat(path("granted/moved"))
		if err != nil || movedErr != nil || !os.SameFile(opened, moved) {
			t.Errorf("the workspace is another directory: %v %v", err, movedErr)
		}
	}
	// What is to be written has to be there, for the operator and for a run.
	missing, err := Parse([]string{"--allow-write=" + path("missing/out")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := missing.Open(); err == nil || !strings.Contains(err.Error(), "make it first, or grant its directory") {
		t.Errorf("a target that is missing: %v", err)
	}
	if _, err := p.Narrow([]string{"--allow-write=" + path("granted/missing")}); err == nil || !strings.Contains(err.Error(), "make it first, or grant its directory") {
		t.Errorf("a run's target that is missing: %v", err)
	}
	if _, err := parse().Narrow([]string{"--allow-read=" + path("granted")}); err == nil {
		t.Error("what was not granted is narrowed to")
	}
}

// TestOddGrants are refused at the start, in words, or work; none breaks a start.
func TestOddGrants(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := syscall.Mkfifo(pipe, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	descriptor := "/proc/self/fd/" + strconv.Itoa(int(r.Fd()))
	for flags, refusal := range map[string]string{
		"--allow-read=" + descriptor:           "no file or directory with a path",
		"--allow-read=/proc/self/ns/mnt":       "no file or directory with a path",
		"--allow-read=/proc/self":              "one process's own",
		"--allow-run=" + dir:                   "not a file that may be executed",
		"--allow-run=" + file:                  "not a file that may be executed",
		"--allow-run=" + pipe:                  "not a file that may be executed",
		"--allow-run=no-such-program":          "there is no such program",
		"--allow-read=" + pipe:                 "",
		"--allow-read=/":                       "",
		"--allow-read=/dev/null":               "",
		"--allow-read=/lib64,/etc/resolv.conf": "",
	} {
		p, err := ParseShell(flags)
		if err != nil {
			t.Fatal(err)
		}
		p, err = p.Open()
		if (err != nil) != (refusal != "") || err != nil && !strings.Contains(err.Error(), refusal) {
			t.Errorf("%s: %v, want %q", flags, err, refusal)
		}
		if err != nil {
			continue
		}
		around, err := p.Surround(Walls{})
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		around.Close()
	}
	everything, err := Parse([]string{"--allow-read"})
	if err == nil {
		everything, err = everything.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	root, err := everything.Narrow([]string{"--allow-read=/"})
	if err != nil {
		t.Fatal(err)
	}
	if around, err := root.Surround(Walls{}); err != nil {
		t.Errorf("everything narrowed to /: %v", err)
	} else {
		for _, place := range around.Wall().Places {
			if around.OwnRoot() && (place.Name == "/" || slices.Contains(kernelsOwn, place.Name)) {
				t.Errorf("everything narrowed to / holds %s", place.Name)
			}
		}
		around.Close()
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/usr/bin/env -S sh -x\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if g, err := openProgram(script); err != nil || len(g.needs) != 2 || g.needs[0].file == nil || g.needs[1].file == nil {
		t.Errorf("a script needs %+v, %v", g.needs, err)
	}
	many := "/x"
	for i := range maxNarrowed {
		many += ",/x" + strconv.Itoa(i)
	}
	for _, row := range []struct{ granted, asked, refusal string }{
		{"--allow-read", "--allow-read=" + descriptor, "no file or directory with a path"},
		{"--allow-read", "--allow-read=/proc/1", "leaves out"},
		{"--allow-read", "--allow-read=/dev/null", "leaves out"},
		{"--allow-read", "--allow-read=" + many, "512 are allowed"},
		{"--allow-run", "--allow-run=" + file, "not a file that may be executed"},
	} {
		p, err := ParseShell(row.granted)
		if err == nil {
			p, err = p.Open()
		}
		if err != nil {
			t.Fatal(err)
		}
		narrowed, err := p.Narrow([]string{row.asked})
		if err == nil {
			var around *Surroundings
			if around, err = narrowed.Surround(Walls{}); err == nil {
				around.Close()
			}
		}
		if err == nil || !strings.Contains(err.Error(), row.refusal) {
			t.Errorf("%s narrowed to %.40s: %v, want %q", row.granted, row.asked, err, row.refusal)
		}
	}
}
