package deno

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"rillbox/cache"
	"rillbox/supervisor"
)

const fuzzedPlan = `{"lock":{"version":"5","specifiers":{"npm:left@*":"1.0.0","jsr:@a/b@1":"1.0.0"},"npm":{"left@1.0.0_peer@2":{"integrity":"x","dependencies":["deep","@s/x@npm:y@1"]}},"jsr":{"@a/b@1.0.0":{"dependencies":["jsr:@a/c"]}},"remote":{"https://e.test/x.ts?y#z":"00"},"redirects":{"https://e.test/a":"https://f.test/b"}},"registries":{"":"https://npm.test/","@s":"http://[::1]:80/x"},"packages":null,"digests":{"npm/npm.test/left/1.0.0":"00","remote/https/e.test/00":"01"}}`

// FuzzPlan reads install plans, whose lock files Deno made of what registries
// said: none gets past a policy that denies everything, or leads out of Deno's
// directory.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{fuzzedPlan, `{}`, `{"lock":{"npm":{"@":{},"":{}}}}`, `{"lock":{"jsr":{"@a/../../b@../..":{}}}}`, `{"lock":{"remote":{"https://%zz":""}}}`, `{"lock":[]}`} {
		f.Add([]byte(seed))
	}
	everything := cache.Policy{Deny: []string{"*"}}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p plan
		if json.Unmarshal(text, &p) != nil {
			return
		}
		var err error
		if p.lock, err = readLock(p.Lock); err != nil {
			return
		}
		if len(p.lock.NPM)+len(p.lock.JSR)+len(p.lock.Remote) > 0 && p.check(everything) == nil {
			t.Errorf("everything is denied, and the plan is not")
		}
		_ = p.check(cache.Policy{Allow: []string{"left", "host:npm.test"}})
		p.Modules = nil // which no registry names
		for path := range p.manifests() {
			if !filepath.IsLocal(path) || !strings.HasPrefix(path, "remote/") {
				t.Errorf("a manifest is looked for at %q", path)
			}
		}
		roots := []specifier{{scheme: "npm", name: "left"}, {scheme: "jsr", name: "@a/b", version: "1"}, {scheme: "https", name: "https://e.test/x.ts"}}
		packages := p.lock.packages(roots, map[string]bool{"left@1.0.0": true})
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
		roots := []specifier{{scheme: "npm", name: "left", version: "1"}, {scheme: "https", name: "https://e.test/x.ts"}}
		for _, unreachable := range []string{"", address} {
			err := (&fetcher{planner: &planner{cache: store}}).explain(stderr, unreachable, roots)
			var told *PackageError
			if !errors.As(err, &told) || told.Text == "" || len(told.Text) > 2*maxExplained+len(address) || utf8.ValidString(stderr+address) && !utf8.ValidString(told.Text) {
				t.Errorf("%q became %v", stderr, err)
			}
		}
		if stage, what := downloadStage(address); stage == "" || address != "" && what == "" {
			t.Errorf("%q became %q, %q", address, stage, what)
		}
	})
}

// FuzzNeverResolved cuts Deno's words from the end of what the guest wrote.
func FuzzNeverResolved(f *testing.F) {
	f.Add("mine\nerror: Top-level await promise never resolved\nawait x\n^\n    at file:///run/main.ts:1:7\n")
	f.Add("error: Top-level await promise never resolved\n    at <anonymous> (file:///x.ts:2:3)")
	f.Fuzz(func(t *testing.T, text string) {
		for _, omitted := range []int{0, 1} {
			stderr := supervisor.Captured{Head: []byte(text[:len(text)/2]), Tail: []byte(text[len(text)/2:]), Omitted: int64(omitted)}
			place, ok := cutNeverResolved(&stderr)
			left := string(stderr.Head) + string(stderr.Tail)
			if !strings.HasPrefix(text, left) || ok != (left != text) || ok && !strings.Contains(place, ":") {
				t.Errorf("%q left %q, place %q %v", text, left, place, ok)
			}
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
		p := supervisor.Program{Language: supervisor.JavaScript, Code: code}
		if typescript {
			p.Language = supervisor.TypeScript
		}
		for name, scan := range map[string]scanFunc{
			"esbuild": scanHere,
			"none": func(r scanRequest) (scanned, error) {
				return scanned{Requires: requires, Format: "esm", Extension: r.Extensions[0]}, nil
			},
		} {
			m, err := inspect(p, scan)
			if err != nil {
				t.Fatalf("%q: %v", code, err)
			}
			at := strings.Index(m.code, m.prelude.Text)
			if at < 0 || m.code[:at]+m.code[at+len(m.prelude.Text):] != code {
				t.Errorf("%s: %q became %q", name, code, m.code)
			}
			if m.prelude.Text != "" && m.prelude.Line > 1+strings.Count(code, "\n") {
				t.Errorf("%s: %q: the prelude is on line %d", name, code, m.prelude.Line)
			}
			if _, err := resolve(m.imports, nil); err == nil && slices.Contains(m.imports, jsxSource) {
				t.Errorf("%q imports %q", code, m.imports)
			}
		}
	})
}

// FuzzNarrow looks for a run that gets more than was granted.
func FuzzNarrow(f *testing.F) {
	for _, seed := range [][2]string{{"--allow-net=example.com", "--allow-net=example.com:80"}, {"-A", "-R"}, {"--allow-net=10.0.0.0/8", "--allow-net=10.1.2.3"}, {"--allow-net=*.x.test", "--allow-net=a.x.test"}, {"--allow-read=/a --deny-read=/a/b", "-R=/a/c"}, {"--allow-env=A*", "-E=AB"}, {"--allow-net=[::1]:80", "-N=[::1]:80"}, {"-N=unix:/x", "-N=unix:/x"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, granted, asked string) {
		p, err := ParseShell(granted)
		if err != nil {
			return
		}
		words := strings.Fields(asked)
		run, err := p.Narrow(words)
		if err != nil {
			return
		}
		if run.All() && !p.All() {
			t.Errorf("%q gives everything to %q", granted, asked)
		}
		for name, g := range run.grants {
			kind := strings.TrimPrefix(name, "allow-")
			everything, values := p.Allowed(kind)
			switch {
			case !isAllow(name), everything:
			case g.bare, len(values) == 0:
				t.Errorf("%q gives %s to %q", granted, name, asked)
			}
		}
		for name, g := range p.grants {
			if isAllow(name) {
				continue
			}
			for _, value := range g.values {
				if !slices.Contains(run.grants[name].values, value) && !run.grants[name].bare {
					t.Errorf("%q no longer has --%s=%s for %q", granted, name, value, asked)
				}
			}
		}
		if _, err := p.Narrow(run.Args()); err != nil {
			t.Errorf("%q gives %q to %q, which it does not grant: %v", granted, run.Args(), asked, err)
		}
	})
}
