package modules

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRewriteModuleSyntax(t *testing.T) {
	for _, test := range []struct{ code, want string }{
		{`import "x"`, `void (await import("x"));`},
		{`import 'it\'s';1`, `void (await import("it's"));1`},
		{`import a from "x"; a`, `const { default: a } = await import("x"); a`},
		{`import*as n from"x"`, `const n = await import("x");`},
		{`import { a, b as c, "d e" as f, default as g } from 'x';`, `const { a, b: c, "d e": f, default: g } = await import("x");`},
		{`import a, { b } from "x"`, `const { default: a, b } = await import("x");`},
		{`import a, * as n from "x"`, `const n = await import("x"), { default: a } = n;`},
		{`import {} from "x"`, `const {} = await import("x");`},
		{"import {\n  a, // one\n  b,\n} from /* where */ \"x\";\nc", "const { a, b } = await import(\"x\");\n\n\n\nc"},
		{`import d from "./d.json" with { type: "json" }; d`, `const { default: d } = await import("./d.json", { with: { type: "json" } }); d`},
		{"import d from './d.txt' with { 'type': 'text', }\nd", "const { default: d } = await import(\"./d.txt\", { with: { \"type\": \"text\" } });\nd"},
		{"import a from 'a'\nimport { b } from 'b';\n\n// more\nimport 'c'\nimport('d')", "const { default: a } = await import(\"a\");\nconst { b } = await import(\"b\");\n\n// more\nvoid (await import(\"c\"));\nimport('d')"},
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
		{`export /* export */ const a = 1`, `       /* export */ const a = 1`},
		{"const é = 1; import . /* x */ meta.url", "const é = 1; $importMeta.url"},
		{"import a from 'a'; `\nimport b from 'b'\nexport {\n${import.meta.url}import.meta`", "const { default: a } = await import(\"a\"); `\nimport b from 'b'\nexport {\n${$importMeta.url}import.meta`"},
		{"const a = '🎉'; export { a }; import /* } */ { /* } */ b } from /* 'y' */ 'x' // c\n; a", "const a = '🎉';               const { b } = await import(\"x\");\n a"},
		{"import 'a'\u2028import 'b'\r\nimport 'c'\rimport 'd'", "void (await import(\"a\"));\u2028void (await import(\"b\"));\r\nvoid (await import(\"c\"));\rvoid (await import(\"d\"));"},
		{"f\nimport('x'); import.meta", "f\nimport('x'); $importMeta"},
		{`export { earlier }; 1`, `                    1`},
		{`import defer * as n from 'x'`, `import defer * as n from 'x'`},
		{`'@' + "class"`, `'@' + "class"`},
		{"", ""},
	} {
		got := asScript(test.code, ".js", "", false)
		if got.Code != test.want || got.Problem != "" {
			t.Errorf("%q became\n%q, %q, want\n%q", test.code, got.Code, got.Problem, test.want)
		}
		if strings.Count(got.Code, "\n") != strings.Count(test.code, "\n") {
			t.Errorf("%q became %q: its lines have moved", test.code, got.Code)
		}
	}
}

// TestRewriteTypeScript: what has no meaning at run time is left to the child, which
// leaves types out.
func TestRewriteTypeScript(t *testing.T) {
	for code, want := range map[string]string{
		`import type { A } from "a"; import { type B, c } from "b"`:   `import type { A } from "a"; const { c } = await import("b");`,
		`export abstract class A {}; export type T = A`:               `       abstract class A {}; export type T = A`,
		`export enum E { a }; export const enum F { b }`:              `       enum E { a };        const enum F { b }`,
		`export async function f<T>(): Promise<T> { return <T>null }`: `       async function f<T>(): Promise<T> { return <T>null }`,
		`export default <const>["a"]`:                                 `;0,            <const>["a"]`,
	} {
		if got := asScript(code, ".ts", "", false); got.Code != want || got.Problem != "" {
			t.Errorf("%q became\n%q, %q, want\n%q", code, got.Code, got.Problem, want)
		}
	}
}

