import { OptionError, optionWords, readOptions, split } from "./options.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

Deno.test("options are in the comments before the first code", () => {
  assertEquals(optionWords("// rillbox: -O2 a.c\nint x; // rillbox: -O3"), [
    "-O2",
    "a.c",
  ]);
  assertEquals(
    optionWords("/* rillbox: -O2 */\n// text\n/*\n * rillbox: -lm\n */\n"),
    ["-O2", "-lm"],
  );
  assertEquals(optionWords("#include <x>\n// rillbox: -O2"), []);
  assertEquals(optionWords("\ufeff\n\n// see rillbox: -O2"), []);
});

Deno.test("words are split as a shell splits them", () => {
  assertEquals(split(`-DA="x y" '-DB="z"' c\\ d`), [
    "-DA=x y",
    '-DB="z"',
    "c d",
  ]);
});

Deno.test("options become the compiler's flags", () => {
  const read = readOptions(
    "c",
    split("-std=c99 -Ofast -I inc -DX=1 -U Y -Wall -lm lib/a.c -s"),
    () => true,
  );
  assertEquals(read.flags.standard, "c99");
  assertEquals(read.flags.optimize, "-O3");
  assertEquals(read.flags.other.slice(-7), [
    "-I",
    "/workspace/inc",
    "-D",
    "X=1",
    "-U",
    "Y",
    "-Wall",
  ]);
  assertEquals(read.sources, ["/workspace/lib/a.c"]);
  assertEquals([read.strip, read.flags.lines], [true, false]);
  assertEquals(
    readOptions("c", ["-fno-sanitize=all"], () => true).flags.checks,
    "",
  );
});

Deno.test("what reaches further is refused", () => {
  for (
    const words of [
      "-pthread",
      "-lpthread",
      "-fopenmp",
      "-fplugin=x.so",
      "-Xclang -load",
      "-Xlinker x",
      "-Wl,-u,x",
      "-o x",
      "-ox",
      "-S",
      "-c",
      "@options",
      "../x.c",
      "/etc/x.c",
      "-I/usr",
      "-I../..",
      "-include /etc/passwd",
      "missing.c",
      "data.txt",
      "-lssl",
      "-std=c++17",
      "-std=c98",
      "-O9",
      "-D",
      "-fsanitize=address",
      "-fmodules",
      "-mllvm -x",
    ]
  ) {
    let refused = false;
    try {
      readOptions("c", split(words), (path) => path !== "/workspace/missing.c");
    } catch (error) {
      if (!(error instanceof OptionError)) throw error;
      refused = true;
    }
    assertEquals([words, refused], [words, true]);
  }
});
