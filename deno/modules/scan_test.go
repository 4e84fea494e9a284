package modules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// scanHere scans in this process.
func scanHere(r ScanRequest) (Scanned, error) { return r.answer(), nil }

// checkPlain says what a parse would tell of a program that is not parsed.
func checkPlain(code, extension string) string {
	if !isPlain(code, extension) {
		return ""
	}
	found := scanAny(code, extension, extension+"x")
	if len(found.Imports) > 0 || found.Requires || found.Format == "cjs" || found.Extension != extension {
		return fmt.Sprintf("%q as %s is not parsed, which would tell %+v", code, extension, found)
	}
	return ""
}

func TestPlainPrograms(t *testing.T) {
	for code, want := range map[string]bool{
		`console.log("hi")`: true,
		"for (let i = 0; i < 10; i++) console.log(i / 2 > 1, i >> 1)":          true,
		"const f = (x: Array<number>) => x as any;\n/* a */ f(<any>1); // <b>": true,
		"await fetch(`https://example.com/${1 / 2}`)":                          true,
		"if (a)\n  b();\nfunction* g() { yield 1 }\nexport_ = 1":               false,
		`import("a")`: false, `r\u0065quire("a")`: false, `return 1`: false, `module["ex" + "ports"] = 1`: false,
		`<b/>`: false, `<></>`: false, "<b / >": false, "<b>< / b>": false, "<b /// c\n>": false,
		"<b / /* c */ >": false, "<b>< /* c */ / b>": false, "<b></\u00a0b>": false, "<b>\u2003<\u2003/b>": false, "<b/\u2028//c\u2028>": false,
	} {
		for extension := range loaders {
			if have := isPlain(code, extension); have != (want && !strings.HasSuffix(extension, "x")) {
				t.Errorf("%q as %s: %v", code, extension, have)
			}
			if wrong := checkPlain(code, extension); wrong != "" {
				t.Error(wrong)
			}
		}
	}
}

func TestInspect(t *testing.T) {
	js, ts := job.JavaScript, job.TypeScript
	for _, test := range []struct {
		language   job.Language
		name, code string
		file       string
		commonjs   bool
		imports    string
		prelude    string // part of it; "-" for none
	}{
		{ts, "", `import a from "lodash"; import type {T} from "types-only"`, "main.ts", false, "lodash", "-"},
		{ts, "", `import {T} from "kept"; export * from "npm:b@1/x"`, "main.ts", false, "kept npm:b@1/x", "-"},
		{js, "", "await import('a'); await import(`b`); await import('c' + x)", "main.js", false, "a b", "-"},
		{js, "", `import j from "npm:p/x.json" with {type: "json"}`, "main.js", false, "npm:p/x.json", "-"},
		{js, "", `const a = require("a"); try { require("b") } catch {} require(x)`, "main.cjs", true, "a b", "-"},
		{js, "", `module.exports = 1`, "main.cjs", true, "", "-"},
		{js, "", `console.log(1)`, "main.js", false, "", "-"},
		{js, "", `const a = require("a"); await a`, "main.js", false, "a", "createRequire"},
		{js, "", `import b from "b"; const a = require("a")`, "main.js", false, "a b", "createRequire"},
		{ts, "", `const a = require("a")`, "main.ts", false, "a", "createRequire"},
		{js, "x.cjs", `await 1`, "x.cjs", true, "", "-"},
		{js, "x.mjs", `1`, "x.mjs", false, "", "-"},
		{ts, "x.cts", `1`, "x.cts", true, "", "-"},
		{js, "", `if (import.meta.main) f()`, "main.js", false, "", "import.meta.main=true;"},
		{js, "", `const e = <b/>`, "main.jsx", false, "react/jsx-runtime", "@jsxImportSource react "},
		{ts, "", `import {h} from "npm:preact@10"; const e: any = <b/>`, "main.tsx", false, "npm:preact@10 npm:preact@10/jsx-runtime", "@jsxImportSource npm:preact@10 "},
		{ts, "", `import {renderToString} from "react-dom/server"; const e: any = <b/>`, "main.tsx", false, "react-dom/server react/jsx-runtime", "@jsxImportSource react "},
		{ts, "a.tsx", "/** @jsxImportSource preact */\nconst e = <b/>", "a.tsx", false, "preact/jsx-runtime", "-"},
		{ts, "a.tsx", "/** @jsx h */\nimport {h} from 'preact'; const e = <b/>", "a.tsx", false, "preact", "-"},
		{js, "größe.js", "1", "main.js", false, "", "-"},
		{js, "", "const x: number = 1", "main.js", false, "", "-"},
	} {
		m, err := Inspect(job.Program{Language: test.language, Name: test.name, Code: test.code}, scanHere)
		if err != nil {
			t.Errorf("%q: %v", test.code, err)
			continue
		}
		imports := slices.Clone(m.Imports)
		slices.Sort(imports)
		preludeOK := strings.Contains(m.Prelude.Text, test.prelude)
		if test.prelude == "-" {
			preludeOK = m.Prelude.Text == ""
		}
		if m.File != test.file || m.Commonjs != test.commonjs || strings.Join(imports, " ") != test.imports || !preludeOK {
			t.Errorf("%q: have %s commonjs=%v imports=%q prelude=%q, want %+v", test.code, m.File, m.Commonjs, imports, m.Prelude.Text, test)
		}
		if strings.Replace(m.Code, m.Prelude.Text, "", 1) != test.code {
			t.Errorf("%q became %q", test.code, m.Code)
		}
	}
	if _, err := Inspect(job.Program{Language: js, Name: "data.json"}, scanHere); err == nil {
		t.Error("a file name without an extension of ours was accepted")
	}
}

