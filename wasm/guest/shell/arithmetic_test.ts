import { ArithmeticError, evaluate } from "./arithmetic.ts";

function run(text: string, variables: Record<string, string> = {}): string {
  return evaluate(text, {
    get: (name, index) =>
      variables[index === undefined ? name : `${name}[${index}]`] ?? "",
    set: (name, index, value) =>
      void (variables[index === undefined ? name : `${name}[${index}]`] =
        value),
  }).toString();
}

function assertEquals(actual: unknown, expected: unknown): void {
  if (actual !== expected) {
    throw new Error(`Expected ${expected}, got ${actual}`);
  }
}

Deno.test("operators bind as C's do", () => {
  for (
    const [text, value] of Object.entries({
      "1 + 2 * 3": "7",
      "2 ** 3 ** 2": "512",
      "-2 ** 2": "4",
      "7 / 2 * 2": "6",
      "-7 % 3": "-1",
      "1 << 2 + 1": "8",
      "5 & 3 | 8 ^ 1": "9",
      "1 < 2 == 1": "1",
      "!0 + ~0": "0",
      "1 ? 2 : 0 ? 3 : 4": "2",
      "(1, 2, 3)": "3",
      "0 && 1 || 1": "1",
      "": "0",
    })
  ) assertEquals(run(text), value);
});

Deno.test("numbers have bases, and wrap at 64 bits", () => {
  assertEquals(
    run("0x1F + 017 + 2#101 + 36#z + 64#_"),
    String(31 + 15 + 5 + 35 + 63),
  );
  assertEquals(run("9223372036854775807 + 1"), "-9223372036854775808");
});

Deno.test("variables are read as expressions, and set", () => {
  const variables: Record<string, string> = { a: "b + 1", b: "2" };
  assertEquals(run("a * 2", variables), "6");
  assertEquals(run("c = b++ + ++b, c += 1, x[1] = c", variables), "7");
  assertEquals(`${variables.b} ${variables.c} ${variables["x[1]"]}`, "4 7 7");
});

Deno.test("what is no expression says where it is wrong", () => {
  for (
    const [text, message] of Object.entries({
      "1 / 0": '1 / 0: division by 0 (error token is "0")',
      "1 +": '1 +: syntax error: operand expected (error token is "+")',
      "08": '08: value too great for base (error token is "08")',
      "1 2": '1 2: syntax error in expression (error token is "2")',
      "2 ** -1": '2 ** -1: exponent less than 0 (error token is " ")',
    })
  ) {
    let said = "nothing";
    try {
      run(text);
    } catch (e) {
      if (!(e instanceof ArithmeticError)) throw e;
      said = e.message;
    }
    assertEquals(said, message);
  }
});

Deno.test("a variable that is itself ends", () => {
  let said = "";
  try {
    run("x", { x: "x + 1" });
  } catch (e) {
    said = (e as Error).message;
  }
  if (!/recursion level|call stack/.test(said)) {
    throw new Error(`it said ${said}`);
  }
});
