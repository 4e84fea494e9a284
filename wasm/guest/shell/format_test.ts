import { format } from "./format.ts";
import { parseDate, strftime } from "./time.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

Deno.test("printf's directives, as C's", () => {
  const table: [string, string[], string][] = [
    ["%d %i %u", ["-5", "0x10", "7"], "-5 16 7"],
    ["%5.1f|%-6s|%06.2f", ["3.14159", "ab", "-1.5"], "  3.1|ab    |-01.50"],
    ["%e %g %g", ["12345.678", "0.0001", "1e10"], "1.234568e+04 0.0001 1e+10"],
    ["%.1f %.0f %.0f", ["70.25", "2.5", "3.5"], "70.2 2 4"],
    ["%x %X %o %#x", ["255", "255", "8", "255"], "ff FF 10 0xff"],
    ["%c%c", ["abc", "x"], "ax"],
    ["%s-", ["a", "b", "c"], "a-b-c-"],
    ["%s %d\n", ["x"], "x 0\n"],
    ["%%\\t%b", ["a\\nb"], "%\ta\nb"],
    ["%.2s|%*d", ["abcdef", "4", "7"], "ab|   7"],
    ["%d", ["'A"], "65"],
  ];
  for (const [template, args, text] of table) {
    assertEquals([template, format(template, args, () => {}).text], [
      template,
      text,
    ]);
  }
});

Deno.test("a wrong number is told, and counts as what it begins with", () => {
  const said: string[] = [];
  assertEquals(format("%d", ["12x"], (m) => said.push(m)), {
    text: "12",
    status: 1,
  });
  assertEquals(said, ["12x: invalid number"]);
});

Deno.test("dates are understood as date -d does", () => {
  const now = new Date("2024-05-15T10:20:30Z");
  for (
    const [text, want] of Object.entries({
      "2024-02-28 + 2 days": "2024-03-01 00:00:00",
      "tomorrow": "2024-05-16 10:20:30",
      "next friday": "2024-05-17 00:00:00",
      "last monday": "2024-05-13 00:00:00",
      "2 hours ago": "2024-05-15 08:20:30",
      "1 Jan 2024 13:00": "2024-01-01 13:00:00",
      "Mar 5, 2023 5pm": "2023-03-05 17:00:00",
      "2024-06-01T10:00:00+02:00": "2024-06-01 08:00:00",
      "2024-01-31 1 month": "2024-03-02 00:00:00",
      "12/25/2024": "2024-12-25 00:00:00",
      "20240229": "2024-02-29 00:00:00",
      "@86400": "1970-01-02 00:00:00",
    })
  ) {
    const found = parseDate(text, now);
    assertEquals([text, found && strftime("%F %T", found)], [text, want]);
  }
  assertEquals([
    parseDate("nonsense", now),
    parseDate("2024-02-30", now),
    parseDate("2024-13-01", now),
  ], [undefined, undefined, undefined]);
});

Deno.test("strftime's weeks, zones and flags", () => {
  const when = new Date("2024-12-30T05:06:07Z");
  assertEquals(
    strftime("%G-W%V %j %U %W %-d %_m %^a %s", when),
    "2024-W01 365 52 53 30 12 MON 1735535167".replace("2024-W01", "2025-W01"),
  );
  assertEquals(
    strftime("%F %T %z %:z", when, "America/New_York"),
    "2024-12-30 00:06:07 -0500 -05:00",
  );
});
