package launcher

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProfile compares the profile of a wall that has everything, and of one that
// has nothing, with what they were when they were last read by a person.
func TestProfile(t *testing.T) {
	for _, row := range []struct {
		golden string
		wall   Wall
		places []found
		hidden []string
	}{
		{golden: "nothing.sb", places: []found{{Read | Execute, "/Users/u/deno", "/Users/u/deno"}}},
		{
			golden: "everything.sb",
			wall:   Wall{Network: true, Processes: true, Connect: []uint16{8080}, AnyPort: true},
			places: []found{
				{Read, "/Users/u/Library/Caches/rillbox/npm", "/Users/u/Library/Caches/rillbox/npm"},
				{Read | Write, "/tmp/run", "/private/tmp/run"},
				{Read | Execute, "/usr/bin", "/usr/bin"},
				{Read, "/", "/"},
				{Write, "/out", "/out"},
			},
			hidden: []string{"/Users/u/Library/Caches/rillbox"},
		},
	} {
		t.Run(row.golden, func(t *testing.T) {
			path := filepath.Join("testdata", "profile", row.golden)
			got := row.wall.profile("/Users/u/deno", row.places, row.hidden)
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the profile is not that of %s; if it should be, put this there:\n%s", path, got)
			}
		})
	}
}

// TestProfileRulesAreInOrder looks at what the last rule that fits says.
func TestProfileRulesAreInOrder(t *testing.T) {
	w := Wall{}
	text := w.profile("/deno", []found{
		{Read, "/cache/own", "/cache/own"},
		{Read, "/", "/"},
		{Write, "/cache", "/cache"}, // granted by its own name, and hidden: a place is seen
	}, []string{"/cache"})
	last := -1
	for _, rule := range []string{
		`(allow file-read-metadata file-read* (subpath "/"))`,
		`(deny file-read* file-write* file-map-executable process-exec* (subpath "/cache"))`,
		`(allow file-read-metadata file-write* (subpath "/cache"))`,
		`(allow file-read-metadata file-read* (subpath "/cache/own"))`,
		`(allow file-read-metadata (literal "/cache"))`, // on the way to it
	} {
		at := strings.Index(text, rule)
		if at <= last {
			t.Errorf("%s is at %d, after what is at %d, in\n%s", rule, at, last, text)
		}
		last = at
	}
	for _, refused := range []string{"network", "process-fork", "mach-lookup", "process-exec*)"} {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "(allow") && strings.Contains(line, refused) {
				t.Errorf("a wall with nothing says %s", line)
			}
		}
	}
}

// TestProfilePathsStayStrings gives paths of an attacker's choice: none ends the
// string that it stands in.
func TestProfilePathsStayStrings(t *testing.T) {
	for _, path := range []string{
		`/a"b`, `/a\`, `/a\"`, "/a\nb", `/")(allow default)("`, `/\")(allow default)`, "/\\\n\"", "/ü ;#|", "/a\x01\xff",
	} {
		w := Wall{}
		text := w.profile(path, []found{{Read | Write, path, path}}, []string{path + "/hidden"})
		if got := strings.Count(unquoted(t, text), "(allow default)"); got != 0 {
			t.Errorf("%q is more than a string in\n%s", path, text)
		}
		back := readString(t, quoted(path))
		if back != path {
			t.Errorf("%q comes back as %q", path, back)
		}
	}
}

// readString reads one string of the profile's language (that of TinyScheme, whose
// readstrexp takes what follows a backslash for itself but in n, r, t, x and digits).
func readString(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i != len(text)-1 {
				t.Errorf("%s ends at byte %d", text, i)
			}
			return b.String()
		case '\\':
			i++
			if strings.IndexByte(`\"`, text[i]) < 0 {
				t.Errorf("%s has the escape %q", text, text[i])
			}
		}
		b.WriteByte(text[i])
	}
	t.Errorf("%s does not end", text)
	return b.String()
}

// unquoted is a profile without its strings.
func unquoted(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	inside := false
	for i := 0; i < len(text); i++ {
		switch {
		case inside && text[i] == '\\':
			i++
		case text[i] == '"':
			inside = !inside
		case !inside:
			b.WriteByte(text[i])
		}
	}
	if inside {
		t.Errorf("a string does not end in\n%s", text)
	}
	return b.String()
}

// TestProfileIsTaken has macOS itself read a profile with every rule.
func TestProfileIsTaken(t *testing.T) {
	const sandboxExec = "/usr/bin/sandbox-exec"
	if _, err := os.Stat(sandboxExec); err != nil {
		t.Skip("there is no sandbox-exec here")
	}
	text, err := os.ReadFile("testdata/profile/everything.sb")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), sandboxExec, "-p", string(text), "/usr/bin/true").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
