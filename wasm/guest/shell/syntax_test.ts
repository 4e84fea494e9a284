import {
  escapes,
  fromBytes,
  Parser,
  ShellSyntaxError,
  toBytes,
} from "./syntax.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [
    Deno.inspect(actual, { depth: 20 }),
    Deno.inspect(expected, { depth: 20 }),
  ];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

function error(text: string): ShellSyntaxError {
  try {
    new Parser(text).all();
  } catch (e) {
    if (e instanceof ShellSyntaxError) return e;
    throw e;
  }
  throw new Error(`${text} is a script`);
}

Deno.test("a script is read line by line, and what precedes an error stands", () => {
  const parser = new Parser("echo a; echo b\nif x; then\ny\nfi\n)");
  assertEquals([parser.next()?.kind, parser.next()?.kind], ["list", "if"]);
  try {
    parser.next();
  } catch (e) {
    assertEquals([
      (e as ShellSyntaxError).message,
      (e as ShellSyntaxError).line,
    ], [
      "syntax error near unexpected token `)'",
      5,
    ]);
    return;
  }
  throw new Error("the parenthesis was taken");
});

Deno.test("what lacks its end could be mended by more lines, and what is wrong could not", () => {
  for (
    const text of [
      "if x; then",
      "for i in 1 2; do",
      'echo "a',
      "echo 'a",
      "f() {",
      "echo $(ls",
      "((1 +",
      "case a in",
      "[[ a ==",
      "a |",
      "a &&",
      "echo ${x:-",
      "{ a;",
      "x=(1 2",
    ]
  ) {
    assertEquals([text, error(text).unfinished], [text, true]);
  }
  for (
    const text of [
      "fi",
      "if x; fi",
      "for 1 in a; do b; done",
      "a ;; b",
      ") a",
      "echo >",
      "f() echo",
      "case a in b c) d;; esac",
      "[[ a b ]]",
    ]
  ) {
    assertEquals([text, error(text).unfinished], [text, false]);
  }
});

Deno.test("a here-document is its command's, whatever follows on the line", () => {
  const parser = new Parser("cat <<A - <<'B' | sort\na $x\nA\nb $x\nB\nnext");
  const node = parser.next();
  if (node?.kind !== "pipe" || node.parts[0]!.kind !== "simple") {
    throw new Error("it is no pipe");
  }
  assertEquals(
    node.parts[0].redirects.map((r) => r.target.parts.map((p) => p.kind)),
    [
      ["quoted", "parameter", "quoted"],
      ["quoted"],
    ],
  );
  assertEquals(parser.next()?.kind, "simple");
});

Deno.test("assignments are told from words", () => {
  const node = new Parser("a=1 b[2]=x c+=(1 [k]=2) cmd d=4; declare -a e=(1 2)")
    .all();
  const text = JSON.stringify(node);
  assertEquals([...text.matchAll(/"name":"(\w)"/g)].map((m) => m[1]), [
    "a",
    "b",
    "c",
    "e",
  ]);
});

Deno.test("a script that is nested without end is refused", () => {
  if (!/nested too deeply/.test(error("( ".repeat(100_000)).message)) {
    throw new Error("it was taken");
  }
});

Deno.test("bytes that are no UTF-8 come back as they were", () => {
  for (
    const bytes of [
      [0xff, 0x41, 0xc3],
      [0xe4, 0xbd, 0xa0],
      [0xed, 0xa0, 0x80],
      [0xf0, 0x9f, 0x98, 0x80, 0x80],
    ]
  ) {
    assertEquals([...toBytes(fromBytes(new Uint8Array(bytes)))], bytes);
  }
});

Deno.test("escapes of $'…', echo and printf", () => {
  assertEquals(escapes("a\\tb\\x41\\u00e9\\101", "$'"), "a\tbAéA");
  assertEquals(escapes("\\0101\\101", "echo"), "A\\101");
  assertEquals(escapes("\\q\\'", "$'"), "\\q'");
  assertEquals([...toBytes(escapes("\\xff\\xc3\\xa9", "$'"))], [
    0xff,
    0xc3,
    0xa9,
  ]);
});
