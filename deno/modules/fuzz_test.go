package modules

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"rillbox/cache"
	"rillbox/cache/egress"
	"rillbox/supervisor/job"
)

const fuzzedPlan = `{"lock":{"version":"5","specifiers":{"npm:left@*":"1.0.0","jsr:@a/b@1":"1.0.0"},"npm":{"left@1.0.0_peer@2":{"integrity":"x","dependencies":["deep","@s/x@npm:y@1"]}},"jsr":{"@a/b@1.0.0":{"dependencies":["jsr:@a/c"]}},"remote":{"https://e.test/x.ts?y#z":"00"},"redirects":{"https://e.test/a":"https://f.test/b"}},"registries":{"":"https://npm.test/","@s":"http://[::1]:80/x"},"packages":null,"digests":{"npm/npm.test/left/1.0.0":"00","remote/https/e.test/00":"01"}}`

// FuzzPlan reads install plans, whose lock files Deno made of what registries
// said: none gets past a policy that denies everything, or leads out of Deno's
// directory.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{fuzzedPlan, `{}`, `{"lock":{"npm":{"@":{},"":{}}}}`, `{"lock":{"jsr":{"@a/../../b@../..":{}}}}`, `{"lock":{"remote":{"https://%zz":""}}}`, `{"lock":[]}`} {
		f.Add([]byte(seed))
	}
	everything := egress.Policy{Deny: []string{"*"}}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p Plan
		if json.Unmarshal(text, &p) != nil {
			return
		}
		var err error
		if p.Locked, err = readLock(p.Lock); err != nil {
			return
		}
		if len(p.Locked.NPM)+len(p.Locked.JSR)+len(p.Locked.Remote) > 0 && p.check(everything) == nil {
			t.Errorf("everything is denied, and the plan is not")
		}
		_ = p.check(egress.Policy{Allow: []string{"left", "host:npm.test"}})
		p.Modules = nil // which no registry names
		for path := range p.Manifests() {
			if !filepath.IsLocal(path) || !strings.HasPrefix(path, "remote/") {
				t.Errorf("a manifest is looked for at %q", path)
			}
		}
		roots := []Specifier{{Scheme: "npm", Name: "left"}, {Scheme: "jsr", Name: "@a/b", Version: "1"}, {Scheme: "https", Name: "https://e.test/x.ts"}}
		packages := p.Locked.packages(roots, map[string]bool{"left@1.0.0": true})
		if len(packages) != len(roots) {
			t.Errorf("%d packages of %d", len(packages), len(roots))
		}
	})
}

// FuzzExplain reads Deno's last words, in which registries have their say.
func FuzzExplain(f *testing.F) {
	for _, seed := range []string{
		"error: npm package 'x' does not exist.\n", "error: Could not find npm package 'x' matching '9'.\n\nA newer matching version was found, but it was not used because it was newer than the specified minimum dependency date of 2026.",
		"Warning x\nerror: JSR package not found: @a/b\n\nStack backtrace:\n 0: x", "error: Could not find version of '@a/b' that matches specified version constraint '9'",
		`error: Module not found "https://x.test/y".`, `error: Requires import access to "x.test:443", run again with the --allow-import flag`,
		`error: Import 'https://x.test/y' failed.\n    0: error sending request for url`, `error: Failed loading https://npm.test/x for package "x"`, "error: ", "", "\xff\x00",
	} {
		f.Add(seed, "https://npm.test/x")
	}
	store, err := cache.Open(f.TempDir(), cache.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	f.Fuzz(func(t *testing.T, stderr, address string) {
		roots := []Specifier{{Scheme: "npm", Name: "left", Version: "1"}, {Scheme: "https", Name: "https://e.test/x.ts"}}
		for _, unreachable := range []string{"", address} {
			err := (&fetcher{Planner: &Planner{Cache: store}}).explain(stderr, unreachable, roots)
			var told *PackageError
			if !errors.As(err, &told) || told.Text == "" || len(told.Text) > 2*MaxExplained+len(address) || utf8.ValidString(stderr+address) && !utf8.ValidString(told.Text) {
				t.Errorf("%q became %v", stderr, err)
			}
		}
		if stage, what := downloadStage(address); stage == "" || address != "" && what == "" {
			t.Errorf("%q became %q, %q", address, stage, what)
		}
	})
}

// FuzzPlain looks for a program that would have to be parsed and is not.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"<a/>", "<a / >", "<></>", "return", "exports.a", "const x = <T>y", "a < b / c > d", "/</>/", "`${<a></a>}`", "<a /*/>*/ // \n>", "<!-- x -->"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, code string) {
		if len(code) > 500 || strings.Contains(code, "infer") || strings.Count(code, "<") > 8 {
			return // these are for a scanner: see TestHostileProgramsCostAScanner
		}
		for extension := range loaders {
			if wrong := checkPlain(code, extension); wrong != "" {
				t.Error(wrong)
			}
		}
	})
}

// FuzzInspect looks for a program that is not run as it was written.
func FuzzInspect(f *testing.F) {
	for _, seed := range []string{"import.meta.main", "#!x\nimport.meta.main", "/* é */ require('a'); import 'b'", "<a/>", "const x: T = 1", "\ufeff//x\r\nimport.meta.main", "/*", "//", "module.exports = 1", "\xff"} {
		f.Add(seed, false, seed != "<a/>")
	}
	f.Fuzz(func(t *testing.T, code string, typescript, requires bool) {
		if len(code) > 500 || strings.Contains(code, "infer") || strings.Count(code, "<") > 8 {
			return // these are for a scanner: see TestHostileProgramsCostAScanner
		}
		p := job.Program{Language: job.JavaScript, Code: code}
		if typescript {
			p.Language = job.TypeScript
		}
		for name, scan := range map[string]ScanFunc{
			"esbuild": scanHere,
			"none": func(r ScanRequest) (Scanned, error) {
				return Scanned{Requires: requires, Format: "esm", Extension: r.Extensions[0]}, nil
			},
		} {
			m, err := Inspect(p, scan)
			if err != nil {
				t.Fatalf("%q: %v", code, err)
			}
			at := strings.Index(m.Code, m.Prelude.Text)
			if at < 0 || m.Code[:at]+m.Code[at+len(m.Prelude.Text):] != code {
				t.Errorf("%s: %q became %q", name, code, m.Code)
			}
			if m.Prelude.Text != "" && m.Prelude.Line > 1+strings.Count(code, "\n") {
				t.Errorf("%s: %q: the prelude is on line %d", name, code, m.Prelude.Line)
			}
			if _, err := Resolve(m.Imports, nil); err == nil && slices.Contains(m.Imports, jsxSource) {
				t.Errorf("%q imports %q", code, m.Imports)
			}
		}
	})
}
