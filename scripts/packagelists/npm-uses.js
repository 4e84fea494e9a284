// semver
is(d.satisfies("1.2.3", "^1.0.0") && d.inc("1.2.3", "minor") === "1.3.0");
// ansi-styles
is(typeof d.red.open === "string" || typeof d.red?.open === "string");
// debug
is(typeof d("a") === "function");
d("a")("quiet");
// minimatch
is((m.minimatch ?? d)("a/b.js", "a/*.js"));
// strip-ansi
is(d("\u001b[31mred\u001b[39m") === "red");
// chalk
is(d.red("a").includes("a"));
// supports-color
is(d.stdout !== undefined || "stdout" in d);
// string-width
is(d("古a") === 3);
// ansi-regex
is(d().test("\u001b[31m"));
// ms
is(d("2d") === 172800000 && d(1000) === "1s");
// lru-cache
const cache = new (m.LRUCache ?? d)({ max: 1 });
cache.set("a", 1).set("b", 2);
is(cache.get("a") === undefined && cache.get("b") === 2);
// brace-expansion
is((m.expand ?? d)("a{b,c}").join() === "ab,ac");
// tslib
is(m.__assign({ a: 1 }, { b: 2 }).b === 2);
// emoji-regex
is(d().test("😀"));
// wrap-ansi
is(d("aa bb", 2) === "aa\nbb");
// commander
const command = new m.Command().option("-n <n>");
command.parse(["-n", "3"], { from: "user" });
is(command.opts().n === "3");
// glob
is(Array.isArray(m.globSync("*.none", { cwd: import.meta.dirname })));
// color-name
is(d.red.join() === "255,0,0");
// color-convert
is(d.rgb.hex(255, 0, 0) === "FF0000");
// source-map
const generator = new m.SourceMapGenerator({ file: "a.js" });
generator.addMapping({ generated: { line: 1, column: 0 } });
is(JSON.parse(generator.toString()).version === 3);
// has-flag
is(d("xx", ["--xx"]));
// readable-stream
const chunks = await m.Readable.from(["a", "b"]).toArray();
is(chunks.join("") === "ab");
// picomatch
is(d("*.js")("a.js"));
// ajv
const check = new d({}).compile({ type: "object", required: ["a"] });
is(check({ a: 1 }) && !check({}));
// safe-buffer
is(m.Buffer.from("a").toString("hex") === "61");
// escape-string-regexp
is(d("a.b") === "a\\.b");
// uuid
is(m.validate(m.v4()) && m.v5("a", m.v5.URL).length === 36);
// yallist
is(new (m.Yallist ?? d)([1, 2]).toArray().length === 2);
// signal-exit
is(typeof m.onExit(() => {}) === "function");
// react-is
is(m.isElement({}) === false);
// is-fullwidth-code-point
is(d("古".codePointAt(0)));
// which
is(d.sync("none", { nothrow: true }) === null);
// p-limit
const limit = d(1);
is((await Promise.all([limit(() => 1), limit(() => 2)])).join() === "1,2");
// json-schema-traverse
let schemas = 0;
d({ properties: { a: {} } }, () => schemas++);
is(schemas === 2);
// find-up
is(await m.findUp("none.txt") === undefined);
// locate-path
is(await m.locatePath(["none.txt"]) === undefined);
// p-locate
is(await d([1, 2, 3], (n) => n === 2) === 2);
// mime-db
is(d["text/html"].extensions.includes("html"));
// eslint-visitor-keys
is(m.KEYS.IfStatement.length === 3);
// minipass
is((await new m.Minipass({ encoding: "utf8" }).end("a").concat()) === "a");
// glob-parent
is(d("a/b/*.js") === "a/b");
// iconv-lite
is(d.decode(d.encode("é", "latin1"), "latin1") === "é");
// string_decoder
is(new m.StringDecoder("utf8").write(Buffer.from("é")) === "é");
// js-yaml
is((m.load ?? d.load)("a: [1, 2]").a.length === 2);
// isarray
is(d([]));
// mime-types
is(d.lookup("a.html") === "text/html");
// @babel/types
is(m.isIdentifier(m.identifier("a")));
// @babel/code-frame
is(m.codeFrameColumns("a\nb", { start: { line: 2 } }).includes("> 2"));
// globals
is("Array" in d.builtin);
// path-key
is(d({ env: {}, platform: "linux" }) === "PATH");
// yargs-parser
is(d(["--a", "1"]).a === 1);
// ws
is(typeof m.WebSocketServer === "function");
// resolve
is(typeof d.sync === "function" && d.isCore("fs"));
// get-stream
is(await d(new Response("a").body) === "a");
// argparse
const parser = new m.ArgumentParser();
parser.add_argument("-n");
is(parser.parse_args(["-n", "3"]).n === "3");
// @babel/parser
is(m.parse("a + b").program.body.length === 1);
// yargs
is(d(["--a", "1"]).parse().a === 1);
// pretty-format
is((m.format ?? d)({ a: 1 }).includes('"a": 1'));
// ignore
is(d().add("*.log").ignores("a.log"));
// acorn
is(m.parse("a + b", { ecmaVersion: 2022 }).body.length === 1);
// isexe
is(typeof m.isexe === "function");
// cross-spawn
is(typeof d.spawn === "function");
// postcss
const css = await d([]).process("a { b: c }", { from: undefined });
is(css.css === "a { b: c }");
// balanced-match
is((m.balanced ?? d)("{", "}", "a{b}c").body === "b");
// resolve-from
is(d.silent(import.meta.dirname, "./none") === undefined);
// fs-extra
is(await d.pathExists(import.meta.dirname + "/none") === false);
// camelcase
is(d("a-b") === "aB");
// cliui
const ui = d({ width: 20 });
ui.div("a");
is(ui.toString().includes("a"));
// @jridgewell/trace-mapping
is(
  new m.TraceMap({ version: 3, sources: [], names: [], mappings: "" })
    .version === 3,
);
// punycode
is(d.toASCII("mañana.com") === "xn--maana-pta.com");
// @babel/helper-validator-identifier
is(m.isIdentifierName("a"));
// @babel/generator
is(
  (m.generate ?? d.default ?? d)({ type: "Identifier", name: "a" }).code ===
    "a",
);
// is-stream
is(m.isStream({}) === false);
// entities
is(m.decodeHTML("&amp;") === "&");
// agent-base
is(typeof m.Agent === "function");
// estraverse
let nodes = 0;
d.traverse({ type: "Identifier", name: "a" }, { enter: () => nodes++ });
is(nodes === 1);
// strip-json-comments
is(JSON.parse(d("{/* a */}")) !== null);
// shebang-regex
is(d.test("#!/bin/sh"));
// shebang-command
is(d("#!/usr/bin/env node") === "node");
// json5
is(d.parse("{a: 1,}").a === 1);
// webidl-conversions
is(d.long("3") === 3);
// path-exists
is(await m.pathExists(import.meta.dirname + "/none") === false);
// path-to-regexp
is(m.match("/:a")("/b").params.a === "b");
// whatwg-url
is(new m.URL("http://a/b").pathname === "/b");
// https-proxy-agent
is(new m.HttpsProxyAgent("http://127.0.0.1:1").proxy.port === "1");
// onetime
const once = d(() => 1);
is(once() === 1 && once() === 1);
// @babel/core
is(m.transformSync("a", { configFile: false, babelrc: false }).code === "a;");
// form-data
const form = new d();
form.append("a", "b");
is(form.getBuffer().includes("b"));
// tr46
is(d.toASCII("mañana.com") === "xn--maana-pta.com");
// @babel/template
is((m.default.default ?? d)("a + b")().type === "ExpressionStatement");
// typescript
is(
  m.versionMajorMinor !== undefined || d.version !== undefined ||
    Object.keys(m).length > 0,
);
// eslint-scope
is(typeof m.analyze === "function");
// inherits
function A() {}
function B() {}
d(A, B);
is(new A() instanceof B);
// convert-source-map
is(d.fromObject({ version: 3 }).toComment().includes("base64"));
