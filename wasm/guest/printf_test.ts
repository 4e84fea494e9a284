import { printf } from "./printf.ts";

function equal(got: unknown, want: unknown): void {
  if (got !== want) throw new Error(`got ${got}, want ${want}`);
}

Deno.test("patterns are filled in", () => {
  equal(
    printf("%05d|%-5s|%5s|%.2f|%x|%%", [42, "ab", "cd", 3.14159, 255]),
    "00042|ab   |   cd|3.14|ff|%",
  );
  equal(printf("%+d %+d % d", [1, -1, 2]), "+1 -1  2");
  equal(printf("%,d %,.2f", [1234567, -1234.5]), "1,234,567 -1,234.50");
  equal(printf("%2$s %1$s", ["a", "b"]), "b a");
  equal(printf("%06.2f", [-1.5]), "-01.50");
  equal(printf("%e %c", [12345.678, "x"]), "1.234568e+04 x");
});