func TestTranspile(t *testing.T) {
	for _, test := range []struct{ code, extension, want string }{
		{`import d from "./d.json" with { type: "json" }; export const e = <a>{d}</a>`, ".jsx", "const { jsx } = await import(\"j/jsx-runtime\");\nconst { default: d } = await import(\"./d.json\", { with: { type: \"json\" } });\n       const e = /* @__PURE__ */ jsx(\"a\", { children: d });\n"},
		{`export enum E { a }; using f = g()`, ".ts", "       var E = /* @__PURE__ */ ((E2) => {\n  E2[E2[\"a\"] = 0] = \"a\";\n  return E2;\n})(E || {});\n;\nusing f = g();\n"},
	} {
		if got := asScript(test.code, test.extension, "j", true); got.Code != test.want || got.Map == "" {
			t.Errorf("%q became\n%q, %q, want\n%q", test.code, got.Code, got.Problem, test.want)
		}
	}
	if got := asScript("export @d class A { @m() b }", ".js", "", false); got.Map == "" || strings.Contains(got.Code, "@d") || strings.Contains(got.Code, "export") {
		t.Errorf("decorators: %+v", got)
	}
	if got := asScript("import a from 'a' b", ".js", "", false); got.Problem != `Expected ";" but found "b" at cell:1:19` {
		t.Errorf("have %q", got.Problem)
	}
}

func TestPlaces(t *testing.T) {
	code := "ab\né𝒳c\n"
	for want, p := range map[int]place{0: {0, 0}, 2: {0, 2}, 3: {1, 0}, 5: {1, 1}, 9: {1, 3}, 10: {1, 4}, 11: {2, 0}} {
		if got, ok := p.offset(code, lineStarts(code)); !ok || got != want {
			t.Errorf("%v is at %d %v, want %d", p, got, ok, want)
		}
	}
	for _, p := range []place{{3, 0}, {2, 1}} {
		if got, ok := p.offset(code, lineStarts(code)); ok {
			t.Errorf("%v is at %d", p, got)
		}
	}
}

// FuzzAsScript looks for code of which lines or statements are lost.
func FuzzAsScript(f *testing.F) {
	for _, seed := range []string{`import a, { b as c } from "x" with { type: "json" };`, `export { a as "b" } from "x"`, "export default class A {}", "import . meta", "export", "import /*", "import '\\", "const t = `\nimport 'x'\n`", "export abstract class A { @b c }", "import 'a\u2028b'\u2028import 'c'", "import 'a\\\nb'"} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, code string, typescript bool) {
		if len(code) > 500 || strings.Contains(code, "infer") || strings.Count(code, "<") > 8 {
			return // these are for a scanner: see TestHostileProgramsCostAScanner
		}
		code = strings.ToValidUTF8(code, "\ufffd") // as a scanner gets it
		extension := ".js"
		if typescript {
			extension = ".ts"
		}
		s := asScript(code, extension, "", false)
		if s.Problem == "" && s.Map == "" && strings.Count(s.Code, "\n") != strings.Count(code, "\n") {
			t.Errorf("%q became %q: its lines have moved", code, s.Code)
		}
	})
}

// FuzzNarrowManifest looks for a manifest of which more is left than was asked for.
func FuzzNarrowManifest(f *testing.F) {
	f.Add([]byte(`{"name":"a","dist-tags":{"latest":"2.0.0"},"versions":{"1.0.0":{},"2.0.0":{}}}`), []byte(`{"versions":{"0.1.0":{}}}`))
	f.Add([]byte(`{"latest":"2.0.0","versions":{"1.0.0":{}}}`+"\n// denoCacheMetadata={}"), []byte(``))
	f.Add([]byte(`{"dist-tags":null,"versions":null}`), []byte(`{"versions":[]}`))
	f.Fuzz(func(t *testing.T, text, before []byte) {
		narrowed, err := NarrowManifest(text, before, map[string]bool{"1.0.0": true}, func(name string) bool { return name == "there" })
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
