package modules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

var anIntegrity = "sha512-" + strings.Repeat("A", 86) + "=="

func TestWhatOfALockFileIsUsed(t *testing.T) {
	i := fmt.Sprintf(`{"integrity":%q}`, anIntegrity)
	with := func(more string) string { return fmt.Sprintf(`{"integrity":%q,%s}`, anIntegrity, more) }
	digest := strings.Repeat("a", 64)
	for _, row := range []struct{ name, root, lock, want string }{
		{"what the roots need", "npm:a@^1", `{"specifiers":{"npm:a@1":"1.0.0","npm:z@1":"1.0.0"},"npm":{"a@1.0.0":` + with(`"dependencies":["b","c@2.0.0"]`) + `,"b@1.0.0":` + with(`"dependencies":["a"]`) + `,"c@1.0.0":` + i + `,"c@2.0.0":` + i + `,"z@1.0.0":` + i + `}}`,
			"npm:a@1 a@1.0.0 b@1.0.0 c@2.0.0"},
		{"peers", "npm:a", `{"specifiers":{"npm:a@*":"1.0.0_b@1.0.0"},"npm":{"a@1.0.0_b@1.0.0":` + with(`"dependencies":["b"]`) + `,"b@1.0.0":` + i + `}}`, "npm:a@* a@1.0.0_b@1.0.0 b@1.0.0"},
		{"aliases", "npm:a", `{"specifiers":{"npm:a@*":"1.0.0"},"npm":{"a@1.0.0":` + with(`"dependencies":["x@npm:b@1.0.0"]`) + `,"b@1.0.0":` + i + `}}`, "npm:a@* a@1.0.0 b@1.0.0"},
		{"a package that others need", "npm:a", `{"npm":{"a@1.0.0":` + i + `}}`, "npm:a@* a@1.0.0"},
		{"one of two", "npm:a", `{"npm":{"a@1.0.0":` + i + `,"a@2.0.0":` + i + `}}`, ""},
		{"no integrity", "npm:a", `{"specifiers":{"npm:a@*":"1.0.0"},"npm":{"a@1.0.0":{}}}`, ""},
		{"no version", "npm:a", `{"specifiers":{"npm:a@*":"../1"},"npm":{"a@../1":` + i + `}}`, ""},
		{"an address", "npm:a", `{"specifiers":{"npm:a@*":"1.0.0"},"npm":{"a@1.0.0":` + with(`"tarball":"https://evil.test/a.tgz"`) + `}}`, "npm:a@* a@1.0.0"},
		{"no name", "npm:a", `{"specifiers":{"npm:a@*":"1.0.0"},"npm":{"a@1.0.0":` + with(`"dependencies":["https://evil.test/"]`) + `}}`, ""},
		{"JSR", "jsr:@s/a@1", `{"specifiers":{"jsr:@s/a@1":"1.0.0","jsr:@s/b@1":"1.2.0","npm:ms@2":"2.0.0"},"jsr":{"@s/a@1.0.0":{"integrity":"` + digest + `","dependencies":["jsr:@s/b","npm:ms@2"]},"@s/b@1.2.0":{"integrity":"` + digest + `"}},"npm":{"ms@2.0.0":` + i + `}}`,
			"jsr:@s/a@1 jsr:@s/b@1 npm:ms@2 @s/a@1.0.0 @s/b@1.2.0 ms@2.0.0"},
		{"URLs", "https://x.test/a.ts", `{"remote":{"https://x.test/a.ts":"` + digest + `","file:///etc/passwd":"` + digest + `","https://u:p@x.test/":"` + digest + `"},"redirects":{"https://x.test/a":"file:///x"}}`, "https://x.test/a.ts"},
		{"no URLs", "npm:a", `{"remote":{"https://x.test/a.ts":"` + digest + `"}}`, ""},
	} {
		root, err := ParseSpecifier(row.root)
		if err != nil {
			t.Fatal(err)
		}
		terms := Terms{Lock: job.Lock{File: "deno.lock", Deno: json.RawMessage(`{"version":"5",` + row.lock[1:])}}
		of, err := terms.locked([]Specifier{root})
		var words []string
		for _, section := range []map[string]string{of.Specifiers, keysOf(of.JSR), keysOf(of.NPM), of.Remote, of.Redirects} {
			words = append(words, slices.Sorted(maps.Keys(section))...)
		}
		if got := strings.Join(words, " "); err != nil || got != row.want {
			t.Errorf("%s: %q, %v", row.name, got, err)
		}
		if strings.Contains(string(of.text()), "evil") {
			t.Errorf("%s: %s", row.name, of.text())
		}
	}
	for _, text := range []string{`{"version":"3"}`, `[]`, `{"npm":[]}`, `{"version":5}`} {
		if _, err := (Terms{Lock: job.Lock{File: "deno.lock", Deno: json.RawMessage(text)}}).locked(nil); err == nil || !strings.Contains(err.Error(), "deno.lock") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAPlanIsWhatItsLockFileHas(t *testing.T) {
	locked := lockFile{NPM: map[string]lockedPackage{"a@1.0.0": {Integrity: "sha512-A"}}, Remote: map[string]string{"https://x.test/": "1"}}
	for _, row := range []struct {
		planned lockFile
		frozen  bool
		want    string
	}{
		{lockFile{NPM: map[string]lockedPackage{"a@1.0.0_b@1": {Integrity: "sha512-A"}}}, true, ""},
		{lockFile{NPM: map[string]lockedPackage{"a@1.0.0": {Integrity: "sha512-B"}}}, false, "its digest there is sha512-A, and what the registry has is sha512-B"},
		{lockFile{NPM: map[string]lockedPackage{"a@1.0.1": {Integrity: "sha512-A"}}}, true, "deno.lock does not have npm:a@1.0.1: run `rillbox lock FILE`"},
		{lockFile{NPM: map[string]lockedPackage{"a@1.0.1": {Integrity: "sha512-A"}}}, false, ""},
		{lockFile{JSR: map[string]lockedPackage{"@s/a@1.0.0": {Integrity: "x"}}}, true, "does not have jsr:@s/a@1.0.0"},
		{lockFile{Remote: map[string]string{"https://x.test/": "2"}}, false, "https://x.test/ is not what deno.lock has"},
	} {
		_, err := Terms{Lock: job.Lock{File: "deno.lock"}, Frozen: row.frozen}.check(locked, row.planned)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%+v: %v", row.planned, err)
		}
	}
}

// FuzzLocked: whatever a project's lock file holds, Deno gets one of names, versions and
// digests, or there is an error.
func FuzzLocked(f *testing.F) {
	f.Add(`{"version":"5","specifiers":{"npm:a@1":"1.0.0"},"npm":{"a@1.0.0":{"integrity":"` + anIntegrity + `","dependencies":["a","b@npm:a@1.0.0"]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		terms := Terms{Lock: job.Lock{File: "deno.lock", Deno: json.RawMessage(text)}}
		of, err := terms.locked([]Specifier{{Scheme: "npm", Name: "a"}, {Scheme: "jsr", Name: "@s/a"}, {Scheme: "https", Name: "https://x.test/"}})
		if err != nil {
			return
		}
		for key, pkg := range of.NPM {
			if !lockedKey().MatchString(key) || !lockedIntegrity().MatchString(pkg.Integrity) {
				t.Errorf("%q is %+v", key, pkg)
			}
		}
		for specifier, version := range of.Specifiers {
			if _, err := ParseSpecifier(specifier); err != nil || !lockedVersion().MatchString(version) {
				t.Errorf("%q is %q", specifier, version)
			}
		}
	})
}

func keysOf(m map[string]lockedPackage) map[string]string {
	keys := map[string]string{}
	for key := range m {
		keys[key] = ""
	}
	return keys
}