func TestPreludeStandsBeforeTheFirstCode(t *testing.T) {
	for code, want := range map[string]prelude{
		"import.meta.main":                           {Line: 1, Column: 1},
		"#!/usr/bin/env x\nimport.meta.main":         {Line: 2, Column: 1},
		"// é\n/* a\n b */  import.meta.main":        {Line: 3, Column: 8},
		"/* 😀 */ import.meta.main":                   {Line: 1, Column: 10},
		"\n\n\t// x\n  import.meta.main; /* open":    {Line: 4, Column: 3},
		"/* never closed import.meta.main":           {Line: 1, Column: 1},
		"#! only a line with import.meta and no end": {Line: 1, Column: 43},
	} {
		m := Module{Code: code}
		m.insertPrelude(Scanned{}, mainPrelude("", ""))
		want.Text = "import.meta.main=true;"
		if m.Prelude != want {
			t.Errorf("%q: have %+v, want %+v", code, m.Prelude, want)
		}
	}
}

func TestResolve(t *testing.T) {
	for _, test := range []struct {
		imports, packages string
		roots             string
		mapped            map[string]string
	}{
		{"lodash", "", "npm:lodash", map[string]string{"lodash": "npm:lodash", "lodash/": "npm:/lodash/"}},
		{"lodash lodash/fp", "lodash@4.17.20", "npm:lodash@4.17.20", map[string]string{"lodash": "npm:lodash@4.17.20", "lodash/fp": "npm:lodash@4.17.20/fp"}},
		{"@scope/a/b", "", "npm:@scope/a", map[string]string{"@scope/a/b": "npm:@scope/a/b", "@scope/a": "npm:@scope/a"}},
		{"fs node:path fs/promises", "", "", map[string]string{"fs": "", "fs/promises": ""}},
		{"npm:a@^1/x jsr:@b/c@2/d https://e.f/g.ts", "", "https://e.f/g.ts jsr:@b/c@2/d npm:a@^1", nil},
		{"./x.ts /etc/x file:///x #y data:text/javascript,1 blob:z", "", "", nil},
		{"@std/assert", "jsr:@std/assert@1", "jsr:@std/assert@1", map[string]string{"@std/assert": "jsr:@std/assert@1", "@std/assert/": "jsr:/@std/assert@1/"}},
		{"", "chalk@5 npm:chalk@5", "npm:chalk@5", map[string]string{"chalk": "npm:chalk@5"}},
		{"lodash@3", "", "npm:lodash@3", map[string]string{"lodash@3": "npm:lodash@3"}},
	} {
		r, err := Resolve(strings.Fields(test.imports), strings.Fields(test.packages))
		if err != nil {
			t.Errorf("%q: %v", test.imports, err)
			continue
		}
		var roots []string
		for _, root := range r.Roots {
			roots = append(roots, root.String())
		}
		if strings.Join(roots, " ") != test.roots {
			t.Errorf("%q: have roots %q, want %q", test.imports, roots, test.roots)
		}
		for from, to := range test.mapped {
			if r.Imports[from] != to {
				t.Errorf("%q: %q is mapped to %q, want %q", test.imports, from, r.Imports[from], to)
			}
		}
	}
	if _, err := Resolve(make([]string, maxImports+1), nil); err == nil || !strings.Contains(err.Error(), "the most is 1000") {
		t.Errorf("too many imports: %v", err)
	}
	for _, text := range []string{"file:///etc/passwd", "../x", "/etc/passwd", "--allow-all", "-A", "a b", "npm:", "npm:../../x", "npm:a/../b", "jsr:a", "@x", "https://user:pw@h/x", "git:x", "a@$(x)", "npm:--flag"} {
		if r, err := Resolve(nil, []string{text}); err == nil {
			t.Errorf("the package %q became %v", text, r.Roots)
		}
	}
}

