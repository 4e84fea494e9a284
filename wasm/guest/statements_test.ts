import { split, unfinished } from "./statements.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

const texts = (text: string, prefix = "\\") =>
  [...split(text, prefix)].map((piece) => piece.text);

Deno.test("split() ends statements at their semicolons", () => {
  assertEquals(
    [...split("-- first\nSELECT 1;\n\n ; SELECT\n 2 -- more;\n", "\\")],
    [
      { text: "SELECT 1", line: 2, command: false, ended: true },
      { text: "SELECT\n 2 -- more;", line: 4, command: false, ended: false },
    ],
  );
});

Deno.test("split() does not end them in texts, names and comments", () => {
  const kept = [
    "SELECT 'a;''b;'",
    'SELECT "x;""y;"',
    "SELECT E'it\\';s'",
    "SELECT $$a;b$$",
    "SELECT $f$ a; $$ b; $f$",
    "SELECT /* a; /* b; */ c; */ 1",
    "SELECT 1 -- ;\n, 2",
    "CREATE FUNCTION f() BEGIN ATOMIC SELECT CASE WHEN a THEN 1 END; SELECT 2; END",
  ];
  assertEquals(texts(kept.join(";\n") + ";"), kept);
});

Deno.test("split() gives commands by their lines", () => {
  assertEquals(
    [...split(".tables\nSELECT 1;\n  .mode csv  \nSELECT .5\n.x;", ".")].map((
      { text, line, command },
    ) => [text, line, command]),
    [
      [".tables", 1, true],
      ["SELECT 1", 2, false],
      [".mode csv", 3, true],
      ["SELECT .5\n.x", 4, false],
    ],
  );
});

Deno.test("split() puts in the variables that are known", () => {
  const variables = new Map([["n", "5"], ["s", "it's"], ["1", "x"]]);
  const [piece] = split(
    `SELECT :n, :'s', :"s", :1, ':n', a::n, :other, b[1:2], "x:n" -- :n`,
    "\\",
    variables,
  );
  assertEquals(
    piece!.text,
    `SELECT 5, 'it''s', "it's", x, ':n', a::n, :other, b[1:2], "x:n" -- :n`,
  );
});

Deno.test("split() ends with a text that does not", () => {
  assertEquals(texts("SELECT 'a; b"), ["SELECT 'a; b"]);
  assertEquals(texts("SELECT $$a; b"), ["SELECT $$a; b"]);
  assertEquals(texts("/* a; b"), []);
});

Deno.test("unfinished() waits for the semicolon", () => {
  assertEquals(
    ["SELECT 1", "SELECT 1;", "", "-- a", "\\dt", "SELECT 1; SELECT ';"].map((
      text,
    ) => unfinished(text, "\\")),
    [true, false, false, false, false, true],
  );
});
