import { extendedRegex, isPattern, matches, quotePattern } from "./pattern.ts";
import { basic } from "./programs/grep.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

Deno.test("patterns match whole texts", () => {
  const table: [string, string, boolean][] = [
    ["*.txt", "a.txt", true],
    ["*.txt", "a.txtx", false],
    ["[a-c]?", "bz", true],
    ["[!a-c]", "b", false],
    ["[]x]", "]", true],
    ["[[:digit:]]*", "7up", true],
    ["\\*", "*", true],
    ["\\*", "a", false],
    ["@(a|bc)*", "bcd", true],
    ["+([0-9])", "123", true],
    ["!(*.txt)", "a.md", true],
    ["!(*.txt)", "a.txt", false],
    ["a!(b)c", "abc", false],
    ["a!(b)c", "axc", true],
    ["*", "two\nlines", true],
    ["?", "ü", true],
    ["[&~-]", "~", true],
    ["a.b", "axb", false],
  ];
  for (const [pattern, text, is] of table) {
    assertEquals([pattern, text, matches(pattern, text)], [pattern, text, is]);
  }
});

Deno.test("what was quoted has no wildcards", () => {
  const text = "a*[b]?(c)\\!";
  assertEquals(isPattern(quotePattern(text), true), false);
  assertEquals(matches(quotePattern(text), text), true);
});

Deno.test("POSIX regular expressions, extended and basic", () => {
  assertEquals(extendedRegex("^([[:alpha:]]+)[]/]{2}$").test("ab]/"), true);
  assertEquals(extendedRegex("a{,2}b{x").test("aab{x"), true);
  assertEquals(basic("a\\(b*\\)c+").exec("abbc+")?.[1], "bb");
  assertEquals(basic("*a\\{2\\}").test("*aa"), true);
  assertEquals(basic("x\\|y").test("y"), true);
  assertEquals(basic("a|b").test("b"), false);
});