// TestURLsOfOtherSpellings are those that Deno reads as other hosts than they
// seem to name.
func TestURLsOfOtherSpellings(t *testing.T) {
	for _, host := range []string{"evil。test", "ＥＶＩＬ.test", "0x7f.1", "127.1", "2130706433", "0177.0.0.1", "127.0.0.1.", "0", "evil%2etest", "a_b;c", "*.evil.test", "evil..test", "x:99999", "[::1%25lo]:x"} {
		if s, err := ParseSpecifier("https://" + host + "/x.js"); err == nil {
			t.Errorf("%q became %+v", host, s)
		}
	}
	for _, host := range []string{"evil.test", "evil.test.", "EVIL.test:0443", "xn--bcher-kva.test", "127.0.0.1:80", "[::1]:8080", "[::ffff:127.0.0.1]", "a-b_c.0x.test", "1.test"} {
		if _, err := ParseSpecifier("https://" + host + "/x.js"); err != nil {
			t.Error(err)
		}
	}
}

// FuzzSpecifier looks for a package request that reaches Deno's command line as
// something else than a specifier.
func FuzzSpecifier(f *testing.F) {
	for _, seed := range []string{"lodash", "npm:@a/b@1.2.3/c", "jsr:@a/b", "https://x.y/z", "--allow-all", "npm:../x", "a@b@c", "@/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSpecifier(text)
		if err != nil {
			return
		}
		out := s.String()
		if !strings.HasPrefix(out, "npm:") && !strings.HasPrefix(out, "jsr:@") && !strings.HasPrefix(out, "http") || strings.ContainsAny(s.Root(), "\x00\n") {
			t.Errorf("%q became %q", text, out)
		}
		if again, err := ParseSpecifier(out); err != nil || again != s {
			t.Errorf("%q became %q, then %+v, %v", text, out, again, err)
		}
	})
}

// A scan is remembered for other runs, which get what this one did.
func TestARememberedScanStaysAsItIs(t *testing.T) {
	p := job.Program{Language: job.TypeScript, Name: "main.tsx", Code: `import { view } from "./view.tsx"; console.log(<b>{view}</b>)`,
		Files: map[string][]byte{"view.tsx": []byte(`export const view = <i/>`)}}
	var remembered Scanned
	scan := func(r ScanRequest) (Scanned, error) {
		if remembered.Imports == nil {
			remembered = r.answer()
		}
		return remembered, nil
	}
	first, err := Inspect(p, scan)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Inspect(p, scan); err != nil || !strings.Contains(first.Code, "@jsxImportSource") || !reflect.DeepEqual(again, first) {
		t.Errorf("the first run is %+v, the second %+v (%v)", first, again, err)
	}
}
