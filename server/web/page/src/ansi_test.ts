import { Ansi, indexed } from "./ansi.ts";
import { deepStrictEqual as equal } from "node:assert/strict";

const texts = (lines: { text: string }[][]) =>
  lines.map((l) => l.map((s) => s.text).join(""));

Deno.test("lines are written over, and their rest erased", () => {
  const a = new Ansi();
  equal(texts(a.write("10%\r20%\nabc\b\bX\nlong\rs\x1b[K\n\ta")), [
    "20%",
    "aXc",
    "s",
  ]);
  equal(texts([a.line()]), ["        a"]);
});

Deno.test("colours and other attributes", () => {
  const [line] = new Ansi().write(
    "\x1b[1;31mred\x1b[0m \x1b[38;5;200mp\x1b[48;2;1;2;300mq\n",
  );
  equal(texts([line!]), ["red pq"]);
  equal(line!.map((s) => [s.style.fg, s.style.bg, s.style.bold]), [
    [1, undefined, true],
    [undefined, undefined, undefined],
    [200, undefined, undefined],
    [200, "#01022c", undefined],
  ]);
  equal(indexed(196), "rgb(255 0 0)");
  equal(indexed(232), "rgb(8 8 8)");
});

Deno.test("sequences that come in parts, or that nobody knows, are not shown", () => {
  const a = new Ansi();
  equal(a.write("a\x1b"), []);
  equal(a.write("[3"), []);
  equal(texts(a.write("1mb\x1b]0;title\x07c\x1b[?25ld\x1b[5;5He\x00\x07f\n")), [
    "abcdef",
  ]);
});

Deno.test("hostile output stays within bounds", () => {
  const a = new Ansi();
  const lines = a.write("x".repeat(25_000) + "\x1b[99999999Cy\n");
  equal(lines.length, 4);
  for (const line of lines) {
    if (texts([line])[0]!.length > 10_001) throw new Error("a long line");
  }
  a.write("\x1b]" + "z".repeat(1000));
  for (let i = 0; i < 10; i++) a.write("z".repeat(1000));
  equal(texts(a.write("\n")).length, 1);
});

Deno.test("standard error is told apart", () => {
  const a = new Ansi();
  a.write("out ");
  equal(a.write("err\n", true)[0]!.map((s) => Boolean(s.style.error)), [
    false,
    true,
  ]);
});
