import { readCSV, readJSON } from "./import.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

function assertThrows(f: () => unknown, message: string): void {
  try {
    f();
  } catch (error) {
    if ((error as Error).message.includes(message)) return;
    throw error;
  }
  throw new Error(`Expected an error with ${message}`);
}

Deno.test("readCSV() reads quotes, lines and empty fields", () => {
  const rows = [
    ...readCSV('\ufeffa,b\r\n"x, ""y""","two\nlines"\r\n,\n\nlast,'),
  ];
  assertEquals(rows, [
    { fields: ["a", "b"], line: 1 },
    { fields: ['x, "y"', "two\nlines"], line: 2 },
    { fields: ["", ""], line: 4 },
    { fields: [""], line: 5 },
    { fields: ["last", ""], line: 6 },
  ]);
  assertThrows(() => [...readCSV('a\n"b')], "line 2: a quoted field");
});

Deno.test("readCSV() takes other separators", () => {
  const rows = [...readCSV("a||b;c||d;", "||", ";")];
  assertEquals(rows.map((row) => row.fields), [["a", "b"], ["c", "d"]]);
});

Deno.test("readJSON() reads an array, one object and lines", () => {
  assertEquals(
    readJSON('[{"a": 1}, {"b": [true], "a": null}, 7]'),
    {
      columns: ["a", "b", "value"],
      rows: [[1, null, null], [null, "[true]", null], [null, null, 7]],
    },
  );
  assertEquals(readJSON('{"a": 1}'), { columns: ["a"], rows: [[1]] });
  assertEquals(readJSON('{"a": 1}\n\n{"a": 2}\n').rows, [[1], [2]]);
  assertThrows(() => readJSON('{"a": 1}\n{"a": }'), "line 2");
  assertThrows(() => readJSON("{"), "JSON");
});
