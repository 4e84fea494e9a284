import { uncaught } from "./phperror.ts";
import { isUnfinished, programOf, scriptOf } from "./phptext.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

Deno.test("scriptOf() shows the value of an expression, and of nothing else", () => {
  const shown = (cell: string) => scriptOf(cell, true).includes("var_dump");
  for (
    const cell of ["$x", "1 + 2", "f(3)  ", "[1, 2]", '"a;"', "$x // the value"]
  ) {
    assertEquals([cell, shown(cell)], [cell, true]);
  }
  for (
    const cell of [
      "",
      "$x = 1;",
      "echo 1",
      "Echo 1",
      "if (1) { f(); }",
      "$x = 1; // so",
      "$x = 1; # so\n",
      '$u = "http://x";',
      "$x = 1; /* so */",
      "<?php $x",
    ]
  ) {
    assertEquals([cell, shown(cell)], [cell, false]);
  }
  assertEquals(scriptOf("echo 1", true), "<?php echo 1;");
  assertEquals(scriptOf("1", false), "<?php 1");
});

Deno.test("isUnfinished() sees brackets, strings and comments that have no end", () => {
  for (
    const text of [
      "function f() {",
      "f(1,",
      "[",
      '"abc',
      '"ab\\"',
      "'it",
      "/* so",
      "/*/",
      "<<<A\nb",
      "<<<'A'\nb\nAB",
      "if (1) { // }",
      "#[Attribute",
    ]
  ) assertEquals([text, isUnfinished(text)], [text, true]);
  for (
    const text of [
      "",
      "$x",
      "$x = [1, (2)];",
      '"a { b";',
      "'\\\\';",
      "// {",
      "# (",
      "/* { */ 1;",
      "/**/",
      "<<<A\nb {\nA;",
      "}",
    ]
  ) assertEquals([text, isUnfinished(text)], [text, false]);
});

Deno.test("uncaught() finds the error that PHP ended by", () => {
  const traceback = `Fatal error: Uncaught App\\Broken: two
lines in /workspace/main.php:8
Stack trace:
#0 {main}
  thrown in /workspace/main.php on line 8`;
  assertEquals(
    uncaught(`\nWarning: x in /workspace/main.php on line 1\n\n${traceback}\n`),
    { name: "App\\Broken", message: "two\nlines", traceback },
  );
  const name = (text: string) => uncaught(text)?.name;
  assertEquals(
    name("Parse error: syntax error, x in /a.php on line 1"),
    "ParseError",
  );
  assertEquals(
    name("Fatal error: Out of memory (allocated 1) in x"),
    "OutOfMemory",
  );
  assertEquals(
    name("Fatal error: Maximum call stack size reached. Infinite recursion?"),
    "StackOverflow",
  );
  assertEquals(name("Fatal error: Cannot redeclare f() in x"), "FatalError");
  assertEquals(name("Warning: a Fatal error: b"), undefined);
});

Deno.test("a program without tags is PHP", () => {
  assertEquals(programOf("echo 1;"), "<?php echo 1;");
  assertEquals(programOf("a <?= 1 ?>"), "a <?= 1 ?>");
  assertEquals(programOf("<p>text</p>"), "<p>text</p>");
});
