package deno

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestRewriteModuleSyntax(t *testing.T) {
	for _, test := range []struct{ code, want string }{
		{`import "x"`, `void (await import("x"));`},
		{`import 'it\'s';1`, `void (await import('it\'s'));1`},
		{`import a from "x"; a`, `const { default: a } = await import("x"); a`},
		{`import*as n from"x"`, `const n = await import("x");`},
		{`import { a, b as c, "d e" as f, default as g } from 'x';`, `const { a, b: c, "d e": f, default: g } = await import('x');`},
		{`import a, { b } from "x"`, `const { default: a, b } = await import("x");`},
		{`import a, * as n from "x"`, `const n = await import("x"), { default: a } = n;`},
		{`import {} from "x"`, `const {  } = await import("x");`},
		{"import {\n  a, // one\n  b,\n} from /* where */ \"x\";\nc", "const { a, b } = await import(\"x\");\n\n\n\nc"},
		{`import d from "./d.json" with { type: "json" }; d`, `const { default: d } = await import("./d.json", { with: { type: "json" } }); d`},
		{"import d from './d.txt' with { 'type': 'text', }\nd", "const { default: d } = await import('./d.txt', { with: { 'type': 'text', } });\nd"},
		{"import a from 'a'\nimport { b } from 'b';\n\n// more\nimport 'c'\nimport('d')", "const { default: a } = await import('a');\nconst { b } = await import('b');\n\n// more\nvoid (await import('c'));\nimport('d')"},
		{`import type from "x"`, `const { default: type } = await import("x");`},
		{`import défaut, { $ as _ } from "x"`, `const { default: défaut, $: _ } = await import("x");`},
		{`export const a = 1`, `       const a = 1`},
		{`export async function f() {}`, `       async function f() {}`},
		{`export { a, b as "c", d as default }; e`, strings.Repeat(" ", 37) + " e"},
		{"export {\n}\n1", "        \n \n1"},
		{`export * from "x"`, `void (await import("x"));`},
		{`export * as n from "x"; 1`, `void (await import("x")); 1`},
		{`export { a as default } from "x"`, `void (await import("x"));`},
		{`export default 5`, `;0,            5`},
		{`export default { a: 1 }`, `;0,            { a: 1 }`},
		{`export default function f() {}`, `               function f() {}`},
		{`export default async function* f() {}`, `               async function* f() {}`},
		{`export default class A {}`, `               class A {}`},
		{`export default function () {}`, `;0,            function () {}`},
		{`export default class extends A {}`, `;0,            class extends A {}`},
		{`export default async () => 1`, `;0,            async () => 1`},
	} {
		got, ok := rewriteAt(test.code, 0)
		if !ok || got != test.want {
			t.Errorf("%q became\n%q, %v, want\n%q", test.code, got, ok, test.want)
		}
		if strings.Count(got, "\n") != strings.Count(test.code, "\n") {
			t.Errorf("%q became %q: its lines have moved", test.code, got)
		}
	}
}

func TestRewriteLeavesWhatItDoesNotKnow(t *testing.T) {
	for _, code := range []string{"import", "import a", "import defer * as n from 'x'", "import { a b } from 'x'", "import a from x", "import 'x", "import x from 'x' with { a }", "import * n from 'x'", "export * as", "export { a", "export { a } from x", "meta", "x"} {
		if got, ok := rewriteAt(code, 0); ok {
			t.Errorf("%q became %q", code, got)
		}
	}
}

func TestRewriteImportMeta(t *testing.T) {
	code := "const é = 1; import . /* x */ meta.url"
	if got, ok := rewriteAt(code, strings.Index(code, "meta")); !ok || got != "const é = 1; $importMeta.url" {
		t.Errorf("have %q %v", got, ok)
	}
}

func TestPlaces(t *testing.T) {
	code := "ab\né𝒳c\n"
	for want, p := range map[int]place{0: {0, 0}, 2: {0, 2}, 3: {1, 0}, 5: {1, 1}, 9: {1, 3}, 10: {1, 4}, 11: {2, 0}} {
		if got, ok := p.offset(code); !ok || got != want {
			t.Errorf("%v is at %d %v, want %d", p, got, ok, want)
		}
	}
	for _, p := range []place{{0, 3}, {3, 0}, {2, 1}} {
		if got, ok := p.offset(code); ok {
			t.Errorf("%v is at %d", p, got)
		}
	}
}

// FuzzRewrite looks for code that breaks the reading of statements.
func FuzzRewrite(f *testing.F) {
	for _, seed := range []string{`import a, { b as c } from "x" with { type: "json" };`, `export { a as "b" } from "x"`, "export default class A {}", "import . meta", "export", "import /*", "import '\\"} {
		f.Add(seed, 0)
	}
	f.Fuzz(func(t *testing.T, code string, at int) {
		if at < 0 || at > len(code) {
			return
		}
		got, ok := rewriteAt(code, at)
		if ok && strings.Count(got, "\n") != strings.Count(code, "\n") {
			t.Errorf("%q at %d became %q: its lines have moved", code, at, got)
		}
	})
}

// FuzzInspectorMessage looks for a message that is taken for what it is not.
func FuzzInspectorMessage(f *testing.F) {
	for _, seed := range []string{`{"id":1,"result":{"result":{"type":"number","value":2}}}`, `{"id":2,"error":{"code":-32000,"message":"no"}}`, `{"method":"Runtime.bindingCalled","params":{"payload":"{}"}}`, `{"id":1,"method":"x"}`, `{}`, `{"id":-1}`, `[]`, `null`, `{"id":1e9}`, `{"id":1}{"id":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := decodeMessage(text)
		if err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if (m.ID > 0) == (m.Method != "") {
			t.Errorf("%q is an answer and a notification, or neither", text)
		}
		var e evaluated
		if json.Unmarshal(m.Result, &e) == nil {
			_, _ = json.Marshal(e.Result.argument())
		}
	})
}

// FuzzNarrowManifest looks for a manifest of which more is left than was asked for.
func FuzzNarrowManifest(f *testing.F) {
	f.Add([]byte(`{"name":"a","dist-tags":{"latest":"2.0.0"},"versions":{"1.0.0":{},"2.0.0":{}}}`), []byte(`{"versions":{"0.1.0":{}}}`))
	f.Add([]byte(`{"latest":"2.0.0","versions":{"1.0.0":{}}}`+"\n// denoCacheMetadata={}"), []byte(``))
	f.Add([]byte(`{"dist-tags":null,"versions":null}`), []byte(`{"versions":[]}`))
	f.Fuzz(func(t *testing.T, text, before []byte) {
		narrowed, err := narrowManifest(text, before, map[string]bool{"1.0.0": true})
		if err != nil {
			return
		}
		manifest, _, err := readManifest(narrowed)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, narrowed, err)
		}
		var all, earlier map[string]json.RawMessage
		if err := json.Unmarshal(manifest["versions"], &all); err != nil {
			t.Fatalf("%q became %q: %v", text, narrowed, err)
		}
		if was, _, err := readManifest(before); err == nil {
			_ = json.Unmarshal(was["versions"], &earlier)
		}
		for version := range all {
			if _, was := earlier[version]; version != "1.0.0" && !was {
				t.Errorf("%q: version %q is left in %q", text, version, narrowed)
			}
		}
	})
}
