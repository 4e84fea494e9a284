import { formatTime, type Time } from "./strftime.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

function at(iso: string, offset = 0): Time {
  const date = new Date(`${iso}Z`);
  return {
    seconds: date.getUTCSeconds(),
    minutes: date.getUTCMinutes(),
    hours: date.getUTCHours(),
    day: date.getUTCDate(),
    month: date.getUTCMonth(),
    year: date.getUTCFullYear(),
    weekday: date.getUTCDay(),
    dayOfYear: Math.floor(
      (date.getTime() - Date.UTC(date.getUTCFullYear(), 0)) / 86_400_000,
    ),
    offset,
  };
}

// What the date command of GNU writes for these.
for (
  const [iso, format, expected] of [
    ["2024-02-29T13:05:09", "%Y-%m-%d %H:%M:%S", "2024-02-29 13:05:09"],
    [
      "2024-02-29T13:05:09",
      "%c|%x|%X|%D|%F|%T|%R",
      "Thu Feb 29 13:05:09 2024|02/29/24|13:05:09|02/29/24|2024-02-29|13:05:09|13:05",
    ],
    [
      "2024-02-03T00:05:09",
      "%a %A %b %B %h %d %e %I %p %j %u %w",
      "Sat Saturday Feb February Feb 03  3 12 AM 034 6 6",
    ],
    [
      "2024-02-03T12:00:00",
      "%I %p %r %C %y %n%t%%",
      "12 PM 12:00:00 PM 20 24 \n\t%",
    ],
    ["2021-01-03T00:00:00", "%U %V %W %G %g", "01 53 00 2020 20"],
    ["2018-12-31T00:00:00", "%U %V %W %G %g", "52 01 53 2019 19"],
    ["2020-12-31T00:00:00", "%U %V %W %G %u", "52 53 52 2020 4"],
    ["2016-01-01T00:00:00", "%U %V %W %G", "00 53 00 2015"],
    ["1970-01-02T00:00:01", "%s %Ey %Od %k", "86401 70 02 %k"],
  ] as const
) {
  Deno.test(`formatTime(): ${format} of ${iso}`, () => {
    assertEquals(formatTime(format, at(iso)), expected);
  });
}

Deno.test("formatTime(): offsets from UTC", () => {
  assertEquals(formatTime("%z %Z", at("2024-01-01T00:00:00")), "+0000 UTC");
  assertEquals(formatTime("%z", at("2024-01-01T00:00:00", -12_600)), "-0330");
});
