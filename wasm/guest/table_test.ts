import {
  type Cell,
  distinct,
  type Mode,
  Output,
  Shown,
  visible,
  width,
} from "./table.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

function make(
  columns: string[],
  rows: Cell[][],
  mode: Mode = "column",
): { output: Output; text: string; writes: number } {
  let text = "", writes = 0;
  const output = new Output(
    columns,
    { mode, widths: [], table: "t" },
    (piece) => {
      text += piece;
      writes++;
    },
  );
  for (const row of rows) output.row(row);
  output.end();
  return { output, text, writes };
}

Deno.test("a table has its numbers at the right and its texts at the left", () => {
  const { text } = make(["n", "text", "mixed"], [
    [1, "a", 1],
    [1000n, null, "x"],
    [null, "日本", new Shown("2.0", 2, true)],
  ]);
  assertEquals(
    text,
    "   n  text  mixed\n----  ----  -----\n   1  a     1\n1000  NULL  x\nNULL  日本  2.0\n",
  );
});

Deno.test("a result set with no rows says so", () => {
  assertEquals(make(["a"], []).text, "a\n-\n(no rows)\n");
  assertEquals(make(["a"], [], "json").text, "[]\n");
  assertEquals(make(["a"], [], "csv").text, "a\n");
});

Deno.test("rows beyond the first are printed as they come", () => {
  let text = "";
  const output = new Output(
    ["n"],
    { mode: "column", widths: [], table: "t" },
    (piece) => text += piece,
  );
  for (let n = 0; n < 1000; n++) output.row([n]);
  for (let n = 0; n < 20_000; n++) output.row([123456]);
  if (text.length < 100_000) throw new Error("nothing was written yet");
  output.end();
  assertEquals(text.split("\n").length, 21_003);
  assertEquals(output.value().length, 1000);
  if (!output.html().includes("<p>200 of 21000 rows</p>")) {
    throw new Error(output.html().slice(-200));
  }
});

Deno.test("a long value does not make its column wide", () => {
  const { text } = make(["a", "b"], [["x".repeat(500), 1], ["y", 2]]);
  assertEquals(text.split("\n")[3], "y  2");
});

Deno.test("the value has what JSON can hold", () => {
  const { output } = make(["a", "a", "__proto__"], [
    [2n ** 60n, 12n, new Uint8Array([0, 255])],
    [Infinity, new Shown("0.10", "0.10"), true],
  ]);
  assertEquals(
    JSON.stringify(output.value()),
    '[{"a":"1152921504606846976","a_2":12,"__proto__":"00ff"},' +
      '{"a":"Infinity","a_2":"0.10","__proto__":true}]',
  );
});

Deno.test("the value is bounded by its text too", () => {
  const { output } = make(["a"], [["x"], ["y".repeat(1 << 20)], ["z"]]);
  assertEquals(output.value(), [{ a: "x" }]);
});

Deno.test("what is shown is escaped", () => {
  const { output } = make(["<b>"], [["<script>&'\""]]);
  const html = output.html();
  if (/<b>|<script>/.test(html)) throw new Error(html);
});

Deno.test("visible() leaves nothing that a terminal obeys", () => {
  assertEquals(visible("a\n\t\x1b[31m\x7f\x9b"), "a\\n\\t\\x1b[31m\\x7f\\x9b");
});

Deno.test("width() counts a terminal's columns", () => {
  assertEquals(
    ["abc", "é", "e\u0301", "日本", "🎈", "ｱ"].map(width),
    [3, 1, 1, 4, 2, 1],
  );
});

Deno.test("distinct() gives each name once", () => {
  assertEquals(distinct(["a", "a", "a_2", "a"]), ["a", "a_2", "a_2_2", "a_3"]);
});

Deno.test("other forms keep a value whole", () => {
  const row: Cell[] = ['a,"b"\n', null, new Uint8Array([1]), 5n];
  const names = ["p", "q", "r", "s"];
  assertEquals(
    make(names, [row], "csv").text,
    'p,q,r,s\n"a,""b""\n",,X\'01\',5\n',
  );
  assertEquals(
    make(names, [row], "insert").text,
    "INSERT INTO t VALUES('a,\"b\"\n',NULL,X'01',5);\n",
  );
  assertEquals(
    make(names, [row], "jsonl").text,
    '{"p":"a,\\"b\\"\\n","q":null,"r":"01","s":5}\n',
  );
  assertEquals(
    make(["a|b"], [["c|d"]], "markdown").text,
    "| a\\|b |\n|------|\n| c\\|d |\n",
  );
});
